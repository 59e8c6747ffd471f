"""The six phases of a cycle."""

from __future__ import annotations

from enum import StrEnum


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
