"""Views of where an agent stood, made by hand; every text in them can be made another."""

from __future__ import annotations

from typing import Any

from coag.inspector.views import (
    AttentionView,
    AwarenessView,
    Course,
    CycleChange,
    GoalView,
    Lane,
    Listing,
    Marks,
    Move,
    ResourceView,
    Series,
    Span,
    Stand,
    StateChange,
    TransitionView,
)

from .views import Say, as_it_is


def goal_view(number: int, **fields: Any) -> GoalView:
    """A goal."""
    given: dict[str, Any] = {
        "id": f"{number:08x}",
        "description": f"goal {number}",
        "status": "active",
        "source": "explicit",
        "priority": 0.5,
        "since": 1,
    }
    return GoalView(**{**given, **fields})


def _goals(say: Say) -> tuple[GoalView, ...]:
    first = goal_view(1, description=say("Clean the house"), pursued=True)
    return (
        first,
        goal_view(2, description=say("Mop the hall"), parent=first.id, move=Move.ADDED),
        goal_view(
            3,
            description=say("Open the windows"),
            status="blocked",
            waits_for=(goal_view(2).id,),
            criteria=say("air moves"),
        ),
        goal_view(4, description=say("Fetch a bucket"), status="completed"),
    )


def change(say: Say = as_it_is, move: Move = Move.CHANGED) -> StateChange:
    """One thing that changed."""
    name, before, after = say("Mop the hall"), say("active"), say("blocked")
    return StateChange(kind="goal", name=name, move=move, before=before, after=after)


def stand(say: Say = as_it_is, **fields: Any) -> Stand:
    """What a module held as cycle 4 began."""
    given: dict[str, Any] = {
        "module": say("awareness"),
        "cycle": 4,
        "domain": say("house"),
        "mode": "autonomous",
        "goals": _goals(say),
        "goals_open": 3,
        "goals_closed": 2,
        "attention": (
            AttentionView(
                type="threat", description=say("Smoke"), urgency=0.9, ttl=5, left=2, since=3
            ),
            AttentionView(
                type="anomaly",
                description=say("An open door"),
                urgency=0.4,
                ttl=None,
                left=None,
                since=1,
                source=say("house"),
                suppressed=True,
                move=Move.CHANGED,
            ),
        ),
        "attention_of": 3,
        "suppressed": 1,
        "transitions": (
            TransitionView(type="failure", description=say("It fell"), since=3, sticky=True),
        ),
        "transitions_of": 20,
        "resources": (ResourceView(name=say("energy"), remaining=20, capacity=100, before=30),),
        "resources_of": 1,
        "changes": tuple(change(say, move) for move in Move),
        "changes_of": 7,
        "before": 3,
        "listings": (
            Listing(
                title="Things",
                heads=("name", "type"),
                rows=((say("hall"), say("room")), (say("door"), say("door"))),
                of=12,
            ),
        ),
    }
    return Stand(**{**given, **fields})


def course(say: Say = as_it_is, **fields: Any) -> Course:
    """What it held over four cycles."""
    spans = (
        Span(first=1, last=2, state="active", weight=0.5, pursued=True),
        Span(first=3, last=4, state="completed", weight=0.5),
    )
    seen = (
        Span(first=2, last=2, state="visible", weight=0.9),
        Span(first=3, last=4, state="suppressed", weight=0.9),
    )
    given: dict[str, Any] = {
        "module": say("awareness"),
        "cycles": (1, 2, 3, 4),
        "goals": (Lane(id="g", label=say("Clean"), type="explicit", spans=spans),),
        "goals_of": 3,
        "attention": (Lane(id="a", label=say("Smoke"), type="threat", spans=seen),),
        "attention_of": 2,
        "marks": (Marks(type="failure", sticky=True, at=((3, 1),)),),
        "series": (Series(name=say("energy"), values=(40, 30, None, 20), capacity=100),),
        "series_of": 1,
        "changes": (
            CycleChange(cycle=2, added=1, told=(change(say, Move.ADDED),)),
            CycleChange(cycle=3),
            CycleChange(cycle=4, added=2, changed=4, gone=1, told=(change(say),)),
        ),
    }
    return Course(**{**given, **fields})


def awareness_view(say: Say = as_it_is, **fields: Any) -> AwarenessView:
    """Two modules, of which one cannot be read at this cycle."""
    given: dict[str, Any] = {
        "cycle": 4,
        "last": 4,
        "stands": (stand(say), Stand(module=say("other"), cycle=4, trouble=say("It is odd."))),
        "courses": (course(say), Course(module=say("other"), cycles=(1, 2))),
        "every": 2,
        "steps": (1, 2, 3, 4),
        "steps_of": 9,
        "modules_left_out": 1,
    }
    return AwarenessView(**{**given, **fields})
