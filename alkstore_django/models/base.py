"""Managers that run the dialect's SQL, and the rule of when a transaction may be tried again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from django.db import DatabaseError, DataError, IntegrityError, connections, models, router, transaction

from alkstore_django.sql import connect_options, get_dialect
from alkstore_django.sql.base import Dialect

T = TypeVar("T")

TRIES = 8
"""How often a transaction of our own is run before its deadlock or serialization failure is raised."""

CHUNK = 500
"""Rows per statement with a list of parameters: within every database's limits."""

HEAVY = 4_000_000
"""Characters of payloads or results per statement: MariaDB takes 16 MB, in which quotes count twice."""


class SQLManager(models.Manager[Any]):
    """Runs hand-written SQL through one cursor.

    Not the ORM's ``delete()`` and ``update()``: with a sender-less ``pre_delete`` receiver in the host
    project Django turns a guarded DELETE into a SELECT and a DELETE by id, and the guard is gone.
    """

    @property
    def database(self) -> str:
        """The database of this manager: the one asked for by ``using``, else the router's."""
        return self._db or router.db_for_write(self.model)

    @property
    def dialect(self) -> Dialect:
        return get_dialect(connections[self.database])

    def execute(self, sql: str, params: dict[str, Any] | Sequence[Any] | None = None) -> int:
        """Run a statement; the number of rows that it changed."""
        with connections[self.database].cursor() as cursor:
            cursor.execute(sql, params)
            return int(cursor.rowcount)

    def fetch(self, sql: str, params: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement and return all its rows."""
        with connections[self.database].cursor() as cursor:
            cursor.execute(sql, params)
            return list(cursor.fetchall())

    def each(self, sql: str, params: dict[str, Any] | None = None) -> Generator[tuple[Any, ...], None, None]:
        """Run a statement; its rows one by one, which SQLite finds as they are asked for. Close it."""
        with connections[self.database].cursor() as cursor:
            cursor.execute(sql, params)
            yield from cursor

    def pipeline(self, statements: Sequence[str], params: dict[str, Any]) -> list[list[tuple[Any, ...]]]:
        """Run prepared statements as one transaction in one round trip, where ``can_pipeline``; the rows
        of each."""
        connection = connections[self.database]
        driver: Any = connection.connection
        rows: list[list[tuple[Any, ...]]] = []

        def run(sql: str, params: Any, many: bool, context: Any) -> None:
            threshold, driver.prepare_threshold = driver.prepare_threshold, 0  # Django's own never prepares
            try:
                with connection.wrap_database_errors, driver.pipeline():
                    cursors = [self._pipeline_cursor() for _ in statements]
                    for cursor, statement in zip(cursors, statements, strict=True):
                        cursor.execute(statement, params)
            finally:
                driver.prepare_threshold = threshold
            rows.extend(list(cursor.fetchall()) for cursor in cursors)

        # Who wraps the execution of queries sees them as one.
        execute: Any = run
        for wrapper in reversed(connection.execute_wrappers):
            execute = partial(wrapper, execute)
        execute("; ".join(statements), params, False, {"connection": connection, "cursor": None})
        return rows

    def can_pipeline(self) -> bool:
        """Whether the driver can, the server may, and no transaction of the caller is open."""
        return not connections[self.database].in_atomic_block and self._pipeline_cursor() is not None

    def _pipeline_cursor(self) -> Any:
        connection = connections[self.database]
        connection.ensure_connection()
        return self.dialect.pipeline_cursor(connection)

    def insert(self, sql: str, params: dict[str, Any]) -> int:
        """Run an INSERT of one row; its id."""
        with connections[self.database].cursor() as cursor:
            cursor.execute(sql, params)
            return int(cursor.lastrowid if self.dialect.tells_last_id else cursor.fetchone()[0])


def in_transaction(alias: str, work: Callable[[], T], *, again: bool = True) -> T:
    """Run ``work`` in a transaction: a savepoint of the caller's, or one of our own.

    Only our own is run again after a deadlock, a serialization failure or a busy file: inside the
    caller's the database may have ended it, and what else it held is not ours to repeat. Not ``again``:
    ``work`` cannot be repeated, and does nothing but INSERTs, which do not fail so at READ COMMITTED.
    """
    connection = connections[alias]
    dialect = get_dialect(connection)
    opening = dialect.opening_for(connection)
    ours = not connection.in_atomic_block

    def once() -> T:
        with transaction.atomic(using=alias):
            if ours and opening:
                with connection.cursor() as cursor:
                    cursor.execute(opening)
            return work()

    if again:
        return retrying(alias, once)
    if ours and dialect.read_committed:
        return _read_committed(alias, dialect.read_committed, once)()
    return once()


def retrying(alias: str, work: Callable[[], T]) -> T:
    """Run ``work`` (one statement, or one transaction) until it meets no transient error.

    From the second try on at the isolation that our statements are made for: what fails to serialize
    once would go on failing beside other workers.
    """
    for left in reversed(range(TRIES)):
        try:
            return work()
        except DatabaseError as error:
            connection = connections[alias]
            dialect = get_dialect(connection)
            if not left or connection.in_atomic_block or not dialect.is_transient(error):
                raise
            if dialect.read_committed and left == TRIES - 1:
                work = _read_committed(alias, dialect.read_committed, work)
    raise AssertionError("unreachable: the last try returns or raises")


def _read_committed(alias: str, statement: str, work: Callable[[], T]) -> Callable[[], T]:
    def calmly() -> T:
        with transaction.atomic(using=alias):
            with connections[alias].cursor() as cursor:
                cursor.execute(statement)
            return work()

    return calmly


def limit_connecting(alias: str) -> None:
    """Do not wait for ever for a server that does not answer, unless ``OPTIONS`` says how long."""
    connection = connections[alias]
    for name, value in connect_options(connection).items():
        connection.settings_dict["OPTIONS"].setdefault(name, value)


def placeholders(values: Sequence[Any], prefix: str = "id") -> tuple[str, dict[str, Any]]:
    """Named placeholders for a list, and their parameters."""
    names = [f"{prefix}{index}" for index in range(len(values))]
    return ", ".join(f"%({name})s" for name in names), dict(zip(names, values, strict=True))


def pairs(claims: Sequence[tuple[int, int]]) -> tuple[str, dict[str, Any]]:
    """A condition for ``(id, attempts)`` pairs, and its parameters."""
    terms: list[str] = []
    params: dict[str, Any] = {}
    for index, (job_id, attempts) in enumerate(claims):
        terms.append(f"(id = %(id{index})s AND attempts = %(n{index})s)")
        params |= {f"id{index}": job_id, f"n{index}": attempts}
    return " OR ".join(terms), params


def is_refused(alias: str, error: DatabaseError) -> bool:
    """Whether the database refused the data of a statement, so that no other try would do better."""
    if isinstance(error, (DataError, IntegrityError)):
        return True
    dialect = get_dialect(connections[alias])
    return dialect.error_code(error) in dialect.refused_codes


def let_go_after(alias: str, error: DatabaseError) -> None:
    """Close a connection that a refusal has cost: its next statement would fail, sooner or later."""
    connection = connections[alias]
    dialect = get_dialect(connection)
    if dialect.error_code(error) in dialect.fatal_codes and not connection.in_atomic_block:
        connection.close()


def is_transient(alias: str, error: BaseException) -> bool:
    """Whether the error has ended the transaction, and another try may do better."""
    return isinstance(error, DatabaseError) and get_dialect(connections[alias]).is_transient(error)


def is_in_transaction(alias: str) -> bool:
    """Whether the caller has opened a transaction, and goes on in it."""
    connection = connections[alias]
    return connection.in_atomic_block or not connection.get_autocommit()


def has_one_writer(alias: str) -> bool:
    """Whether a write transaction keeps all others out of the database."""
    return get_dialect(connections[alias]).has_one_writer


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def light_chunks(values: Iterable[T], size: int, weigh: Callable[[T], int]) -> Iterator[list[T]]:
    """Chunks of up to ``size`` values that weigh up to ``HEAVY``; a heavier one goes alone."""
    chunk: list[T] = []
    weight = 0
    for value in values:
        more = weigh(value)
        if chunk and (len(chunk) == size or weight + more > HEAVY):
            yield chunk
            chunk, weight = [], 0
        chunk.append(value)
        weight += more
    if chunk:
        yield chunk
