"""What judgment keeps in words: six sorts of entries, and dead ends that can reopen.

A summary keeps what was concluded. It loses why: which hypotheses were ruled out, what failed and
under which circumstances, why one looked there (Million 2026, "Judgment Preservation in
Persistent AI Agents", sections 3 and 4.2). The six operations write that down, each as a typed
value with its origin and its tier: how long it is meant to hold. A dead end says what was tried,
why it failed, and what would have to change for it to be worth trying again.

These are plain dataclasses: `coag judgment` reads them at every call, and has no time to import a
validation library. `entry_from` checks what it reads and says what is wrong.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeVar, cast, get_args

from coag.errors import JudgmentError

# ---- Where something comes from, and how long it is meant to hold ----

TrustLevel = Literal["developer", "user", "untrusted"]
"""The values of `coag.schema.Trust`; only what is not `untrusted` may close anything."""
Tier = Literal["session", "project", "lasting"]
"""How long an entry is meant to hold: until the work at hand is done, as long as the project is
the same, or for good."""
TrialVerdict = Literal["confirmed", "refuted", "open"]
TRUST_LEVELS: tuple[str, ...] = get_args(TrustLevel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who says something, when, and what it was concluded from."""

    source: str
    """A person, an agent or a tool."""
    trust: TrustLevel = "user"
    at: datetime
    run: str = ""
    """The run of an agent in which it was learned, if it was in one."""
    derived_from: tuple[str, ...] = ()
    """Ids of entries, or of records of long-term memory; taking one back takes this back."""


# ---- What would have to change: conditions to reopen a dead end ----


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What conditions are judged by: the time, versions of tools and packages, what arrived."""

    now: datetime
    version_of: Callable[[str], str | None] = lambda name: None
    """The version of a tool or package now; None where it is not known."""
    percepts: Sequence[Mapping[str, Any]] = ()
    """What arrived since the last look: `source`, `kind`, `content` and `trust` of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerceptSeen:
    """Something arrives: every part that is given must fit.

    Of what nobody vouches for, only what comes from the source that is named counts.
    """

    kind_of_condition: ClassVar[str] = "percept"
    source: str = ""
    """Name of the tool, sender or sensor; empty for any."""
    kind: str = ""
    """The kind of percept, e.g. `message` or `signal`; empty for any."""
    contains: str = ""
    """Words in its text, upper and lower case alike; empty for any text."""

    def holds(self, world: World) -> str:
        """What arrived that fits, in a few words; empty for nothing."""
        for one in world.percepts:
            anybody = self.source == "" and one.get("trust") != "untrusted"
            fits = (
                (anybody or self.source == one.get("source"))
                and self.kind in ("", one.get("kind"))
                and self.contains.casefold() in str(one.get("content", "")).casefold()
            )
            if fits:
                return f"{one.get('source', 'somebody')} reported something that fits ({self})"
        return ""

    def __str__(self) -> str:
        parts = {"source": self.source, "kind": self.kind, "contains": self.contains}
        return "a percept with " + ", ".join(f"{n} {v!r}" for n, v in parts.items() if v)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChanged:
    """A tool or package has another version than when it failed."""

    kind_of_condition: ClassVar[str] = "version"
    name: str
    was: str

    def holds(self, world: World) -> str:
        """The change of version; empty for none, or where the version is not known."""
        now = world.version_of(self.name)
        return "" if now in (None, self.was) else f"{self.name} was {self.was}, and is {now}"

    def __str__(self) -> str:
        return f"another version of {self.name} than {self.was}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DateReached:
    """A point in time has come."""

    kind_of_condition: ClassVar[str] = "date"
    at: datetime

    def holds(self, world: World) -> str:
        """That it has come; empty if it has not."""
        if world.now.tzinfo is None:
            raise JudgmentError(f"The time of a world must have a zone, got {world.now!r}.")
        return f"{self.at:%Y-%m-%d %H:%M} has come" if world.now >= self.at else ""

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSaysYes:
    """A model answers a question with yes; asked by who looks, not by the condition itself."""

    kind_of_condition: ClassVar[str] = "question"
    question: str

    def holds(self, world: World) -> str:
        """Nothing: only a model can tell."""
        del world
        return ""

    def __str__(self) -> str:
        return f"yes to {self.question!r}"


Reopen = PerceptSeen | VersionChanged | DateReached | ModelSaysYes
"""A condition to reopen a dead end; one that holds is enough."""
_CONDITIONS: Mapping[str, type[Reopen]] = {
    one.kind_of_condition: one for one in (PerceptSeen, VersionChanged, DateReached, ModelSaysYes)
}


