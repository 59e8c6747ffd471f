"""Drawing faults: which component breaks, in which way, where and when."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType

from coag.proof import Cause

from ._beliefs import BELIEFS
from ._client import HANGS, NO_READING, TOOL_VARIANTS
from ._fault import Fault
from ._model import NO_ANSWER
from ._sensor import LIES
from ._spoiling import EVALUATIONS, PROPOSALS, SELECTIONS, UNUSABLE
from ._stage import STAGES, StageName
from ._store import CHANGED, MISSED, UNTRUE
from ._trial import AgentKind
from ._world import PLANS

VARIANTS: Mapping[Cause, tuple[str, ...]] = MappingProxyType(
    {
        Cause.MISPERCEPTION: (*LIES, NO_READING),
        Cause.MISSED_RETRIEVAL: MISSED,
        Cause.WRONG_FACT: (*CHANGED, *UNTRUE),
        Cause.FAULTY_REASONING: tuple(BELIEFS),
        Cause.INVALID_PROPOSAL: tuple(PROPOSALS),
        Cause.FAULTY_EVALUATION: tuple(EVALUATIONS),
        Cause.BAD_SELECTION: tuple(SELECTIONS),
        Cause.FAILED_EXECUTION: TOOL_VARIANTS,
        Cause.CHANGED_ENVIRONMENT: tuple(PLANS),
        Cause.UNUSABLE_ANSWER: (*UNUSABLE, NO_ANSWER),
    }
)
"""In which ways each component breaks."""

PLAIN_CAUSES = (
    Cause.MISPERCEPTION,
    Cause.FAULTY_REASONING,
    Cause.INVALID_PROPOSAL,
    Cause.FAILED_EXECUTION,
    Cause.CHANGED_ENVIRONMENT,
    Cause.UNUSABLE_ANSWER,
)
"""The components that a plain agent has too."""

_NOT_PLAIN = {HANGS}
"""AutoGen's `AssistantAgent` sets its tools no time: one that hangs ends the run for good."""
_NEEDS_MEMORY: tuple[StageName, ...] = ("sudden-wall", "evolution")
_WITHOUT_MEMORY: tuple[StageName, ...] = ("energy-dilemma", "phantom-object")
"""Where a sound agent without a memory does not fail either."""
_FOR_GOOD = 99
_LONGEST = {
    Cause.MISPERCEPTION: (1, 1, 2, 3),
    Cause.MISSED_RETRIEVAL: (1, 2, _FOR_GOOD),
    Cause.WRONG_FACT: (2, 4, _FOR_GOOD),
}
"""Cycles that a component stays broken, to choose from; 1 or 2 for the others."""


def variants_of(cause: Cause, agent: AgentKind) -> tuple[str, ...]:
    """In which ways a component of this kind of agent breaks."""
    spared = set[str]() if agent == "coag" else _NOT_PLAIN
    return tuple(variant for variant in VARIANTS[cause] if variant not in spared)


def stage_for(cause: Cause, variant: str, dice: random.Random, agent: AgentKind) -> StageName:
    """A scenario in which such a fault can do harm, and in which nothing else does."""
    if agent != "coag":
        return dice.choice(_WITHOUT_MEMORY)
    needs = cause is Cause.MISSED_RETRIEVAL or variant in CHANGED
    return dice.choice(_NEEDS_MEMORY if needs else STAGES)


def fault_of(cause: Cause, variant: str, cycles: int, dice: random.Random) -> Fault:
    """A fault at a random cycle of a run that would take so many without it."""
    return Fault(
        cause=cause,
        variant=variant,
        cycle=dice.randint(1, max(1, cycles - 1)),
        cycles=dice.choice(_LONGEST.get(cause, (1, 1, 2))),
        seed=dice.randrange(1 << 30),
    )
