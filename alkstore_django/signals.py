"""Signals of this app, beside ``task_enqueued``, ``task_started`` and ``task_finished`` of Django.

All are sent with ``send_robust``, a receiver's exception is logged and nothing else; by the worker, but
for ``unique_conflict``.
"""

from __future__ import annotations

from django.dispatch import Signal

claim_lost = Signal()
"""A write found that its claim was no longer held. ``job_id``, ``queue``, ``attempt``, ``worker_id``."""

unique_conflict = Signal()
"""A unique task was not enqueued, since a job has its key. ``task_result`` of that job, ``task``. Sent by
the caller of ``enqueue``, with the backend class as sender; not with ``on_conflict="ignore"``."""

task_retried = Signal()
"""An attempt failed and the task will run again. ``task_result``, ``delay`` in seconds."""

boundaries_skipped = Signal()
"""A schedule left boundaries out: it was late, or its previous job lives. ``schedule`` is its name, ``count``
how many, ``since`` the first boundary that was due (fired or not), ``next`` the first that is not, both in
UTC, ``using`` the database. Sent by whoever fires, most often a scheduler."""
