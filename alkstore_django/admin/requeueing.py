"""Requeueing from a page: the action of the list, its confirmation, and the view that does it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from alkstore_django import reviving
from alkstore_django.inspection import is_id
from alkstore_django.models.base import chunks, in_transaction

from . import display
from .base import ReadOnlyAdmin

AT_ONCE = 1_000
"""Dead letters that one request requeues at most, in transactions of ``reviving.BATCH``."""

SHOWN = 20
"""Dead letters that the confirmation names."""


class RequeueAdmin(ReadOnlyAdmin):
    """Requeues with the permission ``requeue_deadjob``, and leaves a line in the admin's log for each."""

    actions = ("requeue",)

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_requeue"
        return [
            path("requeue/", self.admin_site.admin_view(self.requeue_view), name=name),
            *super().get_urls(),
        ]

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        codename = get_permission_codename("requeue", self.opts)
        return bool(request.user.has_perm(f"{self.opts.app_label}.{codename}"))

    def response_action(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        ids_in(request.POST.getlist(ACTION_CHECKBOX_NAME), strict=True)
        return super().response_action(request, *args, **kwargs)

    @admin.action(description=_("Requeue selected %(verbose_name_plural)s"), permissions=["requeue"])
    def requeue(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Ask first, and name those that it is about: more may have died since the list was shown."""
        ids = list(queryset.values_list("pk", flat=True)[: AT_ONCE + 1])
        if not ids:
            self._tell(request, len(request.POST.getlist(ACTION_CHECKBOX_NAME)), {})
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": _("Requeue dead letters?"),
            "opts": self.opts,
            "media": self.media,
            "preserved_filters": self.get_preserved_filters(request),
            "count": min(len(ids), AT_ONCE),
            "more_than": AT_ONCE if len(ids) > AT_ONCE else None,
            "ids": ",".join(map(str, ids[:AT_ONCE])),
            "rows": [
                (str(row.pk), row.queue, display.task(row.payload_head), display.line(row.error_head))
                for row in queryset.filter(pk__in=ids[:SHOWN])
            ],
            "not_shown": max(0, min(len(ids), AT_ONCE) - SHOWN),
        }
        return TemplateResponse(request, "admin/alkstore_django/deadjob/requeue_confirmation.html", context)

    def requeue_view(self, request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not (self.has_view_permission(request) and self.has_requeue_permission(request)):
            raise PermissionDenied
        ids = ids_in(request.POST.get("ids", "").split(","), strict=True)
        rows = {row.pk: row for row in self.get_queryset(request).filter(pk__in=ids).only("queue")}
        revived: dict[int, int] = {}
        held = 0
        for ids_of_batch in chunks(sorted(rows), reviving.BATCH):
            batch = in_transaction(self.using, partial(self._requeue, request, rows, ids_of_batch))
            revived |= batch.revived
            held += len(batch.held)
        self._tell(request, len(ids), revived, held)
        opts, filters = self.opts, self.get_preserved_filters(request)
        url = reverse(
            f"admin:{opts.app_label}_{opts.model_name}_changelist", current_app=self.admin_site.name
        )
        return HttpResponseRedirect(add_preserved_filters({"preserved_filters": filters, "opts": opts}, url))

    def _requeue(self, request: HttpRequest, rows: dict[int, Any], ids: Sequence[int]) -> reviving.Batch:
        """With a line in the log for each, in the same transaction: the next batch may fail."""
        batch = reviving.revive(self.using, ids)
        user_id: Any = request.user.pk
        revived = [rows[job_id] for job_id in batch.revived]
        LogEntry.objects.log_actions(user_id, revived, CHANGE, gettext("Requeued."))
        return batch

    def _tell(self, request: HttpRequest, asked: int, revived: dict[int, int], left: int = 0) -> None:
        """``left`` stay: another job has their key."""
        done, gone = len(revived), asked - len(revived) - left
        if done:
            text = ngettext("%(n)d dead letter was requeued.", "%(n)d dead letters were requeued.", done)
            self.message_user(request, text % {"n": done}, messages.SUCCESS)
        if gone:
            text = ngettext(
                "%(n)d dead letter was not there any more.",
                "%(n)d dead letters were not there any more.",
                gone,
            )
            self.message_user(request, text % {"n": gone}, messages.WARNING)
        if left:
            text = ngettext(
                "%(n)d dead letter stays: another job has its key.",
                "%(n)d dead letters stay: other jobs have their keys.",
                left,
            )
            self.message_user(request, text % {"n": left}, messages.WARNING)
        if moved := [f"{job_id} → {new_id}" for job_id, new_id in revived.items() if job_id != new_id]:
            text = gettext("Other jobs have these ids by now, so they were given new ones: %(ids)s.")
            self.message_user(request, text % {"ids": ", ".join(moved)}, messages.WARNING)


def ids_in(texts: list[str], *, strict: bool = False) -> list[int]:
    """Ids as a browser sends them, without those that cannot be one; ``strict`` refuses the request."""
    found = {int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 20}
    ids = sorted(filter(is_id, found))
    if strict and (len(ids) < len(set(texts)) or len(ids) > AT_ONCE):
        raise SuspiciousOperation("The request names dead letters by what is not an id, or too many.")
    return ids
