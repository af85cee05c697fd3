"""The exit codes of a worker."""

from __future__ import annotations

DONE = 0
"""Stopped, drained, recycled or idle; every task came to its end."""

FAILED = 1
"""Running tasks were interrupted, or it could not start."""

CHANGED = 3
"""Its code has changed: it wants to be started again (``--reload``)."""

STUCK = 70
"""A task could neither be timed out nor interrupted, and holds a thread."""

RECYCLED = 75
"""What a supervised process says for ``DONE`` when another one should take its place."""

MEANING = {
    FAILED: "running tasks were interrupted",
    CHANGED: "its code has changed",
    STUCK: "a task can be neither timed out nor interrupted, and holds a thread",
    RECYCLED: "another one should take its place",
}
