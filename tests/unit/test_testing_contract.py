"""The contract is for any backend: it wants nothing of ours but its own modules."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import django
from django.conf import settings
settings.configure(TASKS={"default": {"BACKEND": sys.argv[1]}})
django.setup()
from alkstore_django.testing import BackendContract
print(*(name for name in sys.modules if name.startswith("alkstore_django.")))
"""


def test_it_can_be_used_without_the_app() -> None:
    from alkstore_django.compat import signals

    backend = f"{signals.__name__.rpartition('.')[0]}.backends.dummy.DummyBackend"
    done = subprocess.run([sys.executable, "-c", SCRIPT, backend], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    modules = done.stdout.split()
    assert "alkstore_django.testing.contract" in modules
    others = {name for name in modules if not name.startswith("alkstore_django.testing")}
    assert others == {"alkstore_django.compat"}
