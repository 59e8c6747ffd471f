"""Making the film of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from PIL import Image

from coag.errors import ConfigurationError, TraceError
from coag.schema import PHASES
from coag.tracing import RunFolder, RunInfo, TraceProblem, read_run, read_trace

from ._canvas import Canvas
from ._deliberation import Deliberation
from ._picture import Setting, draw_card, draw_scene
from ._plain import ACTION, MODEL, PlainStory
from ._reel import Reel, read_reel
from ._scenes import Scene, said
from ._theme import SCALES, THEMES, SizeName, ThemeName

Stage = Literal["reading", "drawing"]
OnProgress = Callable[[Stage, int, int | None], None]
"""Is told what is done, how far it is (a cycle, or a picture), and of how many, if known."""

ENDINGS = (".gif", ".png", ".apng")
_FASTEST, _SLOWEST = 50.0, 0.1
"""Pictures a second; a GIF counts time in hundredths of a second."""
_SHORTEST, _LONGEST = 0.1, 60.0
"""Seconds a cycle."""
_TICK = 10
"""Milliseconds that a picture's time is a multiple of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmOptions:
    """How a film is made."""

    seconds_per_cycle: float = 5.0
    """How long a cycle is shown, its phases together; pictures of more weight take more of it."""
    fps: float | None = None
    """Pictures a second, each shown as long as the others; None to go by the cycle."""
    size: SizeName = "medium"
    theme: ThemeName = "light"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmReport:
    """What was made."""

    path: Path
    pictures: int
    seconds: float
    """How long it takes to see it once."""
    size: int
    """Bytes of the file."""
    notices: tuple[str, ...]
    """What is not in it, and what was wrong with the trace, as sentences."""


@dataclass(frozen=True, slots=True)
class _Shot:
    """A picture to be drawn: a moment, or words alone."""

    what: Scene | tuple[str, ...]
    share: float
    """Of a cycle's time."""


def make_film(
    run: RunFolder,
    path: Path,
    options: FilmOptions | None = None,
    *,
    on_progress: OnProgress = lambda stage, done, total: None,
) -> FilmReport:
    """Makes a film of a run of the case study from its trace alone; the run may go on.

    Args:
        run: The run's folder.
        path: The file to write, `.gif`, `.png` or `.apng` (both are animated PNGs). It is replaced
            when the film is whole.
        options: How; None for the defaults.
        on_progress: Is told how far it is.

    Raises:
        ConfigurationError: The file cannot be written or has another ending, an option is out of
            range, or the run is none of the vacuum world.
        TraceError: There is no trace, or it is damaged.
    """
    options = options or FilmOptions()
    _check(path, options)
    info = read_run(run.path)
    notices: list[str] = []
    reel = _read(run, info, notices, on_progress)
    setting = _setting(info)
    shots = _shots(reel)
    times = _times(shots, options)
    palette = Image.new("P", (1, 1))
    palette.putpalette(THEMES[options.theme].palette())

    def pictures() -> Iterator[Image.Image]:
        for number, shot in enumerate(shots, 1):
            yield _drawn(shot, setting, options).picture(palette)
            on_progress("drawing", number, len(shots))

    _write(path, pictures(), times)
    return FilmReport(
        path=path,
        pictures=len(shots),
        seconds=sum(times) / 1000,
        size=path.stat().st_size,
        notices=(*notices, *_missing(reel, info)),
    )


# ---- what is asked for ----


def _check(path: Path, options: FilmOptions) -> None:
    if path.suffix.lower() not in ENDINGS:
        raise ConfigurationError(
            f"{str(path)!r} does not say which kind of file: end it in {', '.join(ENDINGS)}."
        )
    if options.fps is not None and not _SLOWEST <= options.fps <= _FASTEST:
        raise ConfigurationError(
            f"{options.fps!r} pictures a second: give {_SLOWEST} to {_FASTEST:.0f}."
        )
    if not _SHORTEST <= options.seconds_per_cycle <= _LONGEST:
        raise ConfigurationError(
            f"{options.seconds_per_cycle!r} seconds a cycle: give {_SHORTEST} to {_LONGEST:.0f}."
        )
    if path.is_dir():
        raise ConfigurationError(f"{str(path)!r} is a folder. Name a file in it.")
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(f"There is no folder {str(path.parent)!r} to write the film to.")


def _read(run: RunFolder, info: RunInfo, notices: list[str], on_progress: OnProgress) -> Reel:
    if not run.trace_path.is_file():
        raise TraceError(run.trace_path, "is not there: nothing was recorded, or it was removed")

    def borne(problem: TraceProblem) -> None:
        if len(notices) < 1:
            notices.append(f"The trace is not whole: {problem.text}.")

    name = info.agent
    story = PlainStory() if info.kind == "plain" else Deliberation(name)
    reel = read_reel(
        read_trace(run.trace_path, borne),
        story,
        over=info.ended_at is not None,
        found=_found(info.result),
        on_cycle=lambda cycle: on_progress("reading", cycle, None),
    )
    if reel.end is None:
        raise ConfigurationError(f"Run {info.id!r} has no cycle yet, so there is nothing to show.")
    scenes = (scene for chapter in reel.chapters for scene in chapter.scenes)
    if not any(scene.truth or scene.belief for scene in scenes):
        raise ConfigurationError(
            f"Run {info.id!r} is of another domain: no state in its trace is one of the vacuum "
            "world, neither the environment's nor the agent's. A film shows runs of case-study."
        )
    return reel


