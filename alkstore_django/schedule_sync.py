"""Write what the code and the settings declare; disable what they do not declare any more."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import declarations, schedule_changes
from .compat import task_backends
from .declarations import Declaration
from .logs import get_logger
from .schedule_changes import ADDED, CHANGED
from .schedule_rows import DECLARED, rows

logger = get_logger("alkstore_django.scheduler")


@dataclass(frozen=True, slots=True)
class SyncReport:
    """Names of schedules: which were ``added``, ``changed`` (or came back), left ``unchanged``, and
    ``withdrawn``, since nothing declares them; ``refused`` says why by name."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def sync(using: str) -> SyncReport:
    """``schedules.sync``."""
    report = SyncReport()
    names: set[str] = set()
    for declaration in declarations.declared():
        if declaration.name in names:
            report.refused[declaration.name] = "name: the code and the settings declare one of that name."
            continue
        try:
            if declaration.database != using:
                continue
            names.add(declaration.name)
            _put(using, declaration, report)
        except (TypeError, ValueError, task_backends.exception_class) as error:
            names.add(declaration.name)
            report.refused[str(declaration.name)] = str(error)
    for row in rows(using).rows():
        is_left = row.owner in DECLARED and row.enabled and row.name not in names
        if is_left and schedule_changes.withdraw(using, row):
            report.withdrawn.append(row.name)
    _log(report)
    return report


def _put(using: str, declaration: Declaration, report: SyncReport) -> None:
    done = schedule_changes.put(using, declaration.define(), declaration.owner).done
    kept = {ADDED: report.added, CHANGED: report.changed}.get(done, report.unchanged)
    kept.append(declaration.name)


def _log(report: SyncReport) -> None:
    for name in report.added:
        logger.info("Schedule %s is new.", name)
    for name in report.changed:
        logger.info("Schedule %s has changed.", name)
    for name in report.withdrawn:
        logger.warning("Schedule %s is disabled: nothing declares it any more.", name)
    for name, why in report.refused.items():
        logger.error("Schedule %s is left as it is: %s", name, why)
