"""``Lock``: a named lock with an owner and an end, in honker's table."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .fields import NameField


class Lock(models.Model):
    """A row means held until ``expires_at`` (Unix seconds); at that very second it is free to take."""

    name = NameField(primary_key=True)
    owner = NameField()
    expires_at = models.BigIntegerField()

    HELD = models.ExpressionWrapper(models.Q(expires_at__gt=EpochNow()), output_field=models.BooleanField())
    """For ``annotate``: whether a lock is held, by the clock of the database."""

    class Meta:
        db_table = tables.LOCKS
        verbose_name = _("lock")
        verbose_name_plural = _("locks")

    def __str__(self) -> str:
        return str(self.name)
