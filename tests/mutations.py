"""Does the suite notice? ``python -m tests.mutations [sqlite|postgresql|mysql] [WORD ...]`` takes one guard
after the other (those whose name holds a word) out of a copy of the package and runs the contract, model and
race tests, which have to fail.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PATIENCE = 600
"""Seconds after which a suite hangs: it takes one or two minutes, and to its first failure less."""

ALL = ("sqlite", "postgresql", "mysql")
SERVERS = ("postgresql", "mysql")
SUITE = ("tests/contract", "tests/model", "tests/concurrency/test_races.py")


class Mutation(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    databases: tuple[str, ...] = ALL


MUTATIONS = (
    Mutation(
        "what has come back meanwhile is deleted with what is over",
        "sql/retaining.py",
        'IN ({keys}) AND {found.over}"\n\n    def lock_over',
        'IN ({keys})"\n\n    def lock_over',
        ("sqlite",),
    ),
    Mutation(
        "what has come back meanwhile is locked to be deleted",
        "sql/retaining.py",
        'IN ({keys}) AND {found.over}"\n            f"{self.skip_locked}"',
        'IN ({keys})"\n            f"{self.skip_locked}"',
        SERVERS,
    ),
    Mutation(
        "the maintenance waits for what somebody has locked",
        "sql/retaining.py",
        'AND {found.over}"\n            f"{self.skip_locked}"',
        'AND {found.over}"\n            f"{self.for_update}"',
        SERVERS,
    ),
    Mutation(
        "dead letters of other programs are deleted",
        "sql/retaining.py",
        "if not self.adopts_tables:",
        "if True:",
        ("sqlite",),
    ),
    Mutation(
        "the history of a job that was renumbered is lost",
        "sql/retaining.py",
        " AND NOT EXISTS ({other})",
        "",
    ),
    Mutation(
        "the end of a claim is not looked at",
        "sql/clauses.py",
        'return f"{self.mine} AND claim_expires_at >= {self.now}"',
        "return self.mine",
    ),
    Mutation(
        "the end of many claims is not looked at",
        "sql/settling.py",
        'f"AND claim_expires_at >= {self.now}"',
        '""',
    ),
    Mutation(
        "any worker may settle a claim",
        "sql/clauses.py",
        'mine = "worker_id = %(worker_id)s AND attempts',
        'mine = "attempts',
    ),
    Mutation(
        "any worker may settle many claims",
        "sql/settling.py",
        'f"({pairs}) AND worker_id = %(worker_id)s AND state',
        'f"({pairs}) AND state',
    ),
    Mutation(
        "an earlier claim of the same worker counts",
        "sql/clauses.py",
        "AND attempts = %(attempts)s AND state",
        "AND state",
    ),
    Mutation(
        "a move has no savepoint",
        "models/dead.py",
        "with transaction.atomic(using=self.database):",
        "if True:",
        ("postgresql",),  # elsewhere an INSERT that is refused leaves the transaction usable
    ),
    Mutation(
        "an operation has no savepoint",
        "models/base.py",
        "with transaction.atomic(using=alias):\n            if ours",
        "if True:\n            if ours",
    ),
    Mutation(
        "a turn takes claims that have ended",
        "sql/postgresql_turn.py",
        'f"AND claim_expires_at + 0 >= {self.now} FOR',
        'f"FOR',
        ("postgresql",),
    ),
    Mutation(
        "a turn takes claims of any worker",
        "sql/postgresql_turn.py",
        "AND worker_id = %(worker_id)s AND state",
        "AND state",
        ("postgresql",),
    ),
    Mutation(
        "a turn takes any claim of a job",
        "sql/postgresql_turn.py",
        " AND attempts = entry.attempts ",
        " ",
        ("postgresql",),
    ),
    Mutation(
        "a turn claims beyond its room",
        "sql/sqlite_turn.py",
        "min(NEW.n, NEW.room - (SELECT count(*) FROM alkstore_picked))",
        "NEW.n",
        ("sqlite",),
    ),
    Mutation(
        "a turn claims beyond its room",
        "sql/postgresql_turn.py",
        'f"LIMIT %(room)s))',
        'f"))',
        ("postgresql",),
    ),
    Mutation(
        "claims are returned in any order",
        "models/job.py",
        "key=lambda claim: claim.rank",
        "key=lambda claim: claim.id",
        ("sqlite", "postgresql"),  # on MariaDB claims are made in the order of the pick
    ),
    Mutation("rows are picked in any order", "sql/claiming.py", "ORDER BY run_at, id ", "", ("mysql",)),
    Mutation(
        "rows are picked in any order",
        "sql/postgresql.py",
        '"ORDER BY run_at, id LIMIT',
        '"LIMIT',
        ("postgresql",),
    ),
    Mutation(
        "rows are picked in any order",
        "sql/sqlite.py",
        '"INDEXED BY _honker_live_pending_deadline"',
        '"NOT INDEXED"',
        ("sqlite",),
    ),
    Mutation(
        "a claim waits for locked rows",
        "sql/clauses.py",
        '" FOR UPDATE SKIP LOCKED"',
        '" FOR UPDATE"',
        ("mysql",),
    ),
    Mutation(
        "a claim waits for locked rows",
        "sql/postgresql.py",
        "FOR UPDATE SKIP LOCKED) picked",
        "FOR UPDATE) picked",
        ("postgresql",),
    ),
    Mutation(
        "two claims take the same row",
        "sql/postgresql.py",
        " FOR UPDATE SKIP LOCKED) picked",
        ") picked",
        ("postgresql",),
    ),
    Mutation(
        "lapsed a second early",
        "sql/clauses.py",
        "claim_expires_at < {self.now}",
        "claim_expires_at <= {self.now}",
    ),
    Mutation("due a second late", "sql/clauses.py", "run_at <= {self.now} AND", "run_at < {self.now} AND"),
    Mutation(
        "expired a second late", "sql/clauses.py", "expires_at > {self.now})", "expires_at >= {self.now})"
    ),
    Mutation(
        "a turn takes claims that have ended",
        "sql/sqlite_turn.py",
        'f"AND job.claim_expires_at >= {self.now}",',
        '"",',
        ("sqlite",),
    ),
    Mutation(
        "a turn takes claims of any worker",
        "sql/sqlite_turn.py",
        '"AND job.worker_id = NEW.worker_id AND',
        '"AND',
        ("sqlite",),
    ),
    Mutation(
        "a turn takes any claim of a job",
        "sql/sqlite_turn.py",
        "AND job.attempts = given.value->>1 ",
        "",
        ("sqlite",),
    ),
    Mutation(
        "the planner makes a Bloom filter",
        "sql/sqlite_turn.py",
        'return f"likelihood({condition}, 0.0)"',
        "return condition",
        ("sqlite",),
    ),
    Mutation("text is not read as bytes", "sql/sqlite.py", "CAST({column} AS BLOB)", "{column}", ("sqlite",)),
    Mutation(
        "a transaction may begin with a read",
        "sql/sqlite.py",
        'opening = f"UPDATE {LIVE} SET id = id WHERE 0"',
        "opening = None",
        ("sqlite",),
    ),
    Mutation(
        "the planner may sort",
        "sql/postgresql.py",
        "set_config('enable_sort', 'off'",
        "set_config('enable_sort', 'on'",
        ("postgresql",),
    ),
    Mutation(
        "the planner may sort step by step",
        "sql/postgresql.py",
        "'enable_incremental_sort', 'off'",
        "'enable_incremental_sort', 'on'",
        ("postgresql",),
    ),
    Mutation(
        "names are compared by the alphabet",
        "sql/mysql.py",
        'name_collation = "utf8mb4_nopad_bin"',
        'name_collation = "utf8mb4_general_ci"',
        ("mysql",),
    ),
    Mutation(
        "our own transactions have the isolation of the project",
        "sql/mysql.py",
        'is_calm = connection.isolation_level == "read committed"',
        "is_calm = True",
        ("mysql",),
    ),
    Mutation("a changed row is no reason to try again", "sql/mysql.py", "{1020, 1205", "{1205", ("mysql",)),
    Mutation(
        "a second try has the isolation of the project",
        "models/base.py",
        "if dialect.read_committed and left == TRIES - 1:",
        "if False:",
        ("postgresql",),
    ),
    Mutation(
        "what cannot be repeated has the isolation of the project",
        "models/base.py",
        "if ours and dialect.read_committed:",
        "if False:",
        ("postgresql",),
    ),
    Mutation(
        "a transaction of the caller is run again",
        "models/base.py",
        "if not left or connection.in_atomic_block or not",
        "if not left or not",
        SERVERS,
    ),
    Mutation(
        "a single write is tried once",
        "models/job.py",
        "return retrying(self.database, lambda: self.execute(sql, fence | params)) == 1",
        "return self.execute(sql, fence | params) == 1",
        SERVERS,
    ),
    Mutation(
        "an iterator is read as a whole",
        "queues.py",
        "list(texts) if isinstance(payloads, Sized) else texts",
        "list(texts)",
    ),
    Mutation(
        "a list is checked while it is written",
        "queues.py",
        "list(texts) if isinstance(payloads, Sized) else texts",
        "texts",
    ),
    Mutation("a sweep goes in one transaction", "claims.py", "SWEEP = 500\n", "SWEEP = 500_000\n"),
    Mutation("a requeue goes in one transaction", "reviving.py", "BATCH = 100\n", "BATCH = 100_000\n"),
    Mutation(
        "two sweeps take the same rows",
        "sql/burying.py",
        'f"LIMIT %(n)s{self.skip_locked}"',
        'f"LIMIT %(n)s"',
        SERVERS,
    ),
    Mutation(
        "two requeues take the same letter",
        "sql/reviving.py",
        'f"ORDER BY id{self.for_update}"',
        'f"ORDER BY id"',
        SERVERS,
    ),
    Mutation(
        "a letter is not judged again when its row is locked",
        "sql/reviving.py",
        "WHERE id IN ({ids}){where} ",
        "WHERE id IN ({ids}) ",
    ),
    Mutation(
        "what is not of the task is requeued",
        "reviving.py",
        " if wanted.is_meant(letter)]",
        "]",
    ),
    Mutation(
        "a result is read at the second of its end",
        "sql/settling.py",
        "(expires_at IS NULL OR expires_at > {self.now})",
        "(expires_at IS NULL OR expires_at >= {self.now})",
    ),
    Mutation(
        "ids are never raised", "models/job.py", "if known := self._id_to_raise_to():", "if known := 0:"
    ),
    Mutation(
        "a fresh id is not above all others",
        "models/job.py",
        "        self.raise_sequence()\n        job_id",
        "        job_id",
    ),
    Mutation(
        "a worker that vanished leaves no trace",
        "models/dead.py",
        "        self._attempts().record_each(alive)\n",
        "",
    ),
    Mutation(
        "a lapsed job has one attempt more",
        "models/dead.py",
        "if claim.attempts < claim.max_attempts]",
        "if claim.attempts <= claim.max_attempts]",
    ),
    Mutation(
        "a new life begins with the old attempts",
        "sql/reviving.py",
        "{self.now}, 0, ",
        "{self.now}, attempts, ",
    ),
    Mutation(
        "what had not started is spent",
        "sql/settling.py",
        "SET state = 'pending', attempts = attempts - 1, {LET_GO} ",
        "SET state = 'pending', {LET_GO} ",
    ),
    Mutation(
        "a stop spends the last attempt",
        "sql/settling.py",
        "(attempts, max_attempts - 1)",
        "(attempts, max_attempts)",
    ),
    Mutation(
        "claimed_at stays when a claim is let go",
        "sql/clauses.py",
        "claim_expires_at = NULL, claimed_at = NULL",
        "claim_expires_at = NULL",
    ),
    Mutation(
        "jobs of another program are claimed by workers",
        "sql/clauses.py",
        'return f" AND {self.is_task}" if tasks_only else ""',
        'return ""',
        SERVERS,
    ),
    Mutation(
        "a run that lost its claim may tell how far it is",
        "sql/telling.py",
        'source = f"SELECT id, %(value)s FROM {LIVE} WHERE id = %(id)s AND {fence}"',
        'source = f"SELECT id, %(value)s FROM {LIVE} WHERE id = %(id)s"',
        ("sqlite", "postgresql"),
    ),
    Mutation(
        "a run that lost its claim may tell how far it is, with MariaDB",
        "sql/telling.py",
        'return f"SELECT 1 FROM {LIVE} WHERE id = %(id)s AND {fence}"',
        'return f"SELECT 1 FROM {LIVE} WHERE id = %(id)s"',
        ("mysql",),
    ),
    Mutation(
        "metadata of jobs in the dead letters is swept",
        "sql/retaining.py",
        'f"AND (SELECT job.id FROM {DEAD} job WHERE job.id = {job}{stays}) IS NULL"',
        '""',
    ),
    Mutation(
        "an expired zombie is claimed again",
        "models/dead.py",
        "expired = [claim for claim, has_expired in lapsed if has_expired]",
        "expired = []",
    ),
    Mutation(
        "a lock is taken from who holds it",
        "sql/locking.py",
        'f"WHERE name = %(name)s AND expires_at <= {self.now}"',
        'f"WHERE name = %(name)s"',
    ),
    Mutation(
        "a lock that has ended is renewed",
        "sql/locking.py",
        'f"WHERE name = %(name)s AND owner = %(owner)s AND expires_at > {self.now}"',
        'f"WHERE name = %(name)s AND owner = %(owner)s"',
    ),
    Mutation(
        "a token comes again when a clock is set back",
        "sql/locking.py",
        "{self.greatest}({LOCK_TOKENS}.token + 1, {self.microseconds})",
        "{self.microseconds}",
    ),
    Mutation(
        "a full window counts",
        "sql/limiting.py",
        'f"SET count = {RATE_LIMITS}.count + 1 WHERE {RATE_LIMITS}.count < %(limit)s RETURNING count"',
        'f"SET count = {RATE_LIMITS}.count + 1 RETURNING count"',
        ("sqlite", "postgresql"),
    ),
    Mutation(
        "a full window counts, with MariaDB",
        "sql/mysql.py",
        "AND window_start = {self.window} AND count < %(limit)s",
        "AND window_start = {self.window}",
        ("mysql",),
    ),
    Mutation(
        "a running window is swept",
        "sql/limiting.py",
        'f"AND window_start < {self.now} - {longest}"',
        '""',
    ),
    Mutation(
        "others see a job before its moment is read",
        "models/job.py",
        "in_transaction(self.database, lambda: self._read_back",
        "retrying(self.database, lambda: self._read_back",
        ("sqlite", "mysql"),
    ),
    Mutation(
        "a result is put together from two moments",
        "task_results.py",
        "if not _may_be_torn(result):",
        "if True:",
    ),
    Mutation(
        "a release that was rolled back counts",
        "held_locks.py",
        "self._given_back is not None and not self._given_back.is_broken",
        "self._given_back is not None",
    ),
    Mutation(
        "events that wait in line move with the time",
        "testing/travelling.py",
        "jobs.exclude(run_at=PARKED).update(",
        "jobs.update(",
    ),
    Mutation(
        "what is fired is not what is stored",
        "sql/scheduling.py",
        "AND {options} AND EXISTS ({row})",
        "",
    ),
    Mutation(
        "a schedule that was corrected is marked as broken",
        "firing.py",
        "if table.lock(row.name) != row:",
        "if False:",
    ),
    Mutation(
        "the admin writes back what it was shown",
        "admin/meanwhile.py",
        'if f"initial-{name}" in sent else stored_value',
        "if False else stored_value",
    ),
    Mutation(
        "the admin writes over what was changed since it was judged",
        "schedule_updates.py",
        "if seen is not None and (",
        "if seen is None and (",
        SERVERS,
    ),
    Mutation(
        "the admin deletes the schedule of another",
        "schedule_updates.py",
        "schedule_changes.check_owner(row, ADMIN)\n        return table.delete(name)",
        "return table.delete(name)",
        SERVERS,
    ),
    Mutation(
        "the admin replaces a schedule that was added meanwhile",
        "admin/schedules.py",
        'schedule_changes.add(self.using, form.definition, "admin")',
        'schedule_changes.put(self.using, form.definition, "admin")',
        SERVERS,
    ),
    Mutation(
        "the admin reads a schedule in two statements",
        "admin/schedule_rows.py",
        "row.stored = found.get(row.pk) or (",
        "row.stored = row.alone or (",
    ),
    Mutation(
        "the admin saves at the isolation of the project",
        "admin/base.py",
        'in_transaction(self.using, view) if request.method == "POST" else view()',
        "view()",
        ("postgresql",),
    ),
    Mutation(
        "MariaDB reads a locked schedule as it was before",
        "sql/mysql.py",
        'return f"{self.schedule}{self.for_update}"',
        "return self.schedule",
        ("mysql",),
    ),
    Mutation(
        "the log of the admin is written in another transaction",
        "admin/base.py",
        "return in_transaction(self.using, work_and_log)",
        "return work_and_log()",
    ),
)


def survives(mutation: Mutation, database: str) -> bool:
    """Whether the suite passes without the guard."""
    with tempfile.TemporaryDirectory(prefix="alkstore-mutation-") as directory:
        copy = Path(directory) / "copy"
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".git", ".tox", ".*_cache", "__pycache__", "data")
        )
        path = copy / "alkstore_django" / mutation.file
        text = path.read_text()
        if mutation.old not in text:
            raise SystemExit(f"{mutation.file} does not hold {mutation.old!r}: {mutation.name}")
        path.write_text(text.replace(mutation.old, mutation.new))
        seen = first_failure(copy, database, f"{directory}/tmp")
        print(f"{database:10}  {mutation.name:45}  {seen or 'nothing failed'}", flush=True)
        return not seen


def first_failure(copy: Path, database: str, scratch: str) -> str:
    """The test that failed first, or an empty string; a suite that hangs has noticed, too."""
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-qx", "-n2", f"--basetemp={scratch}", *SUITE],
        cwd=copy,
        env={**os.environ, "ALKSTORE_DB": database, "ALKSTORE_DB_PREFIX": f"mutation_{os.getpid()}"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = run.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return f"hangs ({PATIENCE} s)"
    failed = [line for line in output.splitlines() if line.startswith("FAILED")]
    return failed[0].split(" - ")[0].removeprefix("FAILED ") if failed else ""


def main(arguments: list[str]) -> int:
    words = [word for word in arguments if word not in ALL]
    found = [
        survives(mutation, database)
        for database in ALL
        if database in arguments or not {*ALL} & {*arguments}
        for mutation in MUTATIONS
        if database in mutation.databases and (not words or any(word in mutation.name for word in words))
    ]
    print(f"{len(found) - sum(found)} of {len(found)} mutations were noticed")
    return int(any(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
