"""Tasks that tell of themselves: where they come from, how far they are, what they were given."""

from __future__ import annotations

import asyncio
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.utils import timezone, translation

from alkstore_django.exceptions import Discard, Retry
from alkstore_django.tasks import task
from tests.app.tasks import Boom, wait_for_file, write_line

heard: list[Any] = []
"""What the callbacks of commits have heard; a test clears it."""


def place() -> list[Any]:
    return [translation.get_language(), timezone.get_current_timezone_name()]


@task
def where() -> list[Any]:
    return place()


@task
async def where_async() -> list[Any]:
    return [*place(), *await sync_to_async(place)()]


@task(atomic=True)
def where_atomic() -> list[Any]:
    return place()


@task(takes_context=True, backoff=0)
def progress(context: Any, upto: int, fail: bool = False) -> Any:
    for number in range(upto):
        context.metadata["done"] = number + 1
        assert context.save_metadata()
    context.metadata["at the end"] = True
    if fail:
        raise Boom("too far")
    return context.metadata.get("trace")


@task(takes_context=True, backoff=0)
async def progress_async(context: Any, upto: int, fail: bool = False) -> Any:
    before = dict(context.metadata)
    for number in range(upto):
        context.metadata["done"] = number + 1
        assert await context.asave_metadata()
    context.metadata["at the end"] = True
    if fail:
        raise Boom("too far")
    return before


@task(takes_context=True, atomic=True, backoff=0, max_attempts=2)
def progress_atomic(context: Any, fail: bool) -> None:
    context.metadata["done"] = context.attempt
    context.save_metadata()
    Group.objects.create(name=f"attempt {context.attempt}")
    if fail:
        raise Boom("undone")


@task(takes_context=True)
def tell_badly(context: Any, metadata: Any) -> list[str]:
    context.metadata.update(metadata)
    try:
        context.save_metadata()
    except (TypeError, ValueError) as error:
        context.metadata.clear()
        return [type(error).__name__, str(error)]
    return []


@task(takes_context=True)
def tell_object(context: Any) -> None:
    context.metadata["what"] = object()


@task(takes_context=True, visibility_timeout=60)
def tell_and_hold(context: Any, path: str, gate: str) -> bool:
    """Tell how far it is, wait, and tell again; whether that was kept."""
    context.metadata["percent"] = 50
    context.save_metadata()
    write_line(path, "half")
    wait_for_file(gate)
    context.metadata["percent"] = 99
    return bool(context.save_metadata())


@task(takes_context=True)
async def tell_in_the_loop(context: Any) -> None:
    context.save_metadata()


@task
def make_group(name: str) -> int:
    return int(Group.objects.create(name=name).pk)


@task(max_attempts=1)
def make_group_and_fail(name: str) -> None:
    Group.objects.create(name=name)
    raise Boom(name)


@task(backoff=0, max_attempts=2)
def break_the_transaction(name: str) -> None:
    """Fail with an error of the database, after which PostgreSQL takes no other statement."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


@task(max_attempts=1)
def break_and_go_on(name: str) -> int:
    Group.objects.create(name=name)
    try:
        with transaction.atomic():
            Group.objects.create(name=name)
    except IntegrityError:
        return Group.objects.filter(name=name).count()
    return 0


@task(atomic=True, max_attempts=1)
def atomic_group(name: str, fail: bool = False) -> None:
    Group.objects.create(name=name)
    transaction.on_commit(lambda: heard.append(f"committed {name}"))
    if fail:
        raise Boom(name)


@task(max_attempts=1)
def with_callbacks(names: list[str], fail: bool = False) -> None:
    for name in names:
        with transaction.atomic():
            transaction.on_commit(lambda name=name: heard.append(name))
    try:
        with transaction.atomic():
            transaction.on_commit(lambda: heard.append("rolled back"))
            raise Discard
    except Discard:
        pass
    if fail:
        raise Boom


@task
def enqueue_another(name: str) -> str:
    return str(make_group.enqueue(name).id)


@task
async def aenqueue_another(name: str) -> str:
    return str((await make_group.aenqueue(name)).id)


@task
def enqueue_itself() -> None:
    enqueue_itself.enqueue()


@task(max_attempts=3)
def later(seconds: int) -> None:
    raise Retry("later", after=seconds)


@task(timeout=0.05, max_attempts=1)
def too_long() -> None:
    while True:
        sum(range(1000))


@task(timeout=0.05, max_attempts=1, atomic=True)
def too_long_atomic() -> None:
    Group.objects.create(name="undone")
    while True:
        sum(range(1000))


@task(timeout=0.05, max_attempts=1)
async def too_long_async() -> None:
    await asyncio.sleep(60)


@task
async def interrupt_async() -> None:
    raise KeyboardInterrupt


@task
def quit_task() -> None:
    raise SystemExit(3)
