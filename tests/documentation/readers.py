"""Those who follow the documentation: one in the project of the tests, one who starts from nothing."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.core import checks
from django.core.management import call_command
from django.db import ConnectionHandler

from alkstore_django.compat import NATIVE
from tests.documentation.markdown import ROOT, Block, Page, expect, expect_error

TAKEN_AS_DONE = (
    "pip install ",
    "python -m venv ",
    "source ",
    "django-admin startproject ",
    "python manage.py startapp ",
)
"""Lines of a console that a newcomer's tests begin after."""

PRELUDE = """
import django
from django.core.management import execute_from_command_line
from tests.documentation.markdown import expect, expect_error
django.setup()
"""
MARK = "--- the next step ---"


def for_this_django(code: str) -> str:
    """What somebody with the backport makes of an example."""
    if NATIVE:
        return code
    return re.sub(r"\bdjango\.tasks\b", "django_tasks", code).replace('# "django_tasks"', '"django_tasks"')


def without_ages(text: str) -> str:
    """What ``alkstatus`` prints, but for how long the jobs wait."""
    return re.sub(r'( +)\d+ s$|(?<="oldest_due": )\d+', " AGE", text.strip(), flags=re.MULTILINE)


class Reader:
    """Types the blocks of a page, from top to bottom, into a shell of the tests' own project."""

    def __init__(self, directory: Path, settings: Any) -> None:
        self.directory = directory
        self.settings = settings
        self.names: dict[str, Any] = {"expect": expect, "expect_error": expect_error, "manage": self.manage}

    def read(self, block: Block) -> None:
        match block.mark:
            case "output":
                assert without_ages(self.manage(block.value)) == without_ages(block.text), block.where
            case _ if block.language != "python":
                pass  # the tests of commands look at it
            case "not run":
                compile(block.code, block.where, "exec")
            case "settings":
                self.set(block)
            case "file":
                self.write(block)
            case _:
                self.run(block.code, block.page)

    def run(self, code: str, page: Path) -> None:
        compiled = compile(for_this_django(code), str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if not compiled.co_flags & inspect.CO_COROUTINE:
            exec(compiled, self.names)  # noqa: S102 - the examples are ours
            return

        async def run() -> None:
            await eval(compiled, self.names)  # noqa: S307

        async_to_sync(run)()

    def manage(self, line: str) -> str:
        output = StringIO()
        call_command(*shlex.split(line), stdout=output, verbosity=0)
        return output.getvalue()

    def write(self, block: Block) -> None:
        """Write a module, import it, and know its names."""
        path = Path(block.value)
        (self.directory / path).parent.mkdir(exist_ok=True)
        (self.directory / path).write_text(for_this_django(block.code))
        importlib.invalidate_caches()
        module = importlib.import_module(".".join(path.with_suffix("").parts))
        self.names |= {name: value for name, value in vars(module).items() if not name.startswith("_")}

    def set(self, block: Block) -> None:
        """Use settings, as far as a running project can, and let the system checks judge them."""
        names: dict[str, Any] = {"BASE_DIR": self.directory}
        exec(for_this_django(block.code), names)  # noqa: S102
        for name in filter(str.isupper, set(names) - {"BASE_DIR"}):
            if name == "DATABASES":
                self.connect(names[name])
            elif name == "LOGGING":
                self.log(names[name])
            else:
                setattr(self.settings, name, names[name])
        assert checks.run_checks(tags=["alkstore"]) == [], block.where

    @staticmethod
    def connect(databases: dict[str, Any]) -> None:
        connection = ConnectionHandler(databases)["default"]
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode")
            expect(cursor.fetchone()[0], "'wal'")
        expect(connection.transaction_mode, "'IMMEDIATE'")
        connection.close()

    @staticmethod
    def log(config: dict[str, Any]) -> None:
        code = "import json, logging.config, sys; logging.config.dictConfig(json.loads(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", code, json.dumps(config)], check=True)


class Newcomer:
    """Follows a page in a new project with a SQLite file of its own, commands and all, in one process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        call_command("startproject", "mysite", str(directory), verbosity=0)
        self.settings = directory / "mysite" / "settings.py"
        (directory / "shop").mkdir()
        (directory / "shop" / "__init__.py").touch()

    def add(self, settings: str) -> None:
        with self.settings.open("a") as file:
            file.write(f"\n{settings}\n")

    def follow(self, page: Page) -> None:
        steps = [PRELUDE]
        outputs: list[tuple[int, Block]] = []
        for block in page.blocks:
            if block.mark == "settings":
                self.add(for_this_django(block.text))
            elif block.mark == "file":
                (self.directory / block.value).write_text(for_this_django(block.text))
            elif block.mark == "output":
                outputs.append((len(steps) - 1, block))
            elif block.language == "console":
                steps.append("\n".join(map(self.call, self.commands(block))))
            elif block.language == "python":
                code = for_this_django(block.code)
                steps.append(f"exec(compile({code!r}, {str(page)!r}, 'exec'))")
        printed = self.run(steps)
        for step, block in outputs:
            assert without_ages(printed[step]).endswith(without_ages(block.text)), block.where

    @staticmethod
    def commands(block: Block) -> list[list[str]]:
        """The arguments of each command of ``manage.py``; a worker only goes on until everything is done."""
        found = []
        for line in block.text.splitlines():
            if not line.startswith(TAKEN_AS_DONE):
                python, *arguments = shlex.split(line)
                assert (python, arguments[0]) == ("python", "manage.py"), f"{block.where}: {line}"
                is_endless = "alkworker" in arguments and "--batch" not in arguments
                found.append([*arguments, "--batch"] if is_endless else arguments)
        return found

    @staticmethod
    def call(arguments: list[str]) -> str:
        return f"execute_from_command_line({arguments})"

    def run(self, steps: list[str]) -> list[str]:
        """Run steps of Python, one after the other; what each of them printed."""
        done = subprocess.run(
            [sys.executable, "-c", f"\nprint({MARK!r}, flush=True)\n".join(steps)],
            cwd=self.directory,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "mysite.settings", "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout.split(MARK)
