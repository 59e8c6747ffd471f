"""What was read of a tool, as percepts in the inboxes of the activities that perceive it.

Percepts are bounded, in plain words, and checked by what the tool declares.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from coag._util.json_schemas import LEVELS, levels, value_fault
from coag._util.text import well_formed
from coag.schema import Clock, Percept, PerceptKind, Trust

from .activities import OnSignal
from .catalogue import safe_text
from .records import (
    DELEGATED,
    FLOOD,
    Cursor,
    PropertyReading,
    SignalPage,
    SignalRecord,
    ToolDescription,
    is_flood,
)
from .store import ActivityStore
from .store_inboxes import Delivery

CONTENT_CHARACTERS = 2_000
"""Of what a percept shows a model."""
VALUE_CHARACTERS = 400
"""Of one value in it."""
RECORD_CHARACTERS = 16_000
"""Of JSON that a percept carries; larger values are left out and named."""
_FIELD_CHARACTERS = 4_000
_FIELDS = 200
_NAME_CHARACTERS = 100


# ---- Values within bounds ----


def bounded(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The values that fit, as UTF-8 can carry them; what was left out, with its size in words."""
    kept: dict[str, Any] = {}
    left: list[str] = []
    room = RECORD_CHARACTERS
    for name, value in values.items():
        if levels(value) > LEVELS:
            left.append(f"{safe_text(name, _NAME_CHARACTERS)} (over {LEVELS} levels)")
            continue
        text = well_formed(json.dumps(value, ensure_ascii=False))
        size = len(text) + len(name)
        if size > min(room, _FIELD_CHARACTERS) or len(kept) >= _FIELDS:
            left.append(f"{safe_text(name, _NAME_CHARACTERS)} ({size:,} characters)")
        else:
            kept[well_formed(name)] = json.loads(text)
            room -= size
    return kept, tuple(left)


def cut_reading(reading: PropertyReading) -> tuple[PropertyReading, tuple[str, ...]]:
    """A reading without the properties that are too large, and which those are."""
    kept, left = bounded(reading.properties)
    return reading.model_copy(update={"properties": kept}), left


def shown_values(values: Mapping[str, Any]) -> str:
    """Values in one line: `pressure=140, status="RAMPING"`."""
    return ", ".join(
        f"{safe_text(name, _NAME_CHARACTERS)}={shown_value(value)}"
        for name, value in values.items()
    )


def shown_value(value: Any) -> str:
    """One value as JSON, bounded."""
    return safe_text(json.dumps(value, ensure_ascii=False), VALUE_CHARACTERS)


def _left_out(left: tuple[str, ...]) -> str:
    if not left:
        return ""
    shown = ", ".join(left[:10]) + (f" and {len(left) - 10} more" if len(left) > 10 else "")
    return f" Left out because they are too large: {shown}."


# ---- Percepts ----


def property_percept(
    reading: PropertyReading, left: tuple[str, ...], at: datetime, again: int | None = None
) -> Percept:
    """That the properties of a tool have changed, cut by `cut_reading`; `left` was too large.

    Where a reading of the same revision is to be perceived again, `again` is a number that grows.
    """
    place = f"rev-{reading.rev}" if again is None else f"again-{again}"
    text = f"Properties of {reading.tool}: {shown_values(reading.properties)}."
    return _percept(
        PerceptKind.PROPERTY_CHANGE,
        f"{reading.tool}/{reading.epoch}/{place}",
        reading.tool,
        at,
        text + _left_out(left),
        reading.model_dump(mode="json"),
    )


def signal_percept(
    tool: str, record: SignalRecord, description: ToolDescription | None, at: datetime
) -> Percept:
    """That a tool has emitted a signal; an erroneous one where it breaks what the tool declares."""
    record = _own_id(tool, record)
    fault = None if description is None else _fault(record, description)
    kept, left = bounded(record.data)
    record = record.model_copy(update={"data": kept})
    values = f": {shown_values(kept)}" if kept else ""
    text = f"Signal {safe_text(record.name, _NAME_CHARACTERS)} of {tool}{values}."
    if fault is not None:
        text = f"Erroneous: {safe_text(fault, VALUE_CHARACTERS)}. Nothing waits for it. {text}"
    data = record.model_dump(mode="json") | ({"left_out": list(left)} if left else {})
    content = text + _left_out(left)
    percept = _percept(PerceptKind.SIGNAL, record.event_id, tool, at, content, data)
    return percept.model_copy(update={"is_error": True}) if fault is not None else percept


def gap_percept(
    tool: str, place: str, at: datetime, reason: str, text: str, **more: Any
) -> Percept:
    """That something of a tool may be missing, and why, in a word (e.g. `restarted`) and a text.

    `place` follows the tool in the percept's id, and ends in a number that grows.
    """
    data = {"tool": tool, "reason": reason, **more}
    return _percept(PerceptKind.GAP, f"{tool}/{place}", tool, at, text, data)


