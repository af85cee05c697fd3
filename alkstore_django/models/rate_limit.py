"""``RateLimit``: one row for each window of a fixed-window limit, in honker's table."""

from __future__ import annotations

from django.db import models

from alkstore_django.sql import tables

from .fields import NameField


class RateLimit(models.Model):
    """How often a name was let through in the window that began at ``window_start``."""

    pk = models.CompositePrimaryKey("name", "window_start")
    name = NameField()
    window_start = models.BigIntegerField()
    count = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = tables.RATE_LIMITS

    def __str__(self) -> str:
        return f"{self.name} from {self.window_start}"
