"""The warehouse's book: to look at only, for parcels are made by messages."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from .models import Parcel


@admin.register(Parcel)
class ParcelAdmin(admin.ModelAdmin):
    list_display = ["id", "order_number", "tea", "packets", "packed_at", "event_id"]
    list_per_page = 25
    search_fields = ["=order_number", "=event_id"]
    fields = list_display

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Parcel | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Parcel | None = None) -> bool:
        return False