# ---- The six sorts of entries, and dead ends ----


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What every entry has."""

    operation: ClassVar[str] = ""
    """The tag under which it is written."""
    origin: Origin
    tier: Tier = "project"
    capabilities: tuple[str, ...] = ()
    """What it is about; by these it is found again."""
    record: str = ""
    """Id of the record of long-term memory that was written of it, if one was."""

    @property
    def id(self) -> str:
        """Depends on what it says and who says it: the same said twice is one entry."""
        said = {n: v for n, v in to_json(self).items() if n not in _CHANGING}
        text = json.dumps([said, self.origin.source, self.origin.trust], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def text(self) -> str:
        """What it says, in a few lines: every field that is filled in."""
        own = [one.name for one in dataclasses.fields(self) if one.name not in _COMMON]
        shown = ((name, _shown(getattr(self, name))) for name in own)
        return "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in shown if value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReflection(_Judged):
    """After a task: what first gave the signal, and what was learned."""

    operation: ClassVar[str] = "reflection"
    signal: str
    """What was noticed first."""
    hypothesis: str = ""
    near_misses: tuple[str, ...] = ()
    """What was nearly overlooked or nearly done."""
    pattern: str = ""
    """What holds beyond this task."""
    ruled_out: tuple[str, ...] = ()
    """What was found not to work or not to be so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Externalisation(_Judged):
    """Before a context is cut: what is in the head and would be lost."""

    operation: ClassVar[str] = "externalisation"
    task: str
    hypotheses: tuple[str, ...] = ()
    """The open ones, the likeliest first."""
    reasoning: tuple[str, ...] = ()
    """How one thing led to another."""
    questions: tuple[str, ...] = ()
    confidence: Mapping[str, float] = field(default_factory=dict[str, float])
    """How sure one is of what, 0..1."""
    depends_on: tuple[str, ...] = ()
    """What must stay true for this to be of use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(_Judged):
    """A piece of knowledge: what works, why it does, and when it fails."""

    operation: ClassVar[str] = "method"
    statement: str
    why: str = ""
    fails_when: str = ""
    explains: str = ""
    """Name of the route pattern that it explains, e.g. `wormhole: search > read`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationTrial(_Judged):
    """A change of configuration as an experiment: expected, measured, judged."""

    operation: ClassVar[str] = "experiment"
    change: str
    hypothesis: str
    measurement: str
    verdict: TrialVerdict = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight(_Judged):
    """What several experiences have in common."""

    operation: ClassVar[str] = "synthesis"
    statement: str
    across: tuple[str, ...] = ()
    """Ids of the entries that it was drawn from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfProfile(_Judged):
    """The technical configuration of an agent, for those that take over from it."""

    operation: ClassVar[str] = "profile"
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEnd(_Judged):
    """What was tried and does not work, until something changes."""

    operation: ClassVar[str] = "dead_end"
    topic: str
    """What was tried, in a few words."""
    why_closed: str
    """Why it failed."""
    reopen: tuple[Reopen, ...] = ()
    """What would make it worth trying again; without any it stays closed until it is reopened
    by hand."""
    arguments: Mapping[str, Any] | None = None
    """With these arguments the capabilities are closed, whatever the others are; `{}` closes
    them whole. None closes calls whose arguments hold all words of the topic."""
    reopened: str = ""
    """Why it is open again; empty while it is closed."""

    @property
    def closes(self) -> bool:
        """Whether it may rule out an action: it is closed, and somebody who is trusted says so."""
        return not self.reopened and self.origin.trust != "untrusted"

    def matches(self, action: str, arguments: Mapping[str, Any]) -> bool:
        """Whether an action with these arguments is what was tried."""
        if action not in self.capabilities:
            return False
        if self.arguments is not None:
            nothing = object()
            return all(arguments.get(n, nothing) == v for n, v in self.arguments.items())
        words = self.topic.casefold().split()
        said = json.dumps(arguments, ensure_ascii=False, default=str).casefold()
        return bool(words) and all(word in said for word in words)

    def opened_by(self, world: World) -> str:
        """The first condition that holds, in words; empty while none does."""
        return next((why for one in self.reopen if (why := one.holds(world))), "")


JudgmentEntry = (
    TaskReflection | Externalisation | Method | ConfigurationTrial | Insight | SelfProfile | DeadEnd
)
"""What the six operations write down, dead ends included."""
OPERATIONS: Mapping[str, type[JudgmentEntry]] = {
    one.operation: one
    for one in (
        TaskReflection,
        Externalisation,
        Method,
        ConfigurationTrial,
        Insight,
        SelfProfile,
        DeadEnd,
    )
}
"""The class of an entry by its tag."""
_CHANGING = frozenset({"origin", "record", "reopened"})
"""Fields that may change while the entry stays the same."""
_COMMON = frozenset({"origin", "tier", "capabilities", "record", "reopened"})
"""Fields that are not part of what an entry says."""


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return ", ".join(f"{name} {each}" for name, each in pairs)
    if isinstance(value, tuple):
        return "; ".join(map(str, cast("tuple[Any, ...]", value)))
    return "" if value is None else str(value)


# ---- As JSON, and back with every field checked ----

_EntryT = TypeVar("_EntryT")
TEXT = 2_000
"""Characters that a text of an entry may have."""


def to_json(value: Any) -> Any:
    """A value of this module as JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = {one.name: to_json(getattr(value, one.name)) for one in dataclasses.fields(value)}
        tag = getattr(value, "operation", "") or getattr(value, "kind_of_condition", "")
        return {"is": tag, **made} if tag else made
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return {name: to_json(each) for name, each in pairs}
    if isinstance(value, tuple | list):
        return [to_json(each) for each in cast("Iterable[Any]", value)]
    return value


