"""The programs of the tests are what they would be if they had been started by hand."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.processes import Process, Workers, is_alive, workers

__all__ = ["workers"]


def told(program: Process) -> Any:
    program.wait_for("^{")
    return json.loads(program.lines[0])


@pytest.mark.parametrize("cold", [{}, {"PYTHONPATH": "/nowhere"}], ids=["fork", "cold"])
def test_a_program(workers: Workers, cold: dict[str, str]) -> None:
    program = workers.run("-m", "tests.unit.program", 3, "x y", ALKSTORE_VARIABLE="known", **cold)
    assert told(program) == {
        "arguments": ["3", "x y"],
        "name": "__main__",
        "pid": program.pid,
        "variable": "known",
        "ours": [],
        "settings": False,
        "interrupts": True,
        "files": [0, 1, 2],
    }
    assert program.join() == 3 and not program.is_running


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_it(workers: Workers, number: signal.Signals) -> None:
    program = workers.run("-m", "tests.unit.program", "wait")
    other = workers.run("-m", "tests.unit.program", "wait")
    told(program), told(other)
    assert is_alive(program.pid) and program.stop(number) == -number
    assert not is_alive(program.pid) and other.is_running


def test_one_that_fails_says_why(workers: Workers) -> None:
    program = workers.run("-m", "tests.unit.program", "many")
    assert program.join() == 1
    assert program.count("ValueError: invalid literal") == 1


def test_many_that_end_at_once(workers: Workers) -> None:
    programs = [workers.run("-m", "tests.unit.program", code) for code in range(20)]
    assert [program.join() for program in programs] == [*range(20)]
