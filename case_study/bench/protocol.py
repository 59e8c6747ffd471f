"""What a public benchmark is to the runner: suites of cases, and a way to play one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Literal, Protocol, get_args

from coag.errors import ConfigurationError, UnknownNameError
from coag.evals import JobResult
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

    def result(
        self, metrics: Mapping[str, float], *, kind: str = "", problem: str = "", **spent: float
    ) -> JobResult:
        """What came of it; it succeeded where the first metric is 1.

        Args:
            metrics: By name; a case leaves out what it does not measure. Yes and no are 1 and 0.
            kind: The kind, where that is known only now.
            problem: How the agent's turn ended, where it did not end by itself.
            spent: `calls` of tools that were made (refused ones are not), `tokens` of all model
                calls (estimated for scripted policies), and `seconds`.
        """
        parts = {"suite": self.suite, "kind": kind or self.kind}
        marks = {f"{what}: {name}": 1.0 for what, name in parts.items() if name}
        return JobResult(
            success=next(iter(metrics.values()), 0) == 1,
            problem=problem,
            measures={**metrics, **spent, **marks},
        )


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

    async def run(self, case: Case, arm: Arm, policy: str, seed: int) -> JobResult:
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
