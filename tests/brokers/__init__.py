"""The recipes of docs/brokers.md beside real brokers: what the page shows runs, under names of our own."""

from __future__ import annotations
