"""Dead letters: why jobs died, what they were to do, and a button that gives them a new life."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.db.models.functions import Substr
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from alkstore_django import dead_letters
from alkstore_django.models import DeadJob
from alkstore_django.models.fields import LenientTextField

from . import display, history
from .queue_filter import QueueFilter
from .requeueing import RequeueAdmin, ids_in


class DeadJobList(ChangeList):
    """Reads the beginnings of the long texts only."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        rows = rows.defer("payload", "last_error").annotate(
            payload_head=Substr("payload", 1, display.HEAD, output_field=LenientTextField()),
            error_head=Substr("last_error", 1, display.HEAD, output_field=LenientTextField()),
        )
        return rows


@admin.register(DeadJob)
class DeadJobAdmin(RequeueAdmin):
    list_display = ("number", "queue", "task", "short_error", "tries", "died", "created")
    list_filter = (QueueFilter,)
    search_fields = ("pk", "queue")  # see get_search_results
    search_help_text = _("The id of a job, or the exact name of a queue")
    ordering = ("-pk",)
    sortable_by = ("number",)  # the table has no other index
    save_on_top = True
    fields = (
        ("number", "queue", "whole_task"),
        ("tries", "priority"),
        ("died", "due", "created"),
        "error",
        "payload_text",
    )
    readonly_fields = flatten(fields)

    # -- columns ----------------------------------------------------------------------------------

    @admin.display(description=_("id"), ordering="pk")
    def number(self, row: DeadJob) -> str:
        return str(row.pk)  # as text: a setting may group the digits of numbers

    @admin.display(description=_("task"))
    def task(self, row: Any) -> str:
        return display.task(row.payload_head)

    @admin.display(description=_("task"))
    def whole_task(self, row: DeadJob) -> str:
        return display.task(row.payload) or self.get_empty_value_display()

    @admin.display(description=_("attempts"))
    def tries(self, row: DeadJob) -> str:
        return gettext("%(n)s of %(max)s") % {"n": row.attempts, "max": row.max_attempts}

    @admin.display(description=_("error"))
    def short_error(self, row: Any) -> str:
        return display.line(row.error_head)

    @admin.display(description=_("died at"))
    def died(self, row: DeadJob) -> str | None:
        return display.moment(row.died_at)

    @admin.display(description=_("created at"))
    def created(self, row: DeadJob) -> str | None:
        return display.moment(row.created_at)

    @admin.display(description=_("was due at"))
    def due(self, row: DeadJob) -> str | None:
        return display.moment(row.run_at)

    @admin.display(description=_("error"))
    def error(self, row: DeadJob) -> SafeString:
        return display.block(row.last_error)

    @admin.display(description=_("payload"))
    def payload_text(self, row: DeadJob) -> SafeString:
        return display.block(display.pretty(row.payload))

    # -- pages ------------------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return DeadJobList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.isascii() and term.isdigit():
            found = ids_in([term])
            return (queryset.filter(pk__in=found) if found else queryset.none()), False
        return queryset.filter(queue=term), False

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        context["can_requeue"] = self.has_requeue_permission(request)
        context["history"] = lines = history.lines(dead_letters.history(self.using, obj.pk))
        context["has_other_ids"] = any(line.row.job_id != obj.pk for line in lines)
        return super().render_change_form(request, context, add, change, form_url, obj)
