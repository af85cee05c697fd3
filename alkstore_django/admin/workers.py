"""Workers: which processes there are, what they serve, and when they were last heard of."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from alkstore_django.models import WorkerProcess
from alkstore_django.workers import STALE, described

from . import display
from .base import ReadOnlyAdmin


@admin.register(WorkerProcess)
class WorkerProcessAdmin(ReadOnlyAdmin):
    list_display = ("worker_id", "host", "process", "serves", "running", "started", "heartbeat", "state")
    fields = (*list_display, "version")
    readonly_fields = fields
    search_fields = ("worker_id", "host")
    ordering = ("started_at", "worker_id")
    sortable_by = ("worker_id", "host", "started", "heartbeat")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).annotate(silent_for=WorkerProcess.SILENT_FOR)
        return rows

    @admin.display(description=_("process"))
    def process(self, row: WorkerProcess) -> str:
        return str(row.pid)  # as text: a setting may group the digits of numbers

    @admin.display(description=_("serves"))
    def serves(self, row: WorkerProcess) -> str:
        return display.storable(described(row.queues))

    @admin.display(description=_("started at"), ordering="started_at")
    def started(self, row: WorkerProcess) -> str | None:
        return display.moment(row.started_at)

    @admin.display(description=_("heartbeat"), ordering="heartbeat_at")
    def heartbeat(self, row: WorkerProcess) -> str | None:
        return display.moment(row.heartbeat_at)

    @admin.display(description=_("state"))
    def state(self, row: Any) -> str:
        if row.silent_for <= STALE:
            return gettext("alive")
        return gettext("silent for %(seconds)s s") % {"seconds": row.silent_for}
