"""Commitments that were noted become intentions: each with a time, or a context in which it is due.

The time is read off the note by rules, as of when it was said: dates, weekdays, "tomorrow", "in two
hours". A commitment without one is due when somebody speaks of what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from coag.schema import Record

from .intentions import AtTime, InContext, Intention, Intentions
from .notes import NoteType, importance_of, note_type_of

_LEAST = 0.5
"""Less important commitments are not minded."""
_MORNING = 9
"""The hour of a day whose time is not said."""
_CUE = 1_000

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800, "month": 2_592_000}

_ISO = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_DATE = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\.? ({'|'.join(_MONTHS)})[a-z]*"
    rf"|({'|'.join(_MONTHS)})[a-z]* (\d{{1,2}})(?:st|nd|rd|th)?)(?:,? (\d{{4}}))?\b",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(rf"\b(next )?({'|'.join(_DAYS)})\b", re.IGNORECASE)
_FROM_NOW = re.compile(
    rf"\bin (\d{{1,4}}|{'|'.join(_NUMBERS)}) ({'|'.join(_SECONDS)})s?\b", re.IGNORECASE
)
_NEAR = re.compile(r"\b(today|tonight|tomorrow|next week|next month)\b", re.IGNORECASE)
_NEAR_DAYS = {"today": 0, "tonight": 0, "tomorrow": 1, "next week": 7, "next month": 30}
_CLOCK = re.compile(
    r"\b(?:(\d{1,2}):(\d\d)|(\d{1,2}) ?(am|pm|o'clock)|(noon|midnight))\b",
    re.IGNORECASE,
)


def intend(notes: Iterable[Record], intentions: Intentions) -> tuple[Intention, ...]:
    """Minds the commitments among some notes, those of an importance of 0.5 or more.

    An intention is trusted as its note, and goes with it. A note given twice is minded once.

    Args:
        notes: E.g. those that `MemoryObserver.observe` gave.
        intentions: Where they wait; with a store, so that a context can be recognised.

    Raises:
        ValueError: Too many intentions wait.
        ConfigurationError: A commitment without a time, and `intentions` has no embedder.
    """
    return tuple(
        intentions.add(
            note.text[:_CUE],
            trigger_of(note),
            importance=importance_of(note),
            record=note.id,
            trust=note.provenance.trust,
        )
        for note in notes
        if note_type_of(note) is NoteType.COMMITMENT and importance_of(note) >= _LEAST
    )


def trigger_of(note: Record) -> AtTime | InContext:
    """When a commitment is due: at the time that it names, else in its context."""
    at: datetime | None
    try:
        at = time_in(note.text, note.happened_at)
        if at is not None:
            at.astimezone(UTC)
    except OverflowError:  # no calendar has that time
        at = None
    return InContext(cue=note.text[:_CUE]) if at is None else AtTime(at=at)


def time_in(text: str, said_at: datetime) -> datetime | None:
    """The first time that a text names, as of when it was said; None where it names none.

    A day without a time is meant for nine in the morning, in the zone of `said_at`.
    """
    if found := _FROM_NOW.search(text):
        count = _NUMBERS.get(found[1].casefold()) or int(found[1])
        return said_at + timedelta(seconds=count * _SECONDS[found[2].casefold()])
    day = _day_in(text, said_at)
    hour = _hour_in(text)
    if day is None and hour is None:
        return None
    hours, minutes = hour or (_MORNING, 0)
    at = (day or said_at).replace(hour=hours, minute=minutes, second=0, microsecond=0)
    if at <= said_at and (day is None or day.date() == said_at.date()):
        # today, and that hour has passed: without a day the next one is meant, else at once
        return at + timedelta(days=1) if day is None else said_at
    return at


def _day_in(text: str, said_at: datetime) -> datetime | None:
    try:
        if found := _ISO.search(text):
            year, month, day = map(int, found.groups())
            return said_at.replace(year=year, month=month, day=day)
        if found := _DATE.search(text):
            name, day = (found[2] or found[3])[:3].casefold(), int(found[1] or found[4])
            date = said_at.replace(
                year=int(found[5] or said_at.year), month=_MONTHS.index(name) + 1, day=day
            )
            past = not found[5] and date.date() < said_at.date()
            return date.replace(year=date.year + 1) if past else date
    except ValueError:
        return None  # no day of the calendar, e.g. 31 June
    if found := _WEEKDAY.search(text):
        ahead = (_DAYS.index(found[2].casefold()) - said_at.weekday()) % 7
        return said_at + timedelta(days=ahead or 7)
    if found := _NEAR.search(text):
        return said_at + timedelta(days=_NEAR_DAYS[found[1].casefold()])
    return None


def _hour_in(text: str) -> tuple[int, int] | None:
    """The first hour and minute that a text names; eight in the evening for tonight."""
    if found := _CLOCK.search(text):
        if found[5]:
            return (12, 0) if found[5].casefold() == "noon" else (23, 59)
        hour, minute = int(found[1] or found[3]), int(found[2] or 0)
        half = (found[4] or "").casefold()
        hour = hour % 12 + 12 if half == "pm" else hour % 12 if half == "am" else hour
        if hour < 24 and minute < 60:
            return hour, minute
    return (20, 0) if "tonight" in text.casefold() else None
