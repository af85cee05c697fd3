"""Pausing, resuming, running and deleting schedules from a page: first asked, then done by ``schedules``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, DELETION
from django.contrib.auth import get_permission_codename
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from . import display
from .base import ReadOnlyAdmin
from .schedule_rows import attach, described

AT_ONCE = 200
"""Schedules that one request is about at most: for each there is a transaction."""

QUESTIONS = {
    "pause": _("These schedules are to fire no more until they are resumed."),
    "resume": _("These schedules are to fire again, from their next boundary on."),
    "run": _("A job of each of these schedules is to be put in now. Their next boundaries stay."),
    "delete_selected": _("These schedules are to be deleted. Their jobs stay."),
}
ANSWERS = {"pause": _("Yes, pause"), "resume": _("Yes, resume"), "run": _("Yes, run now")}
ANSWERS |= {"delete_selected": _("Yes, delete")}
LABELS = {"pause": _("Pause"), "resume": _("Resume"), "run": _("Run now"), "delete_selected": _("Delete")}


class ScheduleActions(ReadOnlyAdmin):
    """Pauses and resumes with the permission ``pause_scheduledtask``, runs with ``run_scheduledtask``, and
    deletes with Django's own."""

    actions = ("pause", "resume", "run", "delete_selected")

    def has_pause_permission(self, request: HttpRequest) -> bool:
        return self._may(request, "pause")

    def has_run_permission(self, request: HttpRequest) -> bool:
        return self._may(request, "run")

    @admin.action(description=_("Pause selected %(verbose_name_plural)s"), permissions=["pause"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        from alkstore_django import schedules

        def told(n: int) -> str:
            return ngettext("%(n)d schedule was paused.", "%(n)d schedules were paused.", n)

        return self._operate(request, queryset, "pause", schedules.pause, gettext("Paused."), told)

    @admin.action(description=_("Resume selected %(verbose_name_plural)s"), permissions=["pause"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        from alkstore_django import schedules

        def told(n: int) -> str:
            return ngettext("%(n)d schedule was resumed.", "%(n)d schedules were resumed.", n)

        return self._operate(request, queryset, "resume", schedules.resume, gettext("Resumed."), told)

    @admin.action(description=_("Run selected %(verbose_name_plural)s now"), permissions=["run"])
    def run(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        from alkstore_django import schedules

        def told(n: int) -> str:
            return ngettext("%(n)d job was put in.", "%(n)d jobs were put in.", n)

        return self._operate(request, queryset, "run", schedules.run_now, gettext("Run now."), told)

    @admin.action(description=_("Delete selected %(verbose_name_plural)s"), permissions=["delete"])
    def delete_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """In place of Django's, which counts what was selected, and not what was deleted."""
        from alkstore_django import schedule_updates
        from alkstore_django.schedules import NameTaken

        def delete(name: str, using: str) -> bool:
            try:
                return schedule_updates.remove(using, name)
            except NameTaken:
                return False

        def told(n: int) -> str:
            return ngettext("%(n)d schedule was deleted.", "%(n)d schedules were deleted.", n)

        return self._operate(request, queryset, "delete_selected", delete, "", told)

    def operations(self, request: HttpRequest, row: Any) -> list[tuple[str, Any]]:
        """The buttons of its page. One that is withdrawn can be paused, for when it comes back."""
        found = []
        if self.has_pause_permission(request):
            found += ["pause"] if row.schedule.enabled or row.schedule.withdrawn else []
            found += [] if row.schedule.enabled else ["resume"]
        if self.has_run_permission(request):
            found.append("run")
        return [(name, LABELS[name]) for name in found]

    def _may(self, request: HttpRequest, what: str) -> bool:
        codename = get_permission_codename(what, self.opts)
        return bool(request.user.has_perm(f"{self.opts.app_label}.{codename}"))

    def _operate(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        action: str,
        operation: Callable[..., Any],
        logged: str,
        told: Callable[[int], str],
    ) -> HttpResponse | None:
        rows = list(queryset.order_by("name")[: AT_ONCE + 1])
        if not rows:
            self._tell(request, messages.WARNING, gettext("None of them is there any more."))
            return None
        if "confirmed" not in request.POST:
            return self._ask(request, action, rows)
        flag = DELETION if action == "delete_selected" else CHANGE

        def operate(row: Any) -> Any:
            work = partial(operation, row.name, using=self.using)
            return self.done(request, row, logged, work, flag)

        done, left, refused = self._done(rows[:AT_ONCE], operate)
        self._tell(request, messages.SUCCESS, told(done) % {"n": done} if done else "")
        self._tell(request, messages.WARNING, UNDONE[action](left) % {"n": left} if left else "")
        for message in refused:
            self._tell(request, messages.ERROR, message)
        return None

    def _done(self, rows: list[Any], operate: Callable[[Any], Any]) -> tuple[int, int, list[str]]:
        """How many were changed, how many were left as they are, and why others could not be changed."""
        from alkstore_django import schedules

        done, left, refused = 0, 0, []
        for row in rows:
            try:
                changed = operate(row)
            except ValueError as error:
                refused.append(str(error))
                continue
            if changed not in (False, None):
                done += 1
            elif schedules.get(row.name, using=self.using) is None:
                refused.append(gettext("There is no schedule %(name)r any more.") % {"name": row.name})
            else:
                left += 1
        return done, left, refused

    def _tell(self, request: HttpRequest, level: int, text: str) -> None:
        if text:
            self.message_user(request, display.storable(text), level)

    def _ask(self, request: HttpRequest, action: str, rows: list[Any]) -> HttpResponse:
        shown = attach(rows[:AT_ONCE], self.using)
        context = {
            **self.admin_site.each_context(request),
            "title": LABELS[action],
            "opts": self.opts,
            "media": self.media,
            "question": QUESTIONS[action],
            "yes": ANSWERS[action],
            "action": action,
            "hidden": [(ACTION_CHECKBOX_NAME, row.name) for row in shown],
            "more_than": AT_ONCE if len(rows) > AT_ONCE else None,
            "heads": [_("schedule"), _("when"), _("task"), _("next")],
            "rows": [
                (
                    display.storable(row.name),
                    display.storable(described(row.schedule)),
                    display.storable(row.schedule.task or "-"),
                    display.instant(row.schedule.next_fire_at) or "-",
                )
                for row in shown
            ],
        }
        return TemplateResponse(request, "admin/alkstore_django/confirmation.html", context)


UNDONE: dict[str, Callable[[int], str]] = {
    "pause": lambda n: ngettext("%(n)d was paused already.", "%(n)d were paused already.", n),
    "resume": lambda n: ngettext("%(n)d was not paused.", "%(n)d were not paused.", n),
    "run": lambda n: ngettext(
        "%(n)d put in no job: the last one lives, or another has the key of its task.",
        "%(n)d put in no job: the last ones live, or others have the keys of their tasks.",
        n,
    ),
    "delete_selected": lambda n: ngettext(
        "%(n)d stays: it belongs to the code, the settings or another program.",
        "%(n)d stay: they belong to the code, the settings or another program.",
        n,
    ),
}
