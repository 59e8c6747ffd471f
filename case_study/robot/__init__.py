"""The vacuum robot as a domain of CoAG: its state, its forward model, its stipulated rules.

`VacuumContext` is what the paper calls the structured context: sensors write the state, a pure
forward model predicts what a move or a cleaning would do to it, and obstacles that were noted in
long-term memory enter the prediction as remembered obstacles. The constraints are rules that
somebody stipulates ("keep the charge to reach the charger"), never a route. `VacuumAdapter` is the
world as a domain of `coag.awareness`.
"""

from .awareness import VacuumAdapter, vacuum_awareness, vacuum_self
from .context import VacuumContext, change_sentence, procedures, prompt, remembered_obstacles
from .rules import (
    CONDUCT,
    CONSTRAINTS,
    ForbidCleaning,
    constraint_named,
    forbidden_cells,
)
from .state import WAYS, VacuumState, project, state_of, value

__all__ = [
    "VacuumAdapter",
    "vacuum_self",
    "vacuum_awareness",
    "VacuumContext",
    "VacuumState",
    "WAYS",
    "state_of",
    "project",
    "value",
    "remembered_obstacles",
    "CONSTRAINTS",
    "CONDUCT",
    "constraint_named",
    "ForbidCleaning",
    "forbidden_cells",
    "prompt",
    "procedures",
    "change_sentence",
]
