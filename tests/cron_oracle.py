"""Our cron beside two others, near the moments when clocks change.

    python -m tests.cron_oracle [TRIPLES [SEED]]

Each triple is an expression, a zone and an instant. cronsim, which follows Debian's rules too, must find the
same next instant; so must honker's dialect, where an expression is said to be portable. Where cronsim
differs, a model that looks at every minute decides; what it decides for us is counted under the rule of
docs/cron.md that cronsim leaves, and anything else is an error: then the exit code is 1.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim

from alkstore_django.cron import Cron
from tests.unit.cron_model import LEAD, MINUTE, RANGES, Line, Written, clock, debian, honker_next, walk

YEARS = range(1975, 2040)
ROUND = 40
"""Instants of one expression in one zone."""

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
THREE_HOURS, LOOK = 3 * HOUR, 6 * HOUR

LONG_JUMP = "a jump of three hours or more is a new date: what it skips is not made up for"
SKIPPED = "what starts with * follows the clocks: times that they skip do not run"
REPEATED = "what starts with * follows the clocks: times that they repeat run both times"
SECONDS = "the rules are the same with six fields (cronsim knows no fixed time among them)"


@dataclass(frozen=True)
class Jump:
    at: datetime
    by: timedelta


@dataclass
class Findings:
    """What a run compared, and what was not the same."""

    triples: int = 0
    portable: int = 0
    near: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    @property
    def differences(self) -> int:
        return self.explained.total() + len(self.errors)


# -- what is asked --------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def zones() -> list[str]:
    return sorted(available_timezones() - {"localtime", "Factory", "posixrules"})


@lru_cache(maxsize=20_000)
def jumps(zone: str, year: int) -> tuple[Jump, ...]:
    """When clocks change in a year; found by looking four times a day, and not by the code under test."""
    place, found = ZoneInfo(zone), []
    at, before = datetime(year, 1, 1, tzinfo=UTC), None
    while at.year == year:
        after = at.astimezone(place).utcoffset()
        assert after is not None
        if before is not None and after != before:
            found.append(Jump(exactly(place, at - LOOK, at, before), after - before))
        before, at = after, at + LOOK
    return tuple(found)


def changes(zone: str, year: int) -> list[Jump]:
    """Those of nine years."""
    return [jump for later in range(year, year + 9) for jump in jumps(zone, later)]


def exactly(place: ZoneInfo, low: datetime, high: datetime, before: timedelta) -> datetime:
    while high - low > SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        if middle.astimezone(place).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def one_of(dice: random.Random, number: int, *, star: bool = True) -> Written:
    """An item of a field, in one of the forms that there are."""
    low, high = RANGES[number]
    first, last = dice.randint(low, high), dice.randint(low, high)
    forms = [
        (f"{first}", [first]),
        (f"{first}-{last}", walk(number, first, last)),
        (f"{first}/", list(range(first, high + 1))),
        (f"{first}-{last}/", walk(number, first, last)),
    ]
    if star:
        forms += [("*", list(range(low, high + 1))), ("*/", list(range(low, high + 1)))]
    text, values = dice.choice(forms)
    if not text.endswith("/"):
        return Written(text, frozenset(values))
    step = dice.randint(1, len(values))
    return Written(f"{text}{step}", frozenset(values[::step]))


def some_of(dice: random.Random, number: int) -> Written:
    items = [one_of(dice, number) for _ in range(dice.choice((1, 1, 1, 2, 3)))]
    return Written(",".join(each.text for each in items), frozenset().union(*(each.values for each in items)))


def small_hours(dice: random.Random) -> Written:
    """Clocks change at night."""
    values = sorted(dice.sample(range(5), dice.randint(1, 3)))
    return Written(",".join(map(str, values)), frozenset(values))


def a_line(dice: random.Random) -> Line:
    star = [Written("*", frozenset(range(low, high + 1))) for low, high in RANGES]
    hour = small_hours(dice) if dice.random() < 0.5 else some_of(dice, 2)
    if dice.random() < 0.05:  # on all days, so that the model can look at each second
        return Line((some_of(dice, 0), some_of(dice, 1), hour, *star[3:]))
    days = [some_of(dice, number) if dice.random() < odds else star[number] for number, odds in DAYS]
    return Line((Written("0", frozenset([0])), some_of(dice, 1), hour, *days))


DAYS = ((3, 0.15), (4, 0.1), (5, 0.25))
"""How often the day of month, the month and the week day are restricted."""


def some_instants(dice: random.Random, zone: str, year: int) -> Iterator[datetime]:
    """Four in five are within hours of a change of the clocks, where the zone has one."""
    start = datetime(year, 1, 1, tzinfo=UTC)
    near = changes(zone, year)
    for _ in range(ROUND):
        if near and dice.random() < 0.8:
            spread = dice.choice((HOUR / 2, 2 * HOUR, 4 * HOUR, 26 * HOUR))
            instant = dice.choice(near).at + timedelta(
                seconds=dice.randint(-spread // SECOND, spread // SECOND)
            )
        else:
            instant = start + timedelta(seconds=dice.randint(0, 9 * 365 * 86_400))
        yield instant.replace(second=dice.choice((0, instant.second))).replace(
            microsecond=dice.choice((0, 0, 0, 1, 999_999))
        )


# -- what is answered -----------------------------------------------------------------------------------


def for_cronsim(line: Line) -> str:
    """Its grammar has no wraps, and a week of eight days: such items become lists, and mean the same."""
    return " ".join(
        plain(number, each) for number, each in enumerate(line.fields) if number or each.text != "0"
    )


def plain(number: int, each: Written) -> str:
    return ",".join(plain_item(number, text) for text in each.text.split(","))


def plain_item(number: int, text: str) -> str:
    if text.startswith("*"):
        return text
    span, _, step = text.partition("/")
    first, dash, last = span.partition("-")
    if not dash and not step:
        return text
    end = int(last) if dash else RANGES[number][1]
    return ",".join(map(str, walk(number, int(first), end)[:: int(step or 1)]))


class Bounded(CronSim):
    """Gives up where it would look for ever, as at midnight in Asia/Colombo on 1996-10-26."""

    looks = 0

    def advance_day(self) -> bool:
        self.looks += 1
        if self.looks > 20_000:
            raise StopIteration
        return super().advance_day()


def cronsims(expression: str, zone: str, instant: datetime) -> datetime | None:
    """Its first answer that is later; from the second pass of a repeated hour it may go back to the first.

    None: it finds none, or goes in circles.
    """
    start = instant.replace(tzinfo=UTC) if zone == "UTC" else instant.astimezone(ZoneInfo(zone))
    last = None
    for found in Bounded(expression, start):
        found = found.astimezone(UTC)
        if found > instant:
            return found
        if last is not None and found <= last:
            return None
        last = found
    return None


def models(line: Line, zone: str, instant: datetime, until: datetime) -> datetime | None:
    """The first in a walk through all minutes (or seconds), if there is one by ``until``."""
    step, lead = (MINUTE, LEAD) if line.fields[0].text == "0" else (SECOND, 2 * THREE_HOURS)
    start = instant.replace(second=0, microsecond=0)
    fired = debian(line, clock(zone, start - lead, until + step, step), step)
    return next((each for each in fired if each > instant), None)


def rule(line: Line, zone: str, instant: datetime, until: datetime) -> str | None:
    """Of docs/cron.md, about the changes of the clocks near to what was asked."""
    near = [
        jump
        for year in {instant.year, until.year}
        for jump in jumps(zone, year)
        if instant - 2 * LEAD <= jump.at <= until + LEAD
    ]
    if not near:
        return None
    if line.fixed and line.fields[0].text != "0":
        return SECONDS
    if line.fixed:
        return LONG_JUMP if any(jump.by >= THREE_HOURS for jump in near) else None
    return SKIPPED if any(jump.by > timedelta() for jump in near) else REPEATED


# -- the comparison -------------------------------------------------------------------------------------


def compare(triples: int, seed: int) -> Findings:
    dice, found = random.Random(seed), Findings()
    while found.triples < triples:
        line, zone, year = a_line(dice), dice.choice(zones()), dice.choice(YEARS)
        if not any(changes(zone, year)) and dice.random() < 0.9:
            continue
        cron = Cron.parse(line.text, zone)
        if not cron.possible:
            continue
        foreign = Cron.parse_foreign(cron.canonical, zone)
        portable = cron.why_not_portable(datetime(year, 1, 1, tzinfo=UTC)) is None
        for instant in some_instants(dice, zone, year):
            found.triples += 1
            found.near += any(abs(instant - jump.at) < 4 * HOUR for jump in jumps(zone, instant.year))
            found.portable += portable
            beside_cronsim(found, line, cron, instant)
            beside_honker(found, cron if portable else foreign, cron.canonical, instant)
            both_ways(found, cron, instant)
            if dice.random() < 0.2:
                counted(found, cron, instant)
    return found


def beside_cronsim(found: Findings, line: Line, cron: Cron, instant: datetime) -> None:
    ours, theirs = cron.next_after(instant), cronsims(for_cronsim(line), cron.timezone, instant)
    if ours == theirs:
        return
    what = f"{line.text!r} in {cron.timezone} after {instant.isoformat()}: {ours}, cronsim {theirs}"
    answers = [each for each in (ours, theirs) if each]
    until = min(answers)
    why = rule(line, cron.timezone, instant, max(answers))
    if why is None or until - instant > timedelta(days=40):
        found.errors.append(what)
        return
    model = models(line, cron.timezone, instant, until)
    if model == (ours if ours == until else None):
        found.explained[why] += 1
    else:
        found.errors.append(f"{what}, the model {model}")


def beside_honker(found: Findings, cron: Cron, canonical: str, instant: datetime) -> None:
    ours, theirs = (
        cron.next_after(instant),
        honker_next(canonical, instant.replace(microsecond=0), cron.timezone),
    )
    if ours != theirs:
        found.errors.append(f"{cron} after {instant.isoformat()}: {ours}, honker {theirs}")


def both_ways(found: Findings, cron: Cron, instant: datetime) -> None:
    """Later is later, and the way back leads to the same."""
    later = cron.next_after(instant)
    earlier = cron.previous(later) if later else None
    if later is not None and later <= instant:
        found.errors.append(f"{cron} after {instant.isoformat()}: {later} is not later")
    if earlier is not None and (earlier > instant or cron.next_after(earlier) != later):
        found.errors.append(f"{cron} before {later}: {earlier}, although after {instant.isoformat()}")


def counted(found: Findings, cron: Cron, instant: datetime) -> None:
    """The short way to the number of instants, and to the last of them, against the long one."""
    steps = cron.upcoming(7, after=instant)
    if len(steps) == 7 and cron.due(instant, steps[-1] - SECOND) != (6, steps[5]):
        found.errors.append(f"{cron} after {instant.isoformat()}: not 6 until before {steps[-1]}")


def main(arguments: list[str]) -> int:
    triples, seed = (int(text) for text in [*arguments, *("300000", "1")[len(arguments) :]])
    begin = time.monotonic()
    found = compare(triples, seed)
    print(
        f"{found.triples} triples (expression, zone, instant), seed {seed}, {time.monotonic() - begin:.0f} s"
    )
    print(f"{found.near} of them within four hours of a change of clocks")
    print(f"{found.portable} of them of portable expressions, beside honker's dialect")
    print(f"{found.differences} differences")
    for why, count in found.explained.most_common():
        print(f"{count:>8} cronsim, where {why}")
    for error in found.errors[:20]:
        print(f"   ERROR {error}")
    return 1 if found.errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
