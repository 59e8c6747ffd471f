"""A rule of a policy file: one sentence, and the constraint that it is compiled to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Any, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from coag._util.secrets import REDACTED
from coag._util.text import comparable, ellipsis, in_a_line
from coag.context import CountedAction, counted_for, counted_value, state_fields
from coag.cycle import IDEMPOTENCY_KEY, RESPOND, JudgedBy, only_trusted
from coag.errors import ConfigurationError
from coag.schema import Candidate, Constraint, CountedFor, Value, Verdict

from .conditions import ConditionError, PolicyCondition, nearest
from .files import NUMBER

KINDS = ("never", "only_if", "at_most", "once", "needs_approval", "only_trusted")
"""What a rule can be; each has exactly one."""
_MOST = 400
"""Calls that `at_most` can count to; of one action 500 are kept."""
_COUNTING = ("at_most", "once")
_PARTING = ",;|&+(){}\"'"
"""Signs that separate or quote names; a rule with one in a name would judge nothing."""
_ALL = ("all",)
"""For `once`: the same call is one with the same arguments."""
_BELONGS = {
    "per": _COUNTING,
    "sum": ("at_most",),
    "sources": ("only_trusted",),
    "allow": ("only_trusted",),
    "links": ("only_trusted",),
}
"""Keys that only some kinds of rules have."""


_KIND_OF = {"string": "text", "integer": "number", "number": "number", "boolean": "truth"}
"""Kinds of values as conditions compare them, by the types of JSON Schemas."""


def _plain_number(value: object) -> object:
    if isinstance(value, str) and not NUMBER.fullmatch(value):
        raise ValueError("write a number as 400 or 2.5, without zeros before it")
    return value


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _tool_name(name: str) -> str:
    odd = next((sign for sign in name if not ("!" <= sign <= "~")), None)
    if odd is not None:
        raise PydanticCustomError(
            "tool",
            "{name} has the sign {sign}, which only looks like one of a tool's name: retype it",
            {"name": repr(name), "sign": f"{odd!r} (U+{ord(odd):04X})"},
        )
    parting = next((sign for sign in name if sign in _PARTING), None)
    if parting is not None:
        raise PydanticCustomError(
            "tool",
            "{name} has the sign {sign}, which no tool's name has: write a list, [a, b]",
            {"name": repr(name), "sign": repr(parting)},
        )
    if "[" in name or "]" in name:
        raise PydanticCustomError(
            "tool", "{name}: a pattern has * and ? only", {"name": repr(name)}
        )
    return name


def _condition(text: str) -> str:
    try:
        return PolicyCondition(text).text
    except ConditionError as error:
        details = {"problem": error.problem, "column": error.column}
        raise PydanticCustomError("condition", "{problem}", details) from error


_Text = Annotated[str, AfterValidator(in_a_line), StringConstraints(max_length=300)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True)]
_Tool = Annotated[_Name, AfterValidator(_tool_name)]
_Tools = Annotated[tuple[_Tool, ...], BeforeValidator(_one_or_more)]
_Names = Annotated[tuple[_Name, ...], BeforeValidator(_one_or_more)]
_Texts = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
_Condition = Annotated[str, AfterValidator(_condition)]
_Number = Annotated[Decimal, Field(ge=0, le=10**12), BeforeValidator(_plain_number)]


class PolicyRule(Value):
    """A rule of a policy file as a constraint; it judges its tools and lets all else pass.

    Raises:
        ConfigurationError: The extra `policy` is not installed.
    """

    model_config = ConfigDict(populate_by_name=True)

    name: Annotated[_Name, AfterValidator(in_a_line)]
    """How logs call it."""
    tools: Annotated[_Tools, Field(min_length=1)]
    """Names, or patterns with * and ?; no pattern means `respond`."""
    without: Annotated[_Tools, Field(alias="except")] = ()
    """Tools that the patterns leave out."""
    never: _Condition | None = None
    """Forbidden where this is true."""
    only_if: _Condition | None = None
    """Forbidden where this is not true."""
    at_most: _Number | None = None
    """How many calls, or how much in all of `sum`."""
    once: Annotated[_Names, Field(min_length=1)] | None = None
    """The arguments by which a call is the same; `all` for every one."""
    needs_approval: _Condition | None = None
    """Somebody is asked where this is true; of arguments alone."""
    only_trusted: Annotated[_Names, Field(min_length=1)] | None = None
    """Arguments that hold only what the user or the developer named."""
    because: _Text = ""
    """The reason that the agent is shown when it is forbidden."""
    per: CountedFor | None = None
    """For what it counts: `goal`, `run` or `person`."""
    sum: _Name | None = None
    """An argument whose numbers are added up."""
    sources: _Names = ()
    allow: _Texts = ()
    links: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_one_kind(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        fields = cast("Mapping[str, Any]", given)
        kinds = [kind for kind in KINDS if fields.get(kind) is not None]
        known = {field.alias or name for name, field in cls.model_fields.items()}
        if not kinds and {*fields} - known - {"without"}:
            return fields  # the key that is not known is the one that is meant
        if len(kinds) != 1:
            said = f"it has {' and '.join(kinds)}" if kinds else "it has none"
            raise PydanticCustomError(
                "kind",
                "a rule has exactly one of {kinds}; {said}",
                {"kinds": ", ".join(KINDS), "said": said},
            )
        for key, owners in _BELONGS.items():
            if fields.get(key) not in (None, (), [], False) and kinds[0] not in owners:
                raise PydanticCustomError(
                    "belongs",
                    "{key} belongs to {owners}, and this rule is {kind}",
                    {"key": key, "owners": " or ".join(owners), "kind": kinds[0], "at": key},
                )
        return fields

    @model_validator(mode="after")
    def _judges_something(self) -> Self:
        # What a pattern with ? leaves of another pattern is not known.
        whole = [one for one in self.without if "?" not in one]
        if all(any(fnmatchcase(name, one) for one in whole) for name in self.tools):
            raise PydanticCustomError(
                "tool",
                "except: {without} leaves nothing of tools: {tools}",
                {"without": ", ".join(whole), "tools": ", ".join(self.tools), "at": "except"},
            )
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.kind in _COUNTING and self.per is None:
            raise PydanticCustomError(
                "per",
                "{kind} needs per: goal (until the user's request is answered), run (as long as "
                "the agent remembers) or person (whom it serves)",
                {"kind": self.kind},
            )
        most = Decimal(0) if self.at_most is None or self.sum is not None else self.at_most
        if most != int(most) or most > _MOST:
            raise PydanticCustomError(
                "most",
                "at_most {n} calls: give a whole number up to {most}",
                {"n": str(most), "most": _MOST, "at": "at_most"},
            )
        if self.kind in (*_COUNTING, "needs_approval") and RESPOND.name in self.tools:
            raise PydanticCustomError(
                "respond",
                "{kind} is about tools, and respond is the agent's answer: use never or only_if",
                {"kind": self.kind, "at": "tools"},
            )
        if self.needs_approval is not None and self.condition is not None:
            seen = sorted({root for root, _ in self.condition.reads} - {"arguments"})
            seen += sorted(self.condition.names - {"tool"})
            if seen:
                raise PydanticCustomError(
                    "approval",
                    "needs_approval looks at arguments and tool only, not at {seen}: the person "
                    "who is asked sees the state",
                    {"seen": seen[0], "at": "needs_approval"},
                )
        return self

    # ---- what it says ----

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @cached_property
    def condition(self) -> PolicyCondition | None:
        """What must or must not be true."""
        text = self.never or self.only_if or self.needs_approval
        return None if text is None else PolicyCondition(text)

    @cached_property
    def text(self) -> str:
        """The rule as a sentence without its reason."""
        tools = " or ".join(self.tools)
        if self.without:
            tools += f" (except {', '.join(self.without)})"
        if self.kind == "never":
            return f"never {tools}{_when(self.never)}"
        if self.kind == "only_if":
            return f"{tools} only if {self.only_if}"
        if self.kind == "needs_approval":
            return f"{tools} needs approval{_when(self.needs_approval)}"
        if self.only_trusted is not None:
            named = f"{', '.join(self.only_trusted)} of {tools} only as the user or developer named"
            return f"{named}, or {' or '.join(self.sources)} returned" if self.sources else named
        if self.once is not None:
            same = "all arguments" if self.once == _ALL else f"the same {', '.join(self.once)}"
            return f"{tools} only once with {same}, per {self.per}"
        if self.sum is not None:
            return f"{self.sum} of {tools} at most {self.at_most} in all, per {self.per}"
        calls = "call" if self.at_most == 1 else "calls"
        return f"at most {self.at_most} {calls} of {tools}, per {self.per}"

    @property
    def sentence(self) -> str:
        """The rule as a sentence, with its reason."""
        begins = self.kind in ("never", "at_most") and self.sum is None
        text = self.text[:1].upper() + self.text[1:] if begins else self.text
        return f"{text}, because {self.because}." if self.because else f"{text}."

    @property
    def actions(self) -> Sequence[str]:
        """The tools that it names, patterns left out."""
        return tuple(name for name in self.tools if "*" not in name and "?" not in name)

    @property
    def arguments(self) -> set[str]:
        """The arguments that it looks at."""
        reads = set[tuple[str, str]]() if self.condition is None else self.condition.reads
        named = {member for root, member in reads if root == "arguments"}
        named |= {*(self.only_trusted or ()), *((self.sum,) if self.sum else ())}
        return named | (set() if self.once is None or self.once == _ALL else {*self.once})

    def applies(self, action: str) -> bool:
        """Whether it judges calls of this tool."""
        if any(fnmatchcase(action, one) for one in self.without):
            return False
        if action in self.tools:
            return True
        return action != RESPOND.name and any(fnmatchcase(action, one) for one in self.tools)

    @property
    def counted(self) -> Mapping[str, CountedFor]:
        """The tools whose calls it counts."""
        return {} if self.per is None else dict.fromkeys(self.tools, self.per)

    @property
    def approval(self) -> AskedFirst | None:
        """The rule for the policy of approval; None where nobody is asked."""
        return AskedFirst(self) if self.needs_approval is not None else None

    def check_arguments(
        self, actions: Mapping[str, Mapping[str, Any]], state: Collection[str] | None = None
    ) -> None:
        """Checks that tools and state have what it reads, as far as they are known.

        Raises:
            ConfigurationError: They have not; every call would be forbidden.
        """
        for problem in self.problems_with(actions, state):
            raise ConfigurationError(f"Rule {self.name!r} {problem}.")

    def problems_with(
        self, actions: Mapping[str, Mapping[str, Any]], state: Collection[str] | None = None
    ) -> list[str]:
        """What it reads that tools or state do not have, and compares that is never the same."""
        problems: list[str] = []
        reads = set[tuple[str, str]]() if self.condition is None else self.condition.reads
        judged = [one for one in self.actions if one in actions and self.applies(one)]
        for action in judged:
            problems += _not_taken(self, action, actions[action])
        for action in judged:
            problems += _never_the_same(self, action, actions[action])
        for root, member in sorted(reads):
            if root != "arguments" and state is not None and member not in state:
                hint = nearest(member, state)
                problems.append(f"asks for {root}.{member}, which the state does not have{hint}")
        return problems

    # ---- how it judges ----

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """The verdict by candidate, state and prediction alone; a rule that needs more forbids."""
        return self._judge(candidate, state, projection, None)

    def within(self, known: JudgedBy) -> Constraint:
        """The rule with what is known at this moment."""

        def judge(candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
            return self._judge(candidate, state, projection, known)

        return judge

    def _judge(
        self, candidate: Candidate, state: Any, projection: Any | None, known: JudgedBy | None
    ) -> Verdict:
        if not self.applies(candidate.action):
            return Verdict.allow()
        arguments = candidate.arguments or {}
        if problem := _misfit(self, candidate, state, known):
            return self._forbid(f"it {problem}")
        if self.needs_approval is not None:
            approvals = None if known is None else known.approvals
            asked = approvals is not None and approvals.need(candidate.action, arguments)
            why = "" if asked else self.why_asked(candidate.action, arguments)
            return self._forbid(f"{why}, and nobody would be asked") if why else Verdict.allow()
        if self.condition is not None:
            return self._by_condition(self.condition, candidate, state, projection)
        if known is None:
            return self._forbid("nothing tells it what was said or done: give it to an agent")
        if self.only_trusted is not None:
            trusted = only_trusted(
                candidate.action,
                *self.only_trusted,
                sources=self.sources,
                allow=self.allow,
                links=self.links,
            )
            verdict = trusted.within(known)(candidate, state, projection)
            return verdict if verdict.allowed else self._forbid(verdict.reason)
        if known.spec.internal:
            named = candidate.action in self.tools
            return self._forbid("only calls of tools are counted") if named else Verdict.allow()
        problem = _too_often(self, candidate, known)
        return self._forbid(problem) if problem else Verdict.allow()

    def _by_condition(
        self, condition: PolicyCondition, candidate: Candidate, state: Any, projection: Any | None
    ) -> Verdict:
        values = {
            "arguments": candidate.arguments or {},
            "state": state,
            "after": projection,
            "tool": candidate.action,
            "unsettled": [one.action for one in candidate.unsettled],
        }
        try:
            held = condition.holds(values)
        except ConditionError as error:
            return self._forbid(f"it cannot be judged: {error.problem}")
        return Verdict.allow() if held is (self.only_if is not None) else self._forbid("")

    def _forbid(self, problem: str) -> Verdict:
        """The refusal in the words of the file, with the problem that kept it from judging."""
        said = "; ".join(filter(None, (self.because, problem)))
        return Verdict.forbid(f"{said} ({self.text})" if said else self.text)

    def why_asked(self, action: str, arguments: Mapping[str, Any]) -> str:
        """Why somebody has to be asked; empty if nobody has to. In doubt, somebody is."""
        asks = self.needs_approval is not None and self.applies(action)
        if self.condition is None or not asks:
            return ""
        try:
            needed = self.condition.holds({"arguments": arguments, "tool": action})
        except ConditionError as error:
            return f"{self.text}, which cannot be judged: {error.problem}"
        return f"{self.because} ({self.text})".strip() if needed else ""


class AskedFirst:
    """A rule as one of an `ApprovalPolicy`: says whether somebody is asked, and why."""

    def __init__(self, rule: PolicyRule) -> None:
        self.rule = rule
        self.__name__ = rule.name
        self.__qualname__ = f"{rule.name}: {rule.text}"
        """Distinguishes it from other rules in the policy's digest."""

    def __call__(self, action: str, arguments: Mapping[str, Any]) -> bool | str:
        """Why somebody is asked; False if nobody is."""
        return self.rule.why_asked(action, arguments) or False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AskedFirst) and other.rule == self.rule

    def __hash__(self) -> int:
        return hash(self.rule.name)


