"""Settings of the test suite. ALKSTORE_DB chooses the database: sqlite (the default), postgresql or mysql."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import django

from tests.servers import address

DB = os.environ.get("ALKSTORE_DB") or "sqlite"

# pytest-xdist runs the suite in several processes, each with databases of its own: pytest-django puts
# the name of the process behind theirs.
RUNNER = os.environ.get("PYTEST_XDIST_WORKER", "")

# The first process of a run makes the directory; those it starts inherit it, and open the test databases.
CHILD = os.environ.get("ALKSTORE_TEST_RUNNER") == RUNNER
os.environ["ALKSTORE_TEST_RUNNER"] = RUNNER
if "ALKSTORE_TEST_DIR" not in os.environ:
    os.environ["ALKSTORE_TEST_DIR"] = tempfile.mkdtemp(prefix="alkstore-")

    @atexit.register
    def remove_directory(owner: int = os.getpid()) -> None:
        if os.getpid() == owner:  # and not in a fork
            shutil.rmtree(TEST_DIR, ignore_errors=True)


TEST_DIR = Path(os.environ["ALKSTORE_TEST_DIR"])


def _of_the_runner(name: str) -> str:
    return f"{name}_{RUNNER}" if RUNNER else name


def isolation() -> dict[str, Any]:
    """ALKSTORE_ISOLATION, if a test starts a process with it: "repeatable read" or "serializable"."""
    level = os.environ.get("ALKSTORE_ISOLATION")
    if not level:
        return {}
    if DB == "mysql":
        return {"isolation_level": level}
    from psycopg import IsolationLevel

    return {"isolation_level": IsolationLevel[level.upper().replace(" ", "_")]}


def database(name: str) -> dict[str, Any]:
    if DB == "sqlite":
        path = str(TEST_DIR / f"{name}.sqlite3")
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": _of_the_runner(path) if CHILD else path,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
            "TEST": {"NAME": path},
        }
    prefix = os.environ.get("ALKSTORE_DB_PREFIX", "alkstore")  # two runs at once need two prefixes
    test_name = f"test_{prefix}_{name}"
    server = {**address(DB), "NAME": _of_the_runner(test_name) if CHILD else f"{prefix}_{name}"}
    if DB == "postgresql":
        return {
            "ENGINE": "django.db.backends.postgresql",
            **server,
            "OPTIONS": isolation(),
            "TEST": {"NAME": test_name},
        }
    return {
        "ENGINE": "django.db.backends.mysql",
        **server,
        "OPTIONS": {"charset": "utf8mb4", **isolation()},
        "TEST": {"NAME": test_name, "CHARSET": "utf8mb4"},
    }


DATABASES = {"default": database("default"), "other": database("other")}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "alkstore_django",
    "tests.app",
]
if django.VERSION < (6, 0) and importlib.util.find_spec("django_tasks"):
    INSTALLED_APPS.insert(0, "django_tasks")

TASKS = {"default": {"BACKEND": "alkstore_django.backends.AlkstoreBackend", "QUEUES": []}}

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

ROOT_URLCONF = "tests.urls"
STATIC_URL = "static/"
SECRET_KEY = "not a secret: it only signs what the tests make"
ALLOWED_HOSTS = ["*"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
