"""The warehouse of the demo: a web server in the demo's own process, open while workers run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer
from django.urls import reverse

log = logging.getLogger("django.request")
"""Django tells it what was answered with 503 and the like."""


class Handler(WSGIRequestHandler):
    """Not Django's: this one closes a connection after its answer, so nobody is left with an idle one."""

    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        log.info(format, *args)


class Server(ThreadedWSGIServer):
    """Its threads close their database connections, and are waited for in the end."""

    daemon_threads = False


@contextmanager
def open_warehouse() -> Iterator[str]:
    """Serve the project on a free port; the address for the events of the shop."""
    with logged(), Server(("127.0.0.1", 0), Handler) as server:
        server.set_app(WSGIHandler())
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{reverse('warehouse:hooks')}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def logged() -> Iterator[None]:
    """Requests go to a file: standing in the demo's own account, they would spoil it."""
    handler = logging.FileHandler(settings.DATA_DIR / "warehouse.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.propagate = True
        log.removeHandler(handler)
        handler.close()
