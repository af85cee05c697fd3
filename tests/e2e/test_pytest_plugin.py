"""The pytest plugin in other projects: found by its entry point, and of no weight where nobody uses it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = "alkstore_django.testing.plugin"

WITHOUT_DJANGO = """
import sys

def test_nothing_is_imported_that_nobody_asked_for():
    assert "alkstore_django.testing.plugin" in sys.modules
    ours = {name for name in sys.modules if name.startswith("alkstore_django")}
    assert ours == {"alkstore_django", "alkstore_django.testing", "alkstore_django.testing.plugin"}
    assert not any(name.partition(".")[0] == "django" for name in sys.modules)
"""

WITH_DJANGO = """
import pytest
from tests.app import tasks, told

pytestmark = pytest.mark.django_db

def test_drain(alkstore_drain, alkstore_assert_enqueued, alkstore_assert_not_enqueued):
    result = tasks.add.enqueue(1, 2)
    alkstore_assert_enqueued(tasks.add, args=[1])
    assert [ran.value for ran in alkstore_drain()] == [3]
    alkstore_assert_not_enqueued(tasks.add)
    assert told.make_group.enqueue("later").status == "READY"

def test_immediate(alkstore_immediate):
    assert tasks.add.enqueue(1, 2).return_value == 3
    assert tasks.async_add.enqueue(1, 2).return_value == 3

def test_nothing_is_left():
    from alkstore_django.models import Job
    from alkstore_django.testing import modes
    assert modes._modes == []
    assert not Job.objects.exists()
"""


def run(directory: Path, text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_of_theirs.py").write_text(text)
    (directory / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    paths = os.pathsep.join([str(directory), str(ROOT)])
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        [*command, str(directory)],
        env={**os.environ, "PYTHONPATH": paths, "PYTEST_XDIST_WORKER": "", **environment},
        cwd=directory,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
    )


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """What an installer leaves of ``pyproject.toml``: the entry points."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    place = tmp_path / "alkstore_django-0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: alkstore-django\nVersion: 0\n")
    lines = [
        f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in found.items()) for group, found in groups.items()
    ]
    (place / "entry_points.txt").write_text("\n".join(lines))
    return tmp_path


def test_in_a_project_without_django(installed: Path) -> None:
    done = run(installed, WITHOUT_DJANGO, "-p", "no:django", DJANGO_SETTINGS_MODULE="")
    assert done.returncode == 0, done.stdout


def test_its_fixtures(installed: Path) -> None:
    own = f"{os.environ.get('ALKSTORE_DB_PREFIX', 'alkstore')}_plugin_{os.getpid()}"
    environment = {"ALKSTORE_DB_PREFIX": own, "ALKSTORE_TEST_DIR": str(installed)}
    done = run(
        installed,
        WITH_DJANGO,
        "--ds=tests.settings",
        "--create-db",
        ALKSTORE_TEST_RUNNER="nobody",
        **environment,
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_the_names_of_the_package() -> None:
    from alkstore_django import testing

    for name in testing._PLACES:
        assert callable(getattr(testing, name))
        assert name in dir(testing)
    with pytest.raises(AttributeError, match="has no 'drian'"):
        testing.drian  # noqa: B018
