"""One contract on three databases: how many tests ran on all of them, and how many on some, and why."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ENVIRONMENTS = {"sqlite": "py313-django61-sqlite", "postgresql": "postgresql", "mysql": "mariadb"}
FOLDERS = ("contract", "concurrency", "model", "e2e")
COLUMNS = {
    "on all three": {"sqlite", "postgresql", "mysql"},
    "SQLite alone": {"sqlite"},
    "PostgreSQL alone": {"postgresql"},
    "MariaDB alone": {"mysql"},
    "PostgreSQL and MariaDB": {"postgresql", "mysql"},
}


def compare(reports: Path) -> tuple[list[list[str]], list[str]]:
    """A table, and what is wrong: tests that did not run on exactly the databases that they are about."""
    paths = {database: reports / f"{env}.xml" for database, env in ENVIRONMENTS.items()}
    if missing := [database for database, path in paths.items() if not path.exists()]:
        return [], [f"no comparison of the databases without {', '.join(missing)}"]
    ran_on: dict[str, set[str]] = {}
    about: dict[str, set[str]] = {}
    for database, path in paths.items():
        for name, databases in tests(path):
            ran_on.setdefault(name, set()).add(database)
            about[name] = databases
    rows = [["the same tests", *COLUMNS]]
    for folder in FOLDERS:
        found = Counter(frozenset(on) for name, on in ran_on.items() if name.startswith(f"tests.{folder}."))
        rows.append([f"tests/{folder}", *(str(found[frozenset(column)]) for column in COLUMNS.values())])
    wrong = [
        f"{name}: ran on {', '.join(sorted(on))}, but is about {', '.join(sorted(about[name]))}"
        for name, on in ran_on.items()
        if on != about[name]
    ]
    return rows, wrong + [f"{row[0]}: nothing ran on all databases" for row in rows if row[1] == "0"]


def tests(path: Path) -> list[tuple[str, set[str]]]:
    """The tests of a report that ran, by name, with the databases that they are about."""
    found = []
    for case in ElementTree.parse(path).iter("testcase"):
        if case.attrib["classname"].split(".")[1:2] in [[folder] for folder in FOLDERS]:
            only = [item.attrib["value"] for item in case.iter("property") if item.attrib["name"] == "only"]
            databases = set(only[0].split()) if only else {*ENVIRONMENTS}
            found.append((f"{case.attrib['classname']}::{case.attrib['name']}", databases))
    return found
