"""What every value of `coag` is made from: frozen models, moments, phases, ids, clocks."""

from __future__ import annotations

import ast
import hashlib
import inspect
import random
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Protocol, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic_core import CoreSchema

from coag.errors import StateError

# ---- The base of all nouns: frozen, strict about unknown fields ----


class Value(BaseModel):
    """A frozen value. Two with equal fields are equal; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Fields are described by their docstrings.

        Pydantic's `use_attribute_docstrings` reads the source of every class when it is made, which
        takes a quarter of the time of an import. Here it is read when a schema is asked for.
        """
        made = handler(core_schema)
        properties = handler.resolve_ref_schema(made).get("properties", {})
        own = [kind for kind in reversed(cls.__mro__) if issubclass(kind, Value)]
        docs = {
            name: text
            for kind in own
            for name, text in _field_docs(kind.__module__).get(kind.__qualname__, {}).items()
        }
        for name, field in cls.model_fields.items():
            alias = field.validation_alias
            names = [name, field.alias, field.serialization_alias]
            names += alias.choices if isinstance(alias, AliasChoices) else [alias]
            for known in names:
                if isinstance(known, str) and known in properties and name in docs:
                    properties[known].setdefault("description", docs[name])
        return made


@cache
def _field_docs(module: str) -> dict[str, dict[str, str]]:
    """By class of a module, the docstrings of its fields; none where its source is not at hand."""
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):
        return {}
    found: dict[str, dict[str, str]] = {}
    waiting: list[tuple[str, ast.stmt]] = [("", one) for one in ast.parse(source).body]
    while waiting:
        before, made = waiting.pop()
        if not isinstance(made, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = f"{before}{made.name}"
        within = f"{name}." if isinstance(made, ast.ClassDef) else f"{name}.<locals>."
        waiting += [(within, one) for one in made.body]
        docs = found[name] = dict[str, str]()
        for field, below in pairwise(made.body):
            match field, below:
                case ast.AnnAssign(ast.Name(target)), ast.Expr(ast.Constant(str(text))):
                    docs[target] = inspect.cleandoc(text)
                case _:
                    pass
    return found


class SparseValue(Value):
    """A value some of whose fields are written down only where they differ from their defaults.

    So older values, and values that do not use them, are written as before.
    """

    SPARSE: ClassVar[frozenset[str]] = frozenset()
    """Names of these fields."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler):
        written: dict[str, Any] = write(self)
        for name, default in _sparse_defaults(type(self)):
            if getattr(self, name) == default:
                written.pop(name, None)
        return written


@cache
def _sparse_defaults(kind: type[SparseValue]) -> list[tuple[str, Any]]:
    """To make them takes longer than to write the value."""
    fields = kind.model_fields
    return [(one, fields[one].get_default(call_default_factory=True)) for one in kind.SPARSE]


# ---- Points in time that can always be compared ----


def _placed(moment: datetime) -> datetime:
    """The same moment with a zone: one that has none is taken for UTC."""
    offset = moment.utcoffset()
    if offset is None:
        return moment.replace(tzinfo=UTC)
    if offset:
        try:
            moment.astimezone(UTC)
        except OverflowError as error:
            raise ValueError("is no time that UTC can express") from error
    return moment


Moment = Annotated[datetime, AfterValidator(_placed)]
"""A point in time with a zone; without one it is read as UTC, so that any two can be compared."""


# ---- The six phases of a cycle ----


class Phase(StrEnum):
    """A step of the deliberative cycle (CoALA §4.6; CoAG §2)."""

    RETRIEVAL = "retrieval"
    REASONING = "reasoning"
    PROPOSAL = "proposal"
    EVALUATION = "evaluation"
    SELECTION = "selection"
    EXECUTION = "execution"


PHASES: tuple[Phase, ...] = tuple(Phase)
"""All phases, in the one order in which they may run."""


def phase_after(phase: Phase | None) -> Phase:
    """The phase that must follow `phase`; Retrieval after Execution and at the very start."""
    if phase is None or phase is Phase.EXECUTION:
        return Phase.RETRIEVAL
    return PHASES[PHASES.index(phase) + 1]


# ---- Names for things: readable, sortable where order matters, unique across runs ----


IdSource = Callable[[str], str]
"""Gives a fresh id for a kind of thing: `ids("percept") -> "percept-000012"`."""


class CountingIds:
    """Ids that count up per kind; the same calls give the same ids, so runs can be replayed.

    Args:
        prefix: Put before every id, e.g. a run's id, where ids must be unique across runs.
        counts: Where to continue (see `save`).
    """

    def __init__(self, prefix: str = "", counts: dict[str, int] | None = None) -> None:
        self._prefix = prefix
        self._counts = dict(counts or {})

    def __call__(self, kind: str) -> str:
        """The next id of this kind."""
        count = self._counts.get(kind, 0) + 1
        self._counts[kind] = count
        return f"{self._prefix}{kind}-{count:06d}"

    def save(self) -> dict[str, int]:
        """The counts so far, to continue from."""
        return dict(self._counts)

    def load(self, counts: dict[str, int]) -> None:
        """Continues from saved counts, never below those already used."""
        for kind, count in counts.items():
            self._counts[kind] = max(count, self._counts.get(kind, 0))


def new_run_id(now: datetime, name: str) -> str:
    """A run's id: sortable by time, readable, unique: `20261121-221300-assistant-3f9a2c`."""
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40]
    return f"{now:%Y%m%d-%H%M%S}-{safe}-{secrets.token_hex(3)}"


def content_id(*parts: str) -> str:
    """An id that depends on the parts only: equal parts, equal id (SHA-256, 128 bits kept)."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


# ---- Time as something that is given, so that a run can be repeated ----


class Clock(Protocol):
    """Tells the time of day and measures durations."""

    def now(self) -> datetime:
        """The time of day, in UTC and aware of it."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; only differences mean something."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return time.monotonic()


class SteppingClock:
    """A clock for tests and replays: starts at a given time and moves one step per look."""

    def __init__(
        self,
        start: datetime = datetime(2026, 1, 1, tzinfo=UTC),
        step: timedelta = timedelta(milliseconds=1),
    ) -> None:
        self._now = start
        self._step = step
        self._start = start

    def now(self) -> datetime:
        """The current instant; the next look is one step later."""
        current = self._now
        self._now = current + self._step
        return current

    def monotonic(self) -> float:
        """Seconds since the start, moving one step per look."""
        return (self.now() - self._start).total_seconds()


# ---- The state of a random source as JSON ----


_SHOWN = 80
"""Characters of a wrong state that an error shows."""


def random_state(source: random.Random) -> list[Any]:
    """What a random source will give from now on, for `set_random`."""
    version, internal, gauss = source.getstate()
    return [version, list(internal), gauss]


def set_random(source: random.Random, state: object) -> None:
    """Puts a random source into a state that `random_state` gave; else it stays as it is.

    Raises:
        StateError: It is no such state.
    """
    try:
        version, internal, gauss = cast("Sequence[Any]", state)
        if not (gauss is None or isinstance(gauss, float)):
            raise TypeError(f"its last value is {str(gauss)[:_SHOWN]!r}, neither null nor a number")
        source.setstate((version, tuple(internal), gauss))
    except (TypeError, ValueError, OverflowError) as error:
        raise StateError(
            f"This is no state of a random source: {error} (got {repr(state)[:_SHOWN]}). Give one "
            "that was saved, or null."
        ) from error
