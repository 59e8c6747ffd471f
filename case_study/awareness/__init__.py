"""What each kind of memory tells of where a talk stands: tables 6 and 7 of the paper, read by code.

The paper scored by hand how many of 20 kinds of information a raw buffer, a rolling summary and
its own injection hold, on one scenario. Here a `Reader` answers 20 questions from the text alone,
and code scores the answers against right ones that were written from the messages, on the
paper's scenario and on further dialogues. `RuleReader` finds what a text says by the words in which
it says it, the same for every text; `ModelReader` asks a language model. `cover` asks all of it,
`coverage_page` writes the tables.
"""

from ._coverage import BUDGET, Coverage, OnAnswer, Scored, Size, cover
from ._exams import PAPER, Exam, Item, Key, exams_in, exams_named
from ._kept import AnswerFile, CachedPerception, KeptAnswer
from ._measuring import DATA, CoverageRequest, measured
from ._memories import AWARENESS, BASELINES, Kind, Memory, memories_of
from ._model_reader import ModelReader, reading_prompt
from ._outline import Outline, Section, parseable, read_outline, write_outline
from ._page import coverage_page
from ._questions import QUESTIONS, Form, Question, questions_named
from ._reader import Claim, Reader
from ._rule_reader import RuleReader
from ._scoring import Mark, Score, score
from ._words import content_words, says
from .dialogues import (
    CONVERSATION,
    Dialogue,
    DialogueRun,
    load_dialogues,
    run_analyses,
    run_perception,
)

__all__ = [
    "QUESTIONS",
    "Question",
    "Form",
    "questions_named",
    "Exam",
    "Key",
    "Item",
    "DATA",
    "PAPER",
    "exams_in",
    "exams_named",
    "Kind",
    "BASELINES",
    "AWARENESS",
    "Memory",
    "memories_of",
    "Reader",
    "Claim",
    "RuleReader",
    "ModelReader",
    "reading_prompt",
    "AnswerFile",
    "KeptAnswer",
    "CachedPerception",
    "CONVERSATION",
    "Dialogue",
    "DialogueRun",
    "load_dialogues",
    "run_analyses",
    "run_perception",
    "score",
    "Score",
    "Mark",
    "says",
    "content_words",
    "read_outline",
    "write_outline",
    "parseable",
    "Outline",
    "Section",
    "cover",
    "Coverage",
    "Scored",
    "Size",
    "OnAnswer",
    "BUDGET",
    "coverage_page",
    "CoverageRequest",
    "measured",
]
