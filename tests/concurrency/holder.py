"""One who holds a lock, and is frozen: ``python -m tests.concurrency.holder DIRECTORY TTL``.

It says when it has the lock, when it knows that it has lost it, and what its token is good for then.
"""

from __future__ import annotations

import sys
import time

from tests.concurrency.contender import NAME, Resource  # which sets Django up

from alkstore_django.locks import lock  # isort: skip


def main(directory: str, ttl: str) -> None:
    resource = Resource(directory)
    with lock(NAME, int(ttl), renew=True) as held:
        assert resource.accepts(held.token)
        print(f"holds {held.token}", flush=True)
        while not held.lost:
            time.sleep(0.01)
        print("has lost it", flush=True)
        print("is accepted" if resource.accepts(held.token) else "is refused", flush=True)
        print("renews it" if held.renew() else "cannot renew it", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
