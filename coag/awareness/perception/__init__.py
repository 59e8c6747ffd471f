"""Perception: from raw text to the analysis that an adapter takes (SAGEN §4.4, §6.6).

A `Perception` reads a text where things stand so, and gives the mapping that `parse_observation`
of the conversation or the coding adapter takes; it changes nothing. `ModelPerception` asks a model
through the structured caller; `RulePerception` needs none, and sees what its rules say.
`agreement` and `compare` measure how far two of them, or one and a hand-written analysis, agree:
per turn (table 10), in the final state (table 11), and in what was noticed on the way.

`python -m coag.awareness.perception agreement` prints this.
"""

from ._agreement import Comparison, Noticed, StateFigures, TurnAgreement, agreement, compare
from ._courses import Course, given_course, perceived_course
from ._dialogues import Dialogue, load_dialogues
from ._kept import KeptPerception
from ._model import ModelPerception, PerceptionSettings
from ._protocol import Domain, Perception
from ._rules import RulePerception
from ._tables import comparison_table

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
