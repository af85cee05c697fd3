"""Somebody finds a dead letter in the admin, reads why it died, mends the cause and requeues it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer
from selenium.webdriver import Chrome

from alkstore_django.models import DeadJob, Lock, Run
from alkstore_django.tasks import task
from tests import factories

from .site import Site

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

EVIL = "<script>document.title = 'taken over'</script>"


@task(max_attempts=2, backoff=0)
def order_paper(sheets: int, note: str) -> int:
    """Fails until there is a group of people who buy paper, and then writes its order into their name."""
    buyers = Group.objects.filter(name="buyers")
    if not buyers:
        raise LookupError(f"nobody buys paper {note}")
    return buyers.update(name=f"buyers of {sheets} sheets")


@pytest.fixture
def site(live_server: LiveServer, chromium: Chrome) -> Iterator[Site]:
    User.objects.create_superuser("operator", password="secret")
    site = Site(chromium, live_server.url)
    site.log_in("operator", "secret")
    yield site
    assert site.complaints() == []


def run_worker() -> None:
    call_command("alkworker", batch=True, verbosity=0)


def test_a_dead_letter_comes_back_to_life(site: Site) -> None:
    job_id = int(order_paper.enqueue(500, note=EVIL).id)
    run_worker()
    assert factories.where(job_id) == "dead"

    site.follow("Dead letters")
    (row,) = site.rows()
    assert row[:5] == [str(job_id), "default", order_paper.module_path, f"nobody buys paper {EVIL}", "2 of 2"]

    site.follow(str(job_id))
    assert f"LookupError: nobody buys paper {EVIL}" in site.text, "the error"
    assert f'"note": "{EVIL}"' in site.text, "the payload"
    assert site.text.count("builtins.LookupError") == 2, "the history of both attempts"
    assert site.chromium.title.startswith("dead letter"), "no script of a payload ran"
    site.unfold("Traceback")
    assert site.text.count("in order_paper") == 2, "once in the error, once unfolded"
    assert site.fits(400)
    assert site.fits(1280)

    Group.objects.create(name="buyers")
    site.press("Requeue")
    assert site.messages == ["1 dead letter was requeued."]
    assert site.rows() == []
    run_worker()
    assert Group.objects.get().name == "buyers of 500 sheets", "the task has done its work"
    assert Run.objects.get(job_id=job_id).status == Run.SUCCEEDED
    assert not DeadJob.objects.exists()


def test_many_are_requeued_after_a_question(site: Site) -> None:
    for number in range(1, 4):
        factories.dead(number, EVIL, last_error=EVIL)
    site.follow("Dead letters")
    site.choose_all("Requeue selected dead letters")
    assert "3 dead letters are to be requeued" in site.text
    assert site.text.count(EVIL) == 6
    assert site.fits(400)

    site.follow("No, take me back")
    assert len(site.rows()) == 3, "nothing was done"

    site.choose_all("Requeue selected dead letters")
    site.press("Yes, requeue")
    assert site.messages == ["3 dead letters were requeued."]
    assert site.rows() == []
    assert [factories.where(number) for number in range(1, 4)] == ["live"] * 3


def test_locks_are_shown(site: Site) -> None:
    Lock.objects.create(name="nightly report", owner="host 1", expires_at=factories.at(60))
    Lock.objects.create(name="over", owner="host 2", expires_at=factories.at(-60))
    site.follow("Locks")
    assert [(row[0], row[1], row[3]) for row in site.rows()] == [
        ("nightly report", "host 1", "held"),
        ("over", "host 2", "expired"),
    ]
    site.follow("nightly report")
    assert "host 1" in site.text
    assert site.fits(400)
