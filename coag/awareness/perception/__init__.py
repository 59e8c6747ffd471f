"""Perception: from raw text to the analysis that an adapter takes (SAGEN §4.4, §6.6).

A `Perception` reads a text where things stand so, and gives the mapping that `parse_observation`
of the conversation or the coding adapter takes; it changes nothing. `ModelPerception` asks a model
through the structured caller; `RulePerception` needs none, and sees what its rules say.
"""

from .model import ModelPerception, PerceptionSettings
from .protocol import Domain, Perception
from .rules import RulePerception, Summary, summary_of

__all__ = [
    "Perception",
    "Domain",
    "ModelPerception",
    "PerceptionSettings",
    "RulePerception",
    "Summary",
    "summary_of",
]
