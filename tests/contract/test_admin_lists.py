"""The admin's lists: how rows are found in them, and what a page costs."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alkstore_django.admin.base import BoundedPaginator
from alkstore_django.models import Attempt, DeadJob, Lock
from alkstore_django.queues import Queue
from tests import factories
from tests.pages import DEAD, LOCKS, column, page, task

pytestmark = pytest.mark.django_db


def test_search_by_id_or_queue(admin_client: Client, queue: Queue) -> None:
    factories.dead(7, queue.name)
    factories.dead(77, "7")
    for term, found in {
        "7": ["7"],
        " 77 ": ["77"],
        queue.name: ["7"],
        queue.name[:-1]: [],
        "1234": [],
    }.items():
        assert column(page(admin_client, DEAD, q=term), "number") == found, term


def test_filter_by_queue(admin_client: Client, queue: Queue) -> None:
    factories.dead(7, queue.name)
    factories.dead(8, "A")
    factories.dead(9, "a")
    assert column(page(admin_client, DEAD, queue="a"), "number") == ["9"], "and not A"
    text = unescape(page(admin_client, DEAD, queue="nobody's"))
    assert column(text, "number") == []
    offered = re.findall(r"<a[^>]*\?queue=[^>]*>\s*(.*?)\s*</a>", text)
    assert {"A", "a", queue.name, "default", "nobody's"} <= set(offered)
    assert page(admin_client, DEAD, _facets="").count("(1)") == 0, "it counted every queue"


# -- at what cost -------------------------------------------------------------------------------------


def test_the_queries_do_not_grow_with_the_rows(admin_client: Client) -> None:
    def queries(url: str) -> list[str]:
        page(admin_client, url)  # the first visit fills caches of Django's
        with CaptureQueriesContext(connection) as captured:
            page(admin_client, url)
        return [query["sql"] for query in captured]

    counted = {}
    for rows in (5, 100):
        for number in range(DeadJob.objects.count() + 1, rows + 1):
            factories.dead(number, f"queue {number}", task("a.b"))
            Lock.objects.create(name=str(number), owner="o", expires_at=number)
            Attempt.objects.create(job_id=1, kind=Attempt.FAILED, ended_at=1)
        counted[rows] = [len(queries(url)) for url in (DEAD, LOCKS, f"{DEAD}1/change/")]
    assert counted[5] == counted[100]
    for sql in queries(DEAD):
        if "_honker_dead" in sql:
            assert " LIMIT " in sql, f"reads or counts the whole table: {sql}"
            for column_name in ("payload", "last_error"):
                quoted = connection.ops.quote_name(column_name)
                assert sql.count(quoted) == len(re.findall(rf"SUBSTR\w*\([^()]*{quoted}", sql)), (
                    f"not cut: {sql}"
                )


def test_a_big_table_is_counted_and_paged_to_a_limit(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 101):
        factories.dead(number)
    text = page(admin_client, DEAD)
    assert len(column(text, "number")) == 50
    assert "Only the newest" not in text
    assert column(page(admin_client, DEAD, p="2"), "number")[-1] == "1"
    monkeypatch.setattr(BoundedPaginator, "most", 60)
    assert "Only the newest 60" in page(admin_client, DEAD)
    assert len(column(page(admin_client, DEAD, p="2"), "number")) == 10
    assert admin_client.get(DEAD, {"p": "3"}).status_code == 302
