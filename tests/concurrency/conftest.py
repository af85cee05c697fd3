from __future__ import annotations

from tests.processes import gate, journal, workers

__all__ = ["gate", "journal", "workers"]
