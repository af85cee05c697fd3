"""What the shop tells others; ``manage.py alkworker`` delivers it."""

from __future__ import annotations

from django.conf import settings

from alkstore_django.webhooks import Webhook

warehouse = Webhook(settings.WAREHOUSE_URL, secret=settings.WAREHOUSE_SECRET, allow_private=True)

order_placed = warehouse.outbox("order_placed", base_backoff=1)
"""Five attempts, the second after 1 s (a real shop would wait longer)."""
