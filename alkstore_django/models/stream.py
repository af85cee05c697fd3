"""``StreamEvent`` and ``StreamConsumer``: durable events and how far each consumer has read."""

from __future__ import annotations

from django.db import models

from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .fields import LenientTextField, NameField


class StreamEvent(models.Model):
    """One event; ``offset`` is one sequence over all topics."""

    offset = models.BigAutoField(primary_key=True)
    topic = NameField()
    key = NameField(null=True)  # noqa: DJ001 - honker's column
    payload = LenientTextField()
    created_at = models.BigIntegerField(db_default=EpochNow())

    class Meta:
        db_table = tables.STREAM

    def __str__(self) -> str:
        return f"event {self.offset} of {self.topic}"


class StreamConsumer(models.Model):
    """The offset of the last event that a consumer has handled."""

    pk = models.CompositePrimaryKey("name", "topic")
    name = NameField()
    topic = NameField()
    offset = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = tables.CONSUMERS

    def __str__(self) -> str:
        return f"{self.name} at {self.offset} of {self.topic}"
