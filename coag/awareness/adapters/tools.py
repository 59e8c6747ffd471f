"""The domain of an agent with tools: percepts as observations."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import cast

from coag._util.text import well_formed
from coag.awareness.fields import Scalar
from coag.awareness.injection import InjectionBlock
from coag.awareness.observation import Observation, ObservedEntity, ObservedEvent, parsed
from coag.awareness.state import (
    AwarenessState,
    CollaborationMode,
    Entity,
    InteractionProtocol,
    Resource,
    TransitionType,
)
from coag.errors import ConfigurationError
from coag.schema import Percept, PerceptKind, content_id, folded, one_line

from .domain_adapter import DomainAdapter, Place, block, count_in

_SHORT = 120
"""Characters of a text from outside in one item."""


def short(text: str) -> str:
    """The beginning of a text on one line."""
    return one_line(well_formed(text), _SHORT) or "(nothing that can be read)"


class PerceptAdapter(DomainAdapter):
    """A domain whose raw input is what an agent perceives: tool results, changes, messages.

    Write `parse_percept`. The module adds what it sees by itself: goals, failures, stalls. An
    event of type progress or discovery means that a percept brought the goal nearer.
    """

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What a percept, given as its fields, means in this state."""
        return self.parse_percept(parsed(Percept, raw), state)

    @abstractmethod
    def parse_percept(self, percept: Percept, state: AwarenessState) -> Observation:
        """What a percept means in this state; see `DomainAdapter.parse_observation`."""


# ---- Structured tool results ----

_DEPTH = 4
"""How many levels of a result are read."""
_ENTRIES = 500
"""How many entries of a result are read."""
_Fields = Mapping[str, object]


def _objects_in(data: object) -> Iterator[_Fields]:
    """The objects of a result, the outer before the inner ones."""
    waiting, read = [(data, 0)], 0
    for value, depth in waiting:
        inner: Iterable[object] = ()
        if isinstance(value, Mapping):
            fields = {str(key): one for key, one in cast("Mapping[object, object]", value).items()}
            yield fields
            inner = fields.values()
        elif isinstance(value, list):
            inner = cast("list[object]", value)
        parts = list(inner)
        read += len(parts)
        if depth < _DEPTH and read <= _ENTRIES:
            waiting += [(one, depth + 1) for one in parts if isinstance(one, Mapping | list)]


