"""Runs of agents that keep their awareness, and states of awareness that are made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken

from coag import CoagAgent, ScriptedModel
from coag.awareness import (
    AttentionType,
    Awareness,
    AwarenessState,
    Goal,
    GoalGraph,
    GoalSource,
    Observation,
    PerceptAdapter,
    Resource,
    ScanPattern,
    SelfModel,
)
from coag.awareness.state import AttentionItem
from coag.models import ScriptedRequest
from coag.schema import Percept, PerceptKind, Snapshot, TraceRecord
from coag.tracing import RunFolder

from .tracked import AT, snapshot, thought, written_run

RELEASE = "Ship release 2.0"
SELF = SelfModel(resources=(Resource(name="build minutes", capacity=120, remaining=120),))

Step = Mapping[str, Any]
"""An observation, as its fields."""


class Reported(PerceptAdapter):
    """A domain whose tools return observations as they are."""

    @property
    def domain_name(self) -> str:
        return "release"

    def define_entity_types(self) -> tuple[str, ...]:
        return ("service", "person")

    def define_relationship_types(self) -> tuple[str, ...]:
        return ("needs",)

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        return (ScanPattern(name="red builds", description="A build that was green and is red."),)

    def parse_percept(self, percept: Percept, state: AwarenessState) -> Observation:
        data: Any = percept.data if percept.kind is PerceptKind.TOOL_RETURN else None
        return Observation.parse(data or {})


def _goal(description: str, parent: str | None = RELEASE, **more: Any) -> dict[str, Any]:
    return {"description": description, "source": "spawned", "parent": parent, **more}


def _event(type: str, description: str) -> dict[str, str]:
    return {"type": type, "description": description}


def _minutes(left: float) -> list[dict[str, Any]]:
    return [{"name": "build minutes", "capacity": 120, "remaining": left}]


def _item(type: str, description: str, urgency: float, ttl: int | None = 6) -> dict[str, Any]:
    return {"type": type, "description": description, "urgency": urgency, "ttl": ttl}


STORY: tuple[Step, ...] = (
    {
        "goals": [
            _goal("Write the changelog", priority=0.4),
            _goal("Make the tests green", priority=0.9),
            _goal("Publish the packages", priority=0.7, depends_on=["Make the tests green"]),
        ],
        "entities": [
            {"name": "build server", "type": "service", "state": {"up": True}},
            {"name": "Ada", "type": "person"},
        ],
        "event": _event("progress", "The work is split into three"),
        "resources": _minutes(110),
    },
    {
        "goals": [_goal("Fix the flaky upload test", "Make the tests green", priority=0.8)],
        "event": _event("discovery", "The upload test fails every third time"),
        "attention_items": [_item("threat", "The upload test is flaky", 0.7)],
        "unknowns": ["Why does the upload time out?"],
        "resources": _minutes(84),
    },
    {
        "event": _event("failure", "Raising the time-out did not help"),
        "failure": {
            "action": "raise_timeout",
            "reason": "the server closes first",
            "lesson": "Look at the server before the client.",
        },
        "attention_items": [_item("threat", "The upload test is flaky", 0.9)],
        "entities": [{"name": "build server", "type": "service", "state": {"up": False}}],
        "relationships": [{"source": "upload test", "type": "needs", "target": "build server"}],
        "resources": _minutes(61),
    },
    {
        "goals": [
            _goal("Restart the build server", "Fix the flaky upload test", priority=0.85),
            {"description": "Ask Ada who owns the server", "source": "inferred", "priority": 0.3},
        ],
        "attention_items": [_item("anomaly", "The build server is down", 0.8)],
        "assumptions": ["The server ran out of memory"],
        "resources": _minutes(60),
    },
    {
        "goal_changes": [
            {"goal": "Restart the build server", "status": "completed"},
            {"goal": "Ask Ada who owns the server", "status": "abandoned"},
        ],
        "entities": [{"name": "build server", "type": "service", "state": {"up": True}}],
        "event": _event("progress", "The build server is up again"),
        "resolved": ["Why does the upload time out?"],
        "resources": _minutes(48),
    },
    {
        "goal_changes": [
            {"goal": "Fix the flaky upload test", "status": "completed"},
            {"goal": "Make the tests green", "status": "completed"},
            {"goal": "Write the changelog", "status": "deferred"},
        ],
        "event": _event("progress", "All tests are green"),
        "attention_items": [_item("opportunity", "The packages can be published", 0.6, None)],
        "resources": _minutes(20),
    },
    {
        "event": _event("reversal", "The upload test fails again on Windows"),
        "goals": [_goal("Fix the upload on Windows", priority=0.9)],
        "attention_items": [_item("threat", "Build minutes run out", 0.8)],
        "resources": _minutes(9),
    },
)
"""A release that comes along, with a setback."""


async def aware_run(
    logs: Path,
    steps: Sequence[Step] = STORY,
    *,
    task: str = RELEASE,
    modules: Sequence[Awareness] | None = None,
    tries: int = 20,
) -> RunFolder:
    """A run in which a tool brings one observation a cycle; then the agent answers."""
    left = list(steps)

    def go_on() -> dict[str, Any]:
        """Goes on with the work."""
        return dict(left.pop(0))

    def think(request: ScriptedRequest) -> dict[str, Any]:
        wish: dict[str, Any] = {"action": "go_on", "arguments": {}}
        if not left:
            wish = {"action": "respond", "arguments": {"text": "That is where it stands."}}
        return {"situation": "It goes on.", "candidates": [wish]}

    agent = CoagAgent(
        "planner",
        ScriptedModel(think),
        tools=[go_on],
        modules=[Awareness(Reported(), self_model=SELF)] if modules is None else modules,
        depth="compact",
        proposal="json",
        logs=str(logs),
        max_tool_iterations=tries,
    )
    message = TextMessage(content=task, source="user")
    await agent.on_messages([message], CancellationToken())
    folder = agent.run_folder
    await agent.close()
    assert folder is not None
    return RunFolder(folder.path)


# ---- by hand ----


def state_of(step: int = 1, **parts: Any) -> AwarenessState:
    """A state at a step."""
    return AwarenessState(domain="made up", step=step, at=AT + timedelta(seconds=step), **parts)


def goal(number: int, description: str = "", **fields: Any) -> Goal:
    """A goal whose id follows from its number."""
    values: dict[str, Any] = {"source": GoalSource.EXPLICIT, "created_step": 1, **fields}
    return Goal(id=f"{number:08x}", description=description or f"goal {number}", **values)


def item(number: int, description: str = "", **fields: Any) -> AttentionItem:
    """Something that needs attention."""
    values: dict[str, Any] = {"type": AttentionType.THREAT, "created_step": 1, **fields}
    return AttentionItem(id=f"i{number}", description=description or f"item {number}", **values)


def many_goals(count: int, **fields: Any) -> GoalGraph:
    """Goals without anything between them."""
    return GoalGraph(goals=tuple(goal(number, **fields) for number in range(count)))


def kept(state: AwarenessState | Mapping[str, Any], pursued: str | None = None) -> dict[str, Any]:
    """What a module saves of a state."""
    fields = state.model_dump(mode="json") if isinstance(state, AwarenessState) else dict(state)
    return {"state": fields, "standing": {"goal": pursued}}


def begun(cycle: int, **modules: Mapping[str, Any]) -> list[TraceRecord]:
    """A cycle that began with these states of modules."""
    first: Snapshot = snapshot(cycle, {}, modules=dict(modules))
    return [first, *thought(cycle)]


def kept_run(logs: Path, states: Iterable[AwarenessState], *, name: str = "run-1") -> RunFolder:
    """A run with one cycle for each state of a module called `awareness`."""
    records: list[TraceRecord] = []
    for cycle, state in enumerate(states, 1):
        records += begun(cycle, awareness=kept(state))
    return written_run(logs, records, name=name)
