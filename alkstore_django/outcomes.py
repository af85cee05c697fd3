"""What became of a claim, as a worker tells it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .failures import Failure
from .models import Claim


class Verdict(Enum):
    """What became of a claim."""

    ACK = "ack"
    RETRY = "retry"
    DEAD = "dead"
    DISCARD = "discard"
    INTERRUPT = "interrupt"
    GIVE_BACK = "give back"


@dataclass(slots=True)  # a frozen one takes three times as long to make
class Outcome:
    """The end of one attempt. ``value`` is the JSON text of a result to keep; ``delay`` and ``ttl`` are
    seconds, ``duration_ms`` milliseconds by the worker's monotonic clock."""

    claim: Claim
    verdict: Verdict
    task: str = ""
    value: str | None = None
    ttl: int | None = None
    delay: int = 0
    failure: Failure | None = None
    duration_ms: int | None = None
    is_written: bool = False
    """Whether the run has written it itself, in the transaction of its effects."""

    @property
    def is_put_back(self) -> bool:
        """Whether the job can be claimed again at once, by anybody."""
        at_once = (Verdict.GIVE_BACK, Verdict.INTERRUPT)
        return self.verdict in at_once or (self.verdict is Verdict.RETRY and not self.delay)
