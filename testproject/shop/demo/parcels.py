"""What the warehouse has packed in the demo, and whether that is what was sold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warehouse.models import Parcel

from alkstore_django.models import Attempt
from shop.models import Order


@dataclass(frozen=True)
class Packed:
    """A parcel, and why deliveries of its event failed before, oldest first."""

    parcel: Parcel
    reasons: list[str]


def read_parcels() -> list[Packed]:
    """All parcels in the order in which they were packed."""
    parcels = Parcel.objects.order_by("pk")
    return [Packed(parcel, reasons(parcel.event_id)) for parcel in parcels]


def reasons(event_id: str) -> list[str]:
    """What the warehouse did before, such as ``answered 503``, or what kept the worker from delivering."""
    job_id = event_id.split("-")[-2]  # after the name of the outbox, before the second of the enqueue
    failed = Attempt.objects.filter(job_id=job_id, kind__in=Attempt.SPENT).order_by("pk")
    return [each.error.rpartition("...) ")[2] for each in failed]  # without Webhook(http://127.0.0.1...)


def surprises(orders: Iterable[Order], parcels: Iterable[Parcel]) -> Iterator[str]:
    """Each order has its parcel, there is no other, and each tea was packed in the order of its sale."""
    expected = Counter((order.pk, order.quantity, order.product.name) for order in orders)
    found = Counter((parcel.order_number, parcel.packets, parcel.tea) for parcel in parcels)
    for number, packets, tea in (expected - found).elements():
        yield f"the parcel of order {number}, {packets} x {tea}, is missing"
    for number, packets, tea in (found - expected).elements():
        yield f"there is a parcel of order {number}, {packets} x {tea}, too many"
    packed: dict[str, list[int]] = {}
    for number, _, tea in found:
        packed.setdefault(tea, []).append(number)
    for tea, numbers in packed.items():
        if numbers != sorted(numbers):
            yield f"{tea} was not packed as it was sold: the orders {', '.join(map(str, numbers))}"
