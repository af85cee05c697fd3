from __future__ import annotations

from django.apps import AppConfig


class WarehouseConfig(AppConfig):
    """It stands for another service, and knows of the shop only what the shop's messages say."""

    name = "warehouse"
    verbose_name = "The warehouse"
