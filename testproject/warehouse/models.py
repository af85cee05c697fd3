"""What the warehouse has packed."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone


class Parcel(models.Model):
    """``order_number`` is what the shop calls the order: no foreign key, as its tables are elsewhere."""

    order_number = models.PositiveBigIntegerField("order", db_index=True)
    tea = models.CharField(max_length=60)
    packets = models.PositiveIntegerField("packets of 100 g", validators=[MinValueValidator(1)])
    event_id = models.CharField("event", max_length=191)
    packed_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"Parcel {self.pk}"
