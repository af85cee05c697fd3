"""``manage.py demo``: a day at the shop in a few seconds, on a fresh database of its own."""

from __future__ import annotations

import platform
from typing import Any

import django
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from alkstore_django.models import Job
from shop.demo import report
from shop.demo.customers import EARLY, LATE, Browser, Visit
from shop.demo.fresh import InUse, alone, clear, recreate
from shop.demo.outcome import Outcome, read_mails
from shop.demo.parcels import read_parcels
from shop.demo.warehouse import open_warehouse
from shop.demo.worker import log_path, running_worker
from shop.models import Order
from shop.outbox import order_placed
from shop.receipts import receipt_of
from shop.tasks import send_receipt

LOGIN = "demo"


class Command(BaseCommand):
    help = (
        "Empties the demo's own database, places orders through the web form, lets a worker send their "
        "receipts and tell the warehouse, and says what happened."
    )
    requires_system_checks = []  # later: on MariaDB they want the database to exist

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("The demo replaces a database: set ALKSTORE_DEMO=1 before Django starts.")
        try:
            with alone(settings.DATA_DIR):
                self.open_shop()
                visits = self.trade()
        except InUse as error:
            raise CommandError(f"{report.shown(settings.DATA_DIR)} is in use: {error}.") from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted.", returncode=130) from None
        self.tell(Outcome(visits, read_mails(settings.MAIL_DIR), read_parcels()))

    def open_shop(self) -> None:
        name = connection.settings_dict["NAME"]
        name = name if isinstance(name, str) else report.shown(name)
        try:
            recreate(connection)
        except DatabaseError as error:
            first_line = str(error).partition("\n")[0]
            raise CommandError(f"The database {name} cannot be made anew: {first_line}") from error
        clear(settings.DATA_DIR)
        self.check()
        call_command("migrate", verbosity=0)
        User.objects.create_superuser(LOGIN, password=LOGIN)
        versions = f"Django {django.get_version()}, Python {platform.python_version()}"
        self.say(f"The tea counter opens: {versions}, {connection.display_name}")
        self.say(f"  a fresh database, {name}")

    def trade(self) -> list[Visit]:
        first, second = (send_receipt.backoff.delay(attempt) for attempt in (1, 2))
        self.say(f"  a receipt has {send_receipt.max_attempts} attempts, {first} s and {second} s apart")
        browser = Browser()
        visits = [browser.order(customer) for customer in EARLY]
        self.say(f"  {len(EARLY)} customers fill in the order form while no worker runs")
        with open_warehouse() as warehouse:
            self.say(f"  the warehouse listens at {warehouse}")
            visits += self.work(warehouse, browser)
            if self.exit_code == 0 and not self.is_settled(visits):
                # This machine was too busy: the worker had nothing left to do before the last orders came.
                with running_worker(warehouse) as worker:
                    self.exit_code = worker.wait()
                    self.say(f"  a second one for the late orders ends with exit code {self.exit_code}")
        return visits

    def work(self, warehouse: str, browser: Browser) -> list[Visit]:
        with running_worker(warehouse) as worker:
            worker.work_until(Order.objects.filter(receipt_sent_at__isnull=False).exists)
            self.say(f"  manage.py alkworker --batch: the first receipt is sent after {worker.age:.1f} s")
            visits = [browser.order(customer) for customer in LATE]
            self.say(f"  {len(LATE)} more customers while it works")
            self.exit_code = worker.wait()
            self.say(f"  after {worker.age:.1f} s it ends, with exit code {self.exit_code}")
        return visits

    def is_settled(self, visits: list[Visit]) -> bool:
        """Whether no receipt and no event is left to be tried."""
        if Job.objects.filter(queue=order_placed.queue_name).exists():
            return False
        return all(receipt_of(visit.order).is_settled for visit in visits if visit.order)

    def tell(self, outcome: Outcome) -> None:
        for line in ("", *report.table(outcome, self.style), "", *report.totals(outcome)):
            self.say(line)
        wrong = [f"the worker ended with exit code {self.exit_code}"] if self.exit_code else []
        wrong += outcome.surprises()
        if wrong:
            log = report.shown(log_path())
            raise CommandError(
                "\n  ".join(["That is not as it should be:", *wrong, f"The worker's log: {log}"])
            )
        for line in report.as_it_should_be():
            self.say(self.style.SUCCESS(line))
        for line in ("", *report.what_next(outcome, LOGIN)):
            self.say(line)

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
