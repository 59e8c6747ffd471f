"""Observations: what one step brings. And states read from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Self, TypeVar, cast

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from coag.errors import AwarenessError, ObservationError, StateVersionError
from coag.schema import Value, one_line

from .fields import NOT_BLANK, Amount, Foreign, ForeignScalar, ForeignText, Share
from .goals import GoalSource, GoalStatus
from .state import STATE_VERSION, AttentionType, AwarenessState, Resource, TransitionType

_SHOWN = 80
"""Characters of a wrong value in an error."""


def where_wrong(error: ValidationError) -> tuple[str, str]:
    """The path of the first wrong value, and a sentence on it and on the other wrong places."""
    errors = error.errors(include_url=False, include_context=False)
    first = errors[0]
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "string_pattern_mismatch" and NOT_BLANK in message:
        message = "Should say something, not be empty or blank"
    value = one_line(repr(first["input"]), _SHOWN)
    given = "" if first["type"] == "missing" else f", given {value}"
    rest = ", ".join(_path(other["loc"]) for other in errors[1:6])
    more = f" Also wrong: {rest}." if rest else ""
    return _path(first["loc"]), f"{message}{given}.{more}"


def _path(location: tuple[int | str, ...]) -> str:
    """The place in Python's notation: `goals[0].priority`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


_Given = TypeVar("_Given", bound=BaseModel)


def parsed(kind: type[_Given], raw: Mapping[str, object]) -> _Given:
    """The value that a mapping describes; `ObservationError` with the place if it does not."""
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise ObservationError(*where_wrong(error)) from error


class ParsedValue(Value):
    """A value whose errors name the wrong place."""

    @classmethod
    def parse(cls, raw: Mapping[str, object]) -> Self:
        """The value that a mapping describes; an `ObservationError` names the wrong place."""
        return parsed(cls, raw)


class ObservedEntity(Value):
    """A thing that was noticed."""

    name: Foreign
    type: Foreign
    state: dict[ForeignText, ForeignScalar] = Field(default_factory=dict)
    """What is known of it now; keys that are not named here keep their values."""
    affordances: tuple[Foreign, ...] = ()


class ObservedRelationship(Value):
    """An edge that was noticed, by the names of its ends."""

    source: Foreign
    type: Foreign
    target: Foreign


class ObservedGoal(Value):
    """A goal that was noticed."""

    description: Foreign
    source: GoalSource = GoalSource.EXPLICIT
    priority: Share = 0.5
    parent: Foreign | None = None
    """The goal that it serves, by its id or description; it may be in the same observation."""
    depends_on: tuple[Foreign, ...] = ()
    """Goals that must be completed first, by id or description; also of the same observation."""
    completion_criteria: Foreign | None = None


class GoalChange(Value):
    """A change of a known goal."""

    goal: Foreign
    """Its id or description."""
    status: GoalStatus | None = None
    """Its new status; never `blocked`, which follows from what it depends on."""
    priority: Share | None = None
    """Its new priority; None for as before."""
    succeeded: bool | None = None
    """Whether what was just done for it helped; None where nothing was done."""


class ObservedAttention(Value):
    """Something that needs attention."""

    type: AttentionType
    description: Foreign
    urgency: Share = 0.5
    ttl: int | None = Field(default=None, gt=0)
    """For how many steps it lasts, this one among them; None until it is removed."""
    slot: ForeignText = ""
    """What it is the latest of, e.g. `mood`: it replaces the item that had this slot. Empty for
    an item beside all others."""


class ObservedEvent(Value):
    """How the situation changed."""

    type: TransitionType
    description: Foreign
    detail: dict[ForeignText, ForeignScalar] = Field(default_factory=dict)


class ObservedFailure(Value):
    """A mistake that was made."""

    action: Foreign
    reason: ForeignText = ""
    lesson: ForeignText = ""


class Spent(Value):
    """How much of a resource was used."""

    resource: Foreign
    amount: Amount


class Observation(ParsedValue):
    """All that one step brings; every part may be empty."""

    entities: tuple[ObservedEntity, ...] = ()
    relationships: tuple[ObservedRelationship, ...] = ()
    goals: tuple[ObservedGoal, ...] = ()
    goal_changes: tuple[GoalChange, ...] = ()
    attention_items: tuple[ObservedAttention, ...] = ()
    assumptions: tuple[Foreign, ...] = ()
    unknowns: tuple[Foreign, ...] = ()
    resolved: tuple[Foreign, ...] = ()
    """Assumptions and unknowns that are settled now, in the words in which they were stated."""
    event: ObservedEvent | None = None
    resources: tuple[Resource, ...] = ()
    """Resources as they are now: new ones, and readings of known ones."""
    spent: tuple[Spent, ...] = ()
    failure: ObservedFailure | None = None

    def plus(self, **more: Any) -> Observation:
        """With more of some parts; an event or a failure replaces the one before."""
        both = {
            name: getattr(self, name) + value if isinstance(value, tuple) else value
            for name, value in more.items()
        }
        return self.model_copy(update=both)


# ---- States from JSON ----

Migration = Callable[[Mapping[str, object]], Mapping[str, object]]
"""From the fields of a state of one version to those of the next; it changes nothing in place."""

MIGRATIONS: Final[Mapping[int, Migration]] = {}
"""By the version that each reads. A new `STATE_VERSION` needs its step: `{1: _from_1}`."""


def load_state(
    stored: str | bytes | Mapping[str, object], *, migrations: Mapping[int, Migration] = MIGRATIONS
) -> AwarenessState:
    """The state that was stored as JSON text or as the mapping in it.

    A state of an older version is migrated step by step, by the steps for each version.

    Raises:
        StateVersionError: It was written by a newer version, or by one that no step leads from.
        AwarenessError: It is no state; the error names the place.
    """
    fields = stored if isinstance(stored, Mapping) else _parsed(stored)
    version = fields.get("version", STATE_VERSION)
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise StateVersionError(version, STATE_VERSION)
    steps = range(version, STATE_VERSION)
    if version > STATE_VERSION or any(step not in migrations for step in steps):
        raise StateVersionError(version, STATE_VERSION)
    for step in steps:
        try:
            fields = {**migrations[step](fields), "version": step + 1}
        except (KeyError, TypeError, ValueError) as error:
            raise AwarenessError(
                f"{_NONE} of version {step}, as it says: bringing it up to version {step + 1} "
                f"raised {type(error).__name__}: {error}. Load a sound copy of it, or start from "
                "a new state."
            ) from error
    try:
        return AwarenessState.model_validate(fields)
    except ValidationError as error:
        path, problem = where_wrong(error)
        raise AwarenessError(f"{_NONE}{f' at {path}' if path else ''}: {problem}") from error


_NONE = "This is no awareness state"


def _parsed(text: object) -> Mapping[str, object]:
    if not isinstance(text, str | bytes):
        raise AwarenessError(f"{_NONE}, but {text!r:.80} of the type {type(text).__name__}.")
    try:
        fields: object = from_json(text)
    except ValueError as error:
        raise AwarenessError(f"{_NONE}, but no JSON at all: {error}.") from error
    if not isinstance(fields, dict):
        raise AwarenessError(f"{_NONE}: JSON of a {type(fields).__name__}, not an object.")
    return cast("dict[str, object]", fields)
