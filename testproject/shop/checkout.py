"""Placing an order: the order, the stock, the task of its receipt and its event are one transaction."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import F

from .models import Order, Product
from .outbox import order_placed
from .tasks import send_receipt


class SoldOut(Exception):
    """There is less in stock than was ordered."""


def place(order: Order) -> Order:
    """Save the order, enqueue its receipt and its event, and take the tea from the shelf: all, or nothing.

    Raises ``SoldOut``; then there is no order, no task and no event.
    """
    with transaction.atomic():
        order.total = order.product.price * order.quantity
        order.save()
        order.receipt_id = send_receipt.enqueue(order.pk).id
        order.save(update_fields=["receipt_id"])
        # With the tea as its key: each tea is packed in the order in which it was sold.
        order_placed.enqueue(message(order), key=order.product_id)
        try:
            Product.objects.filter(pk=order.product_id).update(stock=F("stock") - order.quantity)
        except IntegrityError as error:  # the database's own check: a stock is never negative
            raise SoldOut(f"We do not have {order.quantity} packets of {order.product} left.") from error
    return order


def message(order: Order) -> dict[str, object]:
    """What the warehouse has to know of an order."""
    return {
        "order": order.pk,
        "tea": order.product.name,
        "packets": order.quantity,
        "placed": order.placed_at.isoformat(),
    }
