"""The app's configuration: registers the system checks and the checks of ``django.tasks``."""

from __future__ import annotations

from typing import Any

from django import VERSION
from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class AlkstoreConfig(AppConfig):
    name = "alkstore_django"
    label = "alkstore_django"
    verbose_name = _("Background jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import checks, outbox_checks  # noqa: F401 - they register themselves

        if VERSION >= (6, 0):
            from django import tasks  # noqa: F401 - registers its checks

        post_migrate.connect(keep_ids_apart, sender=self)


def keep_ids_apart(using: str, **kwargs: Any) -> None:
    """After every ``migrate``: ids of new jobs lie above all known ones."""
    from . import health

    if not health.missing_tables(using):
        health.raise_sequence(using)
