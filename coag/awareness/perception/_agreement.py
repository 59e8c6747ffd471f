"""How far two readings of a dialogue agree (SAGEN §6.6, tables 10 and 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from coag.awareness._observation import Observation
from coag.awareness.adapters import ConversationAdapter, ConversationAnalysis
from coag.awareness.state import AttentionType, AwarenessState, Share, TransitionType, folded
from coag.schema import Value, estimate_tokens

from ._courses import Course

BUDGET = 300
"""Tokens of the injections that are compared, as in section 6.3 of the paper."""


class TurnAgreement(Value):
    """The four dimensions of table 10, for one turn."""

    topics: Share
    """The shared topics over the longer list of the two; 1 where neither has any."""
    sentiment: Share
    """1 if both are the same."""
    goals: Share
    """1 if both state goals or neither does."""
    references: Share
    """1 if both refer to something previous or neither does."""

    @property
    def score(self) -> float:
        """The mean of the four."""
        return (self.topics + self.sentiment + self.goals + self.references) / 4


class StateFigures(Value):
    """What table 11 counts of a state."""

    goals: int
    active_goals: int
    entities: int
    attention_items: int
    transitions: int
    injection_tokens: int
    """Estimated, of the injection within 300 tokens."""

    @classmethod
    def of(cls, state: AwarenessState) -> StateFigures:
        """The figures of a state of a talk."""
        injection = ConversationAdapter().format_for_injection(state, BUDGET)
        return cls(
            goals=len(state.goals.goals),
            active_goals=len(state.goals.active_goals),
            entities=len(state.world.entities),
            attention_items=len(state.attention.items),
            transitions=len(state.trajectory.transitions),
            injection_tokens=estimate_tokens(injection),
        )


class Noticed(Value):
    """In which turns, from 1 on, both readings notice something, and in which one does."""

    what: str
    one: tuple[int, ...]
    other: tuple[int, ...]

    @property
    def both(self) -> tuple[int, ...]:
        """The turns in which both do."""
        return tuple(turn for turn in self.one if turn in self.other)


class Comparison(Value):
    """Two readings of one dialogue."""

    name: str
    """Of the dialogue."""
    one: str
    """Who read it."""
    other: str
    """Who read it, too; what `one` is measured by."""
    turns: tuple[TurnAgreement, ...]
    noticed: tuple[Noticed, ...]
    """Pivots, callbacks and bad moods."""
    one_state: StateFigures
    other_state: StateFigures
    faults: tuple[str, ...] = ()
    """Turns for which one of the two gave nothing usable; they agree in nothing."""

    @property
    def overall(self) -> float:
        """The mean of the turns."""
        return sum(turn.score for turn in self.turns) / len(self.turns)


def agreement(one: Mapping[str, object], other: Mapping[str, object]) -> TurnAgreement:
    """How far two analyses of one message of a talk agree.

    Topics are compared without case and spacing; `Python programming` and `Python` are two, as in
    the paper, though the engine takes them for one entity.

    Raises:
        ObservationError: One is no `ConversationAnalysis`.
    """
    return _agreement(ConversationAnalysis.parse(one), ConversationAnalysis.parse(other))


def compare(name: str, one: Course, other: Course) -> Comparison:
    """Compares two courses of one dialogue.

    Raises:
        ValueError: They differ in their number of turns.
    """
    if len(one.analyses) != len(other.analyses) or not one.analyses:
        raise ValueError(
            f"Two courses of one dialogue have the same turns, not {len(one.analyses)} and "
            f"{len(other.analyses)}."
        )
    pairs = zip(one.analyses, other.analyses, strict=True)
    return Comparison(
        name=name,
        one=one.label,
        other=other.label,
        turns=tuple(_agreement(mine, yours) if mine and yours else _NONE for mine, yours in pairs),
        noticed=tuple(
            Noticed(what=what, one=_turns(one, notices), other=_turns(other, notices))
            for what, notices in _NOTICED.items()
        ),
        one_state=StateFigures.of(one.state),
        other_state=StateFigures.of(other.state),
        faults=(*one.faults, *other.faults),
    )


_NONE = TurnAgreement(topics=0, sentiment=0, goals=0, references=0)


def _agreement(one: ConversationAnalysis, other: ConversationAnalysis) -> TurnAgreement:
    return TurnAgreement(
        topics=_overlap(one.topics, other.topics),
        sentiment=float(one.sentiment is other.sentiment),
        goals=float(bool(one.goals) == bool(other.goals)),
        references=float(one.references_previous == other.references_previous),
    )


def _overlap(one: Iterable[str], other: Iterable[str]) -> float:
    mine, yours = set(map(folded, one)), set(map(folded, other))
    longer = max(len(mine), len(yours))
    return len(mine & yours) / longer if longer else 1.0


def _turns(course: Course, notices: Callable[[Observation], bool]) -> tuple[int, ...]:
    seen: Sequence[Observation | None] = course.observations
    return tuple(turn for turn, what in enumerate(seen, 1) if what and notices(what))


def _pivots(observation: Observation) -> bool:
    return observation.event is not None and observation.event.type is TransitionType.PIVOT


def _calls_back(observation: Observation) -> bool:
    return _has(observation, AttentionType.OPPORTUNITY)


def _worries(observation: Observation) -> bool:
    return _has(observation, AttentionType.THREAT)


def _has(observation: Observation, type: AttentionType) -> bool:
    return any(item.type is type for item in observation.attention_items)


_NOTICED = {"pivot": _pivots, "callback": _calls_back, "bad mood": _worries}
"""What the adapter made of an analysis: the capability checks of section 6.6."""
