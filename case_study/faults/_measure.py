"""How many injected faults a diagnosis names rightly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from coag.proof import Cause, diagnose

from ._domain import VacuumDomain
from ._experiment import Experiment, Injection, causes_of
from ._fault import Fault
from ._stage import StageName
from ._trial import AgentKind, Ground, Trial, open_ground

Progress = Callable[[int, int], None]
"""Is told how many faults are done, and how many there are to be."""
NONE = "none"
"""What stands for a run in which a diagnosis finds no failure."""
UNTOLD = "not attributable"
"""What stands for a failure whose cause a diagnosis cannot tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """One fault that did harm, and what the diagnosis of its run says."""

    fault: Fault
    stage: StageName
    seed: int
    """The stage's seed."""
    struck: int
    """The cycle in which the fault struck first."""
    harm: tuple[str, ...]
    """In what the run was worse than its twin."""
    found: str
    """The cause of the earliest failure that was found; `none`, or `not attributable`."""
    told: str
    """The diagnosis in words; empty if there is none."""

    @property
    def right(self) -> bool:
        """Whether the injected cause was found."""
        return self.found == self.fault.cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The result of an experiment."""

    agent: AgentKind
    seed: int
    attributions: tuple[Attribution, ...]
    """One for each fault that did harm."""
    harmless: dict[Cause, int] = field(default_factory=dict[Cause, int])
    """Faults without a consequence, by component; they count nowhere else."""
    twins: int = 0
    """Runs without a fault."""
    false_alarms: int = 0
    """Those of them in which a diagnosis finds a failure."""

    @property
    def right(self) -> int:
        """Faults whose cause was found."""
        return sum(one.right for one in self.attributions)

    @property
    def attributed(self) -> int:
        """Faults to which any cause was found, right or wrong."""
        return sum(one.found not in (NONE, UNTOLD) for one in self.attributions)

    def matrix(self) -> dict[Cause, Counter[str]]:
        """What was found, by what was injected."""
        found: dict[Cause, Counter[str]] = {}
        for one in self.attributions:
            found.setdefault(one.fault.cause, Counter())[one.found] += 1
        return found


async def measure_faults(
    ground: Ground, *, seed: int, each: int, agent: AgentKind, on_progress: Progress
) -> Measured:
    """Injects faults until each component had `each` that did harm, and diagnoses the runs.

    The diagnosis gets what `coag diagnose` gets: the trace, what is known of the domain, and
    what the agent's memory holds; nothing of the fault or the twin.

    Raises:
        WorldError: The world failed.
    """
    experiment = Experiment(ground, seed, agent)
    attributions: list[Attribution] = []
    harmless: Counter[Cause] = Counter()
    total = each * len(experiment.causes)
    async for injection in experiment.inject(each):
        if injection.harm:
            attributions.append(attributed(injection))
            on_progress(len(attributions), total)
        else:
            harmless[injection.fault.cause] += 1
    twins = tuple(experiment.twins.values())
    return Measured(
        agent=agent,
        seed=seed,
        attributions=tuple(attributions),
        harmless=dict(harmless),
        twins=len(twins),
        false_alarms=sum(bool(_earliest(twin)[0] != NONE) for twin in twins),
    )


async def measure_both(
    count: int, baseline: int, *, seed: int, on_progress: Callable[[str, int, int], None]
) -> tuple[Measured, ...]:
    """Measures both kinds of agents in one world; the baseline only if any are wanted of it.

    Args:
        count: Faults of the CoAG agent that are to do harm, shared out over its components.
        baseline: The same for the plain baseline.
        seed: What everything is drawn from.
        on_progress: Is told which agent it is, how many faults are done, and of how many.

    Raises:
        WorldError: The world failed.
    """
    found: list[Measured] = []
    wanted: tuple[tuple[AgentKind, int], ...] = (("coag", count), ("baseline", baseline))
    async with open_ground() as ground:
        for agent, number in wanted:
            each = -(-number // len(causes_of(agent)))
            if each:
                told = partial(on_progress, agent)
                measured = await measure_faults(
                    ground, seed=seed, each=each, agent=agent, on_progress=told
                )
                found.append(measured)
    return tuple(found)


def attributed(injection: Injection) -> Attribution:
    """Diagnoses the run of a fault."""
    trial = injection.trial
    found, told = _earliest(trial)
    return Attribution(
        fault=injection.fault,
        stage=trial.stage.name,
        seed=trial.stage.setup.seed,
        struck=trial.struck[0],
        harm=injection.harm,
        found=found,
        told=told,
    )


def _earliest(trial: Trial) -> tuple[str, str]:
    """The cause of the earliest failure that a diagnosis finds, and the diagnosis in words."""
    found = diagnose(trial.records, domain=VacuumDomain(), memory=trial.stage.records)
    if not found:
        return NONE, ""
    first = found[0]
    return str(first.cause or UNTOLD), str(first)
