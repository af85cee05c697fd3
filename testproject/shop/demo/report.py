"""The demo's account of itself: at most 100 columns."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sized
from datetime import datetime
from pathlib import Path
from textwrap import shorten
from typing import Any

from django.conf import settings
from django.urls import reverse

from shop.models import Order

from .customers import Visit
from .outcome import Outcome

WIDTH = 100
ROW = "{:>5}  {:25}  {:12}  {:>3}  {:>6}  {:>8}  {:11}  {:>6}  {:>6}"
HEAD = ("order", "to", "placed (UTC)", "job", "mailed", "attempts", "receipt", "parcel", "packed")
WORDS = {"sent": "sent", "retried": "sent", "dead": "DEAD LETTER", "refused": "rolled back"}


def table(outcome: Outcome, style: Any) -> Iterator[str]:
    """A line for each order, and one more for each thing that went wrong."""
    yield style.MIGRATE_HEADING(ROW.format(*HEAD))
    paint = {"retried": style.WARNING, "dead": style.ERROR, "refused": style.WARNING}
    for visit in outcome.visits:
        fate = outcome.fate(visit)
        yield paint.get(fate, str)(row(outcome, visit, fate))
        for why in reasons(outcome, visit):
            yield f"       {shorten(why, WIDTH - 7)}"


def row(outcome: Outcome, visit: Visit, fate: str) -> str:
    order, receipt = visit.order, outcome.receipt(visit)
    word = WORDS.get(fate, fate)
    if order is None or receipt is None:
        return ROW.format("-", visit.customer.email, "-", "-", "-", "-", word, "-", "-")
    sent, packed = order.receipt_sent_at, outcome.packed_for(visit)
    return ROW.format(
        order.pk,
        order.email,
        clock(order.placed_at),
        order.receipt_id,
        after(order, sent),
        receipt.attempts,
        word,
        packed.parcel.pk if packed else "-",
        after(order, packed.parcel.packed_at if packed else None),
    )


def reasons(outcome: Outcome, visit: Visit) -> Iterator[str]:
    receipt, packed = outcome.receipt(visit), outcome.packed_for(visit)
    if receipt is None:
        yield f"{visit.refusal} No order, no job, no mail, no parcel."
    elif receipt.reasons:
        yield failed("attempt", receipt.reasons)
    if packed and packed.reasons:
        yield failed("delivery", [f"the warehouse {reason}" for reason in packed.reasons])


def failed(what: str, reasons: list[str]) -> str:
    said = f"the first {what}" if len(reasons) == 1 else f"{len(reasons)} {plural(what)}"
    return f"{said} failed: {reasons[-1]}"


def after(order: Order, moment: datetime | None) -> str:
    """How long after the order it was."""
    return f"{(moment - order.placed_at).total_seconds():.2f} s" if moment else "-"


def clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03}"


def totals(outcome: Outcome) -> Iterator[str]:
    sent, retried = outcome.having("sent", "retried"), outcome.having("retried")
    dead, refused = outcome.having("dead"), outcome.having("refused")
    again = [each for each in outcome.packed if each.reasons]
    yield (
        f"{counted(outcome.orders, 'order')} placed, each with its receipt and its event queued; "
        f"{len(refused)} rolled back."
    )
    yield f"{counted(sent, 'receipt')} sent, {len(retried)} after a retry; {counted(dead, 'dead letter')}."
    yield f"{counted(outcome.mails, 'mail')} in {shown(settings.MAIL_DIR)}, one file each."
    yield f"{counted(outcome.packed, 'parcel')} packed by the warehouse, {len(again)} after a retry."


def as_it_should_be() -> Iterator[str]:
    yield "As it should be: one mail for each receipt that was sent, one parcel for each order, and no other;"
    yield "each tea was packed in the order in which it was sold."


def counted(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun if len(things) == 1 else plural(noun)}"


def plural(noun: str) -> str:
    return f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"


def what_next(outcome: Outcome, login: str) -> Iterator[str]:
    run = f"{interpreter()} {shlex.quote(shown(settings.BASE_DIR / 'manage.py'))}"
    site = "http://127.0.0.1:8000"
    yield "What to look at next:"
    yield f"  export {' '.join(environment())}"
    yield f"  {run} alkstatus"
    yield f"  {run} runserver"
    yield f"    {site}{reverse('shop:orders')}   the orders, their receipts and their parcels"
    yield f"    {site}{reverse('admin:index')}    log in as {login}, password {login}"
    for order in [visit.order for visit in outcome.having("dead") if visit.order]:
        letter = reverse("admin:alkstore_django_deadjob_change", args=[order.receipt_id])
        yield f"To bring the dead letter of order {order.pk} to life:"
        yield f"  1. {site}{reverse('admin:shop_order_change', args=[order.pk])}   correct the address"
        yield f"  2. {site}{letter}   requeue it"
        yield f"  3. {run} alkworker --batch"


def environment() -> Iterator[str]:
    """What the shell needs for the commands to see the demo's shop."""
    yield "ALKSTORE_DEMO=1"
    for name, value in sorted(os.environ.items()):
        chosen = name in ("ALKSTORE_DATA_DIR", "ALKSTORE_DB", "ALKSTORE_DB_PREFIX", "ALKSTORE_WAREHOUSE_URL")
        server = name.startswith(("ALKSTORE_PG_", "ALKSTORE_MYSQL_")) and not name.endswith("PASSWORD")
        if value and (chosen or server):
            yield f"{name}={shlex.quote(value)}"


def interpreter() -> str:
    """The Python that runs this, as a person here would type it."""
    in_tox = "TOX_ENV_NAME" in os.environ  # there "python" is another one than in the person's shell
    if shutil.which("python") == sys.executable and not in_tox:
        return "python"
    return shlex.quote(shown(Path(sys.executable)))


def shown(path: Path) -> str:
    """Relative to the present directory, if it lies there."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
