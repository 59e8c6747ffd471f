"""What is changed in a fork."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, cast

from pydantic import BaseModel, Field, JsonValue, ValidationError

from coag._util.validation import first_error
from coag.agent import Mind
from coag.context import WorkingMemory, dump_state
from coag.errors import ConfigurationError, StateError, UnknownNameError
from coag.memory import PendingRewrite, parse_procedure
from coag.models import ModelSpec
from coag.schema import Depth, RetrievalOutcome, Value

# ---- What a fork does otherwise than the run it comes from ----


_FENCE, _YAML_FENCE = "+++", "---"
"""The line before and after front matter, and that of other programs' files."""


class Changes(Value):
    """The changes of a fork; none of them by default."""

    model: str | None = None
    """A model spec that takes the place of the run's model, in every phase."""
    depth: Depth | None = None
    """How every cycle deliberates from there on; see `CycleSettings`."""
    without_records: tuple[str, ...] = ()
    """Ids, or short ids, of records of long-term memory that are as if never written."""
    without_constraints: tuple[str, ...] = ()
    """Names of constraints that are not in force, whatever their origin."""
    procedures: dict[str, str] = Field(default_factory=dict)
    """New texts of procedures, by name."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Values by their path in the perceptual state, e.g. `battery`, or in working memory, e.g.
    `goal` or `perceptual_state.battery`; None takes away what may be absent."""

    @classmethod
    def of(
        cls,
        *,
        model: str | None = None,
        depth: Depth | None = None,
        without_records: Iterable[str] = (),
        without_constraints: Iterable[str] = (),
        procedures: Iterable[str] = (),
        settings: Iterable[str] = (),
    ) -> Self:
        """Reads changes as they are written on a command line.

        Args:
            model: A model spec.
            depth: How every cycle deliberates from there on.
            without_records: Ids or short ids.
            without_constraints: Names.
            procedures: `NAME=FILE`, a procedure's text with or without front matter.
            settings: `PATH=VALUE`, the value as JSON.

        Raises:
            ConfigurationError: One of them is not of its form, or a file cannot be read.
        """
        return cls(
            model=model,
            depth=depth,
            without_records=tuple(without_records),
            without_constraints=tuple(without_constraints),
            procedures=dict(_procedure(text) for text in procedures),
            settings=dict(_setting(text) for text in settings),
        )

    def inheriting(self, listed: Iterable[str]) -> Self:
        """These changes on top of a parent's, which its recipe does not know of.

        What a parent was to do without records, procedures and values is in its memory and its
        state already; its model, its depth and its constraints are made by the recipe.

        Args:
            listed: The parent's changes, as `listed` gave them.

        Raises:
            ConfigurationError: The parent's model is a component file, which names code; such a
                one is loaded only if it is given again.
        """
        options = [text.partition(" ")[::2] for text in listed]
        models = [value for option, value in options if option == "--model"]
        if self.model is None and models and models[0].endswith(".json"):
            unasked = f"The run's model is the component file {models[0]!r}, not loaded unasked"
            raise ConfigurationError(f"{unasked}: add --model {models[0]} if you trust it.")
        depths = [value for option, value in options if option == "--depth"]
        rules = [value for option, value in options if option == "--without-constraint"]
        return self.model_copy(
            update={
                "model": self.model or next(iter(models), None),
                "depth": self.depth or next(iter(depths), None),
                "without_constraints": tuple(dict.fromkeys([*rules, *self.without_constraints])),
            }
        )

    def listed(self) -> tuple[str, ...]:
        """Each change as it is written on the command line; texts of procedures are left out."""
        spec = self.model
        with suppress(ConfigurationError):  # one that a factory reads is shown as it is
            spec = None if spec is None else ModelSpec.parse(spec).public
        return (
            *(() if spec is None else (f"--model {spec}",)),
            *(() if self.depth is None else (f"--depth {self.depth}",)),
            *(f"--without-record {name}" for name in self.without_records),
            *(f"--without-constraint {name}" for name in self.without_constraints),
            *(f"--procedure {name}" for name in self.procedures),
            *(f"--set {path}={json.dumps(value)}" for path, value in self.settings.items()),
        )


