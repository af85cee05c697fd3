"""``alkimport`` where there is nothing to import from; ``tests/conformance`` has the rest."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["for good", "a dry run"])
def test_without_django_tasks_db(options: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"^django_tasks_db is not in INSTALLED_APPS"):
        call_command("alkimport", *options)


def test_into_a_database_that_there_is_not() -> None:
    with pytest.raises(CommandError, match="There is no database 'nowhere'"):
        call_command("alkimport", "--database", "nowhere")
