"""The shop in ``testproject`` as its users run it: programs of their own, with a database of their own."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from http.cookiejar import CookieJar
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import httpx
from django.db import connection
from standardwebhooks.webhooks import Webhook

from tests.processes import ROOT, Process

PROJECT = ROOT / "testproject"
# With our process id: the parallel processes of one test run share a server.
PREFIX = f"test_{os.environ.get('ALKSTORE_DB_PREFIX') or 'alkstore'}_{os.getpid()}"
numbers = count(1)
WAREHOUSE = "ALKSTORE_WAREHOUSE_URL"
NOBODY = "http://127.0.0.1:9/warehouse/hooks/"
"""Nobody listens there: a worker beside a shop that is not ``served`` keeps to ``--queue mail``."""


class Shop:
    """``directory`` holds its SQLite file and its mails; with ``demo`` it is the shop of the demo."""

    def __init__(self, directory: Path, *, demo: bool = False) -> None:
        self.data = directory / "demo" if demo else directory
        self.prefix = f"{PREFIX}_{next(numbers)}"
        self.database = f"{self.prefix}_shop{'_demo' if demo else ''}"
        self.environment = {
            "ALKSTORE_DATA_DIR": str(directory),
            "ALKSTORE_DB_FILE": "",
            "ALKSTORE_DB_PREFIX": self.prefix,
            "ALKSTORE_DEMO": "1" if demo else "",
            WAREHOUSE: NOBODY,
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "PYTHONDEVMODE": "1",
            "PYTHONWARNINGS": "error",
        }

    def start(self, *arguments: object, **environment: str) -> Process:
        """Start ``manage.py``; whoever starts it reaps it."""
        return Process("testproject/manage.py", *arguments, **(self.environment | environment))

    def manage(self, *arguments: object, exit_code: int = 0, **environment: str) -> str:
        """Run ``manage.py`` to its end; the output."""
        return finished(self.start(*arguments, **environment), exit_code)

    def python(self, script: str) -> str:
        """Run statements in the shop, after ``django.setup()``; the output."""
        path = os.pathsep.join([str(PROJECT), str(ROOT), os.environ.get("PYTHONPATH", "")])
        script = f"import django\ndjango.setup()\n{script}\nfrom django.db import connections\n"
        script += "connections.close_all()"
        return finished(Process("-c", script, **self.environment, PYTHONPATH=path), 0)

    @property
    def mails(self) -> list[str]:
        return [path.read_text() for path in sorted((self.data / "mail").glob("*"))]


def finished(process: Process, exit_code: int) -> str:
    try:
        assert process.join(patience=90) == exit_code, str(process)
    finally:
        process.reap()
    return process.output


@contextmanager
def opened(directory: Path, blocker: Any, *, demo: bool = False) -> Iterator[Shop]:
    """A shop with a database of its own on the server of the suite, which is dropped in the end.

    ``blocker`` is the fixture ``django_db_blocker``. On SQLite the database is a file in ``directory``.
    """
    shop = Shop(directory, demo=demo)
    name = connection.ops.quote_name(shop.database)
    statements = [f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}"]
    with blocker.unblock():
        on_server(*statements)
    try:
        yield shop
    finally:
        with blocker.unblock():
            on_server(statements[0])


def on_server(*statements: str) -> None:
    if connection.vendor != "sqlite":
        with connection._nodb_cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


class Visitor:
    """A browser without pictures: cookies, redirects, and the text of the last page."""

    def __init__(self, site: str) -> None:
        self.site = site
        self.jar = CookieJar()
        self.opener = build_opener(HTTPCookieProcessor(self.jar))
        self.url = self.html = ""
        self.status = 0
        self.headers: Any = {}

    def get(self, path: str, form: dict[str, object] | None = None) -> str:
        data = None if form is None else urlencode(form).encode()
        try:
            response = self.opener.open(f"{self.site}{path}", data)
        except HTTPError as error:
            response = error
        with response:
            self.url, self.status, self.headers = response.url, response.status, response.headers
            self.html = response.read().decode()
        return self.html

    def order(self, email: str, product: str = "Assam", quantity: int = 1) -> str:
        """Fill in the order form; the path of the order's page, empty if there is none."""
        self.get("/")
        options = re.findall(r'<option value="(\d+)"[^>]*>([^,]*),', self.html)
        number = next((value for value, name in options if name == product), "0")
        token = next(cookie.value for cookie in self.jar if cookie.name == "csrftoken")
        form = {"csrfmiddlewaretoken": token, "product": number, "quantity": quantity, "email": email}
        self.get("/", form)
        path = self.url.removeprefix(self.site)
        return path if path != "/" else ""

    @property
    def text(self) -> str:
        """What a person reads on the page."""
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", self.html.partition("<main")[2])).split())


def warehouse_at(port: int) -> str:
    return f"http://127.0.0.1:{port}/warehouse/hooks/"


@dataclass
class Sender:
    """Sends messages to the warehouse as the shop's worker does."""

    url: str
    secret: str

    def post(self, event_id: str, message: object, **headers: str) -> httpx.Response:
        body = message if isinstance(message, str) else json.dumps(message)
        now = datetime.now(UTC)
        signed = {
            "webhook-id": event_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(self.secret).sign(event_id, now, body),
        }
        added = {f"webhook-{name}": value for name, value in headers.items()}
        return httpx.post(self.url, content=body, headers=signed | added, trust_env=False)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(shop: Shop, port: int | None = None) -> Iterator[Visitor]:
    """``manage.py runserver``, and somebody who visits it. Workers deliver events to its warehouse."""
    port = port or free_port()
    before = shop.environment[WAREHOUSE]
    shop.environment[WAREHOUSE] = warehouse_at(port)
    server = shop.start("runserver", "--noreload", f"127.0.0.1:{port}")
    try:
        server.wait_for("Quit the server")
        yield Visitor(f"http://127.0.0.1:{port}")
    finally:
        server.reap()
        shop.environment[WAREHOUSE] = before
