"""The kinds of memory that are compared: what an agent would be told of the talk so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from coag.awareness.adapters import ConversationAdapter
from coag.awareness.perception import Perception, RulePerception
from coag.schema import Value, estimate_tokens

from ._exams import Exam
from .dialogues import DialogueRun, run_analyses, run_perception


class Kind(StrEnum):
    """A kind of memory."""

    NOTHING = "nothing"
    """No text at all: what is left to be right about where nothing is to be told."""
    BUFFER = "raw buffer"
    """All messages and replies, in order."""
    CUT = "buffer cut"
    """The newest of them that fit the budget."""
    SUMMARY = "summary"
    """The rolling summary, written by hand."""
    BY_HAND = "awareness by hand"
    """The injection from analyses written by hand."""
    BY_RULES = "awareness by rules"
    """The injection from what rules see in the messages."""
    BY_MODEL = "awareness by model"
    """The injection from what a model sees in the messages."""


BASELINES = (Kind.BUFFER, Kind.CUT, Kind.SUMMARY, Kind.NOTHING)
AWARENESS = (Kind.BY_HAND, Kind.BY_RULES, Kind.BY_MODEL)


class Memory(Value):
    """A text that stands for a talk."""

    kind: Kind
    text: str
    faults: tuple[str, ...] = ()
    """Turns of which a perception made nothing."""

    @property
    def tokens(self) -> int:
        """How long it is, estimated as everywhere in `coag`."""
        return estimate_tokens(self.text)


async def memories_of(
    exam: Exam, budget: int, model: Perception | None = None
) -> tuple[Memory, ...]:
    """A dialogue as each kind of memory holds it after the last turn.

    Args:
        exam: The dialogue.
        budget: Tokens of an injection, and of the buffer that is cut.
        model: Reads the messages for `Kind.BY_MODEL`, which is left out without it.

    Raises:
        ModelCallError: The model could not be asked.
        AwarenessError: An analysis by hand names what does not exist.
    """
    lines = _transcript(exam)
    seen: Mapping[Kind, Perception] = {Kind.BY_RULES: RulePerception()}
    if model is not None:
        seen = {**seen, Kind.BY_MODEL: model}
    return (
        Memory(kind=Kind.NOTHING, text=""),
        Memory(kind=Kind.BUFFER, text="\n".join(lines)),
        Memory(kind=Kind.CUT, text="\n".join(_newest(lines, budget))),
        Memory(kind=Kind.SUMMARY, text=exam.key.summary),
        _injection(Kind.BY_HAND, run_analyses("by hand", exam.turns), budget),
        *[
            _injection(kind, await run_perception(kind, perception, exam.messages), budget)
            for kind, perception in seen.items()
        ],
    )


def _transcript(exam: Exam) -> tuple[str, ...]:
    """A line for each message and each reply."""
    return tuple(
        f"{speaker}: {' '.join(said.split())}"
        for message, reply in zip(exam.messages, exam.key.replies, strict=True)
        for speaker, said in (("User", message), ("Assistant", reply))
        if said.strip()
    )


def _newest(lines: Sequence[str], budget: int) -> list[str]:
    """The last lines that fit, none of them cut."""
    kept: list[str] = []
    for line in reversed(lines):
        if estimate_tokens("\n".join([line, *kept])) > budget:
            break
        kept.insert(0, line)
    return kept


def _injection(kind: Kind, run: DialogueRun, budget: int) -> Memory:
    text = ConversationAdapter().format_for_injection(run.state, budget)
    return Memory(kind=kind, text=text, faults=run.errors)
