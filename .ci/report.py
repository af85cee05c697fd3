"""What ran where: reads .tox/reports, prints three tables and the sum, and fails if anything is missing."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import contract

REPORTS = Path(__file__).parents[1] / ".tox" / "reports"

# What every environment must really have run on.
EXPECTED = {
    "py311-django52-sqlite": ("Python 3.11", "Django 5.2", "SQLite"),
    "py312-django52-sqlite": ("Python 3.12", "Django 5.2", "SQLite"),
    "py312-django60-sqlite": ("Python 3.12", "Django 6.0", "SQLite"),
    "py313-django61-sqlite": ("Python 3.13", "Django 6.1", "SQLite"),
    "postgresql": ("Python 3.13", "Django 6.1", "PostgreSQL"),
    "mariadb": ("Python 3.13", "Django 6.1", "MariaDB"),
    "lowest": ("Python 3.11", "Django 5.2", "SQLite"),
    "brokers": ("Python 3.13", "Django 6.1", "SQLite"),
    "browser": ("Python 3.13", "Django 6.1", "SQLite"),
    "interop": ("Python 3.13", "Django 6.1", "SQLite"),
    "failures": ("Python 3.13", "Django 6.1", "SQLite"),
    "py311-django52-conformance-sqlite": ("Python 3.11", "Django 5.2", "SQLite"),
    "py312-django60-conformance-sqlite": ("Python 3.12", "Django 6.0", "SQLite"),
    "py312-django60-conformance-postgresql": ("Python 3.12", "Django 6.0", "PostgreSQL"),
    "py312-django60-conformance-mysql": ("Python 3.12", "Django 6.0", "MariaDB"),
    "py313-django61-conformance-sqlite": ("Python 3.13", "Django 6.1", "SQLite"),
    "py313-django61-conformance-postgresql": ("Python 3.13", "Django 6.1", "PostgreSQL"),
    "py313-django61-conformance-mysql": ("Python 3.13", "Django 6.1", "MariaDB"),
}

# The only reasons for which a test may be skipped, word for word.
SKIPS_ALLOWED = {"tasks cannot be pickled before Django 6.1"}


@dataclass
class Report:
    env: str
    platform: list[str]
    failures: dict[str, str]
    """What each test that failed has said, by its name."""

    skips: list[str]
    total: int
    seconds: float

    @property
    def failed(self) -> int:
        return len(self.failures)

    @property
    def passed(self) -> int:
        return self.total - self.failed - len(self.skips)

    def complaints(self) -> list[str]:
        expected = EXPECTED[self.env]
        found = [f"{self.failed} failed"] if self.failed else []
        if not self.passed:
            found.append("no test passed")
        if not all(have.startswith(want) for have, want in zip(self.platform, expected, strict=True)):
            found.append(f"ran on {', '.join(self.platform)}, not on {', '.join(expected)}")
        found += [f"skipped: {reason}" for reason in sorted({*self.skips} - SKIPS_ALLOWED)]
        return [f"{self.env}: {complaint}" for complaint in found]


def read(env: str) -> Report | None:
    path = REPORTS / f"{env}.xml"
    if not path.exists():
        return None
    (suite,) = ElementTree.parse(path).getroot().iter("testsuite")
    return Report(
        env=env,
        platform=suite.attrib["name"].split(", "),
        failures={
            f"{case.attrib['classname']}.{case.attrib['name']}": said.text or said.attrib.get("message", "")
            for case in suite
            for said in [*case.findall("failure"), *case.findall("error")]
        },
        skips=[skip.attrib.get("message", "") for skip in suite.iter("skipped")],
        total=len(suite.findall("testcase")),
        seconds=float(suite.attrib["time"]),
    )


def told(text: str, most: int = 12) -> list[str]:
    """The lines of a failure that say what is wrong; without such lines, its last ones."""
    lines = text.splitlines()
    return [line for line in lines if line.startswith("E ")][:most] or lines[-most:]


def table(*rows: list[str]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()


def main() -> int:
    reports = [report for env in EXPECTED if (report := read(env))]
    stages = [line.split("\t") for line in (REPORTS / "stages.tsv").read_text().splitlines()]

    print()
    table(
        ["environment", "Python", "Django", "database", "passed", "failed", "skipped", "seconds"],
        *(
            [
                report.env,
                *(name.removeprefix("Python ").removeprefix("Django ") for name in report.platform),
                *map(str, (report.passed, report.failed, len(report.skips), round(report.seconds))),
            ]
            for report in reports
        ),
    )
    table(["stage", "result", "seconds"], *stages)
    for reason in sorted({skip for report in reports for skip in report.skips}):
        count = sum(report.skips.count(reason) for report in reports)
        print(f"{count} skipped: {reason}")

    rows, differences = contract.compare(REPORTS)
    if rows:
        table(*rows)

    wrong = differences + [f"{env}: no report" for env in EXPECTED if not (REPORTS / f"{env}.xml").exists()]
    wrong += [complaint for report in reports for complaint in report.complaints()]
    wrong += [f"{name}: the stage failed" for name, result, _ in stages if result != "ok"]
    for report in reports:
        for name, text in report.failures.items():
            print(f"{report.env}: {name}", *told(text), "", sep="\n")
    for complaint in wrong:
        print(f"FAILED {complaint}")

    passed, failed = sum(report.passed for report in reports), sum(report.failed for report in reports)
    print(f"{passed} passed, {failed} failed, {sum(len(report.skips) for report in reports)} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
