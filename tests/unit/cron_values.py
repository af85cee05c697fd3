"""Expressions with the instants that are right, where other schedulers differ, and those that are refused."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(text: str, base: str = "") -> datetime:
    """``05-31``, ``01-30T10:00``, ``02:30:15`` or more, completed from the left by ``base``."""
    time_only = ":" in text and "T" not in text
    day, _, clock = (f"{base[:10]}T{text}" if time_only else text).partition("T")
    day = base[: 10 - len(day)] + day if len(day) < 10 else day
    return datetime.fromisoformat(f"{day}T{clock or '00:00'}").replace(tzinfo=UTC)


def instants(texts: str, base: str) -> list[datetime]:
    found = []
    for text in texts.split():
        found.append(instant(text, base))
        base = found[-1].isoformat()
    return found


VALUES = [
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "10-25T00:30 10-26T01:30 10-27T01:30"),
    ("*/30 * * * *", "America/New_York", "2026-03-08T06:30", "07:00 07:30 08:00 08:30"),
    ("30 1 * * *", "America/New_York", "2026-11-01T05:30", "11-02T06:30 11-03T06:30"),
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "03-29T01:00 03-30T00:30"),
    ("30 2 * * *", "America/New_York", "2026-03-08T06:30", "07:00 03-09T06:30"),
    ("0 * * * *", "Australia/Lord_Howe", "2026-04-04T13:30", "14:00 15:30 16:30"),
    ("0 * * * *", "Australia/Lord_Howe", "2026-10-03T14:30", "16:00 17:00 18:00"),
    ("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00", "22:00 04-24T21:00"),
    ("30 0 * * *", "Asia/Beirut", "2026-03-28T10:00", "22:00 03-29T21:30"),
    ("0 2,3 * * *", "Europe/Berlin", "2026-03-28T22:00", "03-29T01:00 03-30T00:00 03-30T01:00"),
    ("15 1-3 * * *", "Europe/Berlin", "2026-10-24T22:00", "23:15 10-25T00:15 02:15 10-26T00:15"),
    ("0 */2 * * *", "Europe/Berlin", "2026-10-24T21:00", "22:00 10-25T00:00 01:00 03:00"),
    ("0 20 * * *", "Europe/Paris", "2022-10-29T22:00", "10-30T19:00 10-31T19:00 11-01T19:00"),
    ("0 6 * * *", "Europe/Berlin", "2026-10-24T12:00", "10-25T05:00 10-26T05:00 10-27T05:00 10-28T05:00"),
    ("25 8 * * *", "Asia/Jakarta", "2026-02-01T00:00", "01:25 02-02T01:25"),
    ("0 9 13 * 5", "UTC", "2026-02-01T00:00", "02-06T09:00 02-13T09:00 02-20T09:00 02-27T09:00"),
    ("0 0 29 2 *", "UTC", "2026-02-01T00:00", "2028-02-29 2032-02-29"),
    ("0 0 29 2 *", "UTC", "2096-02-29T00:00", "2104-02-29"),
    ("0 0 29 2 *", "UTC", "2028-02-29T12:00", "2032-02-29"),
    ("0 9 1-31 * 1", "UTC", "2026-02-01T00:00", "09:00 02-02T09:00 02-03T09:00"),
    ("0 0 * * 5-7", "UTC", "2026-02-01T00:00", "02-06 02-07 02-08 02-13"),
    ("0 0 * * 7", "UTC", "2026-02-01T00:00", "02-08 02-15"),
    ("0 0 * * 7-7", "UTC", "2026-02-01T00:00", "02-08 02-15"),
    ("0 0 * * 7-1", "UTC", "2026-02-01T00:00", "02-02 02-08 02-09"),
    ("0 0 * * sat-sun", "UTC", "2026-02-01T00:00", "02-07 02-08 02-14"),
    ("0 0 * * fri-mon", "UTC", "2026-02-01T00:00", "02-02 02-06 02-07 02-08 02-09"),
    ("0 0 * * 0-7", "UTC", "2026-02-01T00:00", "02-02 02-03 02-04"),
    ("0 22-2 * * *", "UTC", "2026-02-01T21:00", "22:00 23:00 02-02T00:00 01:00 02:00 22:00"),
    ("*/7 * * * *", "UTC", "2026-02-01T00:55:30", "00:56 01:00 01:07 01:14"),
    ("0 0 31 * *", "UTC", "2026-01-31T00:00", "03-31 05-31 07-31 08-31"),
    ("0 0 1 jan-mar,dec *", "UTC", "2026-03-01T00:00", "2026-12-01 2027-01-01 2027-02-01 2027-03-01"),
    ("0 9 * * MON-FRI", "Asia/Kolkata", "2026-02-06T04:00", "02-09T03:30 02-10T03:30"),
    ("@hourly", "America/St_Johns", "2026-02-01T00:10", "00:30 01:30"),
    ("@Daily", "UTC", "2026-02-01T00:00", "02-02 02-03"),
    ("5/15 * * * *", "UTC", "2026-02-01T00:00", "00:05 00:20 00:35 00:50 01:05"),
    ("5-5 * * * *", "UTC", "2026-02-01T00:00", "00:05 01:05"),
    ("0 9 * * */2", "UTC", "2026-02-01T00:00", "09:00 02-03T09:00 02-05T09:00 02-07T09:00"),
    ("*/20 * * * * *", "UTC", "2026-02-01T00:00", "00:00:20 00:00:40 00:01:00"),
    ("30 0 9 * * *", "UTC", "2026-02-01T00:00", "09:00:30 02-02T09:00:30"),
    ("\t*/30  *\t* * *\n", "UTC", "2026-02-01T00:00", "00:30 01:00"),
    ("@every 90s", "Europe/Berlin", "2026-10-25T00:59:00", "01:00:30 01:02:00"),
    ("@every 1d", "Europe/Berlin", "2026-10-24T12:00", "10-25T12:00 10-26T12:00"),
    ("0 0 30 2 1", "UTC", "2026-01-01T00:00", "02-02 02-09 02-16"),  # 30 February or a Monday
    ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10", "10-26T01:30"),  # asked from the second 02:10
    ("0-59 2 * * *", "Europe/Berlin", "2026-10-25T01:10", "10-26T01:00 01:01"),
    ("30 6 30 12 *", "Pacific/Apia", "2011-01-01T00:00", "2012-12-29T16:30"),  # a date that never was
]  # fmt: skip

IN = {
    "minute": "In the minute field, ",
    "hour": "In the hour field, ",
    "day": "In the day of month field, ",
    "month": "In the month field, ",
    "week": "In the day of week field, ",
}
LENGTH = (
    "a cron expression has 5 (minute, hour, day of month, month, day of week),"
    " or 6 with the second before them."
)
NAMES = "is not a name; the names are sun, mon, tue, wed, thu, fri, sat."
EVERY = "is not readable; write one number and s, m, h or d, as in '@every 90s'."
OTHERS = "L, W, #, R and H are not supported; write numbers, names or ranges."
NONE_OF = "this is none of '*', a value, a range 'a-b', or one of them with a '/step'; write one."

REFUSED = [
    ("60 * * * *", IN["minute"] + "'60': 60 is out of range; use 0 to 59."),
    ("* * * * 100", IN["week"] + "'100': 100 is out of range; use 0 to 7."),
    ("* 24 * * *", IN["hour"] + "'24': 24 is out of range; use 0 to 23."),
    ("* * 0 * *", IN["day"] + "'0': 0 is out of range; use 1 to 31."),
    ("* * * 13 *", IN["month"] + "'13': 13 is out of range; use 1 to 12."),
    ("* * * * 8", IN["week"] + "'8': 8 is out of range; use 0 to 7."),
    ("0 1 0/10 * *", IN["day"] + "'0/10': 0 is out of range; use 1 to 31."),
    ("1 1 1,5-32 * *", IN["day"] + "'5-32': 32 is out of range; use 1 to 31."),
    ("*/0 * * * *", IN["minute"] + "'*/0': a step of 0 leads nowhere; use 1 or more."),
    ("*/61 * * * *", IN["minute"] + "'*/61': the step 61 is larger than its range of 60; use 1 to 60."),
    ("0 */25 * * *", IN["hour"] + "'*/25': the step 25 is larger than its range of 24; use 1 to 24."),
    ("50/15 * * * *", IN["minute"] + "'50/15': the step 15 is larger than its range of 10; use 1 to 10."),
    ("5-5/2 * * * *", IN["minute"] + "'5-5/2': the step 2 is larger than its range of 1; use 1 to 1."),
    ("0 22-2/6 * * *", IN["hour"] + "'22-2/6': the step 6 is larger than its range of 5; use 1 to 5."),
    ("-5 * * * *", IN["minute"] + f"'-5': {NONE_OF}"),
    ("+5 * * * *", IN["minute"] + f"'+5': {NONE_OF}"),
    ("1.5 * * * *", IN["minute"] + f"'1.5': {NONE_OF}"),
    ("*-5 * * * *", IN["minute"] + f"'*-5': {NONE_OF}"),
    ("1-2-3 * * * *", IN["minute"] + f"'1-2-3': {NONE_OF}"),
    ("*/2/3 * * * *", IN["minute"] + f"'*/2/3': {NONE_OF}"),
    ("mon * * * *", IN["minute"] + f"'mon': {NONE_OF}"),
    ("0 0 * * mon-x1", IN["week"] + f"'mon-x1': {NONE_OF}"),
    ("1,,2 * * * *", IN["minute"] + "'1,,2': there is nothing between two commas, or at an end."),
    ("1, * * * *", IN["minute"] + "'1,': there is nothing between two commas, or at an end."),
    ("0 0 ? * *", IN["day"] + "'?': '?' is not supported; write '*'."),
    ("0 0 L * *", IN["day"] + f"'L': {OTHERS}"),
    ("0 0 15W * *", IN["day"] + f"'15W': {OTHERS}"),
    ("0 0 LW * *", IN["day"] + f"'LW': {OTHERS}"),
    ("0 0 l-3 * *", IN["day"] + f"'l-3': {OTHERS}"),
    ("0 0 * * 5#3", IN["week"] + f"'5#3': {OTHERS}"),
    ("0 0 * * L5", IN["week"] + f"'L5': {OTHERS}"),
    ("0 0 * * 5L", IN["week"] + f"'5L': {OTHERS}"),
    ("H * * * *", IN["minute"] + f"'H': {OTHERS}"),
    ("R(0-9) * * * *", IN["minute"] + f"'R(0-9)': {OTHERS}"),
    ("0 0 * * monday", IN["week"] + f"'monday': 'monday' {NAMES}"),
    ("0 0 * * jan", IN["week"] + f"'jan': 'jan' {NAMES}"),
    ("monday", f"'monday' has 1 field; {LENGTH}"),
    ("0 0 * * * * 2027", f"'0 0 * * * * 2027' has 7 fields; {LENGTH}"),
    ("", "The cron expression is empty; every minute is '* * * * *'."),
    (" \t", "The cron expression is empty; every minute is '* * * * *'."),
    ("0 0\u00a0* * *", "'0 0\\xa0* * *' holds the character '\\xa0'; use plain ASCII and spaces."),
    ("\u0665 * * * *", "'\u0665 * * * *' holds the character '\u0665'; use plain ASCII and spaces."),
    ("5\x00 * * * *", "'5\\x00 * * * *' holds the character '\\x00'; use plain ASCII and spaces."),
    ("5\x1f* * * *", "'5\\x1f* * * *' holds the character '\\x1f'; use plain ASCII and spaces."),
    ("@reboot", "'@reboot' is not known; there are @yearly, @annually, @monthly, @weekly, @daily, @midnight,"
        " @hourly and '@every 90s'."),
    ("@every", f"'@every' {EVERY}"),
    ("@every 5 m", f"'@every 5 m' {EVERY}"),
    ("@every 1h30m", f"'@every 1h30m' {EVERY}"),
    ("@every 0s", "'@every 0s' is out of range; use 1 to 3153600000 seconds."),
    ("@every 36501d", "'@every 36501d' is out of range; use 1 to 3153600000 seconds."),
    ("1," * 300, "A cron expression has at most 500 characters, not 600."),
    (b"* * * * *", "A cron expression is a string, not bytes."),
    (None, "A cron expression is a string, not NoneType."),
]  # fmt: skip

IMPOSSIBLE = ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6 *", "0 0 30,31 2 *", "0 0 31 2 */2"]
"""Dates that never come."""
