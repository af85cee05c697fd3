"""The rooms of the package: an import may go to the same room or a lower one, never up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "alkstore_django"
MAX_LINES = 300

ROOMS = {
    "leaves": "__init__ conf exceptions signals backoff compat names logs payloads times values failures "
    "bells cron cron_clocks cron_fields cron_foreign cron_wall cron_words cron_zones",
    "sql": "sql",
    "models": "models migrations fields",
    "operations": "",  # every other module at the top: the public API
    "runtime": "runtime",
    "doors": "management admin backends checks testing contrib apps templatetags",
}
HEIGHT = {room: height for height, room in enumerate(ROOMS)}
ROOM_OF = {module: room for room, modules in ROOMS.items() for module in modules.split()}

# Downwards, and still not allowed: SQL is asked through the models, the models through the operations.
TOO_DEEP = {("operations", "sql"), ("runtime", "sql"), ("runtime", "models"), ("doors", "sql")}

# Where else a cursor may be opened, and why.
CURSOR_ELSEWHERE = {"models/mirror.py": "a migration operation has a schema editor and no manager"}


def problems(package: Path) -> list[str]:
    return [
        f"{path.relative_to(package).as_posix()}{problem}"
        for path in sorted(package.rglob("*.py"))
        for check in (arrows, length, vendors, cursors)
        for problem in check(package, path)
    ]


def arrows(package: Path, path: Path) -> Iterator[str]:
    room = room_of(path.relative_to(package).with_suffix("").parts[0])
    for node in ast.walk(ast.parse(path.read_text())):
        for target in sorted(set(imported(package, path, node))):
            target_room = room_of(target)
            if HEIGHT[target_room] > HEIGHT[room]:
                yield f":{node.lineno}: {target} is above {room}, in {target_room}"
            elif (room, target_room) in TOO_DEEP:
                yield f":{node.lineno}: {room} may not ask {target} directly"


def imported(package: Path, path: Path, node: ast.AST) -> Iterator[str]:
    """The top-level modules of ours that an import statement names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        here = (package.name, *path.relative_to(package).parts)
        base = [*here[: len(here) - node.level]] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        names = [f"{source}.{alias.name}" for alias in node.names]
    else:
        return
    for name in names:
        first, _, rest = name.partition(".")
        if first == package.name:
            module = rest.partition(".")[0]
            there = (package / module).is_dir() or (package / f"{module}.py").is_file()
            yield module if module and there else "__init__"


def room_of(module: str) -> str:
    return ROOM_OF.get(module, "operations")


def length(package: Path, path: Path) -> Iterator[str]:
    lines = len(path.read_text().splitlines())
    if lines > MAX_LINES and path.parent.name != "migrations":  # written by Django
        yield f": {lines} lines, more than {MAX_LINES}"


def vendors(package: Path, path: Path) -> Iterator[str]:
    """Differences between databases live in sql/; the system checks may ask, too."""
    if path.relative_to(package).parts[0] in ("sql", "checks.py", "checks"):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Constant) and "vendor" in (value for _, value in ast.iter_fields(node)):
            yield f":{node.lineno}: asks for the vendor"


def cursors(package: Path, path: Path) -> Iterator[str]:
    """All SQL of ours goes through one place."""
    name = path.relative_to(package).as_posix()
    if name == "models/base.py" or name in CURSOR_ELSEWHERE:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cursor":
            yield f":{node.lineno}: opens a cursor"


def test_the_rooms_of_the_package() -> None:
    found = problems(PACKAGE)
    assert not found, "\n".join(found)


def test_exceptions_are_in_use() -> None:
    assert [name for name in CURSOR_ELSEWHERE if not (PACKAGE / name).is_file()] == []


TREE = {
    "__init__.py": '__version__ = "0"',
    "exceptions.py": "",
    "sql/__init__.py": "from django.db import models\nvendor = connection.vendor",
    "models/__init__.py": "from .base import Manager",
    "models/base.py": "from ..sql import get_dialect\nconnection.cursor()",
    "queues.py": "from alkstore_django import __version__, exceptions\nfrom .models import Job",
    "runtime/worker.py": "from .. import queues\nimport alkstore_django.exceptions",
    "admin/dead.py": "from alkstore_django.models import Job\nfrom alkstore_django import queues",
}


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("sound.py", "from alkstore_django.queues import Queue\nvendors = 'vendor'\ncursor()", None),
        ("sql/claim.py", "from ..models import Job", ":1: models is above sql, in models"),
        ("backoff.py", "import alkstore_django.queues", ":1: queues is above leaves, in operations"),
        ("models/job.py", "from .. import queues", ":1: queues is above models, in operations"),
        ("locks.py", "if x:\n  from .runtime import worker", ":2: runtime is above operations, in runtime"),
        ("tasks.py", "from alkstore_django import admin", ":1: admin is above operations, in doors"),
        ("locks.py", "from .sql import get_dialect", ":1: operations may not ask sql directly"),
        ("runtime/wake.py", "from ..sql.base import Dialect", ":1: runtime may not ask sql directly"),
        ("runtime/wake.py", "from alkstore_django import models", ":1: runtime may not ask models directly"),
        ("apps.py", "from .sql import get_dialect", ":1: doors may not ask sql directly"),
        ("locks.py", "\nif connection.vendor == 'sqlite': pass", ":2: asks for the vendor"),
        ("locks.py", "f'{connection.vendor}'", ":1: asks for the vendor"),
        ("models/job.py", "with connection.cursor() as cursor: pass", ":1: opens a cursor"),
        ("locks.py", "pass\n" * (MAX_LINES + 1), f": {MAX_LINES + 1} lines, more than {MAX_LINES}"),
    ],
)  # fmt: skip
def test_what_is_found(tmp_path: Path, file: str, text: str, problem: str | None) -> None:
    package = tmp_path / "alkstore_django"
    for name, content in {**TREE, file: text}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content)
    assert problems(package) == ([f"{file}{problem}"] if problem else [])
