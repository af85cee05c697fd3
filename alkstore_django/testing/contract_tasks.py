"""The tasks that ``BackendContract`` enqueues: plain ones, with nothing that is ours."""

from __future__ import annotations

from typing import Any

from alkstore_django.compat import task

SAID: list[Any] = []
"""What the tasks have to say, in the order in which they said it: they run in the process of the tests."""


class Refusal(Exception):
    """What the tasks fail with."""


@task
def give(value: Any = None, **named: Any) -> Any:
    return value


@task
async def give_later(value: Any = None) -> Any:
    return value


@task
def say(value: Any) -> None:
    SAID.append(value)


@task
def vanish() -> None:
    SAID.append("not gone")


def impostor() -> None:
    """No task: whatever is stored, no worker may call it."""
    SAID.append("called")


@task
def refuse(text: str) -> None:
    raise Refusal(text)


@task
def leave(text: str) -> None:
    raise SystemExit(text)


@task
def interrupt() -> None:
    raise KeyboardInterrupt


@task
def give_what_json_changes() -> Any:
    return (1, (b"two",), {"three": (4.5, None, True)})


@task
def give_what_json_cannot_hold() -> Any:
    return {"it": object()}


@task(takes_context=True)
def tell(context: Any) -> str:
    SAID.append(_told(context))
    return str(context.task_result.id)


@task(takes_context=True)
def tell_and_refuse(context: Any) -> None:
    SAID.append(_told(context))
    raise Refusal(f"attempt {context.attempt}")


def _told(context: Any) -> dict[str, Any]:
    result = context.task_result
    names = ("id", "status", "attempts", "started_at", "last_attempted_at", "finished_at")
    told = {name: getattr(result, name) for name in names}
    return told | {"attempt": context.attempt, "errors": len(result.errors)}
