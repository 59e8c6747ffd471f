"""The fault injector: breaks one component of a running agent and lets the run continue.

A fault is in a component, never in a line of a trace: a sensor lies, recall leaves out a record or
changes it, the model's answer of one phase is exchanged, a tool fails, or the world changes between
perception and action. Each runs with the agent that is sound by itself (`scripted:sound`), at a
random but seeded cycle. Whether it did harm is judged by a twin run without the fault, not by the
diagnosis.

`measure_both` injects faults and counts, `tables` shows the confusion matrix. `VacuumDomain`
describes this world to a diagnosis.
"""

from .breaking import VARIANTS, Fault
from .domain import VacuumDomain
from .experiment import Injection, Measured, Trial, inject, measure_both, play, tables
from .stages import STAGES, StageName, stage_of

__all__ = [
    "measure_both",
    "Measured",
    "tables",
    "VacuumDomain",
    "inject",
    "Injection",
    "Fault",
    "VARIANTS",
    "STAGES",
    "StageName",
    "stage_of",
    "Trial",
    "play",
]
