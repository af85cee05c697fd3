"""The other process of ``Helper``: gets ready, waits for a line, and answers with JSON."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from typing import Any

from .database import configure

PAUSE = 0.005


def say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def wait() -> None:
    say("ready")
    sys.stdin.readline()


def drain() -> None:
    from alkstore_django.runtime.options import Options
    from alkstore_django.runtime.worker import Worker

    logging.getLogger("alkstore_django").setLevel(logging.ERROR)
    worker = Worker(Options(using="default", batch=True))
    wait()
    say(worker.run())


def work() -> None:
    """An ordinary worker, as the command starts it, until the word; when its tasks began."""
    from django.core.management import call_command

    from .tasks import STAMPS

    def stop() -> None:
        wait()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    call_command("alkworker", verbosity=0)
    say(STAMPS)


def listen() -> None:
    """The driver alone: SQLite's data_version each millisecond, LISTEN, or a look each millisecond."""
    from django.db import connection

    from alkstore_django.sql import tables

    from .raw import Raw

    raw = Raw()
    stop = threading.Event()
    started: list[tuple[int, float]] = []

    def claim() -> None:
        while raw._claim(1):
            started.append((len(started), time.monotonic()))
            raw.execute(f"DELETE FROM {tables.LIVE} WHERE worker_id = 'raw'")

    def watch() -> None:
        version = None
        if connection.vendor == "postgresql":
            raw.execute(f"LISTEN {tables.CHANNEL}")
        while not stop.is_set():
            if connection.vendor == "sqlite":
                time.sleep(0.001)
                before, version = version, raw.execute("PRAGMA data_version").fetchone()
                if version == before:
                    continue
            elif connection.vendor == "postgresql":
                list(raw.driver.notifies(timeout=0.25, stop_after=1))
            else:
                time.sleep(0.001)
            claim()

    def end() -> None:
        wait()
        stop.set()

    threading.Thread(target=end, daemon=True).start()
    watch()
    say(started)


def hear() -> None:
    """A listener, until the word; when it heard which number."""
    from alkstore_django.notifications import listen as listening

    heard = listening("benchmark")
    found: list[tuple[int, float]] = []

    def end() -> None:
        wait()
        heard.close()

    threading.Thread(target=end, daemon=True).start()
    for each in heard:
        found.append((each.payload, time.monotonic()))
    say(found)


def follow() -> None:
    """The driver alone, as honker does it: a look when SQLite's data_version has changed within a
    millisecond, when LISTEN has told, or each millisecond."""
    from django.db import connection

    from alkstore_django.sql import tables

    from .raw import Raw

    raw = Raw()
    stop = threading.Event()
    found: list[tuple[int, float]] = []
    newest = raw.execute(f"SELECT COALESCE(MAX(id), 0) FROM {tables.NOTIFICATIONS}").fetchone()[0]
    look = f"SELECT id, payload FROM {tables.NOTIFICATIONS} WHERE channel = %s AND id > %s ORDER BY id"

    def end() -> None:
        wait()
        stop.set()

    threading.Thread(target=end, daemon=True).start()
    version = None
    if connection.vendor == "postgresql":
        raw.execute(f"LISTEN {tables.HEARD}")
    while not stop.is_set():
        if connection.vendor == "postgresql":
            list(raw.driver.notifies(timeout=0.25, stop_after=1))
        else:
            time.sleep(0.001)
        if connection.vendor == "sqlite":
            before, version = version, raw.execute("PRAGMA data_version").fetchone()
            if version == before:
                continue
        for row in raw.execute(look, ("benchmark", newest)).fetchall():
            newest = row[0]
            found.append((json.loads(row[1]), time.monotonic()))
    say(found)


def insert() -> None:
    """For two seconds an INSERT every five milliseconds; how many milliseconds each took."""
    from .raw import Raw

    raw = Raw()
    wait()
    took = []
    end = time.perf_counter() + 2
    while time.perf_counter() < end:
        started = time.perf_counter()
        raw.enqueue(1, queue="elsewhere")
        took.append((time.perf_counter() - started) * 1000)
        time.sleep(PAUSE)
    say(took)


if __name__ == "__main__":
    configure(json.loads(sys.argv[2]))
    {
        "drain": drain,
        "follow": follow,
        "hear": hear,
        "insert": insert,
        "listen": listen,
        "work": work,
    }[sys.argv[1]]()
