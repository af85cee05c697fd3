"""Eight processes want one lock: never two have it, and who was frozen finds out.

``ALKSTORE_LOCK_SECONDS`` says for how long they do, 5 by default.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from alkstore_django import locks
from alkstore_django.locks import lock
from alkstore_django.models import LockToken
from tests.concurrency.contender import NAME, Resource
from tests.processes import Workers

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = float(os.environ.get("ALKSTORE_LOCK_SECONDS") or 5)
ROLES = ("wait",) * 3 + ("hurry",) * 3 + ("forget",) * 2


def contended(workers: Workers, directory: Path, seconds: float, **environment: str) -> list[dict[str, Any]]:
    line = ("-m", "tests.concurrency.contender", directory, seconds, *ROLES)
    process = workers.run(*line, **environment)
    assert process.join(patience=120) == 0, process
    found: list[dict[str, Any]] = json.loads(process.lines[-1])
    assert len(found) == len(ROLES)
    return found


def judge(answers: list[dict[str, Any]]) -> None:
    """Of all who were inside, by their tokens: each came after the one before had gone."""
    found = sorted(each for answer in answers for each in answer["found"])
    tokens = [token for token, _, _ in found]
    assert tokens == sorted(set(tokens)), "a token was given twice"
    assert all(left is not None for _, _, left in found), "a holder's token was refused"
    for (_, _, left), (token, entered, _) in zip(found, found[1:], strict=False):
        assert left < entered, f"two held it at once: {token}"
    assert sum(bool(answer["found"]) for answer in answers) > 2, "nobody contended: nothing was shown"
    assert sum(answer["refused"] for answer in answers) > 0
    newest = LockToken.objects.get(pk=NAME).token
    assert newest >= tokens[-1]
    print(f"{len(tokens)} acquisitions, {sum(answer['refused'] for answer in answers)} refusals")


def test_never_two(workers: Workers, tmp_path: Path) -> None:
    judge(contended(workers, tmp_path, SECONDS))


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_at_a_strict_isolation(workers: Workers, tmp_path: Path, isolation: str) -> None:
    judge(contended(workers, tmp_path, min(SECONDS, 3), ALKSTORE_ISOLATION=isolation))


def test_a_frozen_holder_finds_out(workers: Workers, tmp_path: Path) -> None:
    frozen = workers.run("-m", "tests.concurrency.holder", tmp_path, 6)
    frozen.wait_for("^holds ")
    first = locks.holder(NAME)
    assert first is not None
    frozen.freeze()
    with lock(NAME, wait=30) as held:
        assert held.owner != first.owner and Resource(str(tmp_path)).accepts(held.token)
        assert frozen.count("lost") == 0
        frozen.send(signal.SIGCONT)
        assert frozen.join() == 0
        said = [line for line in frozen.lines if not line.startswith("Lock ")]  # that is logged
        assert said[1:] == ["has lost it", "is refused", "cannot renew it"], frozen
        found = locks.holder(NAME)
        assert found is not None and found.owner == held.owner and held.renew()


def test_a_killed_holder_is_waited_for_as_long_as_its_time(workers: Workers, tmp_path: Path) -> None:
    killed = workers.run("-m", "tests.concurrency.holder", tmp_path, 6)
    killed.wait_for("^holds ")
    killed.stop(signal.SIGKILL)
    with pytest.raises(locks.LockHeld):
        lock(NAME).acquire()
    with lock(NAME, wait=30) as held:
        assert held.token > int(killed.lines[0].split()[1])
