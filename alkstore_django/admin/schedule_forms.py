"""The form of a schedule: its fields as text, judged by the same rules as ``schedules.register``."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from alkstore_django import registry, schedules
from alkstore_django.envelopes import unseal
from alkstore_django.exceptions import UndecodablePayload
from alkstore_django.models import ScheduledTask, ScheduleRow
from alkstore_django.payloads import decode
from alkstore_django.schedule_updates import amended
from alkstore_django.schedule_values import Definition, database_of, define
from alkstore_django.tasks import stored_name
from alkstore_django.values import duration

from . import meanwhile

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[ScheduledTask]
else:
    _ModelForm = forms.ModelForm

WHAT = {"task", "args", "kwargs", "payload"}
UNITS = (WHAT, {"expression", "timezone"})
"""Fields that only make sense together: who changes one has seen the others."""
JSON = {"rows": 2, "spellcheck": "false", "class": "vLargeTextField"}


class TaskInput(forms.TextInput):
    """A dotted path, with the known ones on offer."""

    template_name = "admin/alkstore_django/scheduledtask/task_input.html"

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        registry.autodiscover()
        context: dict[str, Any] = super().get_context(name, value, {**(attrs or {}), "list": f"{name}-names"})
        return {**context, "names": sorted(map(stored_name, registry.declared()))}


class ScheduleForm(_ModelForm):
    """Of a new schedule, or of a stored one: then ``row`` is it, and only what was changed is written, and
    only if nobody else has changed it since the form was shown."""

    name = forms.CharField(label=_("Name"), strip=False)
    task = forms.CharField(
        label=_("Task"),
        required=False,
        widget=TaskInput(attrs={"class": "vTextField"}),
        help_text=_("Its dotted path. Or leave it empty and give a queue and a payload."),
    )
    args = forms.CharField(
        label=_("Arguments"), required=False, widget=forms.Textarea(JSON), help_text=_('JSON: [1, "a"]')
    )
    kwargs = forms.CharField(
        label=_("Arguments by name"),
        required=False,
        widget=forms.Textarea(JSON),
        help_text=_('JSON: {"to": 1}'),
    )
    payload = forms.CharField(
        label=_("Payload"),
        required=False,
        widget=forms.Textarea(JSON),
        help_text=_("JSON for the handler of the queue, in place of a task."),
    )
    queue = forms.CharField(
        label=_("Queue"), required=False, strip=False, help_text=_("Empty: that of the task.")
    )
    expression = forms.CharField(
        label=_("Cron expression"),
        strip=False,
        help_text=_("Minute, hour, day, month, day of week: 0 3 * * mon-fri. Or @daily, @every 90s."),
    )
    timezone = forms.CharField(
        label=_("Time zone"), required=False, help_text=_("Whose clocks count: Europe/Berlin.")
    )
    catch_up = forms.ChoiceField(
        label=_("Catch up"),
        choices=[
            ("latest", _("the latest of those that were missed")),
            ("all", _("all that were missed, up to 64")),
            ("none", _("none that was missed")),
        ],
    )
    overlap = forms.BooleanField(
        label=_("May overlap"),
        required=False,
        initial=True,
        help_text=_("Otherwise a run is left out while the last one is queued or running."),
    )
    priority = forms.IntegerField(
        label=_("Priority"), required=False, help_text=_("Higher first. Empty: that of the task.")
    )
    expires = forms.CharField(
        label=_("Expires"),
        required=False,
        help_text=_("What has not started by then is a dead letter: 90s, 10m, 2h. Empty: as the task says."),
    )
    max_attempts = forms.IntegerField(
        label=_("Attempts"), required=False, help_text=_("Empty: as the task says, or 3.")
    )
    enabled = forms.BooleanField(
        label=_("Enabled"), required=False, initial=True, help_text=_("Otherwise it begins paused.")
    )

    using: str
    row: ScheduleRow | None = None
    overtaken: Collection[str] = ()
    definition: Definition
    """What a form without errors asks for."""

    class Meta:
        model = ScheduledTask
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.row is None:
            self.fields["timezone"].initial = settings.TIME_ZONE
            return
        del self.fields["name"], self.fields["enabled"]
        self.initial.update(stored(self.row))
        for field in self.fields.values():
            field.show_hidden_initial = True
        if self.is_bound:
            self.data, self.overtaken = meanwhile.rebased(self.fields, self.data, self.initial, UNITS)

    def clean_args(self) -> Any:
        return self._json("args")

    def clean_kwargs(self) -> Any:
        return self._json("kwargs")

    def clean_payload(self) -> Any:
        return self._json("payload")

    def clean_expires(self) -> int | None:
        text = self.cleaned_data["expires"]
        try:
            return duration("expires", text, low=1) if text else None
        except ValueError as error:
            raise ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in self.overtaken:
            self.add_error(name, meanwhile.told(self.fields[name], self.initial.get(name)))
        if not self.errors:
            try:
                self._judge()
            except ValueError as error:
                self._blame(str(error))
        return cleaned

    def given(self) -> dict[str, Any]:
        """What ``define`` is called with, or ``amend``."""
        cleaned = self.cleaned_data
        wanted = set(self.fields) if self.row is None else set(self.changed_data)
        found = {name: cleaned[name] for name in wanted - WHAT}
        found |= {name: found[name] or None for name in ("queue", "timezone") if name in found}
        if not wanted & WHAT:
            return found
        if not cleaned["task"]:
            return {**found, "payload": cleaned["payload"]}
        args, kwargs = cleaned["args"], cleaned["kwargs"]
        call = {"task": cleaned["task"], "args": [] if args is None else args, "kwargs": kwargs}
        return {**found, **call}

    def _judge(self) -> None:
        """Raise ``ValueError`` for what ``schedules`` would refuse."""
        has = {name: bool(self[name].data) for name in WHAT}
        if has["task"] == has["payload"]:
            raise ValueError(f"task: {gettext('A schedule has either a task or a payload.')}")
        if has["payload"] and (has["args"] or has["kwargs"]):
            raise ValueError(f"args: {gettext('Only a task has arguments.')}")
        if self.row is not None:
            definition = amended(self.row, self.given())
        else:
            definition = define(**self.given())
            if schedules.get(definition.name, using=self.using) is not None:
                raise ValueError(f"name: {gettext('There is a schedule of that name.')}")
        if definition.task is not None and (database := database_of(definition.task)) != self.using:
            raise ValueError(f"task: its jobs are in the database {database!r}, not in {self.using!r}.")
        self.definition = definition

    def _blame(self, message: str) -> None:
        """The field that the message begins with."""
        found = re.match(r"[a-z_]+", message)
        if found is None or found[0] not in self.fields:
            self.add_error(None, message)
        else:
            self.add_error(found[0], message.removeprefix(f"{found[0]}: "))

    def _json(self, name: str) -> Any:
        text = self.cleaned_data[name]
        if not text:
            return None
        try:
            return decode(text)
        except UndecodablePayload as error:
            raise ValidationError(str(error)) from error

    def validate_unique(self) -> None:
        """Nothing: it was looked for in the right database."""


def stored(row: ScheduleRow) -> dict[str, Any]:
    """A schedule as the texts of the form."""
    found = {
        "queue": row.queue,
        "expression": row.expression,
        "timezone": row.timezone,
        "catch_up": row.catch_up,
        "overlap": row.overlap,
        "priority": row.priority,
        "expires": "" if row.expires_s is None else f"{row.expires_s}s",
        "max_attempts": row.max_attempts,
    }
    try:
        call = unseal(row.payload)
    except UndecodablePayload:
        return {**found, "payload": row.payload}
    texts = {"args": call.args, "kwargs": call.kwargs}
    return {
        **found,
        "task": call.task,
        **{name: json.dumps(value, ensure_ascii=False) if value else "" for name, value in texts.items()},
    }
