"""Observations, and states from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from pydantic import Field, ValidationError
from pydantic_core import from_json

from coag.errors import AwarenessError, ObservationError, StateVersionError
from coag.schema import Value, one_line

from .state import (
    NOT_BLANK,
    STATE_VERSION,
    Amount,
    AttentionType,
    AwarenessState,
    GoalSource,
    GoalStatus,
    Heard,
    HeardPlain,
    HeardText,
    Resource,
    Share,
    TransitionType,
)

# ---- What a validation found, as a place and a sentence ----


_SHOWN = 80
"""Characters of a wrong value."""


def where_wrong(error: ValidationError) -> tuple[str, str]:
    """The path of the first thing that is wrong, and a sentence on it, its value and the others."""
    found = error.errors(include_url=False, include_context=False)
    first = found[0]
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "string_pattern_mismatch" and NOT_BLANK in message:
        message = "Should say something, not be empty or blank"
    given = (
        "" if first["type"] == "missing" else f", given {one_line(repr(first['input']), _SHOWN)}"
    )
    rest = [_path(other["loc"]) for other in found[1:6]]
    more = f" Also wrong: {', '.join(rest)}." if rest else ""
    return _path(first["loc"]), f"{message}{given}.{more}"


def _path(location: tuple[int | str, ...]) -> str:
    """The place as Python would write it: `goals[0].priority`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


class ObservedEntity(Value):
    """A thing that was noticed."""

    name: Heard
    type: Heard
    state: dict[HeardText, HeardPlain] = Field(default_factory=dict)
    """What is known of it now; what is not named here stays as it was."""
    affordances: tuple[Heard, ...] = ()


class ObservedRelationship(Value):
    """An edge that was noticed, by the names of its ends."""

    source: Heard
    type: Heard
    target: Heard


class ObservedGoal(Value):
    """A goal that was noticed."""

    description: Heard
    source: GoalSource = GoalSource.EXPLICIT
    priority: Share = 0.5
    parent: Heard | None = None
    """The goal that it serves, by its id or description; it may be in the same observation."""
    depends_on: tuple[Heard, ...] = ()
    """Goals that must be completed first, by id or description; also of the same observation."""
    completion_criteria: Heard | None = None


class GoalChange(Value):
    """A goal that is said to stand otherwise than before."""

    goal: Heard
    """Its id or description."""
    status: GoalStatus | None = None
    """How it stands now; never `blocked`, which follows from what it depends on."""
    priority: Share | None = None
    """How much it matters now; None for as before."""
    succeeded: bool | None = None
    """Whether what was just done for it helped; None where nothing was."""


class ObservedAttention(Value):
    """Something that needs attention."""

    type: AttentionType
    description: Heard
    urgency: Share = 0.5
    ttl: int | None = Field(default=None, gt=0)
    """How many steps it is there for, this one among them; None until it is taken away."""
    slot: HeardText = ""
    """Of what it is the latest, e.g. `mood`: it takes the place of what was noticed there before.
    Empty for something that stands beside all others."""


class ObservedEvent(Value):
    """How the situation changed."""

    type: TransitionType
    description: Heard
    detail: dict[HeardText, HeardPlain] = Field(default_factory=dict)


class ObservedFailure(Value):
    """A mistake that was made."""

    action: Heard
    reason: HeardText = ""
    lesson: HeardText = ""


class Spent(Value):
    """How much of a resource was used."""

    resource: Heard
    amount: Amount


class Observation(Value):
    """All that one step brings; every part may be empty."""

    entities: tuple[ObservedEntity, ...] = ()
    relationships: tuple[ObservedRelationship, ...] = ()
    goals: tuple[ObservedGoal, ...] = ()
    goal_changes: tuple[GoalChange, ...] = ()
    attention_items: tuple[ObservedAttention, ...] = ()
    assumptions: tuple[Heard, ...] = ()
    unknowns: tuple[Heard, ...] = ()
    resolved: tuple[Heard, ...] = ()
    """Assumptions and unknowns that are settled now, as they were said."""
    event: ObservedEvent | None = None
    resources: tuple[Resource, ...] = ()
    """Resources as they stand now: new ones, and readings of known ones."""
    spent: tuple[Spent, ...] = ()
    failure: ObservedFailure | None = None

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> Observation:
        """The observation that this mapping says.

        Raises:
            ObservationError: It breaks the schema; the error names the place.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            path, problem = where_wrong(error)
            raise ObservationError(path, problem) from error


# ---- Reading a kept state ----


Migration = Callable[[Mapping[str, object]], Mapping[str, object]]
"""From the fields of a state of one version to those of the next; it changes nothing in place."""

MIGRATIONS: Final[Mapping[int, Migration]] = {}
"""By the version that each reads. There has been one version so far, so there is none.

Whoever raises `STATE_VERSION` adds the step from the version before: `{1: _from_1}`.
"""


def load_state(
    kept: str | bytes | Mapping[str, object], *, migrations: Mapping[int, Migration] = MIGRATIONS
) -> AwarenessState:
    """The state that was kept as JSON text or as the mapping that it says.

    A state of an older version is brought up to date step by step.

    Args:
        kept: JSON text, or what it says.
        migrations: The steps, by the version that each reads.

    Raises:
        StateVersionError: It was written by a newer version, or by one that no step leads from.
        AwarenessError: It is no state; the error names the place.
    """
    given = kept if isinstance(kept, Mapping) else _parsed(kept)
    current = _up_to_date(given, migrations)
    try:
        return AwarenessState.model_validate(current)
    except ValidationError as error:
        path, problem = where_wrong(error)
        where = f" at {path}" if path else ""
        raise AwarenessError(f"This is no awareness state{where}: {problem}") from error


def _up_to_date(
    given: Mapping[str, object], migrations: Mapping[int, Migration]
) -> Mapping[str, object]:
    """The fields as the present version has them."""
    version = given.get("version", STATE_VERSION)
    if not isinstance(version, int) or isinstance(version, bool) or version > STATE_VERSION:
        raise StateVersionError(version, STATE_VERSION)
    missing = [step for step in range(version, STATE_VERSION) if step not in migrations]
    if missing or version < 0:
        raise StateVersionError(version, STATE_VERSION)
    for step in range(version, STATE_VERSION):
        try:
            given = {**migrations[step](given), "version": step + 1}
        except (KeyError, TypeError, ValueError) as error:
            raise AwarenessError(
                f"This is no awareness state of version {step}, as it says: bringing it up to "
                f"version {step + 1} raised {type(error).__name__}: {error}. Load a sound copy of "
                "it, or start from a new state."
            ) from error
    return given


def _parsed(text: object) -> Mapping[str, object]:
    """The mapping that JSON text says."""
    if not isinstance(text, str | bytes):
        raise AwarenessError(
            f"This is no awareness state, but {text!r:.80} of the type {type(text).__name__}."
        )
    try:
        given: object = from_json(text)
    except ValueError as error:
        raise AwarenessError(f"This is no awareness state, but no JSON at all: {error}.") from error
    if not isinstance(given, dict):
        raise AwarenessError(
            f"This is no awareness state: JSON of a {type(given).__name__}, not an object."
        )
    return cast("dict[str, object]", given)
