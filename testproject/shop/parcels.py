"""What the warehouse knows of orders. A real one would be asked over its API; here its table is next door."""

from __future__ import annotations

from collections.abc import Iterable

from warehouse.models import Parcel

from .models import Order


def parcels_of(orders: Iterable[Order]) -> dict[int, Parcel]:
    """The parcels by the numbers of their orders."""
    numbers = [order.pk for order in orders]
    return {parcel.order_number: parcel for parcel in Parcel.objects.filter(order_number__in=numbers)}


def parcel_of(order: Order) -> Parcel | None:
    return parcels_of([order]).get(order.pk)
