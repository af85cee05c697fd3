"""Commands that work until they are stopped: here, in several processes, or anew after each change."""

from __future__ import annotations

import os
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections
from django.utils import autoreload

from alkstore_django.runtime import exits
from alkstore_django.runtime.lifeline import Lifeline
from alkstore_django.runtime.reload import CodeWatch, Reloader
from alkstore_django.runtime.supervisor import Supervisor

from . import logs
from .database import DatabaseCommand
from .ending import end_at_once, end_soon
from .flags import positive


class ProcessCommand(DatabaseCommand):
    """``work`` does it. With ``--processes`` and ``--reload`` this process only starts and watches others
    with the same command line: they find a ``lifeline`` or a ``watch``, and work.
    """

    is_called_from_code = True
    lifeline: Lifeline | None = None
    watch: CodeWatch | None = None

    def work(self, given: dict[str, Any]) -> int:
        """Returns the exit code."""
        raise NotImplementedError

    def validate(self, given: dict[str, Any]) -> None:
        """Raises ``CommandError`` for options that no process could work with."""

    def add_process_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--processes",
            type=positive,
            metavar="N",
            help="Start N processes, and others for those that end. Default: work in this one.",
        )
        parser.add_argument(
            "--reload",
            action=BooleanOptionalAction,
            help="Start again when the code has changed. Default: with DEBUG, if neither --batch nor "
            "--processes is given.",
        )

    def run_from_argv(self, argv: list[str]) -> None:
        self.is_called_from_code = False
        super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> Any:
        self.lifeline, self.watch = Lifeline.taken(), CodeWatch.taken()
        if self.lifeline or self.wants_reload(options):
            options["skip_checks"] = True  # the supervisor has made them, or the worker will
        return super().execute(*args, **options)

    def handle(self, *args: Any, **given: Any) -> None:
        processes = given["processes"]
        number = f"-{self.lifeline.number}" if self.lifeline else ""
        undo = logs.configure(given["verbosity"], f"alkworker{number}" if processes else "")
        try:
            if self.wants_reload(given):
                code = self.reload(given)
            elif processes and not self.lifeline:
                code = self.supervise(given)
            else:
                code = self.work(given)
        finally:
            if self.is_called_from_code:
                undo()
        if self.lifeline:
            self.lifeline.say_ended()
        if self.is_called_from_code:
            if code:
                raise CommandError(f"The worker ended with {code}: {exits.MEANING[code]}.", returncode=code)
        elif code:
            end_at_once(code)
        else:
            end_soon(code)

    # -- the process that starts others -----------------------------------------------------------

    def wants_reload(self, given: dict[str, Any]) -> bool:
        if self.lifeline or self.watch:
            return False
        if given["reload"] is None:
            alone = not (given["processes"] or given["batch"])
            return settings.DEBUG and alone and self.command_line() is not None
        return bool(given["reload"])

    def reload(self, given: dict[str, Any]) -> int:
        if given["processes"]:
            raise CommandError("--reload and --processes do not go together.")
        return Reloader(self.startable(given)).run()

    def supervise(self, given: dict[str, Any]) -> int:
        command = self.startable(given)
        connections.close_all()  # the system checks may have asked a server
        endless = not given["batch"] and given["max_idle"] is None
        grace = given["shutdown_timeout"]
        return Supervisor(command, given["processes"], grace, endless=endless).run()

    def startable(self, given: dict[str, Any]) -> list[str]:
        self.validate(given)
        command = self.command_line()
        if command is None:
            raise CommandError("--processes and --reload need a command line that can be started again.")
        return command

    def command_line(self) -> list[str] | None:
        """That of this process, or ``None``: to run a caller of ours again would do who knows what."""
        if self.is_called_from_code:
            return None
        try:
            return [str(part) for part in autoreload.get_child_arguments()]
        except RuntimeError:  # there is no such script
            return None

    # -- the process that works -------------------------------------------------------------------

    def worker_id(self, given: str | None) -> str | None:
        """Unique for every start, which the number of a supervised process alone is not."""
        return f"{given}-{self.lifeline.number}-{os.getpid()}" if given and self.lifeline else given

    def own_path(self, given: str | None) -> str | None:
        """A file of this process's own: supervised ones put their number before the ending."""
        if not (given and self.lifeline):
            return given
        root, ending = os.path.splitext(given)
        return f"{root}-{self.lifeline.number}{ending}"

    def follow(self, stop: Callable[[int], None]) -> None:
        """Call ``stop`` when whoever has started this process wants it to end, or has ended."""
        for each in (self.lifeline, self.watch):
            if each is not None:
                each.follow(stop)

    def say_begun(self) -> None:
        """The work begins."""
        if self.lifeline:
            self.lifeline.say_begun()

    def exit_code(self, code: int, *, wants_replacement: bool) -> int:
        """What whoever has started this process understands."""
        if self.watch and self.watch.has_seen_change:
            return exits.CHANGED
        return exits.RECYCLED if self.lifeline and not code and wants_replacement else code
