"""The command line: measures agreement and prints it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from coag.awareness.paper import CONVERSATION
from coag.awareness.state import AwarenessState
from coag.errors import CoagError
from coag.models import Asker, ModelSpec

from ._agreement import Comparison, compare
from ._courses import given_course, perceived_course
from ._dialogues import Dialogue, load_dialogues
from ._kept import KeptPerception
from ._model import ModelPerception, PerceptionSettings
from ._protocol import Perception
from ._rules import RulePerception
from ._tables import comparison_table

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
