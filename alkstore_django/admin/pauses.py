"""Paused queues: which they are, and how to pause one or let it go on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_permission_codename
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from alkstore_django import pauses
from alkstore_django.models import QueueControl
from alkstore_django.names import checked
from alkstore_django.values import duration

from . import display
from .base import ReadOnlyAdmin

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[QueueControl]
else:
    _ModelForm = forms.ModelForm

AT_ONCE = 200
"""Queues that one request resumes at most: for each there is a transaction."""


class PauseForm(_ModelForm):
    """A queue by name; it need not have a job. A pause that it has is replaced."""

    queue = forms.CharField(label=_("queue"), strip=False)
    for_ = forms.CharField(
        label=_("for"), required=False, help_text=_("90s, 10m, 2h or 1d. Empty: until it is resumed.")
    )

    class Meta:
        model = QueueControl
        fields = ("queue",)

    def clean_queue(self) -> str:
        try:
            return checked("queue", self.cleaned_data["queue"])
        except ValueError as error:
            raise ValidationError(str(error)) from error

    def clean_for_(self) -> int | None:
        text = self.cleaned_data["for_"]
        try:
            return duration("it", text, low=1) if text else None
        except ValueError as error:
            raise ValidationError(str(error)) from error

    def validate_unique(self) -> None:
        """Nothing: the pause before is replaced."""


@admin.register(QueueControl)
class QueueControlAdmin(ReadOnlyAdmin):
    """Looking needs the ``view`` permission, to pause and to resume the permission ``pause``."""

    list_display = ("queue", "since", "until", "paused_by")
    search_fields = ("queue",)
    ordering = ("queue",)
    sortable_by = ("queue", "since")
    actions = ("resume",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).filter(QueueControl.IN_FORCE)
        return rows

    def has_pause_permission(self, request: HttpRequest) -> bool:
        codename = get_permission_codename("pause", self.opts)
        return bool(request.user.has_perm(f"{self.opts.app_label}.{codename}"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_pause_permission(request)

    # -- columns ----------------------------------------------------------------------------------

    @admin.display(description=_("since"), ordering="paused_at")
    def since(self, row: QueueControl) -> str | None:
        return display.moment(row.paused_at)

    @admin.display(description=_("until"))
    def until(self, row: QueueControl) -> str | None:
        return display.moment(row.paused_until) or gettext("it is resumed")

    # -- pause and resume -------------------------------------------------------------------------

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.list_display if obj else ("queue", "for_")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.list_display if obj else ()

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is None:
            return PauseForm
        return super().get_form(request, obj, change, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        before = self.get_queryset(request).filter(pk=obj.queue).first()
        pause = partial(pauses.pause, self.using, obj.queue, form.cleaned_data["for_"])
        try:
            pause(by=request.user.get_username())
        except ValueError:  # a project's own users may have names that are none elsewhere
            pause()
        if before is not None:
            text = gettext("It was paused already, until %(until)s, by %(by)s: that pause is replaced.")
            told = {"until": self.until(before), "by": before.paused_by or gettext("somebody")}
            self.message_user(request, display.storable(text % told), messages.WARNING)

    @admin.action(description=_("Resume selected %(verbose_name_plural)s"), permissions=["pause"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        rows = list(queryset.order_by("queue")[: AT_ONCE + 1])
        done = 0
        for row in rows[:AT_ONCE]:
            work = partial(pauses.resume, self.using, row.queue)
            if self.done(request, row, gettext("Resumed."), work):
                done += 1
        if done:
            text = ngettext("%(n)d queue was resumed.", "%(n)d queues were resumed.", done)
            self.message_user(request, text % {"n": done}, messages.SUCCESS)
        asked = max(len(request.POST.getlist(ACTION_CHECKBOX_NAME)), len(rows))
        if len(rows) > AT_ONCE:
            text = gettext("More than %(n)d were selected: the rest is as it was.")
            self.message_user(request, text % {"n": AT_ONCE}, messages.WARNING)
        elif left := asked - done:
            text = ngettext(
                "%(n)d queue was not paused any more.", "%(n)d queues were not paused any more.", left
            )
            self.message_user(request, text % {"n": left}, messages.WARNING)
