"""What became of a receipt, in words: asked of ``django.tasks`` by the id that the order keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from alkstore_django.compat import TaskResult, TaskResultDoesNotExist, TaskResultStatus

from .models import Order
from .tasks import send_receipt


@dataclass(frozen=True)
class Receipt:
    """``state`` is waiting, retrying, running, sent, failed or unknown; ``reasons``, one line for each
    attempt that failed, oldest first."""

    state: str
    attempts: int = 0
    reasons: list[str] = field(default_factory=list)
    job_id: str = ""

    TEXTS = {
        "waiting": "waiting for a worker",
        "retrying": "will be tried again",
        "running": "being sent",
        "sent": "sent",
        "failed": "not sent",
        "unknown": "nothing is known any more",
    }

    def __str__(self) -> str:
        return self.TEXTS[self.state]

    @property
    def is_settled(self) -> bool:
        return self.state in ("sent", "failed", "unknown")


def receipt_of(order: Order) -> Receipt:
    """Finished results are kept for a week; an order knows on its own that its receipt was sent."""
    try:
        result = send_receipt.get_result(order.receipt_id)
    except TaskResultDoesNotExist:
        return Receipt("sent" if order.receipt_sent_at else "unknown")
    reasons = [reason(error.traceback) for error in result.errors]
    return Receipt(_state(result), result.attempts, reasons, result.id)


def _state(result: TaskResult[Any, Any]) -> str:
    if result.status == TaskResultStatus.READY:
        return "retrying" if result.errors else "waiting"
    return {
        TaskResultStatus.RUNNING: "running",
        TaskResultStatus.SUCCESSFUL: "sent",
        TaskResultStatus.FAILED: "failed",
    }[result.status]


def reason(traceback: str) -> str:
    """The message at the end of a traceback, without the path of its class."""
    last = traceback.strip().rpartition("\n")[2]
    return last.partition(": ")[2] or last
