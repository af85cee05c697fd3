"""The shop's desk: correct the address of an order, then requeue the dead letter of its receipt."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from .models import Order, Product
from .parcels import parcel_of
from .receipts import receipt_of


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    list_display = ["name", "price", "stock"]


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ["id", "email", "product", "quantity", "placed_at", "receipt", "parcel"]
    list_per_page = 25
    search_fields = ["email"]
    readonly_fields = ["product", "quantity", "total", "placed_at", "receipt", "receipt_id", "parcel"]
    fields = ["email", *readonly_fields]

    @admin.display(description="receipt")
    def receipt(self, order: Order) -> str:
        found = receipt_of(order)
        return f"{found}: {found.reasons[-1]}" if found.state == "failed" and found.reasons else str(found)

    @admin.display(description="parcel")
    def parcel(self, order: Order) -> str:
        found = parcel_of(order)
        return str(found.pk) if found else "not packed yet"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # orders are placed at the counter, with their receipts
