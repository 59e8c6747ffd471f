"""A domain of an assessment whose contenders do what they are called, without any model.

Its scenarios are ponds. `fisher` catches something at even seeds, `sleeper` never; `mute` gives
unusable answers; `cut-off` never reaches its model, `shaky` only the second time; `mortal` takes
its process down with it the first time; `unlucky` always does; `buggy` raises what nobody expects;
`quitter` ends the program, `dropper` cancels itself; `stammerer` says what is no text, and `blank`
gives no result; `chatty` asks for more than its server allows; `patient` says that it waits, and
waits until a file says go.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from coag.errors import ModelAnswerError, ModelCallError
from coag.evals import (
    Assessment,
    Job,
    JobResult,
    Plan,
    ProgressListener,
    RunSettings,
    Trial,
    run_evaluation,
)

CONTENDERS = (
    "fisher",
    "sleeper",
    "mute",
    "cut-off",
    "shaky",
    "mortal",
    "unlucky",
    "buggy",
    "quitter",
    "dropper",
    "stammerer",
    "blank",
    "chatty",
    "patient",
)


class RefusedError(Exception):
    """What a client raises where a server refuses a request."""

    status_code = 400


class Ponds:
    """The domain."""

    @property
    def scenarios(self) -> Sequence[str]:
        return ("small-pond", "large-pond", "deep-sea", "deep-lake")

    @property
    def contenders(self) -> Sequence[str]:
        return CONTENDERS

    def asks_model(self, contender: str) -> bool:
        return contender != "fisher"

    async def play(self, job: Job, settings: RunSettings, folder: Path) -> JobResult:
        room = folder
        caught = job.contender in ("fisher", "shaky", "mortal", "patient") and job.seed % 2 == 0
        (room / "run.txt").write_text(f"{settings.spec(job)} {caught}")
        first = _first_time(room)
        await _FATES.get(job.contender, _nothing)(job, room, first)
        return self.measure_again(job, room)

    def measure_again(self, job: Job, folder: Path) -> JobResult:
        if job.contender == "stammerer":
            return JobResult(success=False, problem="no\ud800")
        if job.contender == "blank":
            return cast("JobResult", None)
        caught = (folder / "run.txt").read_text().endswith("True")
        return JobResult(success=caught, measures={"fish": float(caught), "depth": None})


async def _nothing(job: Job, room: Path, first: bool) -> None:
    """Goes well."""


async def _mute(job: Job, room: Path, first: bool) -> None:
    raise ModelAnswerError(expected="proposal", problem="no JSON", raw="\x1b[2Jhm", attempts=2)


async def _cut_off(job: Job, room: Path, first: bool) -> None:
    raise ModelCallError("local", "connection refused")


async def _shaky(job: Job, room: Path, first: bool) -> None:
    if first:
        raise ModelCallError("local", "it is still loading")


async def _mortal(job: Job, room: Path, first: bool) -> None:
    if first:
        os.kill(os.getpid(), signal.SIGKILL)


async def _unlucky(job: Job, room: Path, first: bool) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _buggy(job: Job, room: Path, first: bool) -> None:
    raise ZeroDivisionError("no fish to divide")


async def _quitter(job: Job, room: Path, first: bool) -> None:
    raise SystemExit(3)


async def _dropper(job: Job, room: Path, first: bool) -> None:
    raise asyncio.CancelledError("no more")


async def _chatty(job: Job, room: Path, first: bool) -> None:
    raise ModelCallError("local", "the prompt is too long") from RefusedError()


async def _patient(job: Job, room: Path, first: bool) -> None:
    go = room.parents[4] / "go"
    if not go.exists():
        os.write(2, b"waiting\n")
    while not go.exists():  # noqa: ASYNC110 - another process makes the file
        await asyncio.sleep(0.01)


_FATES = {
    "mute": _mute,
    "cut-off": _cut_off,
    "shaky": _shaky,
    "mortal": _mortal,
    "unlucky": _unlucky,
    "buggy": _buggy,
    "quitter": _quitter,
    "dropper": _dropper,
    "chatty": _chatty,
    "patient": _patient,
}


def _first_time(room: Path) -> bool:
    """Whether the job is played for the first time: noted beside its folder, which is emptied."""
    note = room.with_name(f"{room.name}.begun")
    first = not note.exists()
    note.touch()
    return first


DOMAIN = Ponds()
NAME = "kits.ponds:DOMAIN"


class Noted(ProgressListener):
    """Notes the progress of a sweep, and may ask it to stop."""

    def __init__(self) -> None:
        self.began: tuple[int, int] | None = None
        self.trials: list[Trial] = []
        self.left: list[float | None] = []
        self.stopped = 0
        self.after_each: Callable[[Trial], None] = lambda trial: None

    def begin(self, total: int, done: int) -> None:
        self.began = (total, done)

    def played(self, trial: Trial, seconds_left: float | None) -> None:
        self.trials.append(trial)
        self.left.append(seconds_left)
        self.after_each(trial)

    def stopping(self) -> None:
        self.stopped += 1


def pond_plan(*contenders: str, **fields: object) -> Plan:
    """A plan over one pond, for two seeds by default."""
    return Plan.model_validate(
        {
            "domain": NAME,
            "contenders": contenders,
            "scenarios": ("small-pond",),
            "models": ("scripted:water",),
            "seeds": (0, 1),
            "without_model": [name for name in contenders if name == "fisher"],
            "started_at": datetime(2027, 1, 1, tzinfo=UTC),
            **fields,
        }
    )


AT_ONCE = RunSettings(pause=0, keep="all")
"""Tries again without a pause, and keeps all."""


def run_ponds(
    folder: Path, plan: Plan, progress: Noted | None = None, settings: RunSettings = AT_ONCE
) -> Assessment:
    """Plays what an assessment of ponds lacks."""
    return run_evaluation(DOMAIN, folder, plan=plan, settings=settings, progress=progress)