def _procedure(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise ConfigurationError(f"{text!r} names no procedure and file: write NAME=FILE.")
    try:
        source = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Procedure {name!r} cannot be read: {error}") from error
    if not source.strip():
        raise ConfigurationError(f"{file!r} is empty, and procedure {name!r} needs a text.")
    text = parse_procedure(name, source).text
    lines = [line.strip() for line in text.splitlines()]
    meant = [line for line in lines if line == _FENCE]
    meant += [lines[0]] if lines[0].startswith(_FENCE) or lines[0] == _YAML_FENCE else []
    if meant:  # front matter that is not read as such would reach the model
        problem = f"{file!r} has a line {meant[0]!r} in its text: front matter is TOML between two"
        raise ConfigurationError(f"{problem} lines {_FENCE!r}, the first of which begins the file.")
    return name, text


def _setting(text: str) -> tuple[str, JsonValue]:
    path, equals, value = text.partition("=")
    if not (path and equals):
        raise ConfigurationError(f"{text!r} sets nothing: write PATH=VALUE, e.g. battery=30.")
    try:
        parsed: Any = json.loads(value)
    except (ValueError, RecursionError) as error:
        problem = f"The value of {path!r} is no JSON: {value!r}. A text needs quotes"
        raise ConfigurationError(f"{problem}: --set '{path}=\"...\"'.") from error
    return path, parsed


# ---- Setting values in a working memory by their paths ----


_FIXED = ("cycle", "phase", "activity", "queued")
"""What the boundary itself decides."""
_STATE = "perceptual_state"


def with_settings(
    memory: WorkingMemory, schema: type[BaseModel], settings: Mapping[str, Any]
) -> WorkingMemory:
    """The working memory with these values at these paths."""
    for path, value in settings.items():
        memory = _with(memory, schema, path, value)
    return memory


def _with(memory: WorkingMemory, schema: type[BaseModel], path: str, value: Any) -> WorkingMemory:
    parts = path.split(".")
    if parts[0] not in WorkingMemory.model_fields:
        parts = [_STATE, *parts]
    if parts[0] in _FIXED:
        raise StateError(f"{path!r} cannot be set: the boundary decides it.")
    held = memory.to_json()
    if parts[0] == _STATE:
        held[_STATE] = _state(held.get(_STATE, {}), schema, parts[1:], path, value)
    else:
        _put(held, parts, path, value)
    try:
        return WorkingMemory.model_validate(held)
    except ValidationError as error:
        raise _unfit(path, value, "working memory", error) from error


def _state(
    held: dict[str, Any], schema: type[BaseModel], parts: list[str], path: str, value: Any
) -> dict[str, Any]:
    name = schema.__name__
    open_ended = schema.model_config.get("extra") == "allow"
    if parts and parts[0] not in schema.model_fields and not open_ended:
        raise StateError(
            f"There is no {path!r} to set. {name} has: {', '.join(schema.model_fields)}; working "
            f"memory has: {', '.join(n for n in WorkingMemory.model_fields if n not in _FIXED)}."
        )
    try:
        changed = dump_state(schema.model_validate(held))
        if not parts:
            changed = value
        else:
            _put(changed, parts, path, value)
        after = dump_state(schema.model_validate(changed))
    except ValidationError as error:
        raise _unfit(path, value, name, error) from error
    if value is not None:
        held = after
        try:
            for part in parts:
                held = _at(held, part, path)
        except StateError as error:
            raise StateError(f"{name} keeps nothing at {path!r}.") from error
    return after


def _put(held: dict[str, Any], parts: list[str], path: str, value: Any) -> None:
    """Puts a value at a place of JSON; the place before it must be there."""
    place: Any = held
    for part in parts[:-1]:
        place = _at(place, part, path)
    last = parts[-1]
    if isinstance(place, dict):
        cast("dict[str, Any]", place)[last] = deepcopy(value)
    else:
        _at(place, last, path)
        place[int(last)] = deepcopy(value)


def _at(place: Any, part: str, path: str) -> Any:
    if isinstance(place, dict) and part in place:
        return cast("dict[str, Any]", place)[part]
    if isinstance(place, list):
        items = cast("list[Any]", place)
        if part.isdecimal() and int(part) < len(items):
            return items[int(part)]
        raise StateError(f"{path!r} leads nowhere: {part!r} is no item of {len(items)}, from 0.")
    raise StateError(f"{path!r} leads nowhere: there is no {part!r} now.")


def _unfit(path: str, value: Any, what: str, error: ValidationError) -> StateError:
    return StateError(f"{path!r} cannot be {value!r}: {what}: {first_error(error)}.")


# ---- Making a fork's changes in a mind at the boundary ----


AUTHOR = "developer"
REASON = "A fork was to go on with this text."


def change_mind(
    mind: Mind,
    changes: Changes,
    *,
    left_out: Collection[str],
    promised: Collection[str],
    at: datetime,
) -> None:
    """Makes the changes; the mind is at the boundary and has not begun its run."""
    deps, context = mind.deps, mind.context
    known, out = {*deps.constraints.pin(), *promised}, changes.without_constraints
    for name in out:
        if name not in known:
            raise UnknownNameError("constraint", name, known)
        deps.constraints.leave_out(name)
    pinned = deps.constraints.pin()
    missing = [name for name in promised if name not in pinned and name not in out]
    if missing:
        names = ", ".join(map(repr, missing))
        raise ConfigurationError(
            f"{names} was in force there, and the run's recipe does not make it: let its factory "
            f"make it, or leave it out: --without-constraint {missing[0]}."
        )
    versions: dict[str, int] = {}
    for name, text in changes.procedures.items():
        made = deps.procedures.rewrite(name, text, author=AUTHOR, reason=REASON)
        if isinstance(made, PendingRewrite):
            made = deps.procedures.approve(made.id, by=AUTHOR)
        versions[name] = made.version
    memory = was = context.working_memory
    if left_out or memory.in_cycle:
        waited = deps.clock.now() - at
        memory = _with_retrieval(memory, left_out, out, versions, waited)
    memory = with_settings(memory, context.perceptual_state_schema, changes.settings)
    if memory is not was:
        context.restore(memory)


def _with_retrieval(
    memory: WorkingMemory,
    left_out: Collection[str],
    constraints: Collection[str],
    versions: Mapping[str, int],
    waited: timedelta,
) -> WorkingMemory:
    cognitive = memory.cognitive_state
    was = cognitive.retrieval
    if was is None:
        return memory
    update: dict[str, object] = {
        "records": tuple(hit for hit in was.records if hit.record.id not in left_out)
    }
    if memory.in_cycle:
        update["constraints"] = tuple(name for name in was.constraints if name not in constraints)
        update["procedures"] = {**was.procedures, **versions}
        update["at"] = was.at + max(waited, timedelta())
    retrieval: RetrievalOutcome = was.model_copy(update=update)
    changed = cognitive.model_copy(update={"retrieval": retrieval})
    return memory.model_copy(update={"cognitive_state": changed})
