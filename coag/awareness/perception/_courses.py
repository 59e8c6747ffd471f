"""What becomes of a dialogue when one perception reads it: analyses, observations, states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coag.awareness._engine import AwarenessEngine
from coag.awareness._observation import Observation
from coag.awareness.adapters import ConversationAdapter, ConversationAnalysis
from coag.awareness.state import AwarenessState
from coag.errors import AwarenessError, ModelAnswerError
from coag.schema import SteppingClock, one_line

from ._protocol import Perception


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A dialogue as it was read, turn by turn."""

    label: str
    """Who read it, e.g. `rules`."""
    analyses: tuple[ConversationAnalysis | None, ...]
    """None for a turn that gave nothing usable."""
    observations: tuple[Observation | None, ...]
    faults: tuple[str, ...]
    """What went wrong, a sentence for each turn without an analysis."""
    state: AwarenessState
    """At the end."""


async def perceived_course(label: str, perception: Perception, messages: Sequence[str]) -> Course:
    """The course of a dialogue whose messages a perception reads, each on the state so far.

    A turn that it gives nothing usable for leaves the state as it was.

    Raises:
        ModelCallError: A model could not be asked.
    """
    reader = _Reader(label)
    for message in messages:
        try:
            raw = await perception.perceive(message, reader.engine.state)
            reader.read(ConversationAnalysis.parse(raw))
        except (ModelAnswerError, AwarenessError) as error:
            reader.fail(str(error))
    return reader.course()


def given_course(label: str, turns: Sequence[ConversationAnalysis]) -> Course:
    """The course of a dialogue that was analysed by hand.

    Raises:
        AwarenessError: An analysis names what does not exist.
    """
    reader = _Reader(label)
    for turn in turns:
        reader.read(turn)
    return reader.course()


class _Reader:
    """An engine, and what it was given."""

    def __init__(self, label: str) -> None:
        self.engine = AwarenessEngine(ConversationAdapter(), clock=SteppingClock())
        self._label = label
        self._analyses: list[ConversationAnalysis | None] = []
        self._observations: list[Observation | None] = []
        self._faults: list[str] = []

    def read(self, analysis: ConversationAnalysis) -> None:
        observation = self.engine.observe(analysis.model_dump())
        self.engine.update(observation)
        self._analyses.append(analysis)
        self._observations.append(observation)

    def fail(self, fault: str) -> None:
        self._analyses.append(None)
        self._observations.append(None)
        self._faults.append(f"turn {len(self._analyses)}: {one_line(fault, 200)}")

    def course(self) -> Course:
        return Course(
            label=self._label,
            analyses=tuple(self._analyses),
            observations=tuple(self._observations),
            faults=tuple(self._faults),
            state=self.engine.state,
        )
