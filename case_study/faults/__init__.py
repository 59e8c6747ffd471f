"""The fault injector: breaks one component of a running agent and lets the run continue.

A fault is in a component, never in a line of a trace: a sensor lies or is silent, recall leaves
out a record or changes it, the model's answer of one phase is exchanged, a tool fails, or the
experimenter changes the world between perception and action. Each runs in a real world behind
HTTP, with the agent that is sound by itself (`scripted:sound`), at a random but seeded cycle.
Whether it did harm is judged by a twin run without the fault, not by the diagnosis.

`injections` gives the faults and what they did, `measure_faults` counts them, and `tables`
shows the confusion matrix. `VacuumDomain` describes this world to a diagnosis.
"""

from .components import STAGES, Fault, StageName, stage_of
from .domain import VacuumDomain
from .experiment import (
    PLAIN_CAUSES,
    VARIANTS,
    Ground,
    Injection,
    Measured,
    Tally,
    Trial,
    inject,
    injections,
    measure_both,
    measure_faults,
    open_ground,
    play,
    tables,
)

__all__ = [
    "measure_both",
    "measure_faults",
    "Measured",
    "tables",
    "VacuumDomain",
    "injections",
    "inject",
    "Injection",
    "Fault",
    "VARIANTS",
    "PLAIN_CAUSES",
    "STAGES",
    "StageName",
    "stage_of",
    "Trial",
    "Ground",
    "open_ground",
    "play",
    "Tally",
]
