"""What the shop does in the background; ``manage.py alkworker`` runs it."""

from __future__ import annotations

from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.utils import timezone

from alkstore_django.backoff import Backoff
from alkstore_django.tasks import task

from .models import Order


@task(queue_name="mail", max_attempts=3, backoff=Backoff(base=1, factor=2, jitter=0))
def send_receipt(order_id: int) -> str:
    """Mail the receipt of an order; the address that it went to.

    Three attempts, the second after 1 s and the third after 2 s more (a real shop would wait longer).
    """
    order = Order.objects.select_related("product").get(pk=order_id)
    if order.receipt_sent_at is None:
        # A task runs at least once: a worker that is killed between these two steps mails it again.
        receipt(order).send()
        Order.objects.filter(pk=order_id).update(receipt_sent_at=timezone.now())
    return order.email


def receipt(order: Order) -> EmailMessage:
    return EmailMessage(
        subject=f"Your order {order.pk} at the tea counter",
        body=render_to_string("shop/receipt.txt", {"order": order}),
        to=[order.email],
        headers={"X-Order": str(order.pk)},
    )
