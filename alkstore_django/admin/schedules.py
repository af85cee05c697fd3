"""Schedules: what runs when, and the form of those that are made here."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from alkstore_django.models import ScheduledTask

from . import display
from .schedule_actions import ScheduleActions
from .schedule_columns import ScheduleColumns
from .schedule_filters import OwnerFilter, StateFilter
from .schedule_rows import attach

SHOWN: Any = (
    (None, {"fields": (("name_text", "owner"),)}),
    (
        _("At present"),
        {
            "fields": (
                ("when_text", "words_text"),
                ("state_text", "last_fire", "skipped"),
                *("upcoming", "portability"),
            )
        },
    ),
    (_("What runs"), {"fields": (("what", "queue_text"), "payload_text")}),
    (
        _("Its jobs"),
        {
            "fields": (
                ("catch_up_text", "overlap_text"),
                ("priority_text", "expires_text", "attempts_text"),
            )
        },
    ),
)
EDITED: Any = (
    (_("When"), {"fields": (("expression", "timezone"), ("catch_up", "overlap"))}),
    (_("What runs"), {"fields": ("task", "args", "kwargs", "payload", "queue")}),
    (_("Its jobs"), {"fields": (("priority", "expires", "max_attempts"),)}),
)


TRIES = 3
"""How often a form is judged while somebody is quicker each time."""


class Quicker(Exception):
    """What somebody else has done since the form was judged does not go with it."""


class ScheduleList(ChangeList):
    """Each row with its options; without those that somebody deletes while the list is made."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = attach(list(self.result_list), self.root_queryset.db)

    def url_for_result(self, result: Any) -> str:
        return super().url_for_result(result) if result.pk else ""


@admin.register(ScheduledTask)
class ScheduleAdmin(ScheduleColumns, ScheduleActions):
    """Adding, changing and deleting is about schedules of the admin, with Django's permissions; those of the
    code, of the settings and of other programs can be looked at, paused, resumed and run."""

    list_display = (
        *("name_text", "is_enabled", "when", "what", "next_fire", "last_fire", "skipped"),
        *("owner", "problem"),
    )
    list_filter = (OwnerFilter, StateFilter)
    search_fields = ("name", "queue", "payload")
    search_help_text = _("A part of the name, the queue, the task or the payload")
    ordering = ("name",)
    sortable_by = ("name_text", "next_fire")

    # -- who may what -----------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return ModelAdmin.has_add_permission(self, request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return ModelAdmin.has_change_permission(self, request, obj) and (obj is None or self._is_ours(obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return ModelAdmin.has_delete_permission(self, request, obj) and (obj is None or self._is_ours(obj))

    def _is_ours(self, row: Any) -> bool:
        if not hasattr(row, "schedule"):
            attach([row], self.using)
        return row.schedule is not None and bool(row.schedule.owner == "admin")

    # -- pages ------------------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ScheduleList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        return next(iter(attach([] if row is None else [row], self.using)), None)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ((None, {"fields": ("name", "enabled")}), *EDITED)
        return (*SHOWN[:2], *EDITED) if self.has_change_permission(request, obj) else SHOWN

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else flatten_fieldsets(SHOWN)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is not None and not self.has_change_permission(request, obj):
            return super().get_form(request, obj, change, **kwargs)
        from .schedule_forms import ScheduleForm  # it asks the tasks, which the backport may be missing for

        row = None if obj is None else obj.stored
        return type("ScheduleForm", (ScheduleForm,), {"using": self.using, "row": row})

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        from alkstore_django import schedule_changes, schedule_updates

        try:
            if change:
                schedule_updates.amend(self.using, obj.name, form.given(), form.row)
            else:
                schedule_changes.add(self.using, form.definition, "admin")
        except ValueError as error:
            raise Quicker(str(error).removeprefix("name: ")) from error

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        from alkstore_django import schedule_updates
        from alkstore_django.schedules import NameTaken

        try:
            if schedule_updates.remove(self.using, obj.name):
                return
            text = gettext("There is no schedule %(name)r any more.")
        except NameTaken:
            text = gettext("The schedule %(name)r is not the admin's any more, and stays.")
        raise Quicker(text % {"name": obj.name})  # which takes the line out of the log again

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().delete_view(request, *args, **kwargs)
        except Quicker as error:
            return self._back(request, str(error))

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """A form that somebody has overtaken is judged again: it then says beside which field."""
        for left in reversed(range(TRIES)):
            try:
                return super().changeform_view(request, *args, **kwargs)
            except Quicker as error:
                quicker = error
            except PermissionDenied:  # it has another owner by now
                if left == TRIES - 1:
                    raise
                break
        return self._back(request, str(quicker))

    def _back(self, request: HttpRequest, text: str) -> HttpResponse:
        """To the list, with a message."""
        self.message_user(request, display.storable(text), messages.ERROR)
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return HttpResponseRedirect(reverse(name, current_app=self.admin_site.name))

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if obj is not None:
            context["operations"] = self.operations(request, obj)
            context["checkbox_name"] = ACTION_CHECKBOX_NAME
        return super().render_change_form(request, context, add, change, form_url, obj)
