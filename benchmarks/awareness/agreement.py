"""How far a perception agrees with people and with others (SAGEN §6.6, tables 10 and 11).

    python -m benchmarks.awareness.agreement agreement [--model SPEC] [--dialogues FILE]

compares readings of the paper's talk, and of further dialogues, per turn (table 10), in the final
state (table 11), and in what was noticed on the way.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from case_study.awareness import (
    CONVERSATION,
    CachedPerception,
    Dialogue,
    DialogueRun,
    load_dialogues,
    run_analyses,
    run_perception,
)
from coag.awareness import (
    AttentionType,
    AwarenessState,
    ConversationAdapter,
    ModelPerception,
    Observation,
    Perception,
    PerceptionSettings,
    RulePerception,
    TransitionType,
)
from coag.awareness.adapters import ConversationAnalysis
from coag.awareness.fields import Share
from coag.errors import CoagError
from coag.models import ModelSpec, StructuredModel
from coag.schema import Value, estimate_tokens, folded

from .talk import grid

# ---- How far two readings of a dialogue agree ----


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
    errors: tuple[str, ...] = ()
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


def compare(name: str, one: DialogueRun, other: DialogueRun) -> Comparison:
    """Compares two runs of one dialogue.

    Raises:
        ValueError: They differ in their number of turns.
    """
    if len(one.analyses) != len(other.analyses) or not one.analyses:
        raise ValueError(
            f"Two runs of one dialogue have the same turns, not {len(one.analyses)} and "
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
        errors=(*one.errors, *other.errors),
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


def _turns(run: DialogueRun, notices: Callable[[Observation], bool]) -> tuple[int, ...]:
    seen: Sequence[Observation | None] = run.observations
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
    if comparison.errors:
        parts += ["", "Nothing usable:", *(f"  {error}" for error in comparison.errors)]
    return "\n".join(parts) + "\n"


def _per_turn(comparison: Comparison) -> str:
    rows: list[_Row] = [("turn", "topics", "sentiment", "goals", "references", "alignment")]
    for number, turn in enumerate(comparison.turns, 1):
        values = (turn.topics, turn.sentiment, turn.goals, turn.references, turn.score)
        rows.append((str(number), *(f"{value:.2f}" for value in values)))
    rows.append(("overall", "", "", "", "", f"{comparison.overall:.2f}"))
    return grid(rows)


def _noticed(comparison: Comparison) -> str:
    rows = [("noticed in turns", comparison.one, comparison.other)]
    rows += [(one.what, _listed(one.one), _listed(one.other)) for one in comparison.noticed]
    return grid(rows)


def _final(comparison: Comparison) -> str:
    rows = [("final state", comparison.one, comparison.other, "delta")]
    other = comparison.other_state.model_dump()
    for name, mine in comparison.one_state.model_dump().items():
        yours = other[name]
        rows.append((name.replace("_", " "), str(mine), str(yours), f"{mine - yours:+d}"))
    return grid(rows)


def _listed(turns: Sequence[int]) -> str:
    return ", ".join(map(str, turns)) or "-"


# ---- The command line: measures agreement and prints it ----


_PAPER = Dialogue(name="the paper's four turns", turns=CONVERSATION)
_BY_HAND = "by hand"


def main(arguments: Sequence[str]) -> int:
    """Runs the command; 0 if it could measure, else 1."""
    options = _parser().parse_args(arguments)
    try:
        settings = PerceptionSettings(timeout=options.timeout, trusted=options.trusted)
        dialogues = (_PAPER, *(load_dialogues(options.dialogues) if options.dialogues else ()))
        sys.stdout.write(asyncio.run(_report(dialogues, options.model, settings, options.keep)))
    except CoagError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.awareness.agreement")
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
        ValueError: They are no number above 0; argparse reports it.
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
        StructuredModel(client, limit_name=model.limit_name), settings=settings
    )
    if keep is not None:
        asking = CachedPerception(asking, keep, f"{spec} {settings.model_dump_json()}")
    perceptions["model"] = _WithProgress(asking, sum(len(one.turns) for one in dialogues))
    try:
        return _tables([await _compared(one, perceptions) for one in dialogues])
    finally:
        await client.close()


class _WithProgress:
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
    runs = [run_analyses(_BY_HAND, dialogue.turns)]
    for label, perception in perceptions.items():
        runs.append(await run_perception(label, perception, dialogue.messages))
    return tuple(compare(dialogue.name, other, one) for one, other in combinations(runs, 2))


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
