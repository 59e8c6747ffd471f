"""Percepts as observations; of results of tools whatever is structured."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import cast

from pydantic import ValidationError

from coag.awareness.adapters import DomainAdapter, Place
from coag.awareness.injection import InjectionBlock, InjectionItem
from coag.awareness.observation import Observation, ObservedEntity, ObservedEvent, where_wrong
from coag.awareness.state import (
    AwarenessState,
    CollaborationMode,
    Entity,
    InteractionProtocol,
    Resource,
    ScanPattern,
    TransitionType,
    folded,
)
from coag.errors import ConfigurationError, ObservationError
from coag.schema import Percept, PerceptKind, content_id, well_formed

from .rules import short

# ---- What stands in a structured tool result, by the names of its keys ----


_DEPTH = 4
"""How deep a result is looked into."""
_ENTRIES = 500
"""How many entries of a result are looked at."""

Entries = Mapping[str, object]


def objects_in(data: object) -> Iterator[Entries]:
    """The objects of a result, the outer before the inner ones."""
    waiting: list[tuple[object, int]] = [(data, 0)]
    looked_at = 0
    for value, depth in waiting:
        inner: list[object] = []
        if isinstance(value, Mapping):
            entries = {str(key): one for key, one in cast("Mapping[object, object]", value).items()}
            yield entries
            inner = list(entries.values())
        elif isinstance(value, list):
            inner = cast("list[object]", value)
        looked_at += len(inner)
        if depth == _DEPTH or looked_at > _ENTRIES:
            continue
        waiting += [(one, depth + 1) for one in inner if isinstance(one, Mapping | list)]


def scalars_of(entries: Entries) -> dict[str, str | int | float | bool]:
    """The plain values of an object; no nulls, nothing nested, no numbers JSON cannot carry."""
    return {
        key: value
        for key, value in entries.items()
        if isinstance(value, str | bool | int) or (isinstance(value, float) and isfinite(value))
    }


def amount_of(value: object) -> float | None:
    """A value as what is left of a resource; None where it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return max(0.0, float(value))


def same(one: str, other: str) -> bool:
    """Whether two names are the same without case and spacing."""
    return folded(one) == folded(other)


# ---- Adapters that read an agent's percepts ----


class PerceptAdapter(DomainAdapter):
    """A domain whose raw input is what an agent perceives: tool results, changes, messages.

    Write `parse_percept`. What the module sees by itself, it adds: goals, failures, stalls. An
    event of type progress or discovery says that a percept brought the goal on.
    """

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What a percept, given as its fields, says where things stand so.

        Raises:
            ObservationError: It is no percept; the error names the place.
        """
        try:
            percept = Percept.model_validate(raw)
        except ValidationError as error:
            path, problem = where_wrong(error)
            raise ObservationError(path, problem) from error
        return self.parse_percept(percept, state)

    @abstractmethod
    def parse_percept(self, percept: Percept, state: AwarenessState) -> Observation:
        """What a percept says where things stand so; the state is only read.

        Raises:
            ObservationError: It cannot be read; the error names the place.
        """


# ---- The domain of an agent with tools, whatever they do ----


TOOL = "tool"
"""The type of a tool's entity."""
_CALLS, _FAILURES, _RESULTS = "calls", "failures", "results"
_REMEMBERED = 8
"""Results of a tool by which a repetition is recognised."""
_THINGS = 20
"""Things that one result can bring."""
_FIELDS = 8
"""Plain values that are kept of a thing."""
_SHOWN = 30


