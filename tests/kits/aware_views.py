"""Views of an agent's awareness, made by hand; every text in them can be replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coag.inspector.views import (
    AwarenessView,
    CycleChange,
    Lane,
    LaneSpan,
    ModuleHistory,
    ModuleState,
    Move,
    StateChange,
    StateRow,
    StateSeries,
    StateTable,
)

Say = Callable[[str], str]
"""What becomes of a text out of a log."""


def as_it_is(text: str) -> str:
    """The text itself."""
    return text


def change(say: Say = as_it_is, move: Move = Move.CHANGED) -> StateChange:
    """One thing that changed."""
    name, before, after = say("Mop the hall"), say("active"), say("blocked")
    return StateChange(kind="goal", name=name, move=move, before=before, after=after)


def module_state(say: Say = as_it_is, **fields: Any) -> ModuleState:
    """What a module held as cycle 4 began."""
    goals = (
        StateRow(cells=(say("Clean the house"), "active", "p 0.50"), since=1, strong=True),
        StateRow(cells=(say("Mop the hall"), "active", "p 0.50"), since=2, depth=1),
        StateRow(cells=(say("Paint"), "blocked", "p 0.10"), since=4, move=Move.ADDED),
        *(StateRow(cells=(say(f"Done {n}"), "completed", "p 0.5"), closed=True) for n in range(6)),
    )
    values: dict[str, Any] = {
        "module": say("awareness"),
        "cycle": 4,
        "domain": say("house"),
        "mode": "autonomous",
        "facts": (("Pursued now", say("Clean the house")), (say("energy"), "20 of 100")),
        "tables": (
            StateTable(
                kind="goal",
                title="Goals",
                heads=("goal", "status", "priority"),
                rows=goals,
                of=len(goals) + 1,
            ),
            StateTable(
                kind="attention",
                title="Attention",
                heads=("what", "suppressed"),
                rows=(
                    StateRow(cells=(say("Smoke"), ""), since=3),
                    StateRow(cells=(say("An open door"), "suppressed"), move=Move.CHANGED),
                ),
                of=2,
            ),
            StateTable(
                kind="thing",
                title="Things",
                heads=("name", "type"),
                rows=(StateRow(cells=(say("hall"), say("room"))),),
                of=12,
            ),
        ),
        "changes": tuple(change(say, move) for move in Move),
        "changes_of": 7,
        "before": 3,
    }
    return ModuleState(**{**values, **fields})


def history(say: Say = as_it_is, **fields: Any) -> ModuleHistory:
    """What it held over four cycles."""
    goal = (
        LaneSpan(first=1, last=2, state="active", strong=True),
        LaneSpan(first=3, last=4, state="completed"),
    )
    seen = (
        LaneSpan(first=2, last=2, state="visible", weight=0.9),
        LaneSpan(first=3, last=4, state="suppressed", weight=0.9),
    )
    values: dict[str, Any] = {
        "module": say("awareness"),
        "cycles": (1, 2, 3, 4),
        "lanes": (
            Lane(kind="goal", label=say("Clean"), spans=goal),
            Lane(kind="transition", label=say("failure"), spans=(LaneSpan(first=3, last=3),)),
            Lane(kind="attention", label=say("threat: Smoke"), spans=seen),
        ),
        "lanes_of": 6,
        "series": (StateSeries(name=say("energy"), values=(40, 30, None, 20), capacity=100),),
        "changes": (
            CycleChange(cycle=2, counts=(1, 0, 0), main=(change(say, Move.ADDED),)),
            CycleChange(cycle=3),
            CycleChange(cycle=4, counts=(2, 4, 1), main=(change(say),), grave=True),
        ),
    }
    return ModuleHistory(**{**values, **fields})


def awareness_view(say: Say = as_it_is, **fields: Any) -> AwarenessView:
    """Two modules, of which one cannot be read at this cycle."""
    unreadable = ModuleState(module=say("other"), cycle=4, trouble=say("It is odd."))
    values: dict[str, Any] = {
        "cycle": 4,
        "last": 4,
        "modules": (
            (module_state(say), history(say)),
            (unreadable, ModuleHistory(module=say("other"), cycles=(1, 2))),
        ),
        "modules_of": 3,
        "every": 2,
        "steps": (1, 2, 3, 4),
        "steps_of": 9,
        "before": 3,
        "after": 5,
    }
    return AwarenessView(**{**values, **fields})
