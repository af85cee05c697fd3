"""The documentation is true: its examples run, its commands and links exist, and no name is left out."""

from __future__ import annotations

import argparse
import configparser
import dataclasses
import inspect
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from alkstore_django import conf, declarations, exceptions, queues, registry, schedules, signals, tasks
from alkstore_django.claims import ClaimedJob
from alkstore_django.inspection import JobInfo
from tests.documentation.markdown import ROOT, Page, pages
from tests.documentation.readers import Newcomer, Reader

PAGES = pages()
README = PAGES[0]
PROJECTS = [page for page in PAGES if str(page) in ("README.md", "docs/quickstart.md")]
DOCS = "\n".join(page.text for page in PAGES if page is not README)
TWO_COMMANDS = ["pip install tox && tox run -e demo", "pip install tox && tox run"]

PAGE_OF = {
    "alkimport": "docs/from-django-tasks-db.md",
    "alkrelay": "docs/worker.md",
    "alkprune": "docs/maintenance.md",
    "alklock": "docs/locks.md",
    "alkrequeue": "docs/dead-letters.md",
    "alkschedule": "docs/schedules.md",
    "alkworker": "docs/worker.md",
}
"""Where a command is explained, if not in ``docs/operations.md``."""

each_page = pytest.mark.parametrize("page", PAGES, ids=str)


def page_at(path: str) -> Page:
    return next(page for page in PAGES if str(page) == path)


# -- examples -------------------------------------------------------------------------------------------


@pytest.fixture
def reader(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Leaves no module, no task and no setting behind."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_tasks", {})
    monkeypatch.setattr(registry, "_handlers", {})
    monkeypatch.setattr(declarations, "_declared", {})
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail(f"the worker ends with {code}"))
    yield Reader(tmp_path, settings)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("shop", "mysite")]:
        del sys.modules[name]


@each_page
def test_the_tests_know_what_to_do_with_each_block(page: Page) -> None:
    assert [f"{block.where}: {block.problem}" for block in page.blocks if block.problem] == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", [page for page in PAGES if page not in PROJECTS], ids=str)
def test_examples(page: Page, reader: Reader) -> None:
    for block in page.blocks:
        reader.read(block)


@pytest.mark.parametrize("page", PROJECTS, ids=str)
def test_examples_in_a_new_project(page: Page, tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    if "startapp shop" not in page.text:
        newcomer.add('INSTALLED_APPS += ["shop"]')  # the page speaks of a project that the reader has
    newcomer.follow(page)


@each_page
def test_json_is_json(page: Page) -> None:
    for block in page.blocks:
        if block.language == "json":
            json.loads(block.text)


# -- commands -------------------------------------------------------------------------------------------


def parser(command: BaseCommand) -> Any:
    return command.create_parser("manage.py", type(command).__module__.rpartition(".")[2])


def flags_of(parser: Any) -> set[str]:
    """Those of its sub-commands, too."""
    found = {flag for action in parser._actions for flag in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = found.union(*map(flags_of, action.choices.values()))
    return found


def our_commands() -> dict[str, BaseCommand]:
    names = [name for name, app in get_commands().items() if app == "alkstore_django"]
    return {name: load_command_class("alkstore_django", name) for name in names}


@each_page
def test_commands_exist_with_their_flags(page: Page) -> None:
    inline = re.findall(r"`(?:python )?manage\.py ([^`]+)`", page.prose)
    for line in inline + [line for block in page.blocks for line in block.commands]:
        line = re.sub(r"--database \w+", "--database default", line)  # the aliases are the reader's
        name, *arguments = shlex.split(line, comments=True)
        command = load_command_class(get_commands()[name], name)
        parser(command).parse_args(arguments)  # a CommandError names what is wrong


@pytest.mark.parametrize("name", sorted(our_commands()))
def test_every_command_is_documented_with_its_flags(name: str) -> None:
    everywhere = {flag for action in parser(BaseCommand())._actions for flag in action.option_strings}
    flags = flags_of(parser(our_commands()[name]))
    for page in (PAGE_OF.get(name, "docs/operations.md"), "docs/reference.md"):
        text = page_at(page).text
        assert [flag for flag in sorted(flags - everywhere) if not re.search(rf"`{flag}[` ]", text)] == []


def test_the_two_commands() -> None:
    """What a visitor of the repository types, each in a block of its own, and what tox makes of it."""
    assert [block.text for block in README.blocks if "tox" in block.text] == TWO_COMMANDS
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    assert "manage.py demo" in tox["testenv:demo"]["commands"]
    assert tox["tox"]["env_list"].split()
    assert "demo" not in tox["tox"]["env_list"].split()


# -- names ----------------------------------------------------------------------------------------------


def check_ids(text: str) -> set[str]:
    return set(re.findall(r"\balkstore_django\.[EWIC]\d{3}\b", text))


def test_the_settings_are_those_of_the_code() -> None:
    section = page_at("docs/configuration.md").text.partition("## ALKSTORE\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(conf.KEYS)
    assert set(re.findall(r'ALKSTORE\["(\w+)"\]', DOCS)) <= set(conf.KEYS)


def test_the_system_checks_are_those_of_the_code() -> None:
    source = "".join(path.read_text() for path in (ROOT / "alkstore_django").rglob("*.py"))
    assert check_ids(source)
    assert check_ids(DOCS) == check_ids(source)


def public(thing: Any) -> list[str]:
    """pytest adds names like ``@py_builtins`` to the modules of an installed plugin."""
    return [name for name in vars(thing) if name.isidentifier() and not name.startswith("_")]


def names_of_the_api() -> list[str]:
    methods = public(queues.Queue)
    twins = [f"a{name}" for name in methods]  # documented as a rule, not by name
    own = [name for name in public(exceptions) if getattr(exceptions, name).__module__ == exceptions.__name__]
    signal_names = [name for name in public(signals) if isinstance(getattr(signals, name), signals.Signal)]
    shapes = (JobInfo, ClaimedJob, schedules.Schedule, schedules.Firing, schedules.SyncReport)
    fields = [field.name for shape in shapes for field in dataclasses.fields(shape)]
    options = list(inspect.signature(tasks.task).parameters)
    names = {*methods, *own, *signal_names, *fields, *options, *schedules.__all__}
    return sorted(names - {*twins, "claim"})


@pytest.mark.parametrize("name", names_of_the_api())
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", page_at("docs/reference.md").text)


# -- the rest -------------------------------------------------------------------------------------------


@each_page
def test_links_lead_somewhere(page: Page) -> None:
    known = {other.path: other for other in PAGES}
    broken = []
    for link in page.links:
        if link.startswith(("https://", "http://")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.path.parent / target).resolve() if target else page.path
        if not path.is_file() or (anchor and anchor not in known[path].anchors):
            broken.append(link)
    assert not broken


def test_every_page_can_be_found() -> None:
    index = page_at("docs/index.md")
    for start in (README, index):
        found = {(start.path.parent / link.partition("#")[0]).resolve() for link in start.links}
        assert [str(page) for page in PAGES if page not in (README, index) and page.path not in found] == []


def test_the_supported_versions_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = dict(re.findall(r"^\| (Python|Django) \| (.+) \|$", README.text, re.MULTILINE))
    prefixes = {"Python": "Programming Language :: Python :: 3.", "Django": "Framework :: Django :: "}
    for name, prefix in prefixes.items():
        classified = [text.rpartition(" ")[2] for text in project["classifiers"] if text.startswith(prefix)]
        assert re.findall(r"\b\d+\.\d+\b", rows[name].partition("(")[0]) == classified
