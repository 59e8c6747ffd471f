"""Which actions a person decides about, and on what terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from coag.schema import Value

from ._actions import RESPOND
from ._approval_values import digest_of
from ._timed import told

ApprovalRule = Callable[[str, Mapping[str, Any]], bool | str]
"""`(action, arguments) -> needs approval`; a text that is not empty says yes and why."""
UNCLASSIFIED = "unclassified"
"""Risk class of an action that no pattern of `risk` matches."""


def _names(tools: Sequence[Any]) -> tuple[str, ...]:
    return tuple(_name_of(tool) for tool in tools)


def _name_of(tool: object) -> str:
    for name in (tool, getattr(tool, "name", None), getattr(tool, "__name__", None)):
        if isinstance(name, str) and name:
            return name
    raise ValueError(
        f"tools takes tools, functions or names of actions, not {tool!r}, which has no name."
    )


@dataclass(frozen=True, slots=True)
class ApprovalNeed:
    """Why an action needs approval."""

    risk: str
    """Its risk class."""
    reason: str
    """The rules of the policy that it meets, in words."""


class ApprovalPolicy(Value):
    """Which actions need approval, how long one is waited for, and how long it holds.

    An action needs approval if any of `actions`, `tools`, `when` or `require` says so.

    Example:
        `ApprovalPolicy(risk={"delete_*": "high", "read_*": "low"}, require={"high"})`

    Raises:
        ValueError: Nothing would ever need approval, or a term is of the wrong kind.
    """

    name: str = "approval"
    version: str = "1"
    """Yours to count up: where a rule in `when` is changed, its name alone does not tell."""
    actions: Annotated[Sequence[str], AfterValidator(tuple)] = ()
    """Patterns of names, as of files: `delete_*`, `*`. Case matters."""
    tools: Annotated[Sequence[Any], AfterValidator(_names)] = ()
    """Tools, functions or exact names; kept as names."""
    when: Annotated[Sequence[ApprovalRule], AfterValidator(tuple)] = ()
    """Rules that look at the arguments; one that raises is taken to say yes."""
    risk: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Risk class by pattern of names; the first pattern that matches counts."""
    require: Annotated[AbstractSet[str], AfterValidator(frozenset)] = frozenset({"high"})
    """Risk classes that need approval; `unclassified` stands for what no pattern matches."""
    exempt: Annotated[Sequence[str], AfterValidator(tuple)] = (RESPOND.name,)
    """Patterns of names that are never asked about, whatever else says so."""
    approval_seconds: float = Field(default=300.0, gt=0, le=31_536_000)
    """How long an approval holds, counted from the answer."""
    wait_seconds: float = Field(default=300.0, gt=0, le=31_536_000)
    """How long an answer is waited for; then the action is denied."""
    reuse: bool = False
    """Whether an answer, yes or no, holds for an identical request until it expires.
    Otherwise each is for one run only."""
    asks: int = Field(default=3, ge=1)
    """How often one action is asked about where something changes in between; then it is
    denied."""

    @model_validator(mode="after")
    def _asks_about_something(self) -> Self:
        classes = {*self.risk.values(), UNCLASSIFIED}
        if not (self.actions or self.tools or self.when or classes & self.require):
            raise ValueError(
                f"By policy {self.name!r} nothing needs approval: give actions, tools, when, or "
                f"risk classes of which require ({', '.join(sorted(self.require)) or 'empty'}) "
                "names one."
            )
        return self

    @classmethod
    def everything(cls) -> ApprovalPolicy:
        """The policy by which every action except `respond` needs approval."""
        return cls(name="everything", actions=("*",))

    @property
    def label(self) -> str:
        """`NAME@VERSION`."""
        return f"{self.name}@{self.version}"

    def digest(self) -> str:
        """A hash of the whole policy; rules in `when` count by their import name."""
        plain = self.model_dump(mode="json", exclude={"when", "require"})
        rules = [_import_name(rule) for rule in self.when]
        return digest_of({**plain, "when": rules, "require": sorted(self.require)})

    def risk_of(self, action: str) -> str:
        """The risk class of an action."""
        classes = (named for pattern, named in self.risk.items() if fnmatchcase(action, pattern))
        return next(classes, UNCLASSIFIED)

    def exempts(self, action: str) -> bool:
        """Whether nobody is ever asked about the action."""
        return any(fnmatchcase(action, pattern) for pattern in self.exempt)

    def need(self, action: str, arguments: Mapping[str, Any]) -> ApprovalNeed | None:
        """Why the action needs approval, or None if it does not."""
        if self.exempts(action):
            return None
        risk = self.risk_of(action)
        reasons = [f"it matches {p!r}" for p in self.actions if fnmatchcase(action, p)]
        if action in self.tools:
            reasons.append("the tool is listed")
        if risk in self.require:
            reasons.append(f"its risk is {risk}")
        reasons += [said for rule in self.when if (said := _said(rule, action, arguments))]
        return ApprovalNeed(risk, "; ".join(reasons)) if reasons else None


def _said(rule: ApprovalRule, action: str, arguments: Mapping[str, Any]) -> str:
    name = getattr(rule, "__name__", None) or type(rule).__name__
    try:
        answer = rule(action, deepcopy(dict(arguments)))
        asks = bool(answer)
    except Exception as error:  # a rule is user code; what it cannot judge, a person does
        return f"the rule {name} raised {told(error)}"
    if not asks:
        return ""
    return answer if isinstance(answer, str) else f"the rule {name} says so"


def _import_name(rule: ApprovalRule) -> str:
    kind = type(rule)
    return f"{getattr(rule, '__module__', kind.__module__)}:" + str(
        getattr(rule, "__qualname__", kind.__qualname__)
    )
