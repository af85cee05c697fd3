"""For the tests of projects: run what was enqueued in the test itself, and look at what waits.

``immediate`` runs a task within its enqueue; ``manual`` leaves it to ``drain``; ``assert_enqueued`` and
``assert_not_enqueued`` look at the tables. Nothing is imported before it is asked for: the pytest plugin is
loaded in every project that has this package installed, whether it uses Django or not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assertions import assert_enqueued as assert_enqueued
    from .assertions import assert_not_enqueued as assert_not_enqueued
    from .assertions import enqueued as enqueued
    from .contract import BackendContract as BackendContract
    from .draining import adrain as adrain
    from .draining import drain as drain
    from .modes import immediate as immediate
    from .modes import manual as manual
    from .ran import Ran as Ran
    from .travelling import travel as travel

_PLACES = {
    "BackendContract": "contract",
    "Ran": "ran",
    "adrain": "draining",
    "assert_enqueued": "assertions",
    "assert_not_enqueued": "assertions",
    "drain": "draining",
    "enqueued": "assertions",
    "immediate": "modes",
    "manual": "modes",
    "travel": "travelling",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"{__name__} has no {name!r}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
