#!/usr/bin/env python
"""The shop's command line; works with alkstore_django installed, and beside its source tree."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def main() -> None:
    if importlib.util.find_spec("alkstore_django") is None:
        sys.path.append(str(Path(__file__).resolve().parents[1]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    if sys.argv[1:2] == ["demo"]:
        os.environ["ALKSTORE_DEMO"] = "1"  # the settings read it: the demo has a database of its own

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
