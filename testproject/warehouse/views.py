"""The door of the warehouse: takes in the shop's messages, signed by Standard Webhooks.

They come at least once, and in any number; each makes one parcel.
"""

from __future__ import annotations

import json

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from alkstore_django import inbox

from .forms import ParcelForm
from .models import Parcel

SHOP, BIG_SCALE = "shop", "the big scale"
"""What the inbox tells messages apart by, beside their ids."""

HEAVY = 10
"""So many packets need the big scale, which is in use whenever somebody asks for the first time."""


@csrf_exempt
@require_POST
def hooks(request: HttpRequest) -> HttpResponse:
    try:
        Webhook(settings.WAREHOUSE_SECRET).verify(request.body, request.headers, json_parse=False)
    except (WebhookVerificationError, ValueError):  # ValueError: it does not even look like a signature
        return answer(401, "that is not signed by the shop")
    try:
        form = ParcelForm.of(json.loads(request.body), request.headers["webhook-id"])
    except (KeyError, TypeError, ValueError):
        return answer(400, "that is no order")
    if not form.is_valid():
        return answer(400, f"that is no order: {form.errors.as_json()}")
    return pack(form.save(commit=False))


def pack(parcel: Parcel) -> HttpResponse:
    """The note that the message came and the parcel are one transaction: both are there, or neither."""
    with transaction.atomic():
        if parcel.packets >= HEAVY and inbox.once(BIG_SCALE, parcel.event_id):
            return answer(503, "the big scale is in use", {"Retry-After": "1"})
        if inbox.once(SHOP, parcel.event_id):
            parcel.save()
            return answer(200, f"packed as parcel {parcel.pk}")
    return answer(200, "packed already")


def answer(status: int, text: str, headers: dict[str, str] | None = None) -> HttpResponse:
    return HttpResponse(text, status=status, headers=headers, content_type="text/plain; charset=utf-8")
