"""``python -m benchmarks sqlite|postgresql|mysql [part ...] [--quick]``."""

from __future__ import annotations

import argparse
import platform

import django

from .database import VENDORS, fresh_database

PARTS = ("enqueue", "claim", "drain", "latency", "wake", "idle", "growth", "tick")
PARTS += ("locks", "results", "prune", "outbox", "rabbitmq", "notify")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Speed, as ratios to the raw driver.")
    parser.add_argument("database", choices=VENDORS)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"which of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    options = parser.parse_args()
    if unknown := set(options.parts) - {*PARTS}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    with fresh_database(options.database):
        from django.db import connection

        from . import (
            claim,
            drain,
            enqueue,
            growth,
            idle,
            latency,
            locks,
            notify,
            outbox,
            prune,
            rabbitmq,
            results,
            tick,
            wake,
        )

        connection.ensure_connection()
        version = ".".join(map(str, connection.get_database_version()))
        python = platform.python_version()
        print(f"{connection.display_name} {version}, Django {django.__version__}, Python {python}")
        runs = {
            "enqueue": enqueue.run,
            "claim": claim.run,
            "drain": drain.run,
            "latency": latency.run,
            "wake": wake.run,
            "idle": idle.run,
            "growth": growth.run,
            "tick": tick.run,
            "results": results.run,
            "locks": locks.run,
            "prune": prune.run,
            "outbox": outbox.run,
            "rabbitmq": rabbitmq.run,
            "notify": notify.run,
        }
        for part in options.parts or PARTS:
            runs[part](options.quick)


if __name__ == "__main__":
    main()
