"""What ``manage.py demo`` is made of."""

from __future__ import annotations
