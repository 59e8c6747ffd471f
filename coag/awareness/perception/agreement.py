"""How far a perception agrees with people, over dialogues."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from coag.awareness.adapters import ConversationAdapter, ConversationAnalysis
from coag.awareness.engine import AwarenessEngine
from coag.awareness.observation import Observation, where_wrong
from coag.awareness.paper import CONVERSATION
from coag.awareness.state import AttentionType, AwarenessState, Said, Share, TransitionType, folded
from coag.errors import AwarenessError, CoagError, ConfigurationError, ModelAnswerError
from coag.models import Asker, ModelSpec
from coag.schema import SteppingClock, Value, estimate_tokens, one_line

from .kept import KeptPerception
from .model import ModelPerception, PerceptionSettings
from .protocol import Perception
from .rules import RulePerception

# ---- What becomes of a dialogue when one perception reads it: analyses, observations, states ----


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


# ---- Dialogues with hand-written analyses, to measure a perception on ----


class Dialogue(Value):
    """What one person said, turn by turn, and what each turn says by hand."""

    name: Said
    turns: tuple[ConversationAnalysis, ...] = Field(min_length=1)
    """Each with its `message`."""

    @model_validator(mode="after")
    def _have_messages(self) -> Dialogue:
        for number, turn in enumerate(self.turns, 1):
            if not turn.message.strip():
                raise ValueError(f"turn {number} of {self.name!r} has no message")
        return self

    @property
    def messages(self) -> tuple[str, ...]:
        """What was said."""
        return tuple(turn.message for turn in self.turns)


_DIALOGUES = TypeAdapter(tuple[Dialogue, ...])


def load_dialogues(path: Path) -> tuple[Dialogue, ...]:
    """The dialogues of a JSON file: a list of `{"name": ..., "turns": [{"message": ...}, ...]}`.

    Raises:
        ConfigurationError: It cannot be read, or is something else.
    """
    try:
        return _DIALOGUES.validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"Dialogues cannot be read from {str(path)!r}: {error}") from error
    except ValidationError as error:
        place, problem = where_wrong(error)
        raise ConfigurationError(
            f"{str(path)!r} holds no dialogues: wrong at {place or 'its beginning'}: {problem} "
            'Write a list of {"name": NAME, "turns": [{"message": TEXT, ...}, ...]}.'
        ) from error


# ---- How far two readings of a dialogue agree (SAGEN §6.6, tables 10 and 11) ----


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


# ---- Comparisons as small tables of text ----


_Row = tuple[str, ...]


def comparison_table(comparison: Comparison) -> str:
    """Tables 10 and 11 of one dialogue, and what was noticed in which turns."""
    title = f"{comparison.name}: {comparison.one} beside {comparison.other}"
    parts = [title, "=" * len(title), _per_turn(comparison), "", _noticed(comparison), ""]
    parts.append(_final(comparison))
    if comparison.faults:
        parts += ["", "Nothing usable:", *(f"  {fault}" for fault in comparison.faults)]
    return "\n".join(parts) + "\n"


def _per_turn(comparison: Comparison) -> str:
    rows: list[_Row] = [("turn", "topics", "sentiment", "goals", "references", "alignment")]
    for number, turn in enumerate(comparison.turns, 1):
        values = (turn.topics, turn.sentiment, turn.goals, turn.references, turn.score)
        rows.append((str(number), *(f"{value:.2f}" for value in values)))
    rows.append(("overall", "", "", "", "", f"{comparison.overall:.2f}"))
    return _grid(rows)


def _noticed(comparison: Comparison) -> str:
    rows = [("noticed in turns", comparison.one, comparison.other)]
    rows += [(one.what, _listed(one.one), _listed(one.other)) for one in comparison.noticed]
    return _grid(rows)


def _final(comparison: Comparison) -> str:
    rows = [("final state", comparison.one, comparison.other, "delta")]
    other = comparison.other_state.model_dump()
    for name, mine in comparison.one_state.model_dump().items():
        yours = other[name]
        rows.append((name.replace("_", " "), str(mine), str(yours), f"{mine - yours:+d}"))
    return _grid(rows)


def _listed(turns: Sequence[int]) -> str:
    return ", ".join(map(str, turns)) or "-"


def _grid(rows: Sequence[_Row]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


# ---- The command line: measures agreement and prints it ----


_PAPER = Dialogue(name="the paper's four turns", turns=CONVERSATION)
_BY_HAND = "by hand"


def main(arguments: Sequence[str]) -> int:
    """Runs the command; 0 if it could measure, else 1."""
    given = _parser().parse_args(arguments)
    try:
        settings = PerceptionSettings(timeout=given.timeout, trusted=given.trusted)
        dialogues = (_PAPER, *(load_dialogues(given.dialogues) if given.dialogues else ()))
        sys.stdout.write(asyncio.run(_report(dialogues, given.model, settings, given.keep)))
    except CoagError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m coag.awareness.perception")
    commands = parser.add_subparsers(required=True)
    measured = commands.add_parser(
        "agreement",
        help="how far perceptions agree with hand-written analyses and with each other",
    )
    measured.add_argument("--model", metavar="SPEC", help="a model to ask, e.g. openai:gpt-5-mini")
    measured.add_argument(
        "--trusted", action="store_true", help="believe what messages themselves do not show"
    )
    measured.add_argument(
        "--timeout",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="for each call; default 600",
    )
    measured.add_argument(
        "--dialogues", type=Path, metavar="FILE", help="more dialogues with analyses, as JSON"
    )
    measured.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="keep what the model reads, as JSON lines; what is there is not asked again",
    )
    return parser


def _seconds(text: str) -> float:
    """Seconds of a command line.

    Raises:
        ValueError: They are no number above 0; argparse tells it.
    """
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds


async def _report(
    dialogues: Sequence[Dialogue],
    spec: str | None,
    settings: PerceptionSettings,
    keep: Path | None,
) -> str:
    """The tables of all dialogues, and the means over them where there are several."""
    perceptions: dict[str, Perception] = {"rules": RulePerception()}
    if spec is None:
        return _tables([await _compared(one, perceptions) for one in dialogues])
    model = ModelSpec.parse(spec)
    client = model.open()
    asking: Perception = ModelPerception(
        Asker(client, limit_name=model.limit_name), settings=settings
    )
    if keep is not None:
        asking = KeptPerception(asking, keep, f"{spec} {settings.model_dump_json()}")
    perceptions["model"] = _Told(asking, sum(len(one.turns) for one in dialogues))
    try:
        return _tables([await _compared(one, perceptions) for one in dialogues])
    finally:
        await client.close()


class _Told:
    """A perception that tells, on standard error, how far it is."""

    def __init__(self, perception: Perception, turns: int) -> None:
        self._perception = perception
        self._turns = turns
        self._done = 0

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        self._done += 1
        sys.stderr.write(f"the model reads turn {self._done} of {self._turns}\n")
        return await self._perception.perceive(text, state)


async def _compared(
    dialogue: Dialogue, perceptions: Mapping[str, Perception]
) -> tuple[Comparison, ...]:
    """Each perception beside the analyses by hand, then the perceptions beside each other."""
    courses = [given_course(_BY_HAND, dialogue.turns)]
    for label, perception in perceptions.items():
        courses.append(await perceived_course(label, perception, dialogue.messages))
    return tuple(compare(dialogue.name, other, one) for one, other in combinations(courses, 2))


def _tables(compared: Sequence[tuple[Comparison, ...]]) -> str:
    parts = [comparison_table(one) for of_dialogue in compared for one in of_dialogue]
    if len(compared) > 1:
        lines = [
            f"{same[0].one} beside {same[0].other}, {len(same)} dialogues: "
            f"{sum(one.overall for one in same) / len(same):.2f}"
            for same in zip(*compared, strict=True)
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)
