"""What can be set about awareness in an agent, with its defaults."""

from __future__ import annotations

from pydantic import Field

from coag.awareness.dynamics import DynamicsSettings, ProjectionSettings
from coag.awareness.settings import EngineSettings
from coag.awareness.state import Names
from coag.schema import Value

AGENT_DYNAMICS = DynamicsSettings(projection=ProjectionSettings())
"""What is on in an agent unless it is said otherwise.

Looking ahead adds a few items of attention and keeps nothing. Decay is off: the state is bounded
as it is, and a map forgets nothing that there is room for. Learning is off: it changes what a goal
counts.
"""


class AwarenessSettings(Value):
    """From when on something needs attention, and how much of the state is kept.

    The state stands in every snapshot of a run, so it has bounds, which hold with and without
    decay. What is over a bound goes: what is settled first, then what was touched longest ago.
    """

    repeated_failures: int = Field(default=3, gt=0)
    """Failures of one action in a row from which it needs attention."""
    stalled_cycles: int = Field(default=6, gt=0)
    """Cycles without progress on the goal from which it needs attention."""
    attention_ttl: int = Field(default=20, gt=0)
    """Steps for which the module's own attention items are there. A cycle has two or three."""
    engine: EngineSettings = EngineSettings(kept_failures=30, kept_merges=30)
    """How names are recognised, and how many failures and merges are kept."""
    own_actions: Names = ("respond", "tool_update_*", "transfer_to_*")
    """The agent's own actions, `*` for any characters: they need no declared capability, no
    permission and no resources, so that an agent can always answer. What is forbidden, or a
    limitation, holds for them, too."""
    goal_text: int = Field(default=200, gt=0)
    """Characters of a request that are its goal's description: of more its beginning and end."""
    kept_goals: int = Field(default=40, gt=0)
    """Goals, the closed ones among them; closed ones go first."""
    kept_entities: int = Field(default=100, gt=0)
    kept_relationships: int = Field(default=200, gt=0)
    kept_transitions: int = Field(default=40, gt=0)
    """Transitions, the sticky ones among them."""
    kept_attention: int = Field(default=40, gt=0)
    """Attention items; the least urgent go first."""
    kept_beliefs: int = Field(default=40, gt=0)
    """Assumptions and unknowns, each; settled ones go first."""
