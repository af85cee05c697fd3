"""Who orders in the demo, what should become of it, and a browser to order with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

from django.test import Client
from django.urls import reverse

from shop.models import Order, Product


@dataclass(frozen=True)
class Customer:
    """``fate`` is ``sent``, ``retried`` (then sent), ``dead`` or ``refused`` (rolled back)."""

    email: str
    product: str
    quantity: int
    fate: str = "sent"


EARLY = [
    Customer("kitchen@example.com", "Assam", 2),
    Customer("office@example.org", "Earl Grey", 10),
    Customer("studio@greylist.example", "Oolong", 2, "retried"),
    Customer("library@example.net", "Darjeeling", 1),
    Customer("garden@tea.invalid", "Sencha", 1, "dead"),
    Customer("theatre@example.com", "Gyokuro", 2),
    Customer("hotel@example.org", "Gyokuro", 5, "refused"),
    Customer("museum@example.net", "Assam", 4),
    Customer("harbour@greylist.example", "Sencha", 3, "retried"),
]
"""They order while no worker runs."""

LATE = [
    Customer("bakery@example.com", "Darjeeling", 2),
    Customer("station@example.org", "Earl Grey", 1),
    Customer("school@example.net", "Sencha", 6),
    Customer("workshop@greylist.example", "Oolong", 1, "retried"),
]
"""They order while the worker runs: it is kept by the retries of the dead letter."""


@dataclass(frozen=True)
class Visit:
    """What the shop answered: an order, or why there is none."""

    customer: Customer
    order: Order | None
    refusal: str = ""


class Browser:
    """Fills in the form of the shop, with cookies and the CSRF token, as a person's browser would."""

    def __init__(self) -> None:
        self.client = Client(enforce_csrf_checks=True, SERVER_NAME="localhost")

    def order(self, customer: Customer) -> Visit:
        counter = reverse("shop:counter")
        self.client.get(counter)
        form = {
            "csrfmiddlewaretoken": self.client.cookies["csrftoken"].value,
            "product": Product.objects.get(name=customer.product).pk,
            "quantity": customer.quantity,
            "email": customer.email,
        }
        response = self.client.post(counter, form)
        if response.status_code == 302:
            number = re.findall(r"\d+", response.headers["Location"])[-1]
            return Visit(customer, Order.objects.get(pk=number))
        errors = re.findall(r'class="errorlist.*?<li>(.*?)</li>', response.text, re.DOTALL)
        return Visit(customer, None, unescape(" ".join(errors)) or f"answer {response.status_code}")
