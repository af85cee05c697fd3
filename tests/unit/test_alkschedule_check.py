"""``manage.py alkschedule check``, without a database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from alkstore_django.management.commands.alkschedule import Command
from tests.unit.cron_values import IMPOSSIBLE, REFUSED, VALUES, instants


def check(*arguments: str) -> str:
    output = StringIO()
    call_command("alkschedule", "check", *arguments, stdout=output)
    return output.getvalue()


def checked(*arguments: str, exit_code: int = 0) -> Any:
    output = StringIO()
    try:
        call_command("alkschedule", "check", *arguments, "--json", stdout=output)
    except SystemExit as stop:
        assert stop.code == exit_code != 0
    else:
        assert exit_code == 0
    return json.loads(output.getvalue())


@pytest.mark.parametrize(("expression", "zone", "start", "expected"), VALUES)
def test_values(expression: str, zone: str, start: str, expected: str) -> None:
    wanted = instants(expected, start)
    arguments = (expression, "--timezone", zone, "--from", f"{start}Z", "-n", str(len(wanted)))
    found = checked(*arguments)
    assert found["valid"] is True
    assert [datetime.fromisoformat(text) for text in found["upcoming"]] == wanted
    assert all(text.endswith("+00:00") for text in found["upcoming"])
    assert found["portable"] is (found["why_not_portable"] is None)
    text = check(*arguments)
    assert [line[-20:] for line in text.splitlines() if line.endswith("Z")] == [
        f"{instant:%Y-%m-%d %H:%M:%S}Z" for instant in wanted
    ]
    assert f"Due {found['description']}, " in text
    assert f"Stored as {found['canonical']}\n" in text


@pytest.mark.parametrize(("expression", "message"), [row for row in REFUSED if isinstance(row[0], str)])
def test_what_is_refused(expression: str, message: str) -> None:
    assert checked(expression, exit_code=1) == {
        "expression": expression,
        "timezone": "UTC",
        "valid": False,
        "error": message,
    }
    with pytest.raises(CommandError) as caught:
        check(expression)
    assert str(caught.value) == message


@pytest.mark.parametrize("expression", IMPOSSIBLE)
def test_dates_that_never_come(expression: str) -> None:
    found = checked(expression, exit_code=1)
    assert (found["valid"], found["error"]) == (False, f"{expression!r} is never due: there is no such date.")
    with pytest.raises(CommandError, match="is never due"):
        check(expression)


@pytest.mark.parametrize("zone", ["Amerca/New_York", "", "localtime"])
def test_a_zone_that_is_none(zone: str) -> None:
    found = checked("@daily", "--timezone", zone, exit_code=1)
    assert found["valid"] is False
    assert "time zone" in found["error"]


SPRING = """\
Due at 02:30 every day, by the clocks of Europe/Berlin.
Stored as 30 2 * * *
Not portable: when clocks repeat these times, honker runs in the second pass and this in the first, \
as on 2026-10-25.

Europe/Berlin                   UTC
Sat 2026-03-28 02:30:00 +01:00  2026-03-28 01:30:00Z
  clocks go forward from 02:00 to 03:00 (2026-03-29 01:00Z)
Sun 2026-03-29 03:00:00 +02:00  2026-03-29 01:00:00Z
Mon 2026-03-30 02:30:00 +02:00  2026-03-30 00:30:00Z
"""

AUTUMN = """\
Due minute 0 of every hour, by the clocks of Europe/Berlin.
Stored as 0 * * * *
Not portable: when clocks repeat these times, honker runs in the second pass and this in both, \
as on 2026-10-25.

Europe/Berlin                   UTC
Sun 2026-10-25 02:00:00 +02:00  2026-10-25 00:00:00Z
  clocks go back from 03:00 to 02:00 (2026-10-25 01:00Z)
Sun 2026-10-25 02:00:00 +01:00  2026-10-25 01:00:00Z
Sun 2026-10-25 03:00:00 +01:00  2026-10-25 02:00:00Z
"""


def test_over_the_changes_of_the_clocks() -> None:
    berlin = ("--timezone", "Europe/Berlin", "-n", "3", "--from")
    assert check("30 2 * * *", *berlin, "2026-03-27T12:00Z") == SPRING
    assert check("0 * * * *", *berlin, "2026-10-24T23:30Z") == AUTUMN


def test_changes_far_from_all_instants_are_not_told() -> None:
    assert "clocks go" not in check(
        "0 12 1 1 *", "--timezone", "Europe/Berlin", "--from", "2026-01-02T00:00Z"
    )


def test_the_zone_of_the_settings_is_the_default(settings: Any) -> None:
    settings.TIME_ZONE = "Asia/Jakarta"
    found = checked("25 8 * * *", "--from", "2026-02-01T07:00", "-n", "1")
    assert found["upcoming"] == ["2026-02-01T01:25:00+00:00"], "07:00 is Jakarta's, too"
    settings.USE_TZ = False
    assert checked("25 8 * * *", "--from", "2026-02-01T07:00", "-n", "1") == found


def test_from_now_on() -> None:
    before = datetime.now(UTC)
    found = [datetime.fromisoformat(text) for text in checked("* * * * * *")["upcoming"]]
    assert len(found) == 5
    assert before < found[0]


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        ("9999-12-31T23:00Z", "No instant comes after 9999-12-31 23:00:00Z."),
        ("0001-01-01T00:00Z", "Mon 1900-01-01"),
    ],
)
def test_the_ends_of_the_calendar(end: str, answer: str) -> None:
    assert answer in check("* * * * *", "--from", end)
    assert checked("* * * * *", "--from", end)["valid"]


def test_beyond_the_calendar() -> None:
    with pytest.raises(CommandError, match="too near to an end of the calendar"):
        check("* * * * *", "--from", "0001-01-01T00:00+05:00")


@pytest.mark.parametrize("arguments", [["-n", "0"], ["-n", "1001"], ["-n", "x"], ["--from", "soon"]])
def test_flags_that_mean_nothing(arguments: list[str]) -> None:
    with pytest.raises(CommandError, match="argument (-n|--from): "):
        check("* * * * *", *arguments)


def test_as_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    """With Django's system checks, as ``manage.py`` does it; the database stays closed."""

    def run(*arguments: str) -> int:
        try:
            Command().run_from_argv(["manage.py", "alkschedule", "check", *arguments])
        except SystemExit as stop:
            return int(stop.code or 0)
        return 0

    assert run("-5 * * * *") == 1
    assert "CommandError: In the minute field, '-5'" in capsys.readouterr().err
    assert run("0 0 31 2 *", "--json") == 1
    assert json.loads(capsys.readouterr().out)["valid"] is False
    assert run("@daily", "--json") == 0
    assert json.loads(capsys.readouterr().out)["canonical"] == "0 0 * * *"
