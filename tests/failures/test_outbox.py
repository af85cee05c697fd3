"""A worker is killed at each step of a delivery: a consumer with an inbox has each effect once, in order.

One repetition of each step; ``--full`` makes it twenty.
"""

from __future__ import annotations

import signal

import pytest
from django.contrib.auth.models import Group

from alkstore_django.models import InboxMessage, OutboxEvent
from tests.failures.homes import Home
from tests.failures.relayed import STEPS, have_effect
from tests.processes import Workers
from tests.queue_state import dead, live

KEYS, EVENTS = ("a", "b", "c"), 4


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "repetition" in metafunc.fixturenames:
        metafunc.parametrize("repetition", range(20 if metafunc.config.getoption("--full") else 1))


@pytest.mark.parametrize("step", STEPS)
def test_each_effect_once_and_in_order(home: Home, workers: Workers, step: str, repetition: int) -> None:
    for number in range(EVENTS):
        have_effect.enqueue_many([number] * len(KEYS), keys=KEYS)
    victim_of = home.reached(settings="tests.failures.relaying")
    killed = {"ALKSTORE_STEP": step, "ALKSTORE_EVENTS": str(repetition % 6)}
    victim = workers.start("--threads", 1 + repetition % 2, "--no-scheduler", **victim_of, **killed)
    assert victim.join() == -signal.SIGKILL, victim
    heir = workers.ready("--interval", 0.05, **victim_of)  # else it may be told to stop while it begins
    workers.wait_until(lambda: not live(), "everything is delivered")
    assert heir.stop() == 0
    names = list(Group.objects.order_by("pk").values_list("name", flat=True))
    assert len(names) == len(KEYS) * EVENTS == InboxMessage.objects.count()
    for key in KEYS:
        assert [name for name in names if name.startswith(key)] == [f"{key} {n}" for n in range(EVENTS)]
    assert not dead() and not OutboxEvent.objects.exists()
