"""``manage.py demo``: what it prints is true, and it says so when something went wrong."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.files import locks

from tests.e2e.shop import Shop, Visitor, finished, opened, served

LINE = re.compile(
    r" *(?P<order>\d+|-)  (?P<to>\S+) +(?P<placed>[\d:.]+|-) +(?P<job>\d+|-) +(?P<mailed>[\d.]+ s|-)"
    r" +(?P<attempts>\d+|-)  (?P<receipt>\w+( \w+)*) +(?P<parcel>\d+|-) +(?P<packed>[\d.]+ s|-)"
)


@dataclass
class Demo:
    shop: Shop
    output: str

    @property
    def lines(self) -> list[dict[str, str]]:
        """The lines of the table, with ``why``, the line below, where there is one."""
        table = self.output.partition("packed\n")[2].partition("\n\n")[0].splitlines()
        found: list[dict[str, str]] = []
        for line in table:
            if match := LINE.fullmatch(line):
                found.append(match.groupdict() | {"why": ""})
            else:
                found[-1]["why"] = line.strip()
        return found

    def having(self, receipt: str) -> list[dict[str, str]]:
        return [line for line in self.lines if line["receipt"] == receipt]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: object) -> Iterator[Demo]:
    with opened(tmp_path_factory.mktemp("demo"), django_db_blocker, demo=True) as shop:
        yield Demo(shop, shop.manage("demo"))


def test_it_reads_well(demo: Demo) -> None:
    table = demo.output[demo.output.index("order  to") : demo.output.index("What to look at next")]
    assert max(map(len, table.splitlines())) <= 100
    assert "\x1b" not in demo.output, "colours, where nobody looks at a terminal"
    assert "Traceback" not in demo.output and "Warning" not in demo.output
    logs = [path.read_text() for path in demo.shop.data.glob("*.log")]
    assert len(logs) == 2 and not any("ResourceWarning" in log for log in logs)


def test_each_order_has_its_line(demo: Demo) -> None:
    placed = [line for line in demo.lines if line["order"] != "-"]
    assert len(placed) == 12
    assert len({line["order"] for line in placed}) == 12
    assert len({line["job"] for line in placed}) == 12
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", line["placed"]) for line in placed)


def test_a_sent_receipt_has_its_times(demo: Demo) -> None:
    sent = demo.having("sent")
    assert len(sent) == 11
    for line in sent:
        assert (line["attempts"], "451 4.7.1 greylisted" in line["why"]) in [("1", False), ("2", True)]
    assert len([line for line in sent if line["attempts"] == "2"]) == 3
    assert seconds(sent, "mailed") == pytest.approx(stored(demo, "order.receipt_sent_at"), abs=0.01)


def test_a_parcel_has_its_time(demo: Demo) -> None:
    packed = [line for line in demo.lines if line["parcel"] != "-"]
    assert len(packed) == 12
    parcel = "Parcel.objects.get(order_number=order.pk).packed_at"
    assert seconds(packed, "packed") == pytest.approx(stored(demo, parcel), abs=0.01)


def test_a_delivery_that_failed_has_its_reason(demo: Demo) -> None:
    (heavy, light) = [
        line for line in demo.lines if line["to"] in ("office@example.org", "station@example.org")
    ]
    assert heavy["why"] == "the first delivery failed: the warehouse answered 503: the big scale is in use"
    assert int(heavy["parcel"]) < int(light["parcel"]), "the same tea, sold later"
    assert demo.output.count("delivery failed") == 1


def seconds(lines: list[dict[str, str]], column: str) -> dict[str, float]:
    return {line["order"]: float(line[column].removesuffix(" s")) for line in lines}


def stored(demo: Demo, moment: str) -> dict[str, float]:
    """How many seconds after each order something was, as the database has it."""
    return json.loads(
        demo.shop.python(
            "import json\n"
            "from shop.models import Order\n"
            "from warehouse.models import Parcel\n"
            f"moments = [(order, {moment}) for order in Order.objects.all()]\n"
            "print(json.dumps({o.pk: (m - o.placed_at).total_seconds() for o, m in moments if m}))"
        )
    )


def test_the_dead_letter_has_its_reason(demo: Demo) -> None:
    (dead,) = demo.having("DEAD LETTER")
    assert (dead["attempts"], dead["mailed"]) == ("3", "-")
    assert dead["why"] == "3 attempts failed: 550 5.1.2 tea.invalid: there is no such domain"
    (queue,) = json.loads(demo.shop.manage("alkstatus", "--json"))
    assert queue | {"oldest_due": None} == {
        "queue": "mail",
        "ready": 0,
        "delayed": 0,
        "running": 0,
        "dead": 1,
        "oldest_due": None,
        "paused": None,
    }


def test_the_order_that_was_rolled_back_left_nothing(demo: Demo) -> None:
    (refused,) = demo.having("rolled back")
    assert refused["order"] == refused["job"] == refused["parcel"] == "-"
    assert refused["why"].startswith("We do not have 5 packets of Gyokuro left.")
    demo.shop.python(
        "from alkstore_django.models import DeadJob, Job, Run\n"
        "from shop.models import Order\n"
        f"assert not Order.objects.filter(email={refused['to']!r}).exists()\n"
        "assert Order.objects.count() == 12\n"
        "assert (Job.objects.count(), DeadJob.objects.count(), Run.objects.count()) == (0, 1, 11 + 12)"
    )


def test_the_mails_are_those_of_the_table(demo: Demo) -> None:
    expected = {(line["order"], line["to"]) for line in demo.having("sent")}
    heads = [re.search(r"^To: (\S+)$.*^X-Order: (\d+)$", mail, re.M | re.S) for mail in demo.shop.mails]
    assert sorted((head[2], head[1]) for head in heads if head) == sorted(expected)
    assert len(heads) == 11


def test_the_totals_add_up(demo: Demo) -> None:
    assert "12 orders placed, each with its receipt and its event queued; 1 rolled back.\n" in demo.output
    assert "11 receipts sent, 3 after a retry; 1 dead letter.\n" in demo.output
    assert re.search(r"^11 mails in .+, one file each\.$", demo.output, re.M)
    assert "12 parcels packed by the warehouse, 1 after a retry.\n" in demo.output


def test_what_it_says_to_look_at_is_there(demo: Demo) -> None:
    login = re.search(r"log in as (\S+), password (\S+)", demo.output)
    assert login
    pages = re.findall(r"http://127\.0\.0\.1:8000(/\S+)", demo.output)
    assert len(pages) == 4
    with served(demo.shop) as visitor:
        log_in(visitor, *login.groups())
        for page in pages:
            visitor.get(page)
            assert (visitor.status, visitor.url) == (200, visitor.site + page)
        (dead,) = demo.having("DEAD LETTER")
        assert dead["to"] in visitor.get(next(page for page in pages if "/order/" in page))
        assert "550 5.1.2" in visitor.get(next(page for page in pages if "/deadjob/" in page))
        visitor.get("/admin/warehouse/parcel/")
        assert "12 parcels" in visitor.text and "Add parcel" not in visitor.text


def log_in(visitor: Visitor, name: str, password: str) -> None:
    visitor.get("/admin/login/")
    token = next(cookie.value for cookie in visitor.jar if cookie.name == "csrftoken")
    form = {"csrfmiddlewaretoken": token, "username": name, "password": password, "next": "/admin/"}
    visitor.get("/admin/login/", form)
    assert visitor.url.endswith("/admin/"), visitor.text


SURPRISES = """
from django.conf import settings
from shop.demo.customers import EARLY, LATE, Visit
from shop.demo.outcome import Outcome, read_mails
from shop.demo.parcels import Packed, read_parcels
from shop.models import Order
from warehouse.models import Parcel
visits = [Visit(c, Order.objects.filter(email=c.email).first()) for c in EARLY + LATE]
mails, packed = read_mails(settings.MAIL_DIR), read_parcels()
assert list(Outcome(visits, mails, packed).surprises()) == []
"""


def surprises(demo: Demo, mails: str = "mails", packed: str = "packed") -> list[str]:
    """What it would say of other mails and parcels than there are."""
    outcome = f"Outcome(visits, {mails}, {packed})"
    return demo.shop.python(f"{SURPRISES}print(*{outcome}.surprises(), sep='\\n')").splitlines()


def test_it_counts_the_mails(demo: Demo) -> None:
    """A mail too few and one too many do not go unseen."""
    missing, more = surprises(demo, mails="[(1, 'nobody@example.com'), *mails[1:]]")
    assert re.fullmatch(r"the mail of order \d+ to \S+ is missing", missing)
    assert more == "there is a mail of order 1 to nobody@example.com too many"


def test_it_counts_the_parcels(demo: Demo) -> None:
    (missing,) = surprises(demo, packed="packed[1:]")
    assert re.fullmatch(r"the parcel of order \d+, \d+ x [\w ]+, is missing", missing)
    (second,) = surprises(demo, packed="[*packed, packed[0]]")
    assert re.fullmatch(r"there is a parcel of order \d+, \d+ x [\w ]+, too many", second)
    # Where a rolled back order gives its number back, the next one has it.
    number = "max(each.parcel.order_number for each in packed)"
    rolled_back = f"Packed(Parcel(order_number={number}, tea='Gyokuro', packets=5), [])"
    (more,) = surprises(demo, packed=f"[*packed, {rolled_back}]")
    assert re.fullmatch(r"there is a parcel of order \d+, 5 x Gyokuro, too many", more)


def test_it_looks_at_the_order_of_the_parcels(demo: Demo) -> None:
    found = surprises(demo, packed="packed[::-1]")
    teas = {line.partition(" was not packed as it was sold: the orders ")[0] for line in found}
    assert teas == {"Assam", "Darjeeling", "Earl Grey", "Oolong", "Sencha"}


def test_an_event_that_is_left_is_seen(demo: Demo) -> None:
    """A second worker is started for what came late."""
    demo.shop.python(
        "from django.db import transaction\n"
        "from shop.management.commands.demo import Command\n"
        "from shop.outbox import order_placed\n"
        "with transaction.atomic():\n"
        "    assert Command().is_settled([])\n"
        "    order_placed.enqueue({})\n"
        "    assert not Command().is_settled([])\n"
        "    transaction.set_rollback(True)"
    )


def test_the_worker_is_killed(tmp_path: Path, django_db_blocker: object) -> None:
    with opened(tmp_path, django_db_blocker, demo=True) as shop:
        demo = shop.start("demo")
        try:
            demo.wait_for("the first receipt is sent")
            (pid,) = re.findall(r"-(\d+)-[0-9a-f]{8} serves", (shop.data / "worker.log").read_text())
            os.kill(int(pid), signal.SIGKILL)
        finally:
            output = finished(demo, 1)
        assert "the worker ended with exit code -9" in output
        assert "garden@tea.invalid should have been dead, and is: " in output
        assert "What to look at next" not in output


def test_two_at_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path, demo=True)
    shop.data.mkdir()
    with (shop.data / "lock").open("w") as file:
        assert locks.lock(file, locks.LOCK_EX)
        assert "is in use: another demo is running." in shop.manage("demo", exit_code=1)


def test_a_file_that_is_open_is_left_alone(tmp_path: Path) -> None:
    Shop(tmp_path / "data").python(
        "import sqlite3\n"
        "from pathlib import Path\n"
        "from shop.demo.fresh import InUse, remove_file\n"
        f"path = Path({str(tmp_path / 'shop.sqlite3')!r})\n"
        "other = sqlite3.connect(path, isolation_level=None)\n"
        "other.execute('PRAGMA journal_mode=WAL')\n"
        "other.execute('CREATE TABLE t (id)')\n"
        "try:\n    remove_file(path)\n"
        "except InUse:\n    assert path.exists()\n"
        "else:\n    raise AssertionError\n"
        "other.close()\n"
        "remove_file(path)\n"
        "assert list(path.parent.glob('shop*')) == []\n"
        "path.write_text('no database')\n"
        "remove_file(path)\n"
        "assert not path.exists()"
    )


def test_it_replaces_no_other_database(tmp_path: Path) -> None:
    """Not without being told so before the settings are read, and never a file that somebody named."""
    shop = Shop(tmp_path)
    shop.environment |= {"ALKSTORE_DB": "sqlite", "ALKSTORE_DB_FILE": str(tmp_path / "mine.sqlite3")}
    output = shop.python(
        "from django.core.management import CommandError, call_command\n"
        "from django.db import connection\n"
        "print(connection.settings_dict['NAME'].name)\n"
        "try:\n    call_command('demo')\n"
        "except CommandError as error:\n    print(error)"
    )
    assert output.startswith("mine.sqlite3\nThe demo replaces a database: set ALKSTORE_DEMO=1 before")
    shop.environment["ALKSTORE_DEMO"] = "1"
    name = shop.python("from django.conf import settings\nprint(settings.DATABASES['default']['NAME'])")
    assert Path(name) == tmp_path / "demo" / "shop.sqlite3"
