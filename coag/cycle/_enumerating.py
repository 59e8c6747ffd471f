"""Forms of answers in which only what exists can be written, for servers that enforce schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Annotated, Any, Literal, cast

from pydantic import WithJsonSchema, create_model, model_validator

from coag.schema import ActionSpec

from ._answers import CandidateAnswer, FormT, candidates_of, with_candidates

_RESPOND = "respond"
SPOKEN = json.dumps({"text": "..."})
"""Arguments by which an answer is judged before it is written."""
MOST_CALLS = 12
"""Calls of one action that are written out; one that has more is listed by its name."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls that an answer may name."""

    names: tuple[str, ...]
    """What may stand for an action: `move direction=east`, or the name of an action whose
    arguments cannot be counted."""
    written: tuple[tuple[str, str, str], ...]
    """For each call that is written out: how, the action, and its arguments as JSON."""

    def judged(self) -> list[tuple[str, str]]:
        """The calls that can be judged before they are made, as action and arguments.

        An answer in words counts as one, whatever its words.
        """
        whole = [(name, given) for shown, name, given in self.written if shown in self.names]
        return [*whole, *((name, SPOKEN) for name in self.names if name == _RESPOND)]

    def without(self, rejected: Set[tuple[str, str]]) -> Calls:
        """These calls but for rejected ones (action and arguments); all, if fewer than two stay."""
        gone = {shown for shown, name, given in self.written if (name, given) in rejected}
        gone |= {name for name in self.names if (name, SPOKEN) in rejected}
        left = tuple(name for name in self.names if name not in gone)
        return Calls(left, self.written) if len(left) > 1 else self


def calls_of(specs: Sequence[ActionSpec]) -> Calls:
    """Every call of the actions whose arguments can be counted, and the names of the others."""
    names: list[str] = []
    written: list[tuple[str, str, str]] = []
    for spec in specs:
        choices = _choices(spec)
        if choices is None:
            names.append(spec.name)
            continue
        for values in product(*choices.values()):
            given = dict(zip(choices, values, strict=True))
            shown = " ".join([spec.name, *(f"{key}={_shown(given[key])}" for key in given)])
            names.append(shown)
            written.append((shown, spec.name, json.dumps(given, ensure_ascii=False)))
    return Calls(tuple(names), tuple(written))


def _choices(spec: ActionSpec) -> dict[str, list[Any]] | None:
    """For each argument the values that it may have; None where they cannot be counted."""
    properties = cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
    choices = {name: _values(schema) for name, schema in properties.items()}
    count = 1
    for values in choices.values():
        count *= len(values)
    return choices if 0 < count <= MOST_CALLS else None


def _values(schema: Any) -> list[Any]:
    if not isinstance(schema, Mapping):
        return []
    told = cast("Mapping[str, Any]", schema)
    if "const" in told:
        return [told["const"]]
    listed: Any = told.get("enum")
    if isinstance(listed, list):
        return cast("list[Any]", listed)
    return [True, False] if told.get("type") == "boolean" else []


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@lru_cache(maxsize=256)
def with_enumerated_actions(answer: type[FormT], names: tuple[str, ...]) -> type[FormT]:
    """The same form with `action` limited to the given names."""
    base = candidates_of(answer)
    action: Any = Literal[names]
    return with_candidates(answer, create_model(base.__name__, __base__=base, action=(action, ...)))


@lru_cache(maxsize=256)
def with_enumerated_calls(answer: type[FormT], calls: Calls) -> type[FormT]:
    """The same form with `action` listing whole calls.

    The list stands in the schema alone. What is written otherwise, by a server that enforces
    nothing, is taken as it is, and judged in Evaluation.
    """
    return with_candidates(answer, naming_calls(answer, calls))


def naming_calls(answer: type[FormT], calls: Calls) -> type[CandidateAnswer]:
    """The form of a candidate in an answer, with `action` listing whole calls."""
    base = candidates_of(answer)
    table = {shown: (name, given) for shown, name, given in calls.written}

    def unfold(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        told = cast("dict[str, Any]", value)
        found = table.get(str(told.get("action")))
        if found is None or told["action"] == found[0]:
            return told
        return {**told, "action": found[0], "arguments": found[1]}

    listed = {"type": "string", "enum": list(calls.names)}
    action: Any = Annotated[str, WithJsonSchema(listed)]
    return create_model(
        base.__name__,
        __base__=base,
        __validators__={"unfold": cast("Any", model_validator(mode="before")(unfold))},
        action=(action, ...),
    )
