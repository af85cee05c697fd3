from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from django.test import override_settings

from alkstore_django import registry
from alkstore_django.exceptions import UnknownTask
from alkstore_django.tasks import task

APP = {
    "__init__.py": "",
    "tasks.py": """
from alkstore_django.tasks import task

imported = []

@task
def send(to):
    imported.append(to)

@task(name="warehouse.tasks.v1")
def renamed():
    pass

def plain():
    imported.append("plain")

class Thing:
    pass
""",
    "broken.py": "raise RuntimeError('half written')",
    "leaving.py": "raise SystemExit(3)",
    "deep/__init__.py": "",
    "deep/jobs.py": "from alkstore_django.tasks import task\n\n@task\ndef send(): pass\n",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The registry, as it was again afterwards."""
    tasks: dict[str, object] = {}
    monkeypatch.setattr(registry, "_tasks", tasks)
    return tasks


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed app that nobody has imported yet, and a package beside it that is none."""
    write(tmp_path / "warehouse", APP)
    write(tmp_path / "warehouse_of_horrors", {"__init__.py": "raise AssertionError('imported')"})
    monkeypatch.syspath_prepend(str(tmp_path))
    with override_settings(INSTALLED_APPS=["alkstore_django", "warehouse"]):
        yield
    for name in [name for name in sys.modules if name.startswith("warehouse")]:
        del sys.modules[name]


@pytest.mark.usefixtures("warehouse")
def test_a_module_of_an_installed_app_is_imported_for_its_task() -> None:
    assert registry.find("warehouse.tasks.send").module_path == "warehouse.tasks.send"
    assert registry.find("warehouse.deep.jobs.send").module_path == "warehouse.deep.jobs.send"


@pytest.mark.usefixtures("warehouse")
def test_a_task_with_a_name_of_its_own_is_found_by_its_module() -> None:
    assert registry.find("warehouse.tasks.v1").func.__name__ == "renamed"


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    "name",
    [
        "warehouse.tasks.plain",
        "warehouse.tasks.Thing",
        "warehouse.tasks.imported",
        "warehouse.tasks.task",
        "warehouse.tasks.missing",
        "warehouse.tasks.__dict__",
        "warehouse.tasks",
        "warehouse.tasks.",
        "warehouse.missing.send",
        "warehouse..tasks.send",
        "warehouse.broken.send",
        "warehouse.leaving.send",
        "alkstore_django.tasks.task",
        "alkstore_django.queues.requeue",
    ],
)
def test_nothing_but_a_task_is_found(name: str) -> None:
    with pytest.raises(UnknownTask, match="no task"):
        registry.find(name)


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "subprocess.run",
        "builtins.eval",
        "django.core.management.call_command",
        "antigravity.x",
        "warehouse_of_horrors.x",
        "",
        ".",
        "..",
        "x",
        ".tasks.send",
        "a b.c",
        "\x00.x",
        "\ud800.x",
    ],
)
@pytest.mark.usefixtures("warehouse")
def test_modules_outside_of_installed_apps_are_never_imported(name: str) -> None:
    before = set(sys.modules)
    with pytest.raises(UnknownTask, match="is not in an installed app"):
        registry.find(name)
    assert set(sys.modules) == before


def module(name: str, text: str) -> ModuleType:
    made = ModuleType(name)
    sys.modules[name] = made
    exec(text, made.__dict__)  # noqa: S102 - a module of this test
    return made


@pytest.fixture
def modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


SEND = "from alkstore_django.tasks import task\n@task{}\ndef send(): pass\n"


@pytest.mark.usefixtures("modules")
def test_two_tasks_of_one_name_are_refused() -> None:
    module("one", SEND.format('(name="send")'))
    with pytest.raises(ValueError, match=r"Two tasks have the name 'send': one\.send and two\.send"):
        module("two", SEND.format('(name="send")'))
    assert registry.find("send").module_path == "one.send"


@pytest.mark.usefixtures("modules")
def test_a_name_may_not_be_the_path_of_another_task() -> None:
    module("one", SEND.format(""))
    with pytest.raises(ValueError, match="Two tasks have the name 'one.send'"):
        module("two", SEND.format('(name="one.send")'))


@pytest.mark.usefixtures("modules")
def test_a_module_that_is_loaded_again_brings_its_tasks_anew() -> None:
    module("one", SEND.format(""))
    again = module("one", SEND.format(""))
    assert registry.find("one.send") is again.send


@pytest.mark.usefixtures("modules")
def test_a_copy_with_other_values_does_not_replace_the_declaration() -> None:
    made = module("one", SEND.format(""))
    made.send.using(priority=5, max_attempts=9)
    assert registry.find("one.send") is made.send
    assert registry.declared() == [made.send]


def a_function() -> None: ...


def test_one_function_may_be_two_tasks() -> None:
    first, second = task(a_function), task(name="second")(a_function)
    assert registry.find(first.module_path) is first
    assert registry.find("second") is second


@pytest.mark.usefixtures("warehouse")
def test_autodiscovery_imports_tasks_of_apps_and_the_modules_that_are_named() -> None:
    with override_settings(ALKSTORE={"IMPORTS": ["warehouse.deep.jobs"]}):
        registry.autodiscover()
    names = {each.module_path for each in registry.declared()}
    assert names == {"warehouse.tasks.send", "warehouse.tasks.renamed", "warehouse.deep.jobs.send"}
    assert "warehouse.broken" not in sys.modules


@pytest.mark.usefixtures("warehouse")
def test_a_named_module_that_is_missing_is_an_error() -> None:
    with override_settings(ALKSTORE={"IMPORTS": ["warehouse.nowhere"]}), pytest.raises(ModuleNotFoundError):
        registry.autodiscover()
    importlib.invalidate_caches()
