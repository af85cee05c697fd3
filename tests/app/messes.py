"""Tasks that leave a mess in Django's connections and settings, and one that looks around after them."""

from __future__ import annotations

import contextvars
import decimal
import os
import warnings
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.utils import timezone, translation

from alkstore_django.tasks import task

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("of the tests", default="as it was")


@task
def surroundings() -> dict[str, Any]:
    """What a task finds."""
    return {
        "autocommit": connection.get_autocommit(),
        "atomic": connection.in_atomic_block,
        "language": translation.get_language(),
        "time zone": timezone.get_current_timezone_name(),
        "groups": list(Group.objects.values_list("name", flat=True)),
        "precision": decimal.getcontext().prec,
        "variable": VARIABLE.get(),
        "environ": os.environ.get("ALKSTORE_MESS", "as it was"),
        "home": "HOME" in os.environ,
        "directory": os.getcwd() != os.sep,
        "filters": warnings.filters[0][0] != "ignore" or warnings.filters[0][1] is not None,
    }


@task
async def surroundings_of_a_coroutine() -> dict[str, Any]:
    return dict(await sync_to_async(surroundings.func)())


@task
def leave_context() -> None:
    decimal.getcontext().prec = 3
    VARIABLE.set("left behind")


@task
async def leave_context_in_the_loop() -> None:
    leave_context.func()
    translation.activate("de")


@task
def leave_environment() -> None:
    os.environ["ALKSTORE_MESS"] = "left behind"
    del os.environ["HOME"]
    os.chdir(os.sep)
    warnings.simplefilter("ignore")


@task
async def leave_environment_in_the_loop() -> None:
    leave_environment.func()


@task
def leave_transaction_open(name: str) -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name=name)


@task
def leave_transaction_begun_by_hand(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
    Group.objects.create(name=name)


@task
def leave_transaction_broken(name: str) -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name=name)
    transaction.set_rollback(True)


@task
def leave_transaction_closed(name: str) -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name=name)
    connection.close()


@task
def leave_autocommit_off(name: str) -> None:
    transaction.set_autocommit(False)
    Group.objects.create(name=name)


@task
def leave_language_and_zone() -> None:
    translation.activate("de")
    timezone.activate("Asia/Tokyo")


@task
def leave_driver_closed() -> None:
    connection.ensure_connection()
    connection.connection.close()


@task
def leave_driver_closed_in_transaction(name: str) -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name=name)
    connection.connection.close()
