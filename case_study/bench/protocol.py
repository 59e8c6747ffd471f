"""What a public benchmark is to the runner: suites of cases, and a way to play one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, Protocol, get_args

from pydantic import Field

from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import Value

Arm = Literal["stock", "guarded", "compact", "auto"]
"""`stock`: AutoGen's `AssistantAgent`. `guarded`: the same, its tools behind the rules
(`ConstrainedWorkbench`). `compact`, `auto`: `CoagAgent` of that depth under the same rules."""
ARMS: tuple[Arm, ...] = get_args(Arm)


class Case(Value):
    """One thing to play."""

    id: str
    """Names it for good: the same id is the same case in every run of this benchmark."""
    suite: str
    kind: str = ""
    """What cases are counted apart by when only some are played, e.g. `benign` and `attacked`."""

    def result(self, arm: str, policy: str, seed: int, **found: Any) -> CaseResult:
        """What came of it, by names of a `CaseResult`'s fields."""
        known = {"case": self.id, "suite": self.suite, "kind": self.kind}
        asked = {"arm": arm, "policy": policy, "seed": seed}
        return CaseResult.model_validate({**known, **asked, **found})


class CaseResult(Value):
    """What came of a case."""

    case: str
    """The case's id."""
    suite: str
    kind: str = ""
    arm: str
    policy: str
    seed: int
    metrics: dict[str, float] = Field(default_factory=dict[str, float])
    """By name; a case leaves out what it does not measure. Yes and no are 1 and 0."""
    calls: int = 0
    """Calls of tools that were made; refused ones are not."""
    tokens: int = 0
    """Of all model calls, prompts and answers; estimated for scripted policies."""
    seconds: float = 0.0
    problem: str = ""
    """How the agent's turn ended, where it did not end by itself."""
    broken: bool = False
    """The benchmark or the model failed, not the agent: it is no evidence, and is played again."""


class Benchmark(Protocol):
    """A public benchmark behind an adapter."""

    name: str
    metrics: Mapping[str, str]
    """What is measured, the most important first: by name, what 1 means."""
    suites: Sequence[str]
    """All suites."""
    policies: Sequence[str]
    """Scripted policies, which ask no model; any other policy is the spec of a model."""
    rule_sets: Sequence[str]
    """The sets of rules that an arm can be given, the usual one first."""
    settings: Mapping[str, str]
    """What else decides results, e.g. the benchmark's version: results of others do not mix."""

    def cases(self, suites: Sequence[str]) -> Sequence[Case]:
        """The cases of these suites, in an order that is always the same."""
        ...

    async def run(self, case: Case, arm: Arm, policy: str, seed: int) -> CaseResult:
        """Plays a case.

        Raises:
            CoagError: The model or the benchmark failed; the case is no evidence.
        """
        ...


def rules_among(benchmark: str, options: Mapping[str, str], rule_sets: Sequence[str]) -> str:
    """The set of rules that the options name, for a benchmark with no other option.

    Raises:
        ConfigurationError: There is another option.
        UnknownNameError: There is no such set of rules.
    """
    unknown = set(options) - {"rules"}
    if unknown:
        raise ConfigurationError(
            f"{benchmark} has no option {', '.join(map(repr, sorted(unknown)))}; it has: rules."
        )
    rules = options.get("rules", rule_sets[0])
    if rules not in rule_sets:
        raise UnknownNameError("set of rules", rules, rule_sets)
    return rules


def needs(package: str, module: str, how: str) -> None:
    """Makes sure that a benchmark's package is there.

    Raises:
        ConfigurationError: It is not installed; the message says how to.
    """
    if find_spec(module) is None:
        raise ConfigurationError(
            f"This benchmark needs the package {package!r}, which is not installed here. {how}"
        )
