"""``ScheduledTask``: honker's schedule rows; ``ScheduleOptions``: what honker has no column for."""

from __future__ import annotations

from django.db import models

from alkstore_django.sql import tables

from .fields import LenientTextField, NameField


class ScheduledTask(models.Model):
    """When to enqueue what. ``cron_expr`` is in honker's grammar, so that any program can lead."""

    name = NameField(primary_key=True)
    queue = NameField()
    cron_expr = LenientTextField()
    payload = LenientTextField()
    priority = models.BigIntegerField(db_default=0)
    expires_s = models.BigIntegerField(null=True)
    next_fire_at = models.BigIntegerField()
    enabled = models.BigIntegerField(db_default=1)
    max_attempts = models.BigIntegerField(db_default=3)

    class Meta:
        db_table = tables.SCHEDULES

    def __str__(self) -> str:
        return str(self.name)


class ScheduleOptions(models.Model):
    """Beside a schedule of ours: its zone, its catch-up, its owner and its expression as written."""

    name = NameField(primary_key=True)
    timezone = models.CharField(max_length=64)
    catch_up = models.CharField(max_length=16)
    owner = models.CharField(max_length=16)
    expression = LenientTextField()
    canonical = LenientTextField()
    last_fire_at = models.BigIntegerField(null=True)
    skipped = models.BigIntegerField(default=0)

    class Meta:
        db_table = tables.SCHEDULE_OPTIONS

    def __str__(self) -> str:
        return str(self.name)
