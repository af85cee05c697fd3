"""``Notification``: a message to whoever listens on a channel now, in honker's table."""

from __future__ import annotations

from django.db import models

from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .fields import LenientTextField, NameField


class Notification(models.Model):
    """A message; listeners read those that come after they began to listen."""

    id = models.BigAutoField(primary_key=True)
    channel = NameField()
    payload = LenientTextField()
    created_at = models.BigIntegerField(db_default=EpochNow())

    class Meta:
        db_table = tables.NOTIFICATIONS

    def __str__(self) -> str:
        return f"notification {self.pk} on {self.channel}"
