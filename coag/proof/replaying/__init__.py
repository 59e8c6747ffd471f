"""Running a run again on its own trace: no model, no world, and every record compared.

The trace is the tape. The agent is built by its recipe, and doubles stand where the outside
was: models answer what they answered, actions bring what they brought, memory recalls what it
recalled, the clock tells the times of the tape. Everything between is the agent's own code. The
sink does not write: each record must be the one that is next on the tape.
"""

from .replay import AgentBuilder, Divergence, ReplayReport, replay

__all__ = [
    "AgentBuilder",
    "Divergence",
    "ReplayReport",
    "replay",
]
