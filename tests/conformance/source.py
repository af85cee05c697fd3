"""Django's own tests of ``django.tasks``, taken from its source distribution: no wheel has them.

They are fetched once for each version, and never kept in this repository. The copy that is run differs from
the original in the words listed here, and in nothing else. The backport's distribution has no tests: it
gets those of Django 6.0, whose names for the same things are translated.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path

import django

from alkstore_django.compat import NATIVE

VERSION = django.__version__ if NATIVE else "6.0.10"
HOME = Path(__file__).parents[2] / ".tox" / "django-tests"
TESTS = re.compile(r"django-[^/]+/tests/(tasks/\w+\.py)", re.IGNORECASE)

WORDS = {
    "django.tasks.backends.dummy.DummyBackend": "tests.conformance.shims.KeepingBackend",
    "from django.tasks.backends.dummy import DummyBackend": (
        "from tests.conformance.shims import KeepingBackend as DummyBackend"
    ),
    "django.tasks.backends.immediate.ImmediateBackend": "tests.conformance.shims.DrainedBackend",
    "from django.tasks.backends.immediate import ImmediateBackend": (
        "from tests.conformance.shims import DrainedBackend as ImmediateBackend"
    ),
    "SimpleTestCase": "TransactionTestCase",  # ours keep their tasks in the database
    "available_apps = []": "available_apps = None",
}

WORDS_OF_THE_BACKPORT = {
    "django.tasks": "django_tasks",
    "InvalidTaskBackend": "InvalidTaskBackendError",
    "InvalidTask,": "InvalidTaskError,",
    "import InvalidTask\n": "import InvalidTaskError\n",
    "does not support async Tasks.": "does not support async tasks.",
}


def provide() -> Path:
    """The folder of the translated tests, to be put on ``sys.path``; fetches them if need be."""
    words = WORDS if NATIVE else WORDS | WORDS_OF_THE_BACKPORT
    folder = HOME / (VERSION if NATIVE else f"{VERSION}-backport")
    original = HOME / VERSION / "original"
    if not original.is_dir():
        fetch(original)
    texts = {path.name: path.read_text() for path in (original / "tasks").iterdir()}
    if missing := [word for word in words if not any(word in text for text in texts.values())]:
        raise AssertionError(f"Django's tests have no {missing[0]!r} any more: translate them anew.")
    (folder / "tasks").mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write(folder / "tasks" / name, translated(text, words))
    return folder


def translated(text: str, words: dict[str, str]) -> str:
    for theirs, ours in words.items():
        text = text.replace(theirs, ours)
    return text


def write(path: Path, text: str) -> None:
    """Other runs may be reading it."""
    if not path.exists() or path.read_text() != text:
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(text)
        scratch.replace(path)


def fetch(target: Path) -> None:
    """Unpack the tests of tasks from the source distribution, which pip finds where it finds packages."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME) as scratch:
        options = "--quiet --no-deps --no-binary=Django --ignore-requires-python"
        # pip looks into the package before it hands it out; what that needs may be here already.
        options += " --no-build-isolation" if find_spec("setuptools") else ""
        wanted = [f"--dest={scratch}", f"Django=={VERSION}"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        subprocess.run(
            [sys.executable, "-m", "pip", "download", *options.split(), *wanted], env=environment, check=True
        )
        (archive,) = Path(scratch).glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                if found := TESTS.fullmatch(member.name):
                    member.name = found[1]
                    tar.extract(member, Path(scratch) / "tests", filter="data")
        try:
            (Path(scratch) / "tests").rename(target)
        except OSError:
            if not target.is_dir():  # another run was faster
                raise
