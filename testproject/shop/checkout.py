"""Placing an order: the order, the stock and the receipt's task are one transaction."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import F

from .models import Order, Product
from .tasks import send_receipt


class SoldOut(Exception):
    """There is less in stock than was ordered."""


def place(order: Order) -> Order:
    """Save the order, enqueue its receipt, and take the tea from the shelf: all of it, or nothing.

    Raises ``SoldOut``; then there is no order, and no task.
    """
    with transaction.atomic():
        order.total = order.product.price * order.quantity
        order.save()
        order.receipt_id = send_receipt.enqueue(order.pk).id
        order.save(update_fields=["receipt_id"])
        try:
            Product.objects.filter(pk=order.product_id).update(stock=F("stock") - order.quantity)
        except IntegrityError as error:  # the database's own check: a stock is never negative
            raise SoldOut(f"We do not have {order.quantity} packets of {order.product} left.") from error
    return order