def _found(result: dict[str, Any] | None) -> str:
    """What whoever ran it found out, where that is told as `case-study` does."""
    success, summary = (result or {}).get("success"), (result or {}).get("summary")
    if not isinstance(success, bool):
        return ""
    words = f": {said(summary, 120)}" if isinstance(summary, str) and summary else ""
    return f"The run has ended with {'success' if success else 'no success'}{words}."


def _setting(info: RunInfo) -> Setting:
    plain = info.kind == "plain"
    told = info.recipe.arguments if info.recipe else info.configuration
    asked = told.get("request")
    place = cast("dict[str, Any]", asked) if isinstance(asked, dict) else told
    scenario = place.get("scenario")
    episode = told.get("episode")
    named = said(scenario, 60) if isinstance(scenario, str) else said(info.id, 60)
    number = f", episode {episode}" if isinstance(episode, int) and episode > 1 else ""
    why = (
        "A plain run records no state of the world: hidden obstacles and dirt out of sight "
        "are not known."
        if plain
        else "No snapshot of this run holds the state of the world."
    )
    seed = "" if info.seed is None else f", seed {info.seed}"
    return Setting(
        title=f"{named}{number}",
        subtitle=f"{'plain' if plain else 'CoAG'} agent, {said(info.model, 60)}{seed}",
        phases=(MODEL, ACTION) if plain else tuple(phase.value for phase in PHASES),
        believed="What its tools have told" if plain else "As the agent believes it",
        without_truth=why,
    )


# ---- the pictures ----


def _shots(reel: Reel) -> list[_Shot]:
    shots = [shot for chapter in reel.first for shot in _of(chapter.scenes)]
    if reel.gap is not None:
        words = (
            f"Cycles {reel.gap.first} to {reel.gap.last} are left out",
            f"{reel.gap.cycles} of {reel.cycles} cycles",
        )
        shots.append(_Shot(words, 0.6))
    shots += [shot for chapter in reel.last for shot in _of(chapter.scenes)]
    return [*shots, _Shot(reel.end, 0.9)] if reel.end else shots


def _of(scenes: Sequence[Scene]) -> Iterator[_Shot]:
    whole = sum(scene.lasting for scene in scenes)
    return (_Shot(scene, scene.lasting / whole) for scene in scenes)


def _times(shots: Sequence[_Shot], options: FilmOptions) -> list[int]:
    """Milliseconds of each picture."""
    if options.fps is not None:
        times = [1000 / options.fps for _ in shots]
    else:
        times = [options.seconds_per_cycle * 1000 * shot.share for shot in shots]
    return [max(2 * _TICK, round(time / _TICK) * _TICK) for time in times]


def _drawn(shot: _Shot, setting: Setting, options: FilmOptions) -> Canvas:
    canvas = Canvas(THEMES[options.theme], SCALES[options.size])
    if isinstance(shot.what, Scene):
        draw_scene(canvas, shot.what, setting)
    else:
        draw_card(canvas, setting, shot.what)
    return canvas


def _write(path: Path, pictures: Iterator[Image.Image], times: Sequence[int]) -> None:
    """Writes beside the file and puts that in its place, so that there is never half a film."""
    draft = path.with_name(f".{path.name}.part")
    first = next(pictures)
    given: dict[str, Any] = {"save_all": True, "duration": list(times), "loop": 0}
    form = "GIF" if path.suffix.lower() == ".gif" else "PNG"
    # Pillow reads the pictures of a PNG twice; those of a GIF are drawn as they are written.
    rest = pictures if form == "GIF" else list(pictures)
    given |= {"disposal": 1} if form == "GIF" else {}
    try:
        try:
            first.save(draft, form, append_images=rest, **given)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise ConfigurationError(f"{str(path)!r} cannot be written: {reason}.") from error


def _missing(reel: Reel, info: RunInfo) -> Iterator[str]:
    """What the film does not show, as sentences."""
    if reel.gap is not None:
        yield (
            f"Cycles {reel.gap.first} to {reel.gap.last} are left out: the first and the last "
            f"{len(reel.last)} of {reel.cycles} are shown."
        )
    if info.kind == "plain":
        yield (
            "A plain run records no state of the world and no phases: its film shows what its "
            "tools told, not hidden obstacles, dirt out of sight, or what was rejected."
        )
    elif not any(scene.truth for chapter in reel.chapters for scene in chapter.scenes):
        yield "No snapshot of this run holds the state of the world: only the belief is shown."
    if info.ended_at is None:
        yield "The run has not ended: it goes on, or it broke off. This is how far it came."
