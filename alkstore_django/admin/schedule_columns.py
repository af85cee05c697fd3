"""What the list and the pages of schedules say of one: ``row`` has it as its ``schedule``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from . import display
from .base import ReadOnlyAdmin
from .schedule_rows import described, state, words

if TYPE_CHECKING:
    from alkstore_django.schedules import Schedule

UPCOMING = 5
"""Instants that the page of a schedule shows."""


class ScheduleColumns(ReadOnlyAdmin):
    """Texts of other programs are shown as they can be."""

    @admin.display(description=_("schedule"), ordering="name")
    def name_text(self, row: Any) -> str:
        return display.storable(row.schedule.name) or gettext("(no name)")

    @admin.display(description=_("when"))
    def when(self, row: Any) -> SafeString:
        schedule: Schedule = row.schedule
        shown = (display.line(schedule.expression), display.storable(schedule.timezone), words(schedule))
        return format_html("<code>{}</code> {}<br>{}", *shown)

    @admin.display(description=_("when"))
    def when_text(self, row: Any) -> str:
        return display.storable(described(row.schedule))

    @admin.display(description=_("in words"))
    def words_text(self, row: Any) -> str:
        return words(row.schedule)

    @admin.display(description=_("task"), empty_value="-")
    def what(self, row: Any) -> str | None:
        return display.storable(row.schedule.task or "") or None

    @admin.display(description=_("next"), ordering="next_fire_at")
    def next_fire(self, row: Any) -> str | None:
        return display.instant(row.schedule.next_fire_at)

    @admin.display(description=_("last"))
    def last_fire(self, row: Any) -> str | None:
        return display.instant(row.schedule.last_fire_at)

    @admin.display(description=_("skipped"))
    def skipped(self, row: Any) -> str:
        return str(row.schedule.skipped)

    @admin.display(description=_("owner"))
    def owner(self, row: Any) -> str:
        return str(row.schedule.owner)

    @admin.display(description=_("enabled"), boolean=True)
    def is_enabled(self, row: Any) -> bool:
        return bool(row.schedule.enabled)

    @admin.display(description=_("problem"), empty_value="")
    def problem(self, row: Any) -> str | None:
        return display.line(row.schedule.problem) or None

    # -- fields of the page -----------------------------------------------------------------------

    @admin.display(description=_("state"))
    def state_text(self, row: Any) -> str:
        schedule: Schedule = row.schedule
        found = state(schedule)
        return f"{found}: {display.storable(schedule.problem)}" if schedule.problem else found

    @admin.display(description=_("next"))
    def upcoming(self, row: Any) -> SafeString | None:
        found = [(display.instant(each),) for each in row.schedule.upcoming(UPCOMING)]
        return format_html_join(SafeString("<br>"), "{}", found) or None

    @admin.display(description=_("beside honker"))
    def portability(self, row: Any) -> str:
        why = row.schedule.why_not_portable
        return gettext("honker fires it at the same instants") if why is None else display.storable(why)

    @admin.display(description=_("queue"))
    def queue_text(self, row: Any) -> str:
        return display.storable(row.schedule.queue)

    @admin.display(description=_("payload"))
    def payload_text(self, row: Any) -> SafeString:
        return display.block(display.pretty(row.schedule.payload))

    @admin.display(description=_("catch up"))
    def catch_up_text(self, row: Any) -> str:
        return display.storable(row.schedule.catch_up)

    @admin.display(description=_("may overlap"), boolean=True)
    def overlap_text(self, row: Any) -> bool:
        return bool(row.schedule.overlap)

    @admin.display(description=_("priority"))
    def priority_text(self, row: Any) -> str:
        return str(row.schedule.priority)

    @admin.display(description=_("expires"))
    def expires_text(self, row: Any) -> str | None:
        seconds = row.schedule.expires
        return None if seconds is None else gettext("after %(seconds)s s") % {"seconds": seconds}

    @admin.display(description=_("attempts"))
    def attempts_text(self, row: Any) -> str:
        return str(row.schedule.max_attempts)
