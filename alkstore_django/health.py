"""Whether a database is fit to hold jobs."""

from __future__ import annotations

from pkgutil import iter_modules

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, connections
from django.db.migrations.recorder import MigrationRecorder

from .exceptions import TablesMissing
from .models import Job
from .models.base import in_transaction, limit_connecting


def limit_all_connecting() -> None:
    """In this process no database is waited for longer than 10 s, if its ``OPTIONS`` do not say otherwise."""
    for using in connections:
        limit_connecting(using)


def limit_idling(using: str) -> None:
    """Let the server end the session of this thread once it has done nothing in a transaction for 10 s.

    A frozen process keeps the locks of its transaction, and whoever waits for them, or passes over what
    is locked, would have to do so until it goes on. Not where the session may come to serve others.
    """
    settings = connections[using].settings_dict
    jobs = Job.objects.db_manager(using)
    is_shared = settings.get("DISABLE_SERVER_SIDE_CURSORS") or settings["OPTIONS"].get("pool")
    if jobs.dialect.limit_idling and not is_shared:
        jobs.execute(jobs.dialect.limit_idling)


LABEL = "alkstore_django"


def missing_tables(using: str) -> list[str]:
    """Our tables that the database does not have: some or all of the migrations have not run."""
    present = set(connections[using].introspection.table_names())
    ours = [model._meta.db_table for model in apps.get_app_config(LABEL).get_models()]
    return [table for table in ours if table not in present]


def lacks_something(using: str, error: DatabaseError) -> bool:
    """Whether an error says that the database lacks what a migrated one has: tables, columns, rights."""
    dialect = Job.objects.db_manager(using).dialect
    return dialect.error_code(error) in dialect.unready_codes


def pending_migrations(using: str) -> list[str]:
    """Our migrations that have not run, by name; none where the project has migrations of its own for us."""
    if LABEL in settings.MIGRATION_MODULES:
        return []
    ran = {
        name for label, name in MigrationRecorder(connections[using]).applied_migrations() if label == LABEL
    }
    folder = f"{apps.get_app_config(LABEL).path}/migrations"
    return sorted({module.name for module in iter_modules([folder])} - ran)


def require_tables(using: str) -> None:
    """Raise ``TablesMissing`` before the migrations have run; keep new ids above all known ones, and the
    indexes there that claims name (a table that another program remade has lost them)."""
    if missing := missing_tables(using):
        raise TablesMissing(
            f"Database {using!r} has no table {missing[0]}: run manage.py migrate --database {using}."
        )
    Job.objects.db_manager(using).restore_indexes()
    raise_sequence(using)


def raise_sequence(using: str) -> None:
    """Let the next job's id lie above every id that is known to live, dead, results, runs and history.

    Sequences fall behind when tables are remade, flushed or loaded, or when another program deletes
    rows: a job would then get the id of a dead letter, and the result of another.
    """
    in_transaction(using, Job.objects.db_manager(using).raise_sequence)
