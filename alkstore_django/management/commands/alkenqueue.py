"""``manage.py alkenqueue``: enqueue a task by its name."""

from __future__ import annotations

import inspect
import json
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from alkstore_django import registry, served
from alkstore_django.compat import InvalidTask, TaskResultDoesNotExist, TaskResultStatus, task_backends
from alkstore_django.exceptions import UnknownTask
from alkstore_django.management.database import DatabaseCommand, answering, database
from alkstore_django.management.flags import delay, duration, point


class Command(DatabaseCommand):
    help = "Enqueues a task and prints its id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("task", metavar="PATH", help="The dotted path of the task, or the name it was given.")
        call: dict[str, Any] = {"metavar": "JSON"}
        # Django keeps the name "args" for itself.
        add("--args", dest="positional", default="[]", help="""Its arguments: '[1, "a"]'.""", **call)
        add("--kwargs", dest="named", default="{}", help="""Those by name: '{"to": 1}'.""", **call)
        when = parser.add_mutually_exclusive_group().add_argument
        when("--in", dest="in_", type=delay, metavar="DURATION", help="From now: such as 90s, 10m or 2h.")
        when("--at", type=point, metavar="TIME", help="In ISO 8601; without an offset in TIME_ZONE.")
        add("--queue", metavar="NAME", help="Another queue than that of the task.")
        add("--priority", type=int, metavar="N", help="-100 to 100, higher first.")
        where = parser.add_mutually_exclusive_group().add_argument
        where("--backend", metavar="ALIAS", help="Another alias of TASKS than that of the task.")
        where("--database", help="The alias of TASKS whose jobs are in this database.")
        add(
            "--wait",
            type=duration,
            nargs="?",
            const=float("inf"),
            metavar="SECONDS",
            help="Wait for the end (for so long), print the return value, and exit with 1 for a failure.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        registry.autodiscover()
        try:
            task = self.configured(named_task(options["task"]), options)
            positional, named = arguments(options)
            check_call(task, positional, named)
            with watching(task):
                result = task.enqueue(*positional, **named)
                self.stdout.write(str(result.id))
                self.stdout.flush()  # before it waits
                if options["wait"] is not None:
                    self.wait(result, options["wait"])
        except (UnknownTask, InvalidTask, TypeError, ValueError) as error:
            raise CommandError(str(error)) from error

    def configured(self, task: Any, options: dict[str, Any]) -> Any:
        """The task with what the options say; it is validated anew. Raises as ``using`` does."""
        run_after = timezone.now() + options["in_"] if options["in_"] is not None else options["at"]
        given = {
            "queue_name": options["queue"],
            "priority": options["priority"],
            "run_after": run_after,
            "backend": backend(task, options),
        }
        return task.using(**{name: value for name, value in given.items() if value is not None})

    def wait(self, result: Any, seconds: float) -> None:
        if not hasattr(result, "wait"):
            raise CommandError(
                f"The backend {result.backend!r} is not ours: nobody can wait for its results."
            )
        try:
            result.wait(None if seconds == float("inf") else seconds)
        except (TimeoutError, TaskResultDoesNotExist, RuntimeError) as error:
            raise CommandError(f"Job {result.id} is enqueued. {error}") from error
        if result.status == TaskResultStatus.SUCCESSFUL:
            self.stdout.write(json.dumps(result.return_value))
            return
        raise CommandError(f"Job {result.id} has failed: {reason(result.errors)}")


def reason(errors: list[Any]) -> str:
    """The last line of the last error; its history may be gone."""
    if not errors:
        return "nothing is known of why"
    return str((errors[-1].traceback.strip().splitlines() or [""])[-1] or errors[-1].exception_class_path)


def named_task(path: str) -> Any:
    """The task of that name; or with that path, though it has another name. Raises ``UnknownTask``."""
    of_path = (task for task in registry.declared() if task.module_path == path)
    return next(of_path, None) or registry.find(path)


def backend(task: Any, options: dict[str, Any]) -> str | None:
    """The alias of ``TASKS`` to enqueue with; ``None`` for that of the task."""
    if options["backend"] is not None:
        if options["backend"] not in task_backends.settings:
            aliases = ", ".join(sorted(map(str, task_backends.settings)))
            raise CommandError(f"TASKS has no alias {options['backend']!r}; it has {aliases}.")
        return str(options["backend"])
    if options["database"] is None:
        return None
    using = database(options["database"])
    found = sorted(str(each.alias) for each in served.backends(using))
    if task.backend in found:
        return None
    if len(found) != 1:
        told = f"{len(found)} aliases ({', '.join(found)})" if found else "no alias"
        raise CommandError(f"TASKS has {told} with jobs in database {using!r}: choose one with --backend.")
    return found[0]


def arguments(options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    positional, named = parsed("--args", options["positional"]), parsed("--kwargs", options["named"])
    if not isinstance(positional, list):
        raise CommandError(f"--args must be a JSON list such as '[1, \"a\"]', not {options['positional']}.")
    if not isinstance(named, dict):
        raise CommandError(f"--kwargs must be a JSON object such as '{{\"to\": 1}}', not {options['named']}.")
    return positional, named


def parsed(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{name} is not JSON: {error}") from error


def check_call(task: Any, positional: Sequence[Any], named: dict[str, Any]) -> None:
    """Workers would find it out, attempt by attempt."""
    signature = inspect.signature(task.func)
    given = [None, *positional] if task.takes_context else positional
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        raise CommandError(f"{task.module_path}{signature} cannot be called so: {error}.") from error


def watching(task: Any) -> AbstractContextManager[None]:
    using = getattr(task.get_backend(), "using", None)
    return nullcontext() if using is None else answering(using)
