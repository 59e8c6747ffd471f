"""Perception: from raw text to the analysis that an adapter takes (SAGEN §4.4, §6.6).

A `Perception` reads a text where things stand so, and gives the mapping that `parse_observation`
of the conversation or the coding adapter takes; it changes nothing. `ModelPerception` asks a model
through the structured caller; `RulePerception` needs none, and sees what its rules say.
`agreement` and `compare` measure how far two of them, or one and a hand-written analysis, agree:
per turn (table 10), in the final state (table 11), and in what was noticed on the way.

`python -m coag.awareness.perception agreement` prints this.
"""

from .agreement import (
    Comparison,
    Course,
    Dialogue,
    Noticed,
    StateFigures,
    TurnAgreement,
    agreement,
    compare,
    comparison_table,
    given_course,
    load_dialogues,
    perceived_course,
)
from .kept import KeptPerception
from .model import ModelPerception, PerceptionSettings
from .protocol import Domain, Perception
from .rules import RulePerception

__all__ = [
    "Perception",
    "Domain",
    "ModelPerception",
    "PerceptionSettings",
    "RulePerception",
    "KeptPerception",
    "agreement",
    "compare",
    "TurnAgreement",
    "StateFigures",
    "Noticed",
    "Comparison",
    "comparison_table",
    "Course",
    "perceived_course",
    "given_course",
    "Dialogue",
    "load_dialogues",
]
