"""Playing one job to a trial: tried again within a bound, and judged by whose fault it was."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from urllib.parse import quote

from coag.errors import CoagError, ConfigurationError, ModelAnswerError, ModelCallError
from coag.schema import content_id, one_line
from vacuum_world.errors import WorldError

from ._domain import Domain, How, Played, domain_named
from ._kept import CASES
from ._trial import Job, Trial

_REQUEST_REFUSED = frozenset({400, 413, 422})
"""HTTP statuses by which a server refuses what it was asked, e.g. too long a prompt."""
_LONGEST = 100
"""Characters of a folder's name."""
_TOLD = 500
"""Characters of a problem that are kept."""


def room_of(job: Job) -> str:
    """The folder of a job's runs, relative to the assessment's."""
    parts = (job.scenario, job.contender, job.model, str(job.seed))
    return "/".join((CASES, *map(_named, parts)))


def _named(part: str) -> str:
    """A folder's name for any text; different texts have different ones."""
    name = quote(part, safe="").replace("%", "=")
    name = f"=2E{name[1:]}" if name.startswith(".") else name
    return name if len(name) <= _LONGEST else f"{name[:60]}={content_id(part)}"


async def play_job(job: Job, how: How, folder: Path) -> Trial:
    """Plays a job until it is over, or has failed too often.

    Args:
        job: What to play.
        how: How, and how often to try again.
        folder: The assessment's folder.
    """
    room = folder / room_of(job)
    for attempt in range(1, how.retries + 2):
        began = time.monotonic()
        try:
            played = await _played(job, how, room)
        except (CoagError, WorldError, OSError) as error:
            if attempt <= how.retries and not isinstance(error, ConfigurationError):
                await asyncio.sleep(how.pause * 2 ** (attempt - 1))
                continue
            return _broken(job, how, room, _problem(error), attempt)
        except Exception as error:  # the outermost guard: one bad job must not end a sweep
            return _broken(job, how, room, _problem(error), attempt)
        took = round(time.monotonic() - began, 3)
        return _kept(trial_of(job, played, attempts=attempt, took=took), how, room)
    raise AssertionError("unreachable")


async def _played(job: Job, how: How, room: Path) -> Played:
    _prepare(room, empty=not how.resumes)
    domain = domain_named(job.domain)
    try:
        return await domain.play(job, how, room)
    except CoagError as error:
        if not _contenders_fault(error):
            raise
        return _ended(domain, job, room, error)


def _ended(domain: Domain, job: Job, room: Path, error: CoagError) -> Played:
    """What a contender came to that ended its own trial, with what it had cost until then."""
    try:
        played = domain.measure_again(job, room)
    except (CoagError, OSError):  # this domain tells nothing of what was not played to its end
        played = Played(success=False)
    return played.model_copy(update={"success": False, "problem": _problem(error)})


def _prepare(room: Path, *, empty: bool) -> None:
    if empty:
        shutil.rmtree(room, ignore_errors=True)
    room.mkdir(parents=True, exist_ok=True)


def trial_of(job: Job, played: Played, *, attempts: int, took: float) -> Trial:
    """The trial of a job that was played to its end."""
    return Trial(
        job=job,
        outcome="success" if played.success else "failure",
        problem=played.problem,
        attempts=attempts,
        took=took,
        measures=played.measures,
        causes=played.causes,
        decided_by=played.decided_by,
        case=f"{room_of(job)}/{played.case}".removesuffix("/."),
    )


def broken_trial(job: Job, problem: str, attempts: int, case: str | None = None) -> Trial:
    """The trial of a job that is no evidence."""
    told = one_line(problem)[:_TOLD]
    return Trial(job=job, outcome="broken", problem=told, attempts=attempts, case=case)


def _broken(job: Job, how: How, room: Path, problem: str, attempts: int) -> Trial:
    trial = broken_trial(job, problem, attempts, case=room_of(job))
    return _kept(trial, how, room)


def _kept(trial: Trial, how: How, room: Path) -> Trial:
    """The trial, after its runs were taken away if they are not wanted."""
    wanted = how.keep == "all" or (how.keep == "failures" and not trial.success)
    if wanted:
        return trial
    shutil.rmtree(room, ignore_errors=True)
    return trial.model_copy(update={"case": None})


def _contenders_fault(error: Exception) -> bool:
    """Whether the contender brought it on itself: by an unusable answer, or by what it asked."""
    if isinstance(error, ModelAnswerError):
        return True
    if not isinstance(error, ModelCallError):
        return False
    status = getattr(error.__cause__, "status_code", None)
    return status in _REQUEST_REFUSED


def _problem(error: Exception) -> str:
    text = one_line(str(error))[:_TOLD]
    if isinstance(error, CoagError | WorldError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
