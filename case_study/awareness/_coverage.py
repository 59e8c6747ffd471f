"""How much of what there is to know each kind of memory tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from coag.awareness.perception import Perception
from coag.schema import Value, estimate_tokens

from ._exams import PAPER, Exam
from ._memories import Kind, Memory, memories_of
from ._outline import parseable
from ._questions import Form, Question
from ._reader import Reader
from ._scoring import Mark, Score, score

BUDGET = 300
"""Tokens of an injection (section 6.3)."""


class Scored(Value):
    """What one answer from one memory of one dialogue was worth."""

    dialogue: str
    kind: Kind
    question: str
    value: float
    """From 0 to 1."""
    recall: float
    """The same where claiming too much costs nothing."""
    right: int
    """How many right items there were."""
    claimed: int | None
    """How many claims the reader found; None for an answer that failed or was computed."""
    failed: bool = False
    """Whether no answer came."""

    @property
    def mark(self) -> Mark:
        """As table 7 writes it."""
        return Mark.of(self.value)


class Size(Value):
    """How long a memory of a dialogue was."""

    dialogue: str
    kind: Kind
    tokens: int
    faults: tuple[str, ...] = ()
    """Turns of which its perception made nothing."""


class Coverage(Value):
    """All answers of one reader."""

    reader: str
    budget: int
    dialogues: tuple[str, ...]
    questions: tuple[str, ...]
    kinds: tuple[Kind, ...]
    sizes: tuple[Size, ...]
    scored: tuple[Scored, ...]

    @property
    def further(self) -> tuple[str, ...]:
        """The dialogues that are not the paper's."""
        return tuple(name for name in self.dialogues if name != PAPER)

    def of(self, dialogue: str, kind: Kind) -> tuple[Scored, ...]:
        """The answers from one memory of one dialogue."""
        return tuple(one for one in self.scored if one.dialogue == dialogue and one.kind is kind)

    def tokens(self, dialogue: str, kind: Kind) -> int:
        """How long that memory was."""
        return next(
            one.tokens for one in self.sizes if one.dialogue == dialogue and one.kind is kind
        )

    def total(self, dialogue: str, kind: Kind) -> float:
        """The sum of the scores: the coverage of table 6."""
        return sum(one.value for one in self.of(dialogue, kind))


class OnAnswer(Protocol):
    """Is told how far it is."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """So many of all answers are there; `what` comes next."""
        ...


def _unheard(what: str, done: int, total: int) -> None:
    """Nobody listens."""


async def cover(
    exams: Sequence[Exam],
    reader: Reader,
    questions: Sequence[Question],
    *,
    budget: int = BUDGET,
    perception: Perception | None = None,
    on_answer: OnAnswer = _unheard,
) -> Coverage:
    """Asks a reader every question about every memory of every dialogue.

    Args:
        exams: The dialogues.
        reader: Answers from the text alone.
        questions: What is asked.
        budget: Tokens of an injection and of the buffer that is cut.
        perception: Reads the messages for one more injection.
        on_answer: Is told of each step.

    Raises:
        ModelCallError: A model could not be asked.
        AwarenessError: An analysis by hand names what does not exist.
    """
    sizes, scored, kinds = list[Size](), list[Scored](), dict[Kind, None]()
    for number, exam in enumerate(exams):
        per_exam = len(questions) * (len(Kind) if perception else len(Kind) - 1)
        total = len(exams) * per_exam
        on_answer(f"{exam.name}: messages are read", number * per_exam, total)
        memories = await memories_of(exam, budget, perception)
        for place, memory in enumerate(memories):
            kinds[memory.kind] = None
            sizes.append(
                Size(
                    dialogue=exam.name,
                    kind=memory.kind,
                    tokens=memory.tokens,
                    faults=memory.faults,
                )
            )
            done = number * per_exam + place * len(questions)
            for asked, question in enumerate(questions):
                on_answer(f"{exam.name}: {memory.kind}, {question.id}", done + asked, total)
                scored.append(await _scored(exam, memory, question, reader, budget))
    return Coverage(
        reader=reader.name,
        budget=budget,
        dialogues=tuple(exam.name for exam in exams),
        questions=tuple(question.id for question in questions),
        kinds=tuple(kinds),
        sizes=tuple(sizes),
        scored=tuple(scored),
    )


async def _scored(
    exam: Exam, memory: Memory, question: Question, reader: Reader, budget: int
) -> Scored:
    right = exam.right(question)
    claims = None
    if question.form is Form.COMPUTED:
        computed = _COMPUTED[question.id](memory.text, budget)
        found = Score(value=computed, recall=computed)
    else:
        claims = await reader.read(memory.text, question)
        found = score(claims, right, sampled=question.sampled)
    return Scored(
        dialogue=exam.name,
        kind=memory.kind,
        question=question.id,
        value=found.value,
        recall=found.recall,
        right=len(right),
        claimed=None if claims is None else len(claims),
        failed=claims is None and question.form is not Form.COMPUTED,
    )


def _fits(text: str, budget: int) -> float:
    return float(estimate_tokens(text) <= budget)


def _parses(text: str, budget: int) -> float:
    del budget
    return parseable(text)


_COMPUTED: dict[str, Callable[[str, int], float]] = {
    "token_budget": _fits,
    "machine_parseable": _parses,
}
