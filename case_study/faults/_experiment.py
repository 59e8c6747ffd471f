"""The experiment: many runs, each with one fault, and their twins without it."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from coag.proof import Cause

from ._draw import PLAIN_CAUSES, fault_of, stage_for, variants_of
from ._fault import Fault
from ._stage import Stage, StageName, stage_of
from ._trial import AgentKind, Ground, Trial, play

TRIES = 8
"""Draws of a variant before one that did no harm is given up."""
_SEEDS = 1_000
"""Seeds of stages that belong to one seed of the experiment."""
_PLACES = 40
"""How many of them are used of each scenario, so that twins are shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A run with a fault, and what the fault did."""

    trial: Trial
    harm: tuple[str, ...]
    """In what it was worse than its twin; empty for a fault that had no consequence."""

    @property
    def fault(self) -> Fault:
        """The fault."""
        if self.trial.fault is None:
            raise ValueError("This trial had no fault, so it is no injection.")
        return self.trial.fault


@dataclass(slots=True)
class Experiment:
    """Draws faults, plays them, and compares each run with its twin.

    Args:
        ground: Where the runs take place.
        seed: What everything is drawn from.
        agent: Which kind of agent is broken.
    """

    ground: Ground
    seed: int
    agent: AgentKind = "coag"
    twins: dict[tuple[StageName, int], Trial] = field(
        default_factory=dict[tuple[StageName, int], Trial]
    )
    """The runs without a fault that were played so far."""

    @property
    def causes(self) -> Sequence[Cause]:
        """The components that this kind of agent has."""
        return causes_of(self.agent)

    async def inject(self, each: int) -> AsyncGenerator[Injection]:
        """Runs with faults, until each cause had `each` that did harm (or its draws are used up).

        Those that did none are given too, as they come.

        Raises:
            WorldError: The world failed.
        """
        for number in range(each):
            for cause in self.causes:
                variants = variants_of(cause, self.agent)
                variant = variants[number % len(variants)]
                for attempt in range(TRIES):
                    dice = random.Random(f"{self.seed} {self.agent} {cause} {number} {attempt}")
                    injection = await self._one(cause, variant, dice)
                    yield injection
                    if injection.harm:
                        break

    async def _one(self, cause: Cause, variant: str, dice: random.Random) -> Injection:
        name = stage_for(cause, variant, dice, self.agent)
        twin = await self._twin(name, self.seed * _SEEDS + dice.randrange(_PLACES))
        fault = fault_of(cause, variant, twin.cycles, dice)
        trial = await play(twin.stage, fault, self.ground, self.agent)
        harm = trial.tally.harm(twin.tally) if trial.struck else ()
        return Injection(trial=trial, harm=harm)

    async def _twin(self, name: StageName, seed: int) -> Trial:
        found = self.twins.get((name, seed))
        if found is None:
            stage: Stage = stage_of(name, seed)
            found = await play(stage, None, self.ground, self.agent)
            self.twins[name, seed] = found
        return found


def causes_of(agent: AgentKind) -> Sequence[Cause]:
    """The components that a kind of agent has, by the cause that their failures have."""
    return tuple(Cause) if agent == "coag" else PLAIN_CAUSES
