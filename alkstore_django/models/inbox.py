"""``InboxMessage``: a message of somebody else's that was taken in, once."""

from __future__ import annotations

from django.db import models

from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .base import SQLManager
from .fields import NameField


class InboxManager(SQLManager):
    def add(self, source: str, message_id: str) -> bool:
        """Note a message in the caller's transaction; ``False`` if it is there, or comes to be there in a
        transaction that was open: that one is waited for."""
        return self.execute(self.dialect.take_in, {"source": source, "message_id": message_id}) > 0

    def sweep(self, age: int, n: int) -> int:
        """Delete up to ``n`` messages that came ``age`` seconds ago or before; how many."""
        return self.execute(self.dialect.sweep_inbox, {"age": age, "n": n})

    def any_old(self, age: int) -> bool:
        """Whether any came ``age`` seconds ago or before."""
        return bool(self.fetch(self.dialect.any_in_inbox, {"age": age}))

    def count_old(self, age: int) -> int:
        """How many came ``age`` seconds ago or before."""
        return int(self.fetch(self.dialect.count_inbox, {"age": age})[0][0])


class InboxMessage(models.Model):
    """Its source, and what the source calls it; ``received_at`` in Unix seconds."""

    pk = models.CompositePrimaryKey("source", "message_id")
    source = NameField()
    message_id = NameField()
    received_at = models.BigIntegerField(db_default=EpochNow(), db_index=True)

    objects = InboxManager()

    class Meta:
        db_table = tables.INBOX

    def __str__(self) -> str:
        return f"{self.message_id} of {self.source}"
