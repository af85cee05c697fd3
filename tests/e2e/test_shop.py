"""The example shop: orders over HTTP, their receipts and parcels from a worker process, nothing mocked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import django
import pytest

from tests.e2e.shop import WAREHOUSE, Sender, Shop, Visitor, finished, free_port, opened, served, warehouse_at

EVENTS = "_outbox:order_placed"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: object) -> Iterator[Shop]:
    with opened(tmp_path_factory.mktemp("shop"), django_db_blocker) as shop:
        shop.manage("migrate", "--verbosity=0")
        yield shop


@pytest.fixture(scope="module")
def visitor(shop: Shop) -> Iterator[Visitor]:
    with served(shop) as visitor:
        yield visitor


def queues(shop: Shop) -> dict[str, tuple[int, int, int, int]]:
    """What is ready, delayed, running and dead: of the receipts, and of the events."""
    found = {each["queue"]: each for each in json.loads(shop.manage("alkstatus", "--json"))}
    assert set(found) <= {"mail", EVENTS}
    states = ("ready", "delayed", "running", "dead")
    return {name: tuple(found.get(name, {}).get(state, 0) for state in states) for name in ("mail", EVENTS)}


def drain(shop: Shop) -> str:
    """Run a worker until nothing is left; its output."""
    return shop.manage("alkworker", "--batch")


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
    drain(shop)
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
    assert states(visitor, orders["dead"]) == ["not sent", "packed"]

    shop.python(
        "from shop.models import Order\n"
        "from alkstore_django.queues import requeue\n"
        "Order.objects.filter(email='garden@tea.invalid').update(email='garden@example.com')\n"
        f"assert requeue([{job}]) == {{{job}: {job}}}"
    )
    assert states(visitor, orders["dead"]) == ["will be tried again", "packed"]
    drain(shop)
    visitor.get(orders["dead"])
    assert "Your receipt sent To garden@example.com" in visitor.text
    assert "Attempts 4" in visitor.text
    assert len(headed(shop, orders["dead"])) == 1
    assert states(visitor, orders["dead"]) == ["sent", "packed"]


def states(visitor: Visitor, order: str) -> list[str]:
    """What the list of orders says about a receipt and a parcel."""
    (row,) = [row for row in visitor.get("/orders/").split("<tr>") if f'"{order}"' in row]
    return re.findall(r'class="state ?\w*">([^<]+)<', row)


def test_a_rolled_back_order_leaves_no_job_and_no_event(shop: Shop, visitor: Visitor) -> None:
    drain(shop)
    before = queues(shop)
    assert visitor.order("hotel@example.org", "Gyokuro", 4) == ""
    assert "We do not have 4 packets of Gyokuro left." in visitor.text
    assert queues(shop) == before
    assert "hotel@example.org" not in visitor.get("/orders/")
    order = visitor.order("hotel@example.org", "Gyokuro", 3)
    assert order, "the stock was touched"
    assert {name: counts[0] for name, counts in queues(shop).items()} == {"mail": 1, EVENTS: 1}
    drain(shop)
    assert parcels(shop, tea="Gyokuro") == [[int(number(order)), 3]]


def parcels(shop: Shop, **wanted: object) -> list[list[int]]:
    """Order number and packets of parcels, as they were packed."""
    return json.loads(
        shop.python(
            "import json\n"
            "from warehouse.models import Parcel\n"
            f"found = Parcel.objects.filter(**{wanted!r}).order_by('pk')\n"
            "print(json.dumps(list(found.values_list('order_number', 'packets'))))"
        )
    )


def test_the_warehouse_packs_each_tea_as_it_was_sold(shop: Shop, visitor: Visitor) -> None:
    """Also when it has turned the first message away."""
    drain(shop)
    orders = [visitor.order("office@example.com", "Darjeeling", packets) for packets in (10, 2)]
    assert "Your parcel not packed yet" in visitor.text
    assert [states(visitor, order)[1] for order in orders] == ["not packed yet", "not packed yet"]
    failed = re.findall(r"attempt \d of 5 failed.*", drain(shop))
    assert len(failed) == 1 and "answered 503: the big scale is in use" in failed[0]
    assert parcels(shop, tea="Darjeeling") == [[int(number(orders[0])), 10], [int(number(orders[1])), 2]]
    assert [states(visitor, order)[1] for order in orders] == ["packed", "packed"]
    visitor.get(orders[0])
    assert re.search(r"Your parcel packed Parcel \d+: 10 × Darjeeling Packed .+ UTC Event \S+", visitor.text)


def test_a_warehouse_that_is_away(shop: Shop, visitor: Visitor) -> None:
    drain(shop)
    order, port = visitor.order("office@example.com", "Oolong", 2), free_port()
    worker = shop.start("alkworker", "--batch", **{WAREHOUSE: warehouse_at(port)})
    try:
        worker.wait_for("attempt 1 of 5 failed .* could not be reached")
        assert states(visitor, order)[1] == "not packed yet"
        with served(shop, port):
            finished(worker, 0)
    finally:
        worker.reap()
    assert parcels(shop, tea="Oolong") == [[int(number(order)), 2]]
    assert states(visitor, order) == ["sent", "packed"]


@pytest.fixture(scope="module")
def sender(shop: Shop, visitor: Visitor) -> Sender:
    secret = shop.python("from django.conf import settings\nprint(settings.WAREHOUSE_SECRET)")
    return Sender(shop.environment[WAREHOUSE], secret)


def test_a_message_that_comes_twice_makes_one_parcel(shop: Shop, sender: Sender) -> None:
    light, heavy = ({"order": 10**6, "tea": "Matcha", "packets": packets} for packets in (9, 10))
    answers = [sender.post("light", light) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1].text == "packed already"
    assert parcels(shop, tea="Matcha") == [[10**6, 9]]
    answers = [sender.post("heavy", heavy) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 200, 200]
    assert answers[0].headers["retry-after"] == "1"
    assert parcels(shop, tea="Matcha") == [[10**6, 9], [10**6, 10]]


UNSIGNED = [
    {"id": "another"},
    {"timestamp": "1"},
    {"timestamp": "now"},
    {"signature": "v1,AAAA"},
    {"signature": "v1,A"},
    {"signature": "nothing"},
    {"signature": ""},
]
MESSAGE = {"order": 10**6, "tea": "Hojicha", "packets": 1}
BROKEN = [
    "{",
    "[]",
    "7",
    {"order": 10**6},
    MESSAGE | {"order": "one"},
    MESSAGE | {"order": 2**63},
    MESSAGE | {"packets": 0},
    MESSAGE | {"tea": "Hojicha" * 9},
]


def test_what_the_warehouse_does_not_take(shop: Shop, visitor: Visitor, sender: Sender) -> None:
    for headers in UNSIGNED:
        assert sender.post("unsigned", MESSAGE, **headers).status_code == 401, headers
    assert Sender(sender.url, f"whsec_{'A' * 32}").post("unsigned", MESSAGE).status_code == 401
    for message in BROKEN:
        assert sender.post("broken", message).status_code == 400, message
    visitor.get("/warehouse/hooks/")
    assert visitor.status == 405
    assert parcels(shop, order_number=10**6, tea="Hojicha") == []
    assert sender.post("broken", MESSAGE).status_code == 200, "the id was noted without its parcel"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"email": "nobody"}, "Enter a valid email address"),
    ({"email": "office@example.com", "quantity": 0}, "greater than or equal to 1"),
    ({"email": "office@example.com", "quantity": 101}, "less than or equal to 100"),
    ({"email": "office@example.com", "product": "Coffee"}, "not one of the available choices"),
    ({"email": "a@example.com\nBcc: b@example.com"}, "Enter a valid email address"),
]


def test_forms_that_are_wrong(shop: Shop, visitor: Visitor) -> None:
    before = queues(shop)
    for form, complaint in WRONG:
        assert visitor.order(**form) == ""
        assert complaint in visitor.text
        assert 'aria-invalid="true"' in visitor.html
    visitor.get("/", {"email": "office@example.com", "product": 1, "quantity": 1})
    assert visitor.status == 403, "without its CSRF token"
    assert queues(shop) == before


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
