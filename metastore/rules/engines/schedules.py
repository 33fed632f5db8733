"""Compute the next time of a schedule. Schedules are Quartz's, as Hive's scheduled queries have them; the library `cronsim` computes the
times.

Six fields, or seven with years from 1970 to 2099: second, minute, hour, day of month, month, day of week (1 is Sunday). Of the two days one
is `?`. Features that `cronsim` lacks are done here: years, the working day nearest to a day (`15W`), and days before the last one (`L-3`).
Source: the definition QUARTZ of cron-utils 9, which Hive reads schedules with.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError

from metastore.errors import InvalidInput

FIRST_YEAR, LAST_YEAR = 1970, 2099
_WEEKDAYS = {name: str(number) for number, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}  # noqa: SIM905
_WEEKDAY = re.compile(r"(?<![#/\d])\d+|[A-Z]{3}")
"""A weekday in its field: a number that neither counts weeks nor is a step, or a name."""
_MOVED_DAY = re.compile(r"(?:L-(?P<before>[1-9]\d?)|(?P<near>[1-9]\d?)W)")
_YEARS = re.compile(r"(?P<first>\*|\d+)(?:-(?P<last>\d+))?(?:/(?P<step>[1-9]\d*))?")


@dataclass(frozen=True)
class Schedule:
    """A schedule that was understood."""

    cron: str
    """The text for `cronsim`."""
    years: Collection[int]
    every_hour: bool
    """True if the schedule fixes no hour; then it runs in both repeated hours at the end of summer time."""
    day: Callable[[int, int], int | None] | None
    """A function from year and month to the only day, where `cronsim` can not compute it."""

    def allows(self, time: datetime) -> bool:
        """Return whether a time fits the parts that `cronsim` does not look at."""
        return time.year in self.years and (self.day is None or self.day(time.year, time.month) == time.day)

    def skip(self, time: datetime) -> datetime | None:
        """Return the next midnight from which a time may fit; None where no later one does."""
        if time.year not in self.years:
            later = [year for year in self.years if year > time.year]
            return _midnight(time, min(later), 1, 1) if later else None
        day = None if self.day is None else self.day(time.year, time.month)
        if day is not None and day > time.day:
            return _midnight(time, time.year, time.month, day)
        return _midnight(time, time.year + time.month // 12, time.month % 12 + 1, 1)


def next_time(text: str, after: datetime) -> datetime | None:
    """Return the first second after a time, which has a zone, at which a schedule is due; None for never. InvalidInput."""
    schedule, found = read(text), after
    while found.year <= LAST_YEAR:
        try:
            due = next(CronSim(schedule.cron, found))
        except StopIteration:
            return None
        if due.fold and not schedule.every_hour:
            found = due.replace(minute=59, second=59)
            continue
        if schedule.allows(due):
            return due
        begin = schedule.skip(due)
        if begin is None:
            return None
        found = begin - timedelta(seconds=1)
    return None


@lru_cache(maxsize=256)
def read(text: str) -> Schedule:
    """Read a schedule. InvalidInput for one that is not understood."""
    fields = text.upper().split()
    if len(fields) not in (6, 7):
        raise _refused(text, f"it has {len(fields)} fields; write second, minute, hour, day of month, month, day of week, and perhaps year")
    *times, day, month, weekday = fields[:6]
    if (day == "?") == (weekday == "?"):
        raise _refused(text, "write ? for the day of month or for the day of week, and for one of them only")
    moved = _moved_day(day)
    cron = " ".join([*times, "*" if moved or day == "?" else day, month, "*" if weekday == "?" else _weekdays(text, weekday)])
    try:
        CronSim(cron, datetime(2000, 1, 1))  # noqa: DTZ001  # only to read it
    except CronSimError as error:
        raise _refused(text, str(error)) from error
    return Schedule(cron, _years(text, fields[6] if len(fields) == 7 else "*"), times[2].startswith("*"), moved)


def _refused(text: str, why: str) -> InvalidInput:
    return InvalidInput(f"Invalid QUARTZ schedule expression: '{text}': {why}")


def _midnight(time: datetime, year: int, month: int, day: int) -> datetime:
    return time.replace(year=year, month=month, day=day, hour=0, minute=0, second=0, microsecond=0, fold=0)


def _weekdays(text: str, field: str) -> str:
    """Return the field of weekdays with the numbers of `cronsim`, where Sunday is 0."""
    if field == "L":
        return "6"

    def number(match: re.Match[str]) -> str:
        found = match[0]
        if found in _WEEKDAYS:
            return _WEEKDAYS[found]
        if found not in "1234567":
            raise _refused(text, f"there is no day of week {found}; use 1 (Sunday) to 7, or SUN to SAT")
        return str(int(found) - 1)

    return ",".join(_ascending(each) for each in _WEEKDAY.sub(number, field).split(","))


def _ascending(part: str) -> str:
    """Return a range of days, or steps from a day on, without a day above 6: for `cronsim` 7 is Sunday again."""
    if match := re.fullmatch(r"(\d)/(\d+)", part):
        return f"{match[1]}-6/{match[2]}"
    if (match := re.fullmatch(r"(\d)-(\d)", part)) and match[1] > match[2]:
        return f"{match[1]}-6,0-{match[2]}"
    return part


def _moved_day(field: str) -> Callable[[int, int], int | None] | None:
    match = _MOVED_DAY.fullmatch(field)
    if match is None:
        return None
    if match["before"]:
        before = int(match["before"])
        return lambda year, month: max(calendar.monthrange(year, month)[1] - before, 0) or None
    near = int(match["near"])
    return lambda year, month: _working_day(year, month, near)


def _working_day(year: int, month: int, day: int) -> int | None:
    """Return the day from Monday to Friday that is nearest to a day and in its month; None if the month has no such day."""
    first, length = calendar.monthrange(year, month)
    if day > length:
        return None
    weekday = (first + day - 1) % 7
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    if weekday == 6:
        return day + 1 if day < length else day - 2
    return day


def _years(text: str, field: str) -> Collection[int]:
    everything = range(FIRST_YEAR, LAST_YEAR + 1)
    found: set[int] = set()
    for part in field.split(","):
        match = _YEARS.fullmatch(part)
        if match is None or (match["first"] == "*" and match["last"]):
            raise _refused(text, f"{part} is not a year")
        first = FIRST_YEAR if match["first"] == "*" else int(match["first"])
        last = int(match["last"] or (LAST_YEAR if match["step"] or match["first"] == "*" else first))
        if first not in everything or last not in everything or first > last:
            raise _refused(text, f"years are from {FIRST_YEAR} to {LAST_YEAR}")
        found.update(range(first, last + 1, int(match["step"] or 1)))
    return found
