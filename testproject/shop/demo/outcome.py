"""What became of the orders, and whether that is what should have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from pathlib import Path

from shop.models import Order
from shop.receipts import Receipt, receipt_of

from . import parcels
from .customers import Visit
from .parcels import Packed

FATES = {("sent", 0): "sent", ("sent", 1): "retried", ("failed", 3): "dead"}
"""By the state of the receipt and the number of attempts that failed."""


@dataclass
class Outcome:
    """All visits with the receipts of their orders, the recipients of the mails by order number, and what
    the warehouse has packed."""

    visits: list[Visit]
    mails: list[tuple[int, str]]
    packed: list[Packed]
    receipts: dict[int, Receipt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for order in self.orders:
            order.refresh_from_db()
            self.receipts[order.pk] = receipt_of(order)

    @property
    def orders(self) -> list[Order]:
        return [visit.order for visit in self.visits if visit.order]

    def receipt(self, visit: Visit) -> Receipt | None:
        return self.receipts[visit.order.pk] if visit.order else None

    def packed_for(self, visit: Visit) -> Packed | None:
        number = visit.order.pk if visit.order else None
        return next((each for each in self.packed if each.parcel.order_number == number), None)

    def fate(self, visit: Visit) -> str:
        receipt = self.receipt(visit)
        if receipt is None:
            return "refused"
        return FATES.get((receipt.state, len(receipt.reasons)), str(receipt))

    def having(self, *fates: str) -> list[Visit]:
        return [visit for visit in self.visits if self.fate(visit) in fates]

    def surprises(self) -> Iterator[str]:
        """What is not as it should be."""
        for visit in self.visits:
            if (fate := self.fate(visit)) != visit.customer.fate:
                yield f"{visit.customer.email} should have been {visit.customer.fate}, and is: {fate}"
        sent = [visit.order for visit in self.having("sent", "retried") if visit.order]
        expected = Counter((order.pk, order.email) for order in sent)
        found = Counter(self.mails)
        for number, email in (expected - found).elements():
            yield f"the mail of order {number} to {email} is missing"
        for number, email in (found - expected).elements():
            yield f"there is a mail of order {number} to {email} too many"
        yield from parcels.surprises(self.orders, [each.parcel for each in self.packed])


def read_mails(directory: Path) -> list[tuple[int, str]]:
    """The order number and the recipient of each mail in the directory."""
    found = []
    for path in sorted(directory.glob("*.log")):
        message = message_from_bytes(path.read_bytes(), policy=policy.default)
        found.append((int(message["X-Order"] or 0), str(message["To"])))
    return found
