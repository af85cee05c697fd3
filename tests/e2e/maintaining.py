"""``python -m tests.e2e.maintaining alkworker ...``: a command whose maintenance begins at once."""

from __future__ import annotations

import sys

import django

django.setup()

from django.core.management import execute_from_command_line  # noqa: E402

from alkstore_django.runtime import cleaning  # noqa: E402

if __name__ == "__main__":
    cleaning.BEGINS, cleaning.LOOK, cleaning.EVERY, cleaning.SHARE = 0.1, 0.2, 0.2, 1
    execute_from_command_line(["manage.py", *sys.argv[1:]])
