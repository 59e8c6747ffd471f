"""Runs of a situated agent that are written down by hand: what came of its tools, and when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from kits.tracked import AT, written_run

from coag.schema import (
    ExecutionOutcome,
    ExecutionStatus,
    Percept,
    PerceptKind,
    TraceRecord,
    Trust,
    TurnEnd,
    TurnStart,
)
from coag.tracing import RunFolder


def perceived(
    second: float, kind: PerceptKind, tool: str = "pump", text: str = "", **data: Any
) -> Percept:
    """Something that came so many seconds after the start."""
    return Percept(
        id=f"{tool}/{kind.value}-{second}",
        at=AT + timedelta(seconds=second),
        kind=kind,
        source=tool,
        trust=Trust.UNTRUSTED,
        content=text or f"{kind.value} of {tool}",
        data=data,
    )


def properties(second: float, tool: str = "pump", **values: Any) -> Percept:
    """A reading of a tool's properties."""
    return perceived(second, PerceptKind.PROPERTY_CHANGE, tool, properties=values)


def signal(second: float, name: str, tool: str = "pump") -> Percept:
    """A signal of a tool."""
    return perceived(second, PerceptKind.SIGNAL, tool, f"Signal {name} of {tool}.", name=name)


def waited(
    second: float, cycle: int, until: float | None, tool: str = "pump"
) -> Iterator[TraceRecord]:
    """A turn that ended by waiting for a signal of a tool, and the next one's start."""
    at = AT + timedelta(seconds=second)
    yield ExecutionOutcome(
        cycle=cycle,
        at=at,
        status=ExecutionStatus.DONE,
        action="wait_for_signal",
        arguments={"tool": tool, "signal": "ready"},
        internal=True,
        result=f"Waiting for signal 'ready' of {tool!r}.",
        ended_by="wait_for_signal",
        suspended=True,
    )
    yield TurnEnd(at=at, turn=cycle, cycle=cycle, reason="suspended", response="")
    if until is not None:
        yield TurnStart(at=AT + timedelta(seconds=until), turn=cycle + 1, cycle=cycle)


def situated_run(logs: Path, *, name: str = "situated") -> RunFolder:
    """An agent that waits for its pump three times: once for good, once in vain, and still."""
    condition = {"on": "signal", "tool": "pump", "name": "ready"}
    records = [
        TurnStart(at=AT, turn=1, cycle=0),
        properties(0, state="OFF", psi=0, doors=2),
        properties(0.5, state="RAMPING", psi=0, doors=2),
        properties(0.5, "lamp", lit=True),
        *waited(1, 1, 61),
        properties(61, state="NOMINAL", psi=2_579, doors=2),
        signal(61.5, "ready"),
        *waited(62, 2, 3_662),
        perceived(3_662, PerceptKind.TIME_OUT, "activity-1", condition=condition),
        perceived(3_663, PerceptKind.GAP, text="The pump was restarted.", reason="restarted"),
        *waited(3_664, 3, None),
    ]
    return written_run(logs, records, name=name)
