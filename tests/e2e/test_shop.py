"""The example shop: orders over HTTP, their receipts from a worker process, nothing mocked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import django
import pytest

from tests.e2e.shop import Shop, Visitor, opened, served


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: object) -> Iterator[Shop]:
    with opened(tmp_path_factory.mktemp("shop"), django_db_blocker) as shop:
        shop.manage("migrate", "--verbosity=0")
        yield shop


@pytest.fixture(scope="module")
def visitor(shop: Shop) -> Iterator[Visitor]:
    with served(shop) as visitor:
        yield visitor


def queue(shop: Shop) -> dict[str, int]:
    """The counts of the queue ``mail``."""
    found = {each["queue"]: each for each in json.loads(shop.manage("alkstatus", "--json"))}
    assert set(found) <= {"mail"}
    return {name: found.get("mail", {}).get(name, 0) for name in ("ready", "delayed", "running", "dead")}


def number(order: str) -> str:
    """The number in the path of an order's page."""
    return order.split("/")[-2]


def headed(shop: Shop, order: str) -> list[str]:
    return [mail for mail in shop.mails if f"\nX-Order: {number(order)}\n" in mail]


@pytest.fixture(scope="module")
def orders(shop: Shop, visitor: Visitor) -> dict[str, str]:
    """The paths of three orders, after a worker has done what it can."""
    paths = {"sent": visitor.order("office@example.com", "Earl Grey", 3)}
    assert "waiting for a worker" in visitor.text
    paths["retried"] = visitor.order("office@greylist.example")
    paths["dead"] = visitor.order("garden@tea.invalid")
    shop.manage("alkworker", "--batch")
    return paths


def test_a_receipt_is_sent(shop: Shop, visitor: Visitor, orders: dict[str, str]) -> None:
    visitor.get(orders["sent"])
    assert "Your receipt sent To office@example.com" in visitor.text
    assert "failed" not in visitor.text
    (mail,) = headed(shop, orders["sent"])
    assert "\nTo: office@example.com\n" in mail
    assert "3 x Earl Grey" in mail and "Total: 17.70 Euro" in mail
    # A task may run again after it has done its work.
    shop.python(f"from shop.tasks import send_receipt\nsend_receipt.call({number(orders['sent'])})")
    assert headed(shop, orders["sent"]) == [mail]


def test_a_receipt_is_sent_at_the_second_attempt(
    shop: Shop, visitor: Visitor, orders: dict[str, str]
) -> None:
    visitor.get(orders["retried"])
    assert "Your receipt sent To office@greylist.example" in visitor.text
    assert "Attempts 2 Attempts that failed 451" in visitor.text
    assert len(headed(shop, orders["retried"])) == 1


def test_a_receipt_dies_and_is_brought_to_life(shop: Shop, visitor: Visitor, orders: dict[str, str]) -> None:
    visitor.get(orders["dead"])
    assert "Your receipt not sent To garden@tea.invalid" in visitor.text
    assert visitor.text.count("550 5.1.2 tea.invalid: there is no such domain") == 3
    assert "The receipt is a dead letter" in visitor.text
    (job,) = re.findall(r"Job (\d+)", visitor.text)
    assert headed(shop, orders["dead"]) == []
    assert state(visitor, orders["dead"]) == "not sent"

    shop.python(
        "from shop.models import Order\n"
        "from alkstore_django.queues import requeue\n"
        "Order.objects.filter(email='garden@tea.invalid').update(email='garden@example.com')\n"
        f"assert requeue([{job}]) == {{{job}: {job}}}"
    )
    assert state(visitor, orders["dead"]) == "will be tried again"
    shop.manage("alkworker", "--batch")
    visitor.get(orders["dead"])
    assert "Your receipt sent To garden@example.com" in visitor.text
    assert "Attempts 4" in visitor.text
    assert len(headed(shop, orders["dead"])) == 1
    assert state(visitor, orders["dead"]) == "sent"


def state(visitor: Visitor, order: str) -> str:
    """What the list of orders says about a receipt."""
    (row,) = [row for row in visitor.get("/orders/").split("<tr>") if f'"{order}"' in row]
    return re.findall(r'class="state \w+">([^<]+)<', row)[0]


def test_a_rolled_back_order_leaves_no_job(shop: Shop, visitor: Visitor) -> None:
    before = queue(shop)
    assert visitor.order("hotel@example.org", "Gyokuro", 4) == ""
    assert "We do not have 4 packets of Gyokuro left." in visitor.text
    assert queue(shop) == before
    assert "hotel@example.org" not in visitor.get("/orders/")
    assert visitor.order("hotel@example.org", "Gyokuro", 3), "the stock was touched"
    assert queue(shop) == before | {"ready": before["ready"] + 1}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"email": "nobody"}, "Enter a valid email address"),
    ({"email": "office@example.com", "quantity": 0}, "greater than or equal to 1"),
    ({"email": "office@example.com", "quantity": 101}, "less than or equal to 100"),
    ({"email": "office@example.com", "product": "Coffee"}, "not one of the available choices"),
    ({"email": "a@example.com\nBcc: b@example.com"}, "Enter a valid email address"),
]


def test_forms_that_are_wrong(shop: Shop, visitor: Visitor) -> None:
    before = queue(shop)
    for form, complaint in WRONG:
        assert visitor.order(**form) == ""
        assert complaint in visitor.text
        assert 'aria-invalid="true"' in visitor.html
    visitor.get("/", {"email": "office@example.com", "product": 1, "quantity": 1})
    assert visitor.status == 403, "without its CSRF token"
    assert queue(shop) == before


def test_pages_are_fit_for_a_strict_policy(shop: Shop, visitor: Visitor) -> None:
    order = visitor.order("office@example.com")
    for path in ("/", "/orders/", order):
        visitor.get(path)
        assert visitor.status == 200
        assert re.findall(r"<script|<style|\sstyle=|\son\w+=|javascript:", visitor.html) == []
        assert '<html lang="en">' in visitor.html
        if django.VERSION >= (6, 0):
            assert "default-src 'self'" in visitor.headers["Content-Security-Policy"]
    for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', visitor.html):
        visitor.get(path)
        assert visitor.status == 200
    visitor.get("/orders/999999/")
    assert visitor.status == 404


def test_a_receipt_that_nobody_remembers(shop: Shop, visitor: Visitor) -> None:
    order = visitor.order("library@example.net")
    number = order.split("/")[-2]
    forget = (
        f"from shop.models import Order\nOrder.objects.filter(pk={number}).update(receipt_id='987654321')"
    )
    shop.python(forget)
    visitor.get(order)
    assert "nothing is known any more" in visitor.text


def test_the_project_is_sound(shop: Shop) -> None:
    assert "no issues" in shop.manage("check")
    assert "No changes detected" in shop.manage("makemigrations", "--check", "--dry-run")


def test_a_database_that_there_is_not(shop: Shop) -> None:
    output = shop.manage("check", exit_code=1, ALKSTORE_DB="oracle")
    assert output.endswith("ALKSTORE_DB is sqlite, postgresql or mysql, not 'oracle'.")
