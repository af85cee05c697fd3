"""When claims are to be renewed."""

from __future__ import annotations

import time

import pytest

from alkstore_django.models import Claim
from alkstore_django.runtime.leases import Leases

CLAIM = Claim(1, "q", "{}", 0, 0, 1, 3, "w", 0, 0, 0, None)


@pytest.mark.parametrize(
    ("extend", "due"),
    [
        (60, 20),  # an ordinary renewal: at a third
        (30, 10),
        (600, 560),  # asked for by the task: renewed for 60 s, it must not end earlier than it would
        (90, 50),
    ],
)
def test_the_next_renewal(extend: int, due: int) -> None:
    leases = Leases("w", lambda claim: 60)
    leases.add(CLAIM, 60, since=time.monotonic())
    leases.renewed(CLAIM, extend)
    assert due - 5 < leases.next_due() <= due


def test_a_job_that_was_given_back_and_claimed_again() -> None:
    """It has the same number of attempts, and is another claim."""
    leases = Leases("w", lambda claim: 60)
    leases.add(CLAIM, 60, since=0)
    assert leases.is_holding(CLAIM)
    leases.drop([CLAIM])
    assert not leases.is_holding(CLAIM)
    leases.add(CLAIM._replace(claimed_at=1), 60, since=1)
    assert CLAIM in leases
    assert not leases.is_holding(CLAIM)