@dataclass(frozen=True)
class ToolAdapter(PerceptAdapter):
    """Tools, what they brought to light, and the resources that they report.

    A tool that has returned is an entity with its calls and failures. A result that the tool has
    not given before is progress. Things come only out of the keys that are named here, since what
    a result's keys mean cannot be guessed: the value names the thing, as in `order:17`, the plain
    values beside it are its state, and the tools that told of it or take it are its affordances.

    Args:
        entities: The type of thing by the key that holds its name, e.g. `{"order_id": "order"}`.
        resources: Keys of what is left of a resource. One that the self model does not declare is
            shown, but nothing is refused for its sake: its capacity is the most that was seen.

    Raises:
        ConfigurationError: A key or type is blank, or a type is `tool`.
    """

    entities: Mapping[str, str] = field(default_factory=dict[str, str])
    resources: tuple[str, ...] = ("battery", "energy")

    def __post_init__(self) -> None:
        """Refuses what no key or type can be."""
        names = [*self.entities, *self.entities.values(), *self.resources]
        if not all(name.strip() for name in names) or TOOL in self.entities.values():
            raise ConfigurationError(
                "ToolAdapter takes keys and types that are texts, and no type 'tool', not "
                f"entities={dict(self.entities)!r}, resources={self.resources!r}."
            )

    @property
    def domain_name(self) -> str:
        """`tools`."""
        return "tools"

    def define_entity_types(self) -> tuple[str, ...]:
        """Tools, and the types of things that were named."""
        return (TOOL, *dict.fromkeys(self.entities.values()))

    def define_relationship_types(self) -> tuple[str, ...]:
        """None of its own; any."""
        return ()

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """What goes wrong with tools."""
        return (
            ScanPattern(
                name="repeated failure", description="The same action fails again and again."
            ),
            ScanPattern(name="stall", description="Cycles go by and the goal comes no nearer."),
            ScanPattern(
                name="unknown outcome",
                description="Nobody knows whether an action had its effect.",
            ),
        )

    def define_protocol_defaults(self) -> InteractionProtocol:
        """It acts by itself."""
        return InteractionProtocol(mode=CollaborationMode.AUTONOMOUS)

    def parse_percept(self, percept: Percept, state: AwarenessState) -> Observation:
        """What a tool's return says; other percepts say nothing of tools."""
        if percept.kind is not PerceptKind.TOOL_RETURN:
            return Observation()
        known = state.world.get(_entity_name(percept))
        result = content_id(_arguments(percept), well_formed(percept.content))[:8]
        fresh = not percept.is_error and result not in _results(known)
        event = ObservedEvent(
            type=TransitionType.PROGRESS,
            description=f"{_tool_name(percept)}: {short(percept.content)}",
        )
        return Observation(
            entities=(_tool(percept, known, result), *self._found(percept)),
            resources=tuple(self._readings(percept, state)),
            event=event if fresh else None,
        )

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """The tools that were used and how they did; the things, the latest first."""
        tools = state.world.of_type(TOOL)
        things = sorted(
            (one for one in state.world.entities if one.type != TOOL),
            key=lambda one: -one.last_step,
        )
        last = max(1, state.step)
        return (
            InjectionBlock(
                heading="TOOLS",
                priority=Place.OTHER_GOALS,
                items=tuple(
                    InjectionItem(text=_told_tool(one), urgency=one.last_step / last)
                    for one in tools[:_SHOWN]
                ),
                inline=True,
                more=max(0, len(tools) - _SHOWN),
            ),
            InjectionBlock(
                heading="THINGS",
                priority=Place.TOPICS,
                items=tuple(
                    InjectionItem(text=_told_thing(one), urgency=one.last_step / last)
                    for one in things[:_SHOWN]
                ),
                more=max(0, len(things) - _SHOWN),
            ),
        )

    def _found(self, percept: Percept) -> Iterator[ObservedEntity]:
        """The things that a result, or the call, names."""
        found: dict[tuple[str, str], ObservedEntity] = {}
        for entries in (*objects_in(percept.data), percept.arguments or {}):
            for key, type in self.entities.items():
                name = entries.get(key)
                if (
                    isinstance(name, bool)
                    or not isinstance(name, str | int)
                    or not str(name).strip()
                ):
                    continue
                state = {
                    short(field): short(value) if isinstance(value, str) else value
                    for field, value in scalars_of(entries).items()
                    if field not in self.entities and field not in self.resources
                }
                thing = ObservedEntity(
                    name=f"{type}:{short(str(name))}",
                    type=type,
                    state={}
                    if entries is percept.arguments
                    else dict(list(state.items())[:_FIELDS]),
                    affordances=(_tool_name(percept),),
                )
                found.setdefault((thing.name, type), thing)
        yield from list(found.values())[:_THINGS]

    def _readings(self, percept: Percept, state: AwarenessState) -> Iterator[Resource]:
        """What the result says is left of resources; the first mention of each counts."""
        for name in self.resources:
            told = (amount_of(one[name]) for one in objects_in(percept.data) if name in one)
            left = next((amount for amount in told if amount is not None), None)
            if left is None:
                continue
            known = [one for one in state.self_model.resources if same(one.name, name)]
            declared = (
                known[0]
                if known
                else Resource(name=name, capacity=left, remaining=left, depletable=False)
            )
            yield declared.model_copy(
                update={"remaining": left, "capacity": max(left, declared.capacity)}
            )


def _tool_name(percept: Percept) -> str:
    return short(percept.source)


def _entity_name(percept: Percept) -> str:
    """The tool's name as no thing has it."""
    return f"{TOOL}:{_tool_name(percept)}"


def _arguments(percept: Percept) -> str:
    return json.dumps(percept.arguments or {}, sort_keys=True)


def _results(known: Entity | None) -> list[str]:
    told = known.state.get(_RESULTS) if known else None
    return told.split() if isinstance(told, str) else []


def _count(known: Entity | None, name: str) -> int:
    told = known.state.get(name) if known else None
    return told if isinstance(told, int) else 0


def _tool(percept: Percept, known: Entity | None, result: str) -> ObservedEntity:
    """The tool with this call counted."""
    results = [one for one in _results(known) if one != result]
    if not percept.is_error:
        results.append(result)
    return ObservedEntity(
        name=_entity_name(percept),
        type=TOOL,
        state={
            _CALLS: _count(known, _CALLS) + 1,
            _FAILURES: _count(known, _FAILURES) + percept.is_error,
            _RESULTS: " ".join(results[-_REMEMBERED:]),
        },
    )


def _told_tool(tool: Entity) -> str:
    failures = _count(tool, _FAILURES)
    failed = f" ({failures} failed)" if failures else ""
    return f"{tool.name.removeprefix(f'{TOOL}:')} x{_count(tool, _CALLS)}{failed}"


def _told_thing(thing: Entity) -> str:
    state = ", ".join(f"{key}={value}" for key, value in thing.state.items())
    return f"{thing.name}{f' ({state})' if state else ''}"
