"""Each test gets a file of its own that we have migrated, a queue of ours on it and honker's beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from alkstore_django.queues import Queue
from tests.interop import honker
from tests.interop.shared import FILE_NAME, SharedFile, opened
from tests.settings import DB


@pytest.fixture(scope="session", autouse=True)
def honker_is_here() -> None:
    if DB != "sqlite":
        pytest.skip("honker knows SQLite only")
    try:
        honker.install()
    except subprocess.CalledProcessError:
        if os.environ.get("ALKSTORE_REQUIRE") == "1":
            raise
        pytest.skip(f"honker {honker.VERSION} cannot be installed here; pip has said why")


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Path:
    """A file that nobody but our ``migrate`` has touched; copy it."""
    path = tmp_path_factory.mktemp("migrated") / FILE_NAME
    with django_db_blocker.unblock(), opened(path):
        call_command("migrate", verbosity=0)
    return path


@pytest.fixture
def empty(tmp_path: Path, django_db_blocker: Any) -> Iterator[SharedFile]:
    """A file that is not there yet."""
    with django_db_blocker.unblock(), opened(tmp_path / FILE_NAME) as file:
        yield file


@pytest.fixture
def shared(empty: SharedFile, migrated: Path) -> SharedFile:
    shutil.copy(migrated, empty.path)
    return empty


@pytest.fixture
def ours(shared: SharedFile) -> Queue:
    """Our side of the queue ``emails``."""
    return Queue("emails")


@pytest.fixture(scope="session")
def honker_process(honker_is_here: None) -> Iterator[honker.HonkerProcess]:
    with honker.process() as process:
        yield process


@pytest.fixture
def theirs(shared: SharedFile, honker_process: honker.HonkerProcess) -> Iterator[honker.HonkerQueue]:
    """honker's side of the queue ``emails``."""
    with honker_process.queue(shared.path, "emails") as queue:
        yield queue


@pytest.fixture
def their_default(shared: SharedFile, honker_process: honker.HonkerProcess) -> Iterator[honker.HonkerQueue]:
    """honker's side of the queue ``default``, to which tasks go."""
    with honker_process.queue(shared.path, "default") as queue:
        yield queue
