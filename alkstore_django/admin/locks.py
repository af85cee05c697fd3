"""Locks: who holds what, and until when."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from alkstore_django.models import Lock

from . import display
from .base import ReadOnlyAdmin


@admin.register(Lock)
class LockAdmin(ReadOnlyAdmin):
    list_display = ("name", "owner", "expires", "state")
    readonly_fields = fields = list_display
    search_fields = ("name", "owner")
    ordering = ("name",)
    sortable_by = ("name", "owner", "expires")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).annotate(is_held=Lock.HELD)
        return rows

    @admin.display(description=_("expires at"), ordering="expires_at")
    def expires(self, row: Lock) -> str | None:
        return display.moment(row.expires_at)

    @admin.display(description=_("state"))
    def state(self, row: Any) -> str:
        return gettext("held") if row.is_held else gettext("expired")
