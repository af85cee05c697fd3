"""Tell the receivers of a signal: whatever one of them raises goes no further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alkstore_django.logs import get_logger

logger = get_logger("alkstore_django.worker")

CUT_SHORT = "A signal was cut short by what a receiver has raised; the task goes on."


def tell(send: Callable[..., Any], **named: Any) -> None:
    """Call ``send``, a ``send_robust``. That does not catch what is no ``Exception``, such as ``SystemExit``,
    nor what a filter of the log raises over an error of a receiver."""
    try:
        send(**named)
    except KeyboardInterrupt:
        raise
    except BaseException:
        logger.exception(CUT_SHORT)
