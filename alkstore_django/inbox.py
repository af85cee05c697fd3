"""The inbox: take in each message of another system once, with what it does.

::

    with transaction.atomic():
        if inbox.once("payments", message["id"]):
            Payment.objects.create(...)

The note that a message came and its effects are one transaction: both are there, or neither. So a message
that is delivered twice has its effects once, as far as they are in that database.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from .models import InboxManager, InboxMessage, alias
from .models.base import in_transaction, is_in_transaction
from .names import checked

BATCH = 500
"""Messages that one sweep deletes."""


def once(source: str, message_id: Any, *, using: str | None = None) -> bool:
    """Whether a message is to be handled: ``False`` if it was, or is being by somebody whose transaction is
    waited for.

    ``source`` says who numbers the messages, ``message_id`` (a string, or an integer) which one it is; each
    has up to 191 characters. ``using`` is the database of the effects; default: the router's. Raises
    ``TransactionManagementError`` outside a transaction of that database: the note would be kept although
    the effects were not. Raises ``TypeError`` and ``ValueError`` for bad names.
    """
    if isinstance(message_id, int) and not isinstance(message_id, bool):
        message_id = str(message_id)
    names = checked("source", source), checked("message", message_id)
    database = alias(using)
    if not is_in_transaction(database):
        raise transaction.TransactionManagementError(
            f"inbox.once() wants a transaction on {database!r}, in which the effects of the message are as "
            f"well: with transaction.atomic(using={database!r}): ..."
        )
    return _messages(database).add(*names)


aonce = sync_to_async(once)


def sweep(using: str, age: int) -> int:
    """Forget up to ``BATCH`` messages that came ``age`` seconds ago or before; how many."""
    messages = _messages(using)
    return in_transaction(using, lambda: messages.sweep(age, BATCH)) if messages.any_old(age) else 0


def count_old(using: str, age: int) -> int:
    """How many messages ``sweep`` would forget in all."""
    return _messages(using).count_old(age)


def _messages(using: str) -> InboxManager:
    return InboxMessage.objects.db_manager(using)
