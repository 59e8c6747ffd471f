"""Public benchmarks: the same agents on tasks that others wrote.

`protocol.py` says what a benchmark is, `arms.py` makes the agents that are compared, `running.py`
plays cases with `coag.evals`, `report.py` counts. Each benchmark is an
adapter in a file of its own, over its package, which is not among the requirements of this
project: `requirements/bench.in` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from case_study.bench.arms import (
    EnvironmentWorkbench,
    Executed,
    Setup,
    player_of,
    policy_model,
    tool_schema,
)
from case_study.bench.protocol import ARMS, Arm, Benchmark, Case, needs
from case_study.bench.report import as_json, as_markdown
from case_study.bench.running import chosen, play
from coag.errors import UnknownNameError
from coag.schema import from_import_name

BENCHMARKS: dict[str, str] = {
    "agentdojo": "case_study.bench.agentdojo:AgentDojo",
    "tau2": "case_study.bench.tau2:Tau2",
    "bfcl": "case_study.bench.bfcl:Bfcl",
}
"""By name, where the class of each is defined; it is imported when it is asked for."""


def open_benchmark(name: str, options: Mapping[str, str]) -> Benchmark:
    """The benchmark of this name.

    Raises:
        UnknownNameError: There is none; the message lists those that exist.
        ConfigurationError: Its package is not installed, or an option is wrong.
    """
    if name not in BENCHMARKS:
        raise UnknownNameError("benchmark", name, BENCHMARKS)
    make: Callable[[Mapping[str, str]], Benchmark] = from_import_name(BENCHMARKS[name])
    return make(options)


__all__ = [
    "ARMS",
    "BENCHMARKS",
    "Arm",
    "Case",
    "EnvironmentWorkbench",
    "Executed",
    "Setup",
    "as_json",
    "as_markdown",
    "chosen",
    "needs",
    "open_benchmark",
    "play",
    "player_of",
    "policy_model",
    "tool_schema",
]