def _when(condition: str | None) -> str:
    return "" if condition == "true" else f" when {condition}"


def taken_by(schemas: Collection[Mapping[str, Any]]) -> set[str] | None:
    """The arguments that one of some tools takes, by their schemas; None where one takes any."""
    if any(one.get("additionalProperties", False) is not False for one in schemas):
        return None
    return {IDEMPOTENCY_KEY}.union(*(one.get("properties", {}) for one in schemas))


def _not_taken(rule: PolicyRule, action: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """The arguments that it asks for and an action does not take."""
    takes = taken_by([schema])
    if takes is None:
        return
    known = ", ".join(sorted(takes - {IDEMPOTENCY_KEY})) or "nothing"
    for name in sorted(rule.arguments - takes):
        near = nearest(name, takes) or "."
        yield f"asks for {name!r}, which {action!r} does not take{near} It takes: {known}"


def _never_the_same(rule: PolicyRule, action: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """What it compares with a value of a kind that an action never gets."""
    compared = frozenset[Any]() if rule.condition is None else rule.condition.compared
    for root, member, kind, shown in sorted(compared):
        kinds = _kinds_of(schema.get("properties", {}).get(member))
        if root == "arguments" and kinds and kind not in kinds:
            yield (
                f"compares {member!r} with {shown}, and {action!r} takes "
                f"{' or '.join(sorted(kinds))} there: they are never the same"
            )


def _misfit(rule: PolicyRule, candidate: Candidate, state: Any, known: JudgedBy | None) -> str:
    """Why a typing error may be what lets the call pass; empty where nothing says so.

    What an open schema does not name may be given all the same, unless it is almost a name.
    """
    if known is None or known.spec.internal or candidate.action not in rule.actions:
        return ""
    schema: Mapping[str, Any] = known.spec.parameters
    if "additionalProperties" not in schema:
        named: Mapping[str, Any] = schema.get("properties", {})
        far = [one for one in rule.arguments if one not in named and not nearest(one, named)]
        schema = {**schema, "properties": {**named, **{one: {} for one in far}}}
    fields = state_fields(type(state)) if isinstance(state, BaseModel) else None
    return next(iter(rule.problems_with({candidate.action: schema}, fields)), "")


def _kinds_of(schema: Any) -> set[str]:
    """Of what kinds a value may be, by its schema; empty where it does not say."""
    if not isinstance(schema, Mapping):
        return set()
    part = cast("Mapping[str, Any]", schema)
    options: Any = part.get("anyOf") or part.get("oneOf")
    if isinstance(options, list):
        parts = [_kinds_of(one) for one in cast("list[Any]", options) if one != {"type": "null"}]
        return set[str]().union(*parts) if all(parts) else set()
    types: Any = part.get("type")
    given = [types] if isinstance(types, str) else cast("list[Any]", types or [])
    return {_KIND_OF.get(one, "a list or object") for one in given if one != "null"}


# ---- Whether a call would be one too many, by what working memory holds of those before ----


def _too_often(rule: PolicyRule, candidate: Candidate, known: JudgedBy) -> str:
    """Why the call would be one too many; empty if it is not."""
    memory, action = known.memory, candidate.action
    if not counted_for(action, memory.counted):
        return "its calls are not counted here"
    gone = {name: goal for name, goal in memory.forgotten.items() if rule.applies(name)}
    if any(rule.per != "goal" or goal == memory.goal_id for goal in gone.values()):
        return "there were so many calls that the oldest are not known any more"
    earlier = [
        one for one in memory.done if rule.applies(one.action) and _counts_now(rule, one, known)
    ]
    given = {name: one for name, one in (candidate.arguments or {}).items() if one is not None}
    if rule.once is not None:
        return _repeated(rule, given, earlier)
    if rule.sum is None:
        return "" if len(earlier) < (rule.at_most or 0) else f"there were {len(earlier)} already"
    value, before = given.get(rule.sum), [one.values.get(rule.sum, "") for one in earlier]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return f"{rule.sum} is {ellipsis(repr(value), 80)}, which is no number to add up"
    numbers = [_number(str(value)), *map(_number, before)]
    total = Decimal(0)
    for number in numbers:
        if number is None or number < 0:
            return f"{rule.sum} has to be a number that is not below 0 in each call"
        total += number
    most = rule.at_most or 0
    return "" if total <= most else f"with the calls before it would be {total}"


def _counts_now(rule: PolicyRule, one: CountedAction, known: JudgedBy) -> bool:
    """Whether an earlier call counts now."""
    memory = known.memory
    if rule.per == "goal":
        return one.goal_id == memory.goal_id
    if rule.per == "person":
        scopes = (memory.memory_scope, one.memory_scope)
        return "" in scopes or scopes[0] == scopes[1]
    return True


def _repeated(rule: PolicyRule, given: Mapping[str, Any], earlier: Sequence[CountedAction]) -> str:
    """Says that an earlier call was the same; empty if none was."""
    for one in earlier:
        names = rule.once if rule.once != _ALL else {*given, *one.values} - {IDEMPOTENCY_KEY}
        values = ((one.values.get(name), _counted(given.get(name))) for name in names or ())
        if all(REDACTED in (was or "") or _without_blanks(was) == now for was, now in values):
            return f"it was called already{_shown(rule, given)}"
    missing = [] if rule.once == _ALL else [name for name in rule.once or () if name not in given]
    return f"{missing[0]!r} is not given" if missing else ""


def _shown(rule: PolicyRule, given: Mapping[str, Any]) -> str:
    names = () if rule.once == _ALL else rule.once or ()
    shown = ", ".join(f"{name} {ellipsis(repr(given.get(name)), 60)}" for name in names)
    return f" with {shown}" if shown else ""


def _counted(value: Any) -> str | None:
    return None if value is None else _without_blanks(counted_value(value))


def _without_blanks(text: str | None) -> str | None:
    """The number of an account is the same in groups of four."""
    return None if text is None else text.replace(" ", "")


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(comparable(text))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