def _amount_of(value: object) -> float | None:
    """A value as what remains of a resource; None where it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return max(0.0, float(value))


# ---- The domain ----

_TOOL = "tool"
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
    """Tools, the things in their results, and the resources that they report.

    A tool that has returned is an entity with its calls and failures. A result that the tool has
    not given before is progress. Things come only from the keys that are named here, since the
    meaning of a result's keys cannot be guessed: the value names the thing, as in `order:17`, the
    plain values beside it are its state, and the tools that return or take it are its affordances.

    Args:
        entities: The type of thing by the key that holds its name, e.g. `{"order_id": "order"}`.
        resources: Keys of what remains of a resource. One that the self model does not declare is
            shown, but refuses no action: its capacity is the most that was seen.

    Raises:
        ConfigurationError: A key or type is blank, or a type is `tool`.
    """

    entities: Mapping[str, str] = field(default_factory=dict[str, str])
    resources: tuple[str, ...] = ("battery", "energy")

    name = "tools"
    patterns = (
        ("repeated failure", "The same action fails again and again."),
        ("stall", "Cycles go by and the goal comes no nearer."),
        ("unknown outcome", "Nobody knows whether an action had its effect."),
    )
    protocol = InteractionProtocol(mode=CollaborationMode.AUTONOMOUS)

    def __post_init__(self) -> None:
        names = [*self.entities, *self.entities.values(), *self.resources]
        if not all(name.strip() for name in names) or _TOOL in self.entities.values():
            raise ConfigurationError(
                "ToolAdapter takes keys and types that are texts, and no type 'tool', not "
                f"entities={dict(self.entities)!r}, resources={self.resources!r}."
            )

    def define_entity_types(self) -> tuple[str, ...]:
        """Tools, and the types of things that are named."""
        return (_TOOL, *dict.fromkeys(self.entities.values()))

    def parse_percept(self, percept: Percept, state: AwarenessState) -> Observation:
        """What a tool's return means; other percepts say nothing of tools."""
        if percept.kind is not PerceptKind.TOOL_RETURN:
            return Observation()
        known = state.world.get(f"{_TOOL}:{short(percept.source)}")
        arguments = json.dumps(percept.arguments or {}, sort_keys=True)
        result = content_id(arguments, well_formed(percept.content))[:8]
        event = None
        if not percept.is_error and result not in _results(known):
            text = f"{short(percept.source)}: {short(percept.content)}"
            event = ObservedEvent(type=TransitionType.PROGRESS, description=text)
        return Observation(
            entities=(_tool(percept, known, result), *self._things(percept)),
            resources=tuple(self._readings(percept, state)),
            event=event,
        )

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """The tools that were used with their counts; the things, the latest first."""
        tools = state.world.of_type(_TOOL)
        others = (one for one in state.world.entities if one.type != _TOOL)
        things = sorted(others, key=lambda one: -one.last_step)
        last = max(1, state.step)
        return (
            block(
                "TOOLS",
                Place.OTHER_GOALS,
                ((_tool_text(one), one.last_step / last) for one in tools[:_SHOWN]),
                of=len(tools),
                inline=True,
            ),
            block(
                "THINGS",
                Place.TOPICS,
                ((_thing_text(one), one.last_step / last) for one in things[:_SHOWN]),
                of=len(things),
            ),
        )

    def _things(self, percept: Percept) -> list[ObservedEntity]:
        """The things that a result, or the call, names."""
        entities: dict[tuple[str, str], ObservedEntity] = {}
        for fields in (*_objects_in(percept.data), percept.arguments or {}):
            for key, type in self.entities.items():
                name = fields.get(key)
                is_name = isinstance(name, str | int) and not isinstance(name, bool)
                if not is_name or not str(name).strip():
                    continue
                thing = ObservedEntity(
                    name=f"{type}:{short(str(name))}",
                    type=type,
                    state={} if fields is percept.arguments else self._state_in(fields),
                    affordances=(short(percept.source),),
                )
                entities.setdefault((thing.name, type), thing)
        return list(entities.values())[:_THINGS]

    def _state_in(self, fields: _Fields) -> dict[str, Scalar]:
        """The first plain values that are neither things nor resources."""
        state: dict[str, Scalar] = {
            short(key): short(value) if isinstance(value, str) else value
            for key, value in fields.items()
            if key not in self.entities and key not in self.resources
            if isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))
        }
        return dict(list(state.items())[:_FIELDS])

    def _readings(self, percept: Percept, state: AwarenessState) -> Iterator[Resource]:
        """The remaining resources in a result; the first mention of each counts."""
        known = {folded(one.name): one for one in reversed(state.self_model.resources)}
        for name in self.resources:
            amounts = (_amount_of(one.get(name)) for one in _objects_in(percept.data))
            remaining = next((amount for amount in amounts if amount is not None), None)
            if remaining is None:
                continue
            declared = known.get(folded(name)) or Resource(
                name=name, capacity=remaining, remaining=remaining, depletable=False
            )
            capacity = max(remaining, declared.capacity)
            yield declared.model_copy(update={"remaining": remaining, "capacity": capacity})


def _results(known: Entity | None) -> list[str]:
    ids = known.state.get(_RESULTS) if known else None
    return ids.split() if isinstance(ids, str) else []


def _tool(percept: Percept, known: Entity | None, result: str) -> ObservedEntity:
    results = [one for one in _results(known) if one != result]
    if not percept.is_error:
        results.append(result)
    return ObservedEntity(
        name=f"{_TOOL}:{short(percept.source)}",
        type=_TOOL,
        state={
            _CALLS: count_in(known, _CALLS) + 1,
            _FAILURES: count_in(known, _FAILURES) + percept.is_error,
            _RESULTS: " ".join(results[-_REMEMBERED:]),
        },
    )


def _tool_text(tool: Entity) -> str:
    failures = count_in(tool, _FAILURES)
    failed = f" ({failures} failed)" if failures else ""
    return f"{tool.name.removeprefix(f'{_TOOL}:')} x{count_in(tool, _CALLS)}{failed}"


def _thing_text(thing: Entity) -> str:
    state = ", ".join(f"{key}={value}" for key, value in thing.state.items())
    return f"{thing.name}{f' ({state})' if state else ''}"
