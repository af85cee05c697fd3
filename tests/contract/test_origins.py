"""Language and time zone of the enqueuing code, restored around the task."""

from __future__ import annotations

import json
from datetime import timedelta
from datetime import timezone as fixed
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from django.utils import timezone, translation

from alkstore_django.queues import Queue
from alkstore_django.testing import drain
from tests.app import told
from tests.factories import columns, live

pytestmark = pytest.mark.django_db

DEFAULT = ["en-us", "UTC"]


def ours(result: Any) -> Any:
    return json.loads(columns(int(result.id), "payload")[0]).get("alkstore")


def test_the_default_is_not_stored() -> None:
    with translation.override("en-us"), timezone.override("UTC"):
        assert ours(told.where.enqueue()) is None
    assert drain()[0].value == DEFAULT


@pytest.mark.parametrize("task", [told.where, told.where_atomic], ids=["sync", "atomic"])
def test_restored(task: Any) -> None:
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        result = task.enqueue()
    assert ours(result) == {"language": "de", "time_zone": "Asia/Tokyo"}
    assert drain()[0].value == ["de", "Asia/Tokyo"]
    assert [translation.get_language(), timezone.get_current_timezone_name()] == DEFAULT


def test_restored_in_a_coroutine_and_its_threads() -> None:
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        told.where_async.enqueue()
    assert drain()[0].value == ["de", "Asia/Tokyo"] * 2


def test_one_of_them() -> None:
    with translation.override("pt-br"):
        assert ours(told.where.enqueue()) == {"language": "pt-br"}
    with timezone.override("Europe/Paris"):
        assert ours(told.where.enqueue()) == {"time_zone": "Europe/Paris"}
    assert [ran.value for ran in drain()] == [["pt-br", "UTC"], ["en-us", "Europe/Paris"]]


def test_no_language() -> None:
    with translation.override(None):
        assert ours(told.where.enqueue()) == {"language": ""}
    assert drain()[0].value == [None, "UTC"]


@pytest.mark.parametrize(
    ("zone", "stored", "found"),
    [
        (fixed(timedelta(hours=2)), 120, "+0200"),
        (timezone.get_fixed_timezone(-90), -90, "-0130"),
        (ZoneInfo("UTC"), None, "UTC"),
    ],
    ids=str,
)
def test_zones_of_other_kinds(zone: Any, stored: Any, found: str) -> None:
    with timezone.override(zone):
        result = told.where.enqueue()
    assert (ours(result) or {}).get("time_zone") == stored
    assert drain()[0].value[1] == found


def test_the_defaults_are_those_of_the_settings() -> None:
    with override_settings(LANGUAGE_CODE="de", TIME_ZONE="Asia/Tokyo"):
        with translation.override("de"), timezone.override("Asia/Tokyo"):
            assert ours(told.where.enqueue()) is None
        with translation.override("en-us"):
            assert ours(told.where.enqueue()) == {"language": "en-us"}


def test_many() -> None:
    with translation.override("de"):
        for result in told.where.enqueue_many([(), ()]):
            assert ours(result) == {"language": "de"}
    assert [ran.value[0] for ran in drain()] == ["de", "de"]


def test_it_is_no_part_of_the_task() -> None:
    with translation.override("de"):
        result = told.where.enqueue()
    assert told.where.get_result(result.id).task == result.task == told.where


@pytest.mark.parametrize("code", ["xx-unknown", "../../etc", "de\x00", "x" * 5000, 5, True, ["de"], {}, None])
def test_languages_that_nobody_knows(code: Any) -> None:
    put({"language": code, "time_zone": "Asia/Tokyo"})
    assert drain()[0].value == ["en-us", "Asia/Tokyo"]


@pytest.mark.parametrize(
    "zone",
    ["Mars/Olympus", "../../etc/passwd", "/etc/localtime", "Europe", "", "\x00", 5.5, True, 10**9, [], {}],
)
def test_zones_that_nobody_knows(zone: Any) -> None:
    put({"language": "de", "time_zone": zone})
    assert drain()[0].value == ["de", "UTC"]


def put(extra: Any) -> None:
    """What another program, or an older or newer version, may have written."""
    body = {"__honker_task__": {"task": "tests.app.told.where", "args": [], "kwargs": {}}, "alkstore": extra}
    live("default", json.dumps(body, separators=(",", ":")))


def test_other_queues_of_payloads_have_none_of_it(queue: Queue) -> None:
    with translation.override("de"):
        job_id = queue.enqueue({"to": 1})
    assert columns(job_id, "payload") == ('{"to":1}',)
