"""What each kind of memory says about the state of a talk: tables 6 and 7 of the paper, by code.

The paper scored by hand how many of 20 kinds of information a raw buffer, a rolling summary and
its own injection hold, on one scenario. Here `RuleReader` answers 20 questions from the text alone,
by the words in which a text says something, and code scores the answers against right ones that
were written from the messages, on the paper's scenario and on twelve further dialogues. `cover`
asks all of it, `coverage_page` writes the tables.
"""

from .coverage import Kind, cover, coverage_page, covered, measured, memories_of
from .dialogues import (
    CONVERSATION,
    CachedPerception,
    Dialogue,
    DialogueRun,
    load_dialogues,
    run_analyses,
    run_perception,
)
from .exams import PAPER, QUESTIONS, Claim, exams, says, score
from .rule_reader import RuleReader
from .statements import parseable

__all__ = [
    "QUESTIONS",
    "PAPER",
    "exams",
    "Kind",
    "memories_of",
    "Claim",
    "RuleReader",
    "CachedPerception",
    "CONVERSATION",
    "Dialogue",
    "DialogueRun",
    "load_dialogues",
    "run_analyses",
    "run_perception",
    "score",
    "says",
    "parseable",
    "cover",
    "covered",
    "coverage_page",
    "measured",
]
