"""Pages of the admin, and what is written on them."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

DEAD = "/admin/alkstore_django/deadjob/"
LOCKS = "/admin/alkstore_django/lock/"
PAUSES = "/admin/alkstore_django/queuecontrol/"
SCHEDULES = "/admin/alkstore_django/scheduledtask/"
WORKERS = "/admin/alkstore_django/workerprocess/"
EVIL = "<img src=x onerror=alert(1)></script><script>alert(1)</script>"


def task(name: str, *args: object) -> str:
    return json.dumps({"__honker_task__": {"task": name, "args": args, "kwargs": {}}})


def page(client: Client, url: str, **data: Any) -> str:
    """The text of a page, as the server sent it."""
    response = client.get(url, data)
    assert response.status_code == 200, response.headers
    return response.content.decode()


def reader(*permissions: str) -> Client:
    """A browser of a member of the staff who has these permissions only."""
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def column(text: str, name: str) -> list[str]:
    """The cells of a column of a list, without markup."""
    cells = re.findall(rf'class="field-{name}[^>]*>(.*?)</t[dh]>', text, re.DOTALL)
    return [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in cells]


def field(text: str, name: str) -> str:
    """The value of a field of a page, without markup."""
    _before, found, rest = text.rpartition(f"field-{name}")
    assert found, f"no {name} in {text}"
    value = re.search(r'class="readonly">(.*?)</div>', rest, re.DOTALL)
    assert value, rest
    return unescape(re.sub(r"<[^>]*>", "", value[1]))


def as_shown(client: Client, url: str) -> dict[str, str]:
    """What a browser sends back of the form on a page, before anybody has typed."""
    response = client.get(url)
    data = {each.name: each.value() for each in response.context["adminform"].form}
    hidden = r'<input type="hidden" name="(initial-\w+)"(?: value="([^"]*)")?'
    data |= {name: unescape(value) for name, value in re.findall(hidden, response.content.decode())}
    return {name: str(value) for name, value in data.items() if value not in (None, False)}