def _percept(
    kind: PerceptKind, id: str, source: str, at: datetime, content: str, data: Any
) -> Percept:
    return Percept(
        id=id,
        at=at,
        kind=kind,
        source=source,
        trust=Trust.UNTRUSTED,
        content=safe_text(content, CONTENT_CHARACTERS),
        data=data,
    )


def _own_id(tool: str, record: SignalRecord) -> SignalRecord:
    """The record under an id of this tool: one of another tool's would hide that one's signal."""
    if record.event_id.startswith(f"{tool}/") and len(record.event_id) <= VALUE_CHARACTERS:
        return record
    return record.model_copy(update={"event_id": f"{tool}/{record.event_id}"[:VALUE_CHARACTERS]})


def _fault(record: SignalRecord, description: ToolDescription) -> str | None:
    """How a signal breaks what its tool declares; None if it does not."""
    declared = next((one for one in description.signals if one.name == record.name), None)
    if declared is None:
        return "it declares no such signal"
    fault = value_fault(record.data, json.dumps(declared.payload))
    return None if fault is None else f"its payload breaks its declared schema: {fault}"


Selection: TypeAlias = Mapping[str, frozenset[str] | None]
"""The activities that perceive a tool, and which of its signals they want: None for all."""


@dataclass(slots=True)
class _Tool:
    reading: PropertyReading | None = None
    delivered: asyncio.Event = field(default_factory=asyncio.Event)
    unperceived: dict[str, int] = field(default_factory=dict[str, int])
    """At most so many of its signals wait in the inbox of each activity."""


