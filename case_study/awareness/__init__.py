"""What each kind of memory says about the state of a talk: tables 6 and 7 of the paper, by code.

The paper scored by hand how many of 20 kinds of information a raw buffer, a rolling summary and
its own injection hold, on one scenario. Here a `Reader` answers 20 questions from the text alone,
and code scores the answers against right ones that were written from the messages, on the
paper's scenario and on further dialogues. `RuleReader` finds what a text says by the words in which
it says it, the same for every text. `cover` asks all of it, `coverage_page` writes the tables.
"""

from .coverage import (
    DATA,
    CoverageRequest,
    Kind,
    cover,
    coverage_page,
    measured,
    memories_of,
)
from .dialogues import (
    CONVERSATION,
    CachedPerception,
    Dialogue,
    DialogueRun,
    load_dialogues,
    run_analyses,
    run_perception,
)
from .exams import (
    PAPER,
    QUESTIONS,
    Claim,
    Form,
    Question,
    exams_in,
    questions_named,
    says,
    score,
)
from .rule_reader import RuleReader
from .statements import parseable, read_outline, write_outline

__all__ = [
    "QUESTIONS",
    "Question",
    "Form",
    "questions_named",
    "DATA",
    "PAPER",
    "exams_in",
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
    "read_outline",
    "write_outline",
    "parseable",
    "cover",
    "coverage_page",
    "CoverageRequest",
    "measured",
]