def entry_from(data: Any) -> JudgmentEntry:
    """The entry that `to_json` gave, or that somebody wrote by hand.

    Raises:
        JudgmentError: It is none; says which field is wrong, and how.
    """
    return _tagged(OPERATIONS, data, "an entry")


def _tagged(kinds: Mapping[str, type[_EntryT]], data: Any, what: str) -> _EntryT:
    fields = _object(data, what)
    tag = fields.get("is")
    if tag not in kinds:
        known = ", ".join(kinds)
        raise JudgmentError(f"{what} has 'is': {tag!r}; it must be one of: {known}.")
    return _read(kinds[str(tag)], {n: v for n, v in fields.items() if n != "is"}, str(tag))


def _read(kind: type[_EntryT], data: Mapping[str, Any], where: str) -> _EntryT:
    known = {one.name: one for one in dataclasses.fields(cast("Any", kind))}
    for name in data:
        if name not in known:
            listed = ", ".join(known)
            raise JudgmentError(f"{where} has no field {name!r}. It has: {listed}.")
    given: dict[str, Any] = {}
    for name, one in known.items():
        if name in data:
            given[name] = _CHECKS[str(one.type)](data[name], f"{where}.{name}")
        elif one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
            raise JudgmentError(f"{where}.{name} is missing.")
    return kind(**given)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise JudgmentError(f"{where} must be a JSON object, not {value!r}."[:TEXT])
    return cast("dict[str, Any]", value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise JudgmentError(f"{where} must be a text, not {value!r}.")
    if len(value) > TEXT:
        raise JudgmentError(f"{where} has {len(value):,} characters; at most {TEXT:,}.")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise JudgmentError(f"{where} must be a list of texts, not {value!r}.")
    return tuple(_text(one, where) for one in cast("Sequence[Any]", value))


def _moment(value: Any, where: str) -> datetime:
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise JudgmentError(
            f"{where} must be a time as in '2026-11-25T09:00:00+00:00', not {value!r}."
        ) from None
    if moment.tzinfo is None:
        raise JudgmentError(f"{where} must say its zone, e.g. end in '+00:00'; got {value!r}.")
    return moment


def _shares(value: Any, where: str) -> dict[str, float]:
    found = _object(value, where)
    for name, one in found.items():
        if isinstance(one, bool) or not isinstance(one, int | float) or not 0 <= one <= 1:
            raise JudgmentError(f"{where}[{name!r}] must be a number of 0 to 1, not {one!r}.")
    return {name: float(one) for name, one in found.items()}


def _arguments(value: Any, where: str) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise JudgmentError(f"{where} cannot be written as JSON: {error}.") from error
    return _object(value, where)


def _one_of(*allowed: str) -> Callable[[Any, str], str]:
    def check(value: Any, where: str) -> str:
        if value not in allowed:
            raise JudgmentError(f"{where} must be one of {', '.join(allowed)}, not {value!r}.")
        return str(value)

    return check


def _conditions(value: Any, where: str) -> tuple[Reopen, ...]:
    if not isinstance(value, list | tuple):
        raise JudgmentError(f"{where} must be a list of conditions, not {value!r}.")
    every = cast("Sequence[Any]", value)
    return tuple(_tagged(_CONDITIONS, one, "a condition to reopen") for one in every)


_CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "str": _text,
    "tuple[str, ...]": _texts,
    "datetime": _moment,
    "Origin": lambda value, where: _read(Origin, _object(value, where), where),
    "TrustLevel": _one_of(*TRUST_LEVELS),
    "Tier": _one_of(*get_args(Tier)),
    "TrialVerdict": _one_of(*get_args(TrialVerdict)),
    "Mapping[str, float]": _shares,
    "Mapping[str, str]": lambda value, where: {
        name: _text(one, f"{where}[{name!r}]") for name, one in _object(value, where).items()
    },
    "Mapping[str, Any] | None": _arguments,
    "tuple[Reopen, ...]": _conditions,
}
"""How a field is checked, by how its type is written."""
