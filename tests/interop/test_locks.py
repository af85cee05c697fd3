"""Locks and rate limits, shared with honker: what one program has taken or counted holds for the other."""

from __future__ import annotations

import pytest

from alkstore_django import locks
from alkstore_django.locks import LockHeld, lock
from alkstore_django.rate_limits import sweep, sweep_old, try_acquire
from tests.interop.functions import ask, ask_all
from tests.interop.shared import SharedFile

LONG = 10**9
"""Seconds: the next window begins in 2033."""


def move_end(shared: SharedFile, offset: int) -> None:
    shared.execute("UPDATE _honker_locks SET expires_at = unixepoch() + %s WHERE name = 'l'", offset)


def test_what_honker_has(shared: SharedFile) -> None:
    assert ask(shared, "lock_acquire", "l", "theirs", 100) == 1
    with pytest.raises(LockHeld, match="^Lock 'l' is held by 'theirs' until "):
        lock("l").acquire()
    found = locks.holder("l")
    assert found is not None and found.owner == "theirs"
    assert ask(shared, "lock_release", "l", "theirs") == 1
    assert lock("l").acquire().release()


def test_what_we_have(shared: SharedFile) -> None:
    with lock("l", ttl=100) as held:
        answers = ask_all(
            shared,
            ("lock_acquire", "l", "theirs", 60),
            ("lock_renew", "l", "theirs", 60),
            ("lock_release", "l", "theirs"),
            ("lock_renew", "l", held.owner, 200),
        )
        assert answers == [0, 0, 0, 1]
        assert held.renew()
    assert ask(shared, "lock_acquire", "l", "theirs", 60) == 1


def test_an_end_is_the_same_second_for_both(shared: SharedFile) -> None:
    held = lock("l").acquire()
    move_end(shared, 0)
    assert ask(shared, "lock_acquire", "l", "theirs", 60) == 1
    assert not held.renew() and held.lost and not held.release()
    move_end(shared, 0)
    again = lock("l").acquire()
    assert again.token > held.token
    assert ask(shared, "lock_renew", "l", "theirs", 60) == 0


def test_what_we_take_away(shared: SharedFile) -> None:
    assert ask(shared, "lock_acquire", "l", "theirs", 60) == 1
    assert locks.force_release("l", owner="theirs")
    assert ask(shared, "lock_renew", "l", "theirs", 60) == 0


def test_one_window_for_both(shared: SharedFile) -> None:
    assert try_acquire("r", 4, LONG)
    assert ask_all(shared, *[("rate_limit_try", "r", 4, LONG)] * 2) == [1, 1]
    answer = try_acquire("r", 4, LONG)
    assert answer and answer.remaining == 0 and not try_acquire("r", 4, LONG)
    assert ask(shared, "rate_limit_try", "r", 4, LONG) == 0
    (row,) = shared.rows("SELECT * FROM _honker_rate_limits")
    assert (row["name"], row["window_start"] % LONG, row["count"]) == ("r", 0, 4)


def test_sweeps_leave_their_windows_alone(shared: SharedFile) -> None:
    assert ask(shared, "rate_limit_try", "theirs", 4, LONG) == 1
    assert try_acquire("ours", 4, 2 * LONG)
    assert sweep_old("default") == sweep(0) == 0
    assert len(shared.rows("SELECT * FROM _honker_rate_limits")) == 2
