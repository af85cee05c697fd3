"""The filters of the list of schedules, by what is in the table beside them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from alkstore_django.models import FOREIGN, ScheduleOptions

OURS = ("code", "settings", "admin")


def beside(queryset: QuerySet[Any], **columns: Any) -> Exists:
    """Whether a schedule has options of which that holds."""
    options = ScheduleOptions.objects.using(queryset.db).filter(pk=OuterRef("pk"), **columns)
    return Exists(options)


class OwnerFilter(admin.SimpleListFilter):
    title = _("owner")
    parameter_name = "owner"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        names = (_("the code"), _("the settings"), _("the admin"), _("another program"))
        return list(zip((*OURS, FOREIGN), names, strict=True))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        owner = self.value()
        if owner in OURS:
            return queryset.filter(beside(queryset, owner=owner, canonical=OuterRef("cron_expr")))
        if owner == FOREIGN:
            return queryset.exclude(beside(queryset, owner__in=OURS, canonical=OuterRef("cron_expr")))
        return queryset


class StateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("on", _("on")), ("off", _("paused or withdrawn")), ("broken", _("stands still"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        broken = beside(queryset, broken=OuterRef("cron_expr"))
        match self.value():
            case "on":
                return queryset.filter(enabled=1).exclude(broken)
            case "off":
                return queryset.exclude(enabled=1)
            case "broken":
                return queryset.filter(broken, enabled=1)
        return queryset
