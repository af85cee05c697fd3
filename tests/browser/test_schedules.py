"""Somebody makes a schedule in the admin, corrects it, lets it run at once, and pauses it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from alkstore_django import schedules
from alkstore_django.tasks import task

from .site import Site

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@task
def found_a_group(name: str) -> int:
    return int(Group.objects.create(name=name).pk)


def fill(site: Site, **fields: str) -> None:
    for name, text in fields.items():
        box = site.chromium.find_element(By.NAME, name)
        box.clear()
        box.send_keys(text)


def test_the_life_of_a_schedule(live_server: LiveServer, chromium: Chrome) -> None:
    User.objects.create_superuser("operator", password="secret")
    site = Site(chromium, live_server.url)
    site.log_in("operator", "secret")
    site.follow("Schedules")
    site.follow("ADD SCHEDULE")
    known = {
        each.get_attribute("value") for each in chromium.find_elements(By.CSS_SELECTOR, "datalist option")
    }
    assert found_a_group.module_path in known
    fill(site, name="nightly", expression="0 25 * * *", timezone="Europe/Berlin")
    fill(site, task=found_a_group.module_path, args='["night owls"]')
    site.press("Save")
    assert "'25': 25 is out of range; use 0 to 23." in site.text
    assert schedules.list() == []
    assert site.fits(400)

    fill(site, expression="30 2 * * mon-fri")
    site.press("Save")
    assert site.messages == ["The schedule “nightly” was added successfully."]
    (row,) = site.rows()
    assert row[:4] == [
        "nightly",
        "",
        "30 2 * * mon-fri Europe/Berlin\nat 02:30 on Monday to Friday",
        found_a_group.module_path,
    ]
    assert site.fits(400)
    assert site.fits(1280)

    site.follow("nightly")
    assert "at 02:30 on Monday to Friday" in site.text
    assert site.fits(400)
    site.press("Run now")
    assert "A job of each of these schedules is to be put in now." in site.text
    assert site.fits(400)
    site.press("Yes, run now")
    assert site.messages == ["1 job was put in."]
    call_command("alkworker", batch=True, verbosity=0)
    assert Group.objects.get().name == "night owls"

    site.choose_all("Pause selected schedules")
    site.press("Yes, pause")
    assert site.messages == ["1 schedule was paused."]
    assert [each.enabled for each in schedules.list()] == [False]
    assert site.complaints() == []
