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

from .customers import Visit
from .outcome import Outcome

WIDTH = 100
ROW = "{:>5}  {:25}  {:12}  {:>3}  {:12}  {:>6}  {:>8}  {}"
WORDS = {"sent": "sent", "retried": "sent", "dead": "DEAD LETTER", "refused": "rolled back"}


def table(outcome: Outcome, style: Any) -> Iterator[str]:
    """A line for each order, and one more where something went wrong."""
    head = ROW.format("order", "to", "placed (UTC)", "job", "sent", "after", "attempts", "receipt")
    yield style.MIGRATE_HEADING(head)
    paint = {"retried": style.WARNING, "dead": style.ERROR, "refused": style.WARNING}
    for visit in outcome.visits:
        fate = outcome.fate(visit)
        yield paint.get(fate, str)(row(outcome, visit, fate))
        if why := reason(outcome, visit):
            yield f"       {shorten(why, WIDTH - 7)}"


def row(outcome: Outcome, visit: Visit, fate: str) -> str:
    order, receipt = visit.order, outcome.receipt(visit)
    word = WORDS.get(fate, fate)
    if order is None or receipt is None:
        return ROW.format("-", visit.customer.email, "-", "-", "-", "-", "-", word)
    sent = order.receipt_sent_at
    return ROW.format(
        order.pk,
        order.email,
        clock(order.placed_at),
        order.receipt_id,
        clock(sent) if sent else "-",
        f"{(sent - order.placed_at).total_seconds():.2f} s" if sent else "-",
        receipt.attempts,
        word,
    )


def reason(outcome: Outcome, visit: Visit) -> str:
    receipt = outcome.receipt(visit)
    if receipt is None:
        return f"{visit.refusal} No order, no job, no mail."
    if not receipt.reasons:
        return ""
    failed = len(receipt.reasons)
    return f"{'the first attempt' if failed == 1 else f'{failed} attempts'} failed: {receipt.reasons[-1]}"


def clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03}"


def totals(outcome: Outcome) -> Iterator[str]:
    placed = [visit for visit in outcome.visits if visit.order]
    sent, retried = outcome.having("sent", "retried"), outcome.having("retried")
    dead, refused = outcome.having("dead"), outcome.having("refused")
    yield f"{counted(placed, 'order')} placed, each with its receipt queued; {len(refused)} rolled back."
    yield f"{counted(sent, 'receipt')} sent, {len(retried)} after a retry; {counted(dead, 'dead letter')}."
    yield f"{counted(outcome.mails, 'mail')} in {shown(settings.MAIL_DIR)}, one file each."


def counted(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def what_next(outcome: Outcome, login: str) -> Iterator[str]:
    run = f"{interpreter()} {shlex.quote(shown(settings.BASE_DIR / 'manage.py'))}"
    site = "http://127.0.0.1:8000"
    yield "What to look at next:"
    yield f"  export {' '.join(environment())}"
    yield f"  {run} alkstatus"
    yield f"  {run} runserver"
    yield f"    {site}{reverse('shop:orders')}   the orders, and what became of their receipts"
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
        chosen = name in ("ALKSTORE_DATA_DIR", "ALKSTORE_DB", "ALKSTORE_DB_PREFIX")
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
