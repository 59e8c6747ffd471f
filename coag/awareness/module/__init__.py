"""Awareness in an agent's mind: a cognitive module, and adapters that read its percepts.

`Awareness` follows what the cycle perceives and executes. Rules see what is the same everywhere:
the goal that the activity serves, failures and their lessons, actions that fail again and again,
cycles without progress, outcomes that nobody knows. An adapter sees the domain: `ToolAdapter`
reads structured tool results, a `PerceptAdapter` of your own reads whatever your tools tell. The
situation stands in the prompts of Reasoning, Proposal and Evaluation as data; `can_i` is a
constraint.
"""

from .awareness import Awareness, CanIRule, Raw, Reader, fields_of, heard_by
from .settings import AGENT_DYNAMICS, AwarenessSettings
from .tool_adapter import PerceptAdapter, ToolAdapter

__all__ = [
    "Awareness",
    "AwarenessSettings",
    "AGENT_DYNAMICS",
    "CanIRule",
    "PerceptAdapter",
    "ToolAdapter",
    "Reader",
    "Raw",
    "fields_of",
    "heard_by",
]
