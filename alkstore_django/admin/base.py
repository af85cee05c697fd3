"""What every page of ours shares: nothing can be edited, and no table is ever counted to its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from alkstore_django.models import alias
from alkstore_django.models.base import in_transaction

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
    _Paginator = Paginator[Any]
else:
    _ModelAdmin = admin.ModelAdmin
    _Paginator = Paginator


class BoundedPaginator(_Paginator):
    """Counts, and pages through, ``most`` rows at most: ``COUNT(*)`` of a big table takes minutes."""

    most = 10_000

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows[: self.most].count())

    @property
    def is_cut(self) -> bool:
        """Whether there may be more rows than the pages show."""
        return self.count >= self.most


class ReadOnlyAdmin(_ModelAdmin):
    """Looking needs the ``view`` permission; adding, changing and deleting is nobody's."""

    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ("alkstore_django/admin.css",)}

    @property
    def using(self) -> str:
        """The database that is shown: the one that ``TASKS`` names, as for the commands; if it names
        several, the router's answer. A subclass may say another."""
        from alkstore_django import served  # the backport may be missing, and a check has to say so

        found = served.databases()
        return found[0] if len(found) == 1 else alias(None)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).using(self.using)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        # PostgreSQL has no NUL in text, and fails where others find nothing.
        return None if "\x00" in object_id else super().get_object(request, object_id, from_field)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._at_once(request, partial(super().changeform_view, request, *args, **kwargs))

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._at_once(request, partial(super().delete_view, request, *args, **kwargs))

    def _at_once(self, request: HttpRequest, view: Callable[[], Any]) -> Any:
        """Django has each of these in a transaction, which here is one of ours: at the isolation that our
        statements are made for, and run again after a deadlock."""
        return in_transaction(self.using, view) if request.method == "POST" else view()

    def done(
        self, request: HttpRequest, row: Any, text: str, work: Callable[[], Any], flag: int = CHANGE
    ) -> Any:
        """What ``work`` on a row returns. If that is something, it is a line of the admin's log, in the same
        transaction: a request about many may fail before the last one."""
        user_id: Any = request.user.pk

        def work_and_log() -> Any:
            found = work()
            if found not in (False, None):
                LogEntry.objects.log_actions(user_id, [row], flag, text)
            return found

        return in_transaction(self.using, work_and_log)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
