"""Locks: who holds what, and until when; and how to take one away from a holder that is gone."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_permission_codename
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from alkstore_django import locks
from alkstore_django.models import Lock

from . import display
from .base import ReadOnlyAdmin

AT_ONCE = 200
"""Locks that one request is about at most."""


@admin.register(Lock)
class LockAdmin(ReadOnlyAdmin):
    """Looking needs the ``view`` permission, to release by force the permission ``release_lock``."""

    list_display = ("name", "owner", "expires", "state")
    readonly_fields = fields = list_display
    search_fields = ("name", "owner")
    ordering = ("name",)
    sortable_by = ("name", "owner", "expires")
    actions = ("release",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).annotate(is_held=Lock.HELD)
        return rows

    def has_release_permission(self, request: HttpRequest) -> bool:
        codename = get_permission_codename("release", self.opts)
        return bool(request.user.has_perm(f"{self.opts.app_label}.{codename}"))

    @admin.display(description=_("expires at"), ordering="expires_at")
    def expires(self, row: Lock) -> str | None:
        return display.moment(row.expires_at)

    @admin.display(description=_("state"))
    def state(self, row: Any) -> str:
        return gettext("held") if row.is_held else gettext("expired")

    # -- release by force -------------------------------------------------------------------------

    @admin.action(description=_("Release selected %(verbose_name_plural)s by force"), permissions=["release"])
    def release(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        rows = list(queryset.order_by("name")[: AT_ONCE + 1])
        if "confirmed" not in request.POST and rows:
            return self._ask(request, rows)
        # Whoever has one since the question was asked keeps it.
        names, owners = (request.POST.getlist(name) for name in (ACTION_CHECKBOX_NAME, "owner"))
        seen = dict(zip(names, owners, strict=False))
        done = 0
        for row in rows[:AT_ONCE]:
            work = partial(locks.force_release, row.name, using=self.using, owner=seen.get(row.name))
            if row.name in seen and self.done(request, row, gettext("Released by force."), work):
                done += 1
        if done:
            text = ngettext("%(n)d lock was released.", "%(n)d locks were released.", done)
            self.message_user(request, text % {"n": done}, messages.SUCCESS)
        if left := max(len(names), len(rows)) - done:
            text = ngettext(
                "%(n)d lock was not held any more, or by somebody else.",
                "%(n)d locks were not held any more, or by somebody else.",
                left,
            )
            self.message_user(request, text % {"n": left}, messages.WARNING)
        return None

    def _ask(self, request: HttpRequest, rows: list[Any]) -> HttpResponse:
        shown = rows[:AT_ONCE]
        hidden = [(ACTION_CHECKBOX_NAME, row.name) for row in shown]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Release locks by force"),
            "opts": self.opts,
            "media": self.media,
            "question": _(
                "These locks are to be taken away from their holders. That does not stop a holder: make sure "
                "that it is gone, or that what the lock protects refuses old tokens."
            ),
            "yes": _("Yes, release"),
            "action": "release",
            "hidden": hidden + [("owner", row.owner) for row in shown],
            "more_than": AT_ONCE if len(rows) > AT_ONCE else None,
            "heads": [_("lock"), _("owner"), _("expires at"), _("state")],
            "rows": [
                (display.storable(row.name), display.storable(row.owner), self.expires(row), self.state(row))
                for row in shown
            ],
        }
        return TemplateResponse(request, "admin/alkstore_django/confirmation.html", context)
