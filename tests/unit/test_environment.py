"""The environment of the process is put back when that is safe, and caches stay with their thread."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextvars import Context
from pathlib import Path

import pytest
from django.core.cache import caches

from alkstore_django.runtime.environment import Environment
from alkstore_django.runtime.hygiene import CleanSurroundings

NAME = "ALKSTORE_TEST_ENVIRONMENT"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Environment]:
    monkeypatch.delenv(NAME, raising=False)
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        yield Environment()


def test_what_one_task_changed(environment: Environment, caplog: pytest.LogCaptureFixture) -> None:
    before = os.getcwd(), list(warnings.filters)
    os.environ[NAME] = "ours"
    environment.begin("shop.tasks.change")
    os.environ[NAME] = "theirs, and secret"
    os.environ[f"{NAME}_2"] = "new"
    os.chdir(os.sep)
    warnings.simplefilter("ignore")
    environment.end()
    assert (os.environ[NAME], os.environ.get(f"{NAME}_2")) == ("ours", None)
    assert (os.getcwd(), warnings.filters) == before
    assert caplog.messages == [
        "The task shop.tasks.change changed what belongs to the whole process: "
        f"os.environ ({NAME}, {NAME}_2); the working directory; the filters of warnings. Put back."
    ]


def test_what_one_task_deleted(environment: Environment, caplog: pytest.LogCaptureFixture) -> None:
    os.environ[NAME] = "ours"
    environment.begin("delete")
    del os.environ[NAME]
    environment.end()
    assert os.environ[NAME] == "ours"
    assert "secret" not in caplog.text and NAME in caplog.text


def test_not_while_another_task_runs(environment: Environment, caplog: pytest.LogCaptureFixture) -> None:
    """It may have changed it, or count on it."""
    environment.begin("first")
    environment.begin("second")
    os.environ[NAME] = "theirs"
    environment.end()
    assert os.environ[NAME] == "theirs"
    assert not caplog.messages
    environment.end()
    assert NAME not in os.environ
    assert caplog.messages[0].startswith("One of the tasks first, second changed")


def test_what_was_changed_between_tasks_stays(
    environment: Environment, caplog: pytest.LogCaptureFixture
) -> None:
    """By the project's own threads, for example."""
    environment.begin("first")
    environment.end()
    os.environ[NAME] = "the project's"
    environment.begin("second")
    environment.end()
    assert os.environ[NAME] == "the project's"
    assert not caplog.messages


def test_a_directory_that_is_gone(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    environment.begin("first")
    (tmp_path / "gone").rmdir()
    environment.end()
    environment.begin("second")
    os.chdir(tmp_path)
    environment.end()


@pytest.mark.django_db(transaction=True)  # it looks at the connections that there are
def test_caches_stay_with_their_thread() -> None:
    """Contexts are new for each task; a client of a cache that connects to a server is not made anew."""

    def use() -> int:
        with CleanSurroundings("a task"):
            return id(caches["default"])

    assert len({Context().run(use) for _ in range(3)}) == 1