class InboxWriter:
    """Delivers readings, gaps and signals, in this order, with the cursor in one transaction.

    Args:
        store: Where cursors and inboxes are.
        clock: Gives the time of percepts.
        focus: Gives for a tool the activities of this worker that perceive it.
        describe: Gives what a tool declares.
        arrived: Called with the activities that something was delivered to.
        limit: Signals of one tool that wait in an inbox at most; see `unperceived_limit`.
        unbounded: Inboxes without that limit.
    """

    def __init__(
        self,
        store: ActivityStore,
        *,
        clock: Clock,
        focus: Callable[[str], Selection],
        describe: Callable[[str], ToolDescription | None],
        arrived: Callable[[Sequence[str]], None],
        limit: int,
        unbounded: AbstractSet[str] = frozenset(),
    ) -> None:
        self._store = store
        self._clock = clock
        self._focus = focus
        self._describe = describe
        self._arrived = arrived
        self._limit = limit
        self._unbounded = unbounded
        self._tools: defaultdict[str, _Tool] = defaultdict(_Tool)

    # ---- Readings ----

    def reading(self, tool: str) -> PropertyReading | None:
        """The newest reading that was delivered."""
        return self._tools[tool].reading if tool in self._tools else None

    def counts_from_start(self, tool: str) -> bool:
        """Whether signals count that came before the tool was perceived: of delegated goals."""
        known = self._describe(tool)
        return known is not None and known.category == DELEGATED

    async def at_least(self, tool: str, epoch: str, rev: int, seconds: float) -> bool:
        """Waits until a reading at least as new was delivered; False if it was not in time."""
        state = self._tools[tool]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not as_new(state.reading, epoch, rev):
                    state.delivered.clear()
                    await state.delivered.wait()
                return True
        return False

    def introduce(self, activity: str, tool: str) -> None:
        """Delivers the newest reading to an activity that has just begun to perceive a tool."""
        if (reading := self.reading(tool)) is not None:
            first = property_percept(reading, (), self._clock.now())
            self._store.deliver(tool, None, [Delivery(activity, first, replaces=True)])

    def leave(self, activity: str, tool: str) -> None:
        """Notes that an activity does not perceive a tool any more."""
        self._tools[tool].unperceived.pop(activity, None)
        if not self._focus(tool):
            del self._tools[tool]

    # ---- What was read ----

    def deliver(
        self,
        tool: str,
        reading: PropertyReading,
        page: SignalPage,
        *,
        after: str,
        again: bool = False,
    ) -> bool | None:
        """Delivers a reading where it is new or wanted again, then gap and signals, or nothing.

        They go to all activities that perceive the tool, whichever worker pursues them. The page
        begins behind the cursor `after`; the properties are at least as new as its signals.

        Returns:
            Whether anything was delivered; None if another worker has read on since.
        """
        state = self._tools[tool]
        if not (page.events or page.truncated or again) and as_new(
            state.reading, reading.epoch, reading.rev
        ):
            state.delivered.set()
            return False
        with self._store.together():
            if not self._store.advance(tool, after, page.cursor):
                return None
            deliveries = self._deliveries(tool, reading, page, after=after, again=again)
            self._store.deliver(tool, None, deliveries)
        if not as_new(state.reading, reading.epoch, reading.rev):
            state.reading = cut_reading(reading)[0]
        state.delivered.set()
        if deliveries:
            self._arrived(list(dict.fromkeys(one.activity for one in deliveries)))
        return bool(deliveries)

    def _deliveries(
        self, tool: str, reading: PropertyReading, page: SignalPage, *, after: str, again: bool
    ) -> list[Delivery]:
        state, now = self._tools[tool], self._clock.now()
        reading, left = cut_reading(reading)
        first: list[tuple[Percept, bool]] = []
        if again or not as_new(state.reading, reading.epoch, reading.rev):
            stamp = self._next_number(f"{tool}/{reading.epoch}/again-") if again else None
            first.append((property_percept(reading, left, now, stamp), True))
        if page.truncated:
            first.append((self._log_gap(tool, reading.epoch, page, after), False))
        known = self._describe(tool)
        events = sorted(page.events, key=lambda one: number_of(one.cursor))
        signals = [(one.name, signal_percept(tool, one, known, now)) for one in events]
        deliveries: list[Delivery] = []
        for activity, wanted in self._store.perceivers(tool).items() if first or signals else ():
            chosen = [one for name, one in signals if wanted is None or name in wanted]
            deliveries += [Delivery(activity, one, replaces) for one, replaces in first]
            deliveries += [Delivery(activity, one) for one in self._within(activity, tool, chosen)]
        return deliveries

    def look(self) -> None:
        """Passes on what other workers have delivered."""
        self._arrived(self._store.arrivals())

    def tell(self, tool: str, reason: str, text: str) -> None:
        """Delivers a gap to all activities that perceive a tool."""
        shown = safe_text(text, 500)
        place = f"{reason}-{self._next_number(f'{tool}/{reason}-')}"
        percept = gap_percept(tool, place, self._clock.now(), reason, shown)
        activities = list(self._focus(tool))
        self._store.deliver(tool, None, [Delivery(one, percept) for one in activities])
        self._arrived(activities)

    def _within(self, activity: str, tool: str, signals: list[Percept]) -> list[Percept]:
        """The signals that an inbox has room for; a gap for the others, once."""
        if activity in self._unbounded:
            return signals
        unperceived = self._tools[tool].unperceived
        unperceived[activity] = unperceived.get(activity, 0) + len(signals)
        if unperceived[activity] <= self._limit:
            return signals
        inbox = [one.percept for one in self._store.inbox(activity) if one.percept.source == tool]
        count = sum(one.kind is PerceptKind.SIGNAL for one in inbox)
        room = max(0, self._limit - count)
        kept, left = signals[:room], signals[room:]
        unperceived[activity] = count + len(kept)
        if not left:
            return kept
        wait = self._store.wait_of(activity)
        waited = [one for one in left if wait and _meets(one, tool, wait.condition)]
        flooded = any(map(is_flood, inbox))
        return [*kept, *([] if flooded else [self._flood_gap(tool, left[0])]), *waited[:1]]

    # ---- Gaps ----

    def _log_gap(self, tool: str, epoch: str, page: SignalPage, after: str) -> Percept:
        restarted = epoch_of(after) != epoch_of(page.cursor)
        number = number_of(page.events[0].cursor if page.events else page.cursor)
        if restarted:
            text = f"{tool} was restarted and may have lost its state; signals may be missing."
        else:
            text = f"The log of {tool} no longer keeps all signals that came; some are missing."
        return gap_percept(
            tool,
            f"{epoch}/gap-{number}",
            self._clock.now(),
            "restarted" if restarted else "truncated",
            f"{text} Its properties are as they were read just now.",
        )

    def _flood_gap(self, tool: str, first: Percept) -> Percept:
        return gap_percept(
            tool,
            f"{FLOOD}-{self._next_number(f'{tool}/{FLOOD}-')}",
            self._clock.now(),
            FLOOD,
            f"{tool} has emitted more than {self._limit} signals that were not perceived yet; "
            "those that came then were left out. Its properties say how things stand.",
            first=first.id,
        )

    def _next_number(self, stream: str) -> int:
        """A number for a percept whose id begins so; it grows, also where the clock goes back."""
        now = int(self._clock.now().timestamp() * 1000)
        return max(self._store.highest(stream) + 1, now)


def as_new(reading: PropertyReading | None, epoch: str, rev: int) -> bool:
    """Whether a reading is of this revision or a later one; another epoch is no later."""
    return reading is not None and reading.epoch == epoch and reading.rev >= rev


def epoch_of(cursor: str) -> str | None:
    """The epoch of a place in a log; None where the text does not say."""
    with suppress(ValueError):
        return Cursor.read(cursor).epoch
    return None


def number_of(cursor: str) -> int:
    """The number of a place in a log; 0 where the text does not say."""
    with suppress(ValueError):
        return Cursor.read(cursor).number
    return 0


def _meets(percept: Percept, tool: str, condition: object) -> bool:
    """Whether a signal is what an activity waits for."""
    if not isinstance(condition, OnSignal) or condition.tool != tool or percept.is_error:
        return False
    return condition.met_by(SignalRecord.model_validate(percept.data))
