"""The filter of a list by queue, which never walks the table to find out which queues there are."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

RECENT = 1_000
"""Of how many of the newest rows the queues are offered."""


class QueueFilter(admin.SimpleListFilter):
    """Offers the queues that this project serves, those of the newest rows, and the one that is chosen."""

    title = _("queue")
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        from alkstore_django import served  # the backport may be missing, and a check has to say so

        newest = model_admin.get_queryset(request).order_by("-pk").values_list("queue", flat=True)[:RECENT]
        found = {*served.queues(model_admin.using), *newest}
        if self.value() is not None:
            found.add(self.value())
        return [(name, name or _("(no name)")) for name in sorted(found)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        name = self.value()
        if name is None:
            return queryset
        return queryset.none() if "\x00" in name else queryset.filter(queue=name)
