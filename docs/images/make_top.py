"""Draws `coag-top.svg`: `coag top` over a small fleet of made-up robots.

Run it after a change of the view: `python docs/images/make_top.py`.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from coag.schema import (
    Candidate,
    DecidedBy,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    ModelCall,
    Note,
    OutputMode,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Redactor,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Verdict,
)
from coag.tracing import RunFolder, RunInfo, list_runs, open_trace
from coag.ui import Board
from coag.ui.top import TopApp

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PICTURE = Path(__file__).with_name("coag-top.svg")
_FROM_ELSEWHERE = re.compile(r"@font-face\s*\{[^}]*\}|<!--.*?-->", re.DOTALL)
"""Fonts, which would be fetched, and comments."""
_MODEL = "ollama:qwen2.5:1.5b"


class StoppedClock:
    """A quarter of a minute after all that was recorded."""

    def now(self) -> datetime:
        """The time."""
        return NOW + timedelta(seconds=14)

    def monotonic(self) -> float:
        """Seconds that never pass."""
        return 0.0


def cycle(number: int, *, reach: int = 6) -> list[TraceRecord]:
    """The first few outcomes of a cycle; all six make it whole."""
    candidates = (
        Candidate(id="c1", action="move", raw_arguments='{"direction": "north"}', reason="dirt"),
        Candidate(id="c2", action="recharge", reason="The battery is at 35."),
        Candidate(id="c3", action="fly", reason="It is quick."),
    )
    evaluations = (
        Evaluation(candidate_id="c1", verdicts=(_no("keep_charge", "5 would be left, 15 needed"),)),
        Evaluation(candidate_id="c2", arguments={}, verdicts=(Verdict.allow(),), score=0.9),
        Evaluation(candidate_id="c3", verdicts=(_no("action_exists", "There is no such action."),)),
    )
    outcomes: list[TraceRecord] = [
        RetrievalOutcome(cycle=number, at=NOW, query="dirt, battery"),
        ReasoningOutcome(
            cycle=number,
            at=NOW,
            situation="I am at (2, 1). Dirt lies north at (2, 0); the charger is 3 steps away.",
            risks=("The battery, at 35, may not last for both.",),
        ),
        ProposalOutcome(cycle=number, at=NOW, candidates=candidates),
        EvaluationOutcome(cycle=number, at=NOW, evaluations=evaluations),
        SelectionOutcome(
            cycle=number,
            at=NOW,
            candidate_id="c2",
            decided_by=DecidedBy.ONLY_SURVIVOR,
            reason="It is the only candidate that survived.",
        ),
        ExecutionOutcome(
            cycle=number,
            at=NOW,
            status=ExecutionStatus.DONE,
            action="recharge",
            result='{"ok": true, "battery": 100}',
        ),
    ]
    return [_call(number), *outcomes[:reach]]


def _no(constraint: str, reason: str) -> Verdict:
    return Verdict(allowed=False, reason=reason, constraint=constraint)


def _call(number: int) -> ModelCall:
    usage = TokenUsage(prompt_tokens=1_310, completion_tokens=96, cached_tokens=1_024, calls=1)
    return ModelCall(
        id=f"call-{number:06}",
        at=NOW,
        cycle=number,
        phase=Phase.REASONING,
        model=_MODEL,
        rung=OutputMode.JSON_SCHEMA,
        attempt=1,
        messages=(),
        raw="{}",
        usage=usage,
        seconds=2.1,
    )


def cycles(whole: int, *, reach: int) -> list[TraceRecord]:
    """So many whole cycles, and the beginning of one more."""
    done = [record for number in range(1, whole + 1) for record in cycle(number)]
    return [TurnStart(at=NOW, turn=1, cycle=0), *done, *cycle(whole + 1, reach=reach)]


def fleet() -> dict[str, list[TraceRecord]]:
    """What each robot has done, the one that began first first."""
    move = Intent(
        id="i", at=NOW, cycle=8, candidate_id="c1", action="move", arguments={"direction": "west"}
    )
    end = TurnEnd(at=NOW, turn=1, cycle=12, reason="respond", response="All is clean.")
    note = Note(at=NOW, cycle=4, about="repair", text="The answer was no JSON and was repaired.")
    return {
        "hallway": cycles(2, reach=3),
        "kitchen": [*cycles(12, reach=6), end],
        "library": [*cycles(7, reach=5), move],
        "pantry": cycles(4, reach=2),
        "atrium": [*cycles(3, reach=1), note],
    }


async def draw(logs: Path, held: frozenset[int]) -> str:
    """The view as SVG."""

    def found() -> Sequence[RunFolder]:
        return list(list_runs(logs))

    board = Board(found, clock=StoppedClock(), held=lambda: held)
    app = TopApp(board, Path("logs"))
    async with app.run_test(size=(100, 26)) as pilot:
        picture = ""
        while "repair:" not in picture:  # the last record of the chosen run
            await pilot.pause()
            picture = app.export_screenshot(title="coag top")
        return picture


def main() -> None:
    """Makes the runs, draws them and writes the picture."""
    with tempfile.TemporaryDirectory() as place, ExitStack() as writers:
        held: set[int] = set()
        for number, (name, records) in enumerate(fleet().items()):
            started = NOW - timedelta(minutes=9 - number)
            info = RunInfo(
                id=f"20261121-11{51 + number}00-{name}",
                kind="coag",
                agent=name,
                model=_MODEL,
                started_at=started,
            )
            folder = RunFolder.create(Path(place), info, redactor=Redactor())
            trace = writers.enter_context(open_trace(folder, redactor=Redactor()))
            for record in records:
                trace.write(record)
            trace.flush()
            if name == "kitchen":
                trace.close()
                folder.finish(at=NOW, redactor=Redactor())
            elif name != "hallway":
                held.add(folder.trace_path.stat().st_ino)
        picture = asyncio.run(draw(Path(place), frozenset(held)))
    PICTURE.write_text(_FROM_ELSEWHERE.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main()
