"""The fault injector: breaks one component of a running agent and lets the run go on.

A fault is in a component, never in a line of a trace: a sensor lies or is silent, recall leaves
out a record or changes it, the model's answer of one phase is exchanged, a tool fails, or the
experimenter changes the world between perception and action. Each runs in a real world behind
HTTP, with the agent that is sound by itself (`scripted:sound`), at a random but seeded cycle.
A twin without the fault tells whether it did harm at all; what a diagnosis says of the trace
plays no part in that.

`Experiment.inject` gives the runs, `measure_faults` diagnoses them and counts, and `tables`
shows the confusion matrix. `VacuumDomain` is what this world tells a diagnosis.
"""

from .components import STAGES, Breaker, Fault, Stage, StageName, stage_of
from .domain import VacuumDomain
from .experiment import (
    PLAIN_CAUSES,
    VARIANTS,
    AgentKind,
    Attribution,
    Experiment,
    Ground,
    Injection,
    Measured,
    Tally,
    Trial,
    attributed,
    measure_both,
    measure_faults,
    open_ground,
    play,
    replaced,
    tables,
    tally_of,
)

__all__ = [
    "measure_both",
    "measure_faults",
    "Measured",
    "Attribution",
    "attributed",
    "tables",
    "replaced",
    "VacuumDomain",
    "Experiment",
    "Injection",
    "Fault",
    "Breaker",
    "VARIANTS",
    "PLAIN_CAUSES",
    "Stage",
    "STAGES",
    "StageName",
    "stage_of",
    "Trial",
    "Ground",
    "AgentKind",
    "open_ground",
    "play",
    "Tally",
    "tally_of",
]
