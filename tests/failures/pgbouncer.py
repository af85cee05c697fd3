"""PgBouncer between the workers and a PostgreSQL server, in transaction mode: no session is anybody's own."""

from __future__ import annotations

from typing import Any

from tests.failures.homes import Home
from tests.failures.servers import Server

CONFIGURATION = """\
[databases]
{name} = host={server.host} port={server.port} dbname={name} user=postgres

[pgbouncer]
listen_addr = {self.host}
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
"""


class PgBouncer(Server):
    user = "postgres"

    def __init__(self, home: Home) -> None:
        self._home = home
        super().__init__()

    def prepare(self) -> None:
        name = self._home.settings["NAME"]
        text = CONFIGURATION.format(self=self, name=name, server=self._home.server)
        self._file = self.folder / "pgbouncer.ini"
        self._file.write_text(text)

    def command(self) -> list[str]:
        return ["/usr/sbin/pgbouncer", str(self._file)]

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(
            host=self.host,
            port=self.port,
            user="postgres",
            dbname=self._home.settings["NAME"],
            autocommit=True,
        )

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        import psycopg

        return (psycopg.OperationalError,)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to work through it; Django's own setting for such a pooler among it."""
        return self._home.reached(PORT=str(self.port), DISABLE_SERVER_SIDE_CURSORS=True)
