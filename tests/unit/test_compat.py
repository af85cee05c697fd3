from __future__ import annotations

import importlib.util
import subprocess
import sys

import django

from alkstore_django import compat


def test_the_names_come_from_django_where_it_has_them() -> None:
    family = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
    assert (family == "django.tasks") == compat.NATIVE
    found = {
        name: value.__module__
        for name, value in vars(compat).items()
        if isinstance(value, type) and value.__module__ != "typing"
    }
    assert {
        "Task",
        "TaskResult",
        "TaskError",
        "BaseTaskBackend",
        "InvalidTask",
        "TaskResultDoesNotExist",
    } <= set(found)
    assert {module for module in found.values() if not module.startswith(f"{family}.")} == set()


def test_the_constants() -> None:
    assert (compat.DEFAULT_TASK_BACKEND_ALIAS, compat.DEFAULT_TASK_QUEUE_NAME) == ("default", "default")
    assert compat.DEFAULT_TASK_PRIORITY == 0


def test_our_backend_belongs_to_that_family() -> None:
    from alkstore_django.backends import AlkstoreBackend
    from alkstore_django.tasks import AlkTask

    assert issubclass(AlkstoreBackend, compat.BaseTaskBackend)
    assert issubclass(AlkTask, compat.Task)
    assert importlib.util.find_spec("alkstore_django.compat") is not None


def test_the_app_loads_without_the_backport() -> None:
    """A system check has to say that it is missing: so what is loaded at the start needs none of it."""
    code = "import sys; sys.modules['alkstore_django.compat'] = None; import django; django.setup()"
    ran = subprocess.run([sys.executable, "-c", f"{code}; import alkstore_django.admin"], capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
