"""What the module of an activity remembers between cycles; it follows from the trace."""

from __future__ import annotations

import json

from pydantic import Field

from coag.schema import Moment, Percept, PerceptKind, Value

from .activities import OnSignal, Wait
from .delivering import epoch_of, number_of
from .records import SignalRecord

_SIGNALS = 30
"""Perceived signals that may still end a wait."""
_PERCEIVED = 100
_DATA_CHARACTERS = 2_000
_RECENT = 8


class PerceivedSignal(Value):
    """A signal that was perceived since the last operation of its tool."""

    tool: str
    record: SignalRecord


class PerceivedTool(Value):
    """The properties of a tool as they were perceived last."""

    text: str
    at: Moment


def _is_behind(signal: PerceivedSignal, cursor: str | None) -> bool:
    """Whether a signal that was perceived came after a place in its log; None is the end."""
    return (
        cursor is not None
        and epoch_of(signal.record.cursor) == epoch_of(cursor)  # else of an earlier life
        and number_of(signal.record.cursor) > number_of(cursor)
    )


class SituatedModuleState(Value):
    """The state of a `SituatedModule`, JSON in the trace."""

    mounted: tuple[str, ...] = ()
    """Tools whose manuals are mounted."""
    plan: str = ""
    signals: tuple[PerceivedSignal, ...] = ()
    """In order; those that an operation or a wait has left behind are gone."""
    tools: dict[str, PerceivedTool] = Field(default_factory=dict)
    recent: tuple[str, ...] = ()
    """The last signals and gaps in words."""
    waiting: Wait | None = None
    """What the activity waits for, until it is perceived."""
    preempted: int = 0
    """Cycles in a row that fresh signals ended."""
    perceived: tuple[str, ...] = ()
    """Ids of the percepts that were perceived last."""

    def perceive(self, percept: Percept) -> SituatedModuleState:
        """The state after a percept that came from an inbox."""
        changes: dict[str, object] = {"perceived": (*self.perceived, percept.id)}
        if percept.kind is PerceptKind.PROPERTY_CHANGE:
            now = PerceivedTool(text=percept.content, at=percept.at)
            changes["tools"] = {**self.tools, percept.source: now}
        elif percept.kind in (PerceptKind.SIGNAL, PerceptKind.GAP, PerceptKind.TIME_OUT):
            line = f"{percept.at:%H:%M:%S} {percept.content}"
            changes["recent"] = (*self.recent, line)[-_RECENT:]
        if percept.kind is PerceptKind.SIGNAL and not percept.is_error:
            record = SignalRecord.model_validate(percept.data)
            if len(json.dumps(record.data)) > _DATA_CHARACTERS:
                record = record.model_copy(update={"data": {}})
            new = PerceivedSignal(tool=percept.source, record=record)
            changes["signals"] = (*self.signals, new)[-_SIGNALS:]
        return self.model_copy(update=changes)

    def behind(self, tool: str, cursor: str | None) -> SituatedModuleState:
        """The state in which signals of a tool count from a cursor on; None for all so far."""
        left = (one for one in self.signals if one.tool != tool or _is_behind(one, cursor))
        return self.model_copy(update={"signals": tuple(left)})

    def meeting(self, condition: object) -> PerceivedSignal | None:
        """The first perceived signal that ends a wait for a signal."""
        if not isinstance(condition, OnSignal):
            return None
        mine = (one for one in self.signals if one.tool == condition.tool)
        return next((one for one in mine if condition.met_by(one.record)), None)

    def without_old(self) -> SituatedModuleState:
        """The state without the ids of percepts that left the inbox long ago."""
        return self.model_copy(update={"perceived": self.perceived[-_PERCEIVED:]})
