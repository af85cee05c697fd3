"""``manage.py alkprune``: what it says and what it deletes are the same, and the latter at any time."""

from __future__ import annotations

import json
import signal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from alkstore_django.models import DeadJob, Result
from alkstore_django.pruning import Walk
from alkstore_django.retention import AGED, KINDS
from tests.contract.retaining import DAY, IS_SHARED, dead, event, ids, metadata, notification, prune
from tests.factories import at, live, result, run

pytestmark = pytest.mark.django_db(databases=["default", "other"])


def alkprune(*arguments: object) -> str:
    output = StringIO()
    call_command("alkprune", *map(str, arguments), stdout=output)
    return output.getvalue()


def document(*arguments: object) -> dict[str, dict[str, Any]]:
    """What is said of each kind."""
    found = json.loads(alkprune("--json", *arguments))
    assert list(found) == ["database", "dry_run", "interrupted", "kinds"]
    assert (found["database"], found["interrupted"]) == ("default", False)
    assert found["dry_run"] == ("--dry-run" in arguments)
    return {each.pop("kind"): each for each in found["kinds"]}


def rows() -> None:
    """Something of most kinds that is over, and something that is not."""
    for job_id in (101, 102, 103):
        metadata(dead(job_id, 200 * DAY))
    dead(104, 170 * DAY)
    for job_id in (1, 2):
        run(job_id, expires_at=at(-1))
        result(job_id, expires_at=at(-1))
    run(3, expires_at=at(60))
    for age in (8 * DAY, 6 * DAY):
        notification(age)
        event(age)
    metadata(9_000)
    live()


def test_a_dry_run_counts_what_is_deleted_then() -> None:
    rows()
    with override_settings(ALKSTORE={"NOTIFICATION_TTL": 7 * DAY}):
        told = document("--dry-run")
        assert DeadJob.objects.count() == 4
        done = document()
    counts = {kind: each.pop("would_be_deleted") for kind, each in told.items()}
    assert {kind: each.pop("deleted") for kind, each in done.items()} == counts
    assert told == done
    assert {kind: count for kind, count in counts.items() if count} == {
        "dead": 3,
        "results": 2,
        "runs": 2,
        "notifications": 1,
        "history": 3,
        "metadata": 4,
    }
    assert prune() == {}


def test_its_document() -> None:
    found = document()
    assert list(found) == list(KINDS)
    assert found["dead"] == {"ends": "age", "setting": "DEAD_TTL", "age": 180 * DAY, "deleted": 0}
    assert found["streams"] == {"ends": "age", "setting": "STREAM_TTL", "age": None, "deleted": 0}
    assert found["results"] == {"ends": "expiry", "setting": "RESULT_TTL", "age": None, "deleted": 0}
    assert found["history"] == {"ends": "orphan", "setting": None, "age": None, "deleted": 0}


def test_its_table() -> None:
    dead(101, 200 * DAY)
    text = alkprune("--dry-run")
    head, *lines = text.splitlines()
    assert head.split("  ")[0] == "kind" and head.endswith("would be deleted")
    kept = dict.fromkeys(("results", "runs", "pauses"), "until it ends")
    kept |= {"dead": "180 d", "streams": "for ever", "history": "while it belongs to something"}
    kept["inbox"] = "30 d"
    kept["notifications"] = "for ever" if IS_SHARED else "7 d"
    for line in lines:
        kind, words, count = (part.strip() for part in line.split("  ") if part)
        assert kept.get(kind, words) == words
        assert count == ("1" if kind in ("dead", "history") else "0")
    assert alkprune().splitlines()[0].endswith("  deleted")


@pytest.mark.parametrize(
    ("age", "words"), [(90, "90 s"), (120, "2 min"), (3_600, "1 h"), (90_000, "25 h"), (DAY, "1 d")]
)
def test_ages_in_words(age: int, words: str) -> None:
    with override_settings(ALKSTORE={"DEAD_TTL": age}):
        assert f"dead  {words} " in alkprune("--only", "dead")


def test_only_some_kinds() -> None:
    rows()
    assert list(document("--only", "runs", "--only", "dead")) == ["runs", "dead"]
    assert prune("results") == {"results": 2}
    assert ids(DeadJob) == {104}


def test_an_age_for_once() -> None:
    """Also for what is kept otherwise: who types it asks for it."""
    rows()
    with override_settings(ALKSTORE=dict.fromkeys(AGED.values())):
        arguments = [f"--only={kind}" for kind in AGED]
        assert {each["age"] for each in document("--dry-run", *arguments).values()} == {None}
        found = document("--older-than", "7d", *arguments)
    assert {kind: each["deleted"] for kind, each in found.items()} == {
        "dead": 4,
        "notifications": 1,
        "streams": 1,
        "inbox": 0,
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--older-than=7d"], "--older-than needs --only with dead, notifications, streams, inbox"),
        (["--older-than=7d", "--only=dead", "--only=runs"], "--older-than needs --only with"),
        (["--older-than=0", "--only=dead"], "--older-than"),
        (["--older-than=soon", "--only=dead"], "--older-than"),
        (["--only=letters"], "--only"),
        (["--batch-size=0"], "--batch-size"),
        (["--batch-size=1001"], "--batch-size"),
        (["--database=nowhere"], "There is no database 'nowhere'"),
    ],
)
def test_what_it_refuses(arguments: list[str], words: str) -> None:
    dead(101, 200 * DAY)
    with pytest.raises(CommandError, match=words):
        alkprune(*arguments)
    assert ids(DeadJob) == {101}


def test_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for job_id in range(7):
        result(job_id, expires_at=at(-1))
    sizes = []
    step = Walk.step

    def noted(self: Walk) -> Any:
        sizes.append((found := step(self)).deleted)
        return found

    monkeypatch.setattr(Walk, "step", noted)
    assert document("--only", "results", "--batch-size", 3)["results"]["deleted"] == 7
    assert max(sizes) == 3


def test_of_one_database() -> None:
    result(1, expires_at=at(-1))
    Result.objects.using("other").create(job_id=1, value="1", expires_at=1)
    assert alkprune("--database", "other", "--only", "results").split()[-1] == "1"
    assert (Result.objects.count(), Result.objects.using("other").count()) == (1, 0)


def test_an_interrupt_ends_it_after_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    for job_id in range(10):
        result(job_id, expires_at=at(-1))
    step = Walk.step

    def interrupted(self: Walk) -> Any:
        found = step(self)
        signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(Walk, "step", interrupted)
    output = StringIO()
    with pytest.raises(CommandError, match="Interrupted: the rest is as it was") as caught:
        call_command("alkprune", "--only=results", "--batch-size=4", stdout=output)
    assert caught.value.returncode == 130
    assert output.getvalue().split()[-1] == "4"
    assert Result.objects.count() == 6
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
