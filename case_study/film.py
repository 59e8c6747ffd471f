"""Films of runs, from their traces alone: one picture a phase, drawn with Pillow.

A picture shows the world as a snapshot holds it, the world as the agent believes it, and its
phase's outcome, as on the live page (`report_of`). All texts of a run are untrusted: they are
shown as one line of plain text.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from PIL import Image, ImageDraw, ImageFont
from pydantic import ValidationError

from case_study.robot import VacuumState
from case_study.runner import report_of
from coag._util.text import ellipsis, well_formed
from coag.context import WorkingMemory, rebuild
from coag.errors import ConfigurationError, TraceError
from coag.schema import ModelCall, Receipt, RetrievalOutcome, Snapshot, TraceRecord, one_line
from coag.tracing import (
    RunFolder,
    RunInfo,
    TraceProblem,
    find_run,
    list_runs,
    read_run,
    read_trace,
)
from vacuum_world.showing import Report
from vacuum_world.world import Cell, WorldState, cells_of, last_state_line

Stage = Literal["reading", "drawing"]
OnProgress = Callable[[Stage, int, int | None], None]
"""Called with what is being done, how far it is (a cycle, or a picture), and of how many."""
ThemeName = Literal["light", "dark"]
SizeName = Literal["small", "medium", "large"]

SUFFIXES = (".gif", ".png", ".apng")
EDGE_CYCLES = 20
"""Cycles that are shown from the beginning and from the end."""
_FRAMES_A_CYCLE = 12
_SHORTEST, _LONGEST = 0.1, 60.0
"""Seconds a cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmOptions:
    """How a film is made."""

    seconds_per_cycle: float = 5.0
    """How long the pictures of a cycle are shown together."""
    size: SizeName = "medium"
    theme: ThemeName = "light"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmReport:
    """What was made."""

    path: Path
    pictures: int
    seconds: float
    size: int
    notices: tuple[str, ...]
    """What is not in it, and what was wrong with the trace, as sentences."""


def make_film(
    run: RunFolder,
    path: Path,
    options: FilmOptions | None = None,
    *,
    on_progress: OnProgress = lambda stage, done, total: None,
) -> FilmReport:
    """Makes a film of a run of the case study from its trace alone; the run need not have ended.

    Raises:
        ConfigurationError: The file cannot be written or has another suffix, an option is out of
            range, or the run is not of the vacuum world.
        TraceError: There is no trace, or it is damaged.
    """
    options = options or FilmOptions()
    _check(path, options)
    info = read_run(run.path)
    notices: list[str] = []
    shots = list(_shots(run, info, notices, on_progress))
    # In milliseconds; a GIF counts time in hundredths of a second.
    times = [max(20, round(options.seconds_per_cycle * share * 100) * 10) for _, share in shots]
    pictures: list[Image.Image] = []
    for number, (frame, _) in enumerate(shots, 1):
        pictures.append(render(frame, _title(info), options.theme, options.size))
        on_progress("drawing", number, len(shots))
    _write(path, pictures, times)
    return FilmReport(
        path=path,
        pictures=len(shots),
        seconds=sum(times) / 1000,
        size=path.stat().st_size,
        notices=tuple(notices),
    )


def filmed_run(text: str, logs: Path) -> RunFolder:
    """The run that a text names.

    Raises:
        UnknownNameError: There is no such run.
        ConfigurationError: The case has several runs or none, or there is no folder of logs.
        TraceError: For `latest`, if a run's `run.json` is damaged.
    """
    case = next(
        (path for path in (Path(text), logs / text) if (path / "case.json").is_file()), None
    )
    if case is None:
        return find_run(text, logs)
    runs = list(list_runs(case))
    if len(runs) != 1:
        named = ", ".join(str(run.path) for run in runs[:10])
        raise ConfigurationError(f"The case {str(case)!r} has {len(runs)} runs. Name one: {named}")
    return runs[0]


def excerpt(text: str, limit: int = 240) -> str:
    """The beginning of an untrusted text on one line, without characters that could steer."""
    return ellipsis(one_line(well_formed(text[:4_000]), limit=4_000), limit)


# ---- from a trace to frames ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The content of one picture."""

    report: Report
    """The phase that is shown, with its outcome; of a plain run a call or an action."""
    belief: VacuumState = field(default_factory=VacuumState)
    truth: WorldState | None = None
    """The world; None where the trace does not say."""


@dataclass(slots=True)
class _Seen:
    """What the records of a run so far lead to."""

    memory: WorkingMemory | None = None
    belief: VacuumState = field(default_factory=VacuumState)
    truth: WorldState | None = None

    def take(self, record: TraceRecord, *, plain: bool) -> Report | None:
        """Takes a record; gives what is to be shown of it, if anything is."""
        if plain:
            return self._take_plain(record)
        if isinstance(record, Snapshot):
            self.memory = WorkingMemory.model_validate(record.working_memory)
            if record.environment is not None:
                self.truth = WorldState.model_validate(record.environment)
        elif self.memory is not None:
            self.memory = rebuild(self.memory, [record])
        if self.memory is None:
            return None
        self.belief = VacuumState.model_validate(self.memory.perceptual_state)
        return report_of(self.memory) if record.record == "outcome" else None

    def _take_plain(self, record: TraceRecord) -> Report | None:
        if isinstance(record, ModelCall):
            texts = [str(message.get("content")) for message in record.messages]
            thought = record.given.thought if record.given else None
            phase, about = "Model", record.raw or thought or record.error or "It says nothing."
        elif isinstance(record, Receipt):
            texts, phase, about = [record.content], "Action", record.content
        else:
            return None
        for reading in filter(None, map(last_state_line, texts)):
            self.belief = self.belief.sensed(reading)
        phases, cycle = ("Model", "Action"), record.cycle
        return Report(phase=phase, phases=phases, about=excerpt(about, 600), cycle=cycle)

    def frame(self, report: Report) -> Frame:
        return Frame(report=report, belief=self.belief, truth=self.truth)

    def last(self, report: Report) -> Frame:
        """The last frame of a cycle: with what its action has changed, as far as is known."""
        known = self.truth
        if known is not None and known.robots and self.belief.position is not None:
            place = {"position": self.belief.position, "battery": self.belief.battery}
            robots = (known.robots[0].model_copy(update=place), *known.robots[1:])
            dirty = tuple(cell for cell in known.dirty if cell not in self.belief.clean)
            known = known.model_copy(update={"robots": robots, "dirty": dirty})
        return Frame(report=report, belief=self.belief, truth=known)


def read_cycles(records: Iterable[TraceRecord], *, plain: bool = False) -> Iterator[list[Frame]]:
    """The frames of each cycle of a run, or of each turn of a plain one.

    Raises:
        ValidationError: A state is not one of the vacuum world.
    """
    seen, frames = _Seen(), list[Frame]()
    for record in records:
        if frames and _begins(record, frames[0], plain=plain):
            yield [*frames[:-1], seen.frame(frames[-1].report)]
            frames = []
        report = seen.take(record, plain=plain)
        if report is not None and len(frames) < _FRAMES_A_CYCLE:
            frames.append(seen.frame(report))
    if frames:
        yield [*frames[:-1], seen.last(frames[-1].report)]


def _begins(record: TraceRecord, first: Frame, *, plain: bool) -> bool:
    """Whether a record begins another cycle than that of a frame."""
    if not plain:
        return isinstance(record, RetrievalOutcome)
    return isinstance(record, ModelCall | Receipt) and record.cycle != first.report.cycle


def _shots(
    run: RunFolder, info: RunInfo, notices: list[str], on_progress: OnProgress
) -> Iterator[tuple[Frame, float]]:
    """Pictures in order, each with its share of a cycle's time."""
    if not run.trace_path.is_file():
        raise TraceError(run.trace_path, "is not there: nothing was recorded, or it was removed")

    def note(problem: TraceProblem) -> None:
        if not notices:
            notices.append(f"The trace is not whole: {problem.text}.")

    first, last = list[list[Frame]](), deque[list[Frame]](maxlen=EDGE_CYCLES)
    count, records = 0, (entry.body for entry in read_trace(run.trace_path, note))
    try:
        for count, frames in enumerate(read_cycles(records, plain=info.kind == "plain"), 1):
            on_progress("reading", count, None)
            (first if len(first) < EDGE_CYCLES else last).append(frames)
    except ValidationError as error:
        raise ConfigurationError(_another_domain(info)) from error
    shown = [*first, *last]
    if not shown:
        raise ConfigurationError(f"Run {info.id!r} has no cycle yet, so there is nothing to show.")
    if not any(one.truth or one.belief.position for frames in shown for one in frames):
        raise ConfigurationError(_another_domain(info))
    notices += _missing(info, count)
    for frames in shown:
        yield from ((frame, 1 / len(frames)) for frame in frames)
    end = Report(phase="End", about=_ending(info))
    yield replace(shown[-1][-1], report=end), 0.9


def _missing(info: RunInfo, cycles: int) -> Iterator[str]:
    """What is not in a film, as sentences."""
    if info.kind == "plain":
        yield "A plain run records no state of the world: its film shows what it sensed."
    if cycles > 2 * EDGE_CYCLES:
        yield (
            f"Cycles {EDGE_CYCLES + 1} to {cycles - EDGE_CYCLES} are left out: the first and the "
            f"last {EDGE_CYCLES} of {cycles} are shown."
        )
    if info.ended_at is None:
        yield "The run has not ended. This is how far it came."


def _another_domain(info: RunInfo) -> str:
    return (
        f"Run {info.id!r} is of another domain: no state in its trace is one of the vacuum world. "
        "A film shows runs of case-study."
    )


def _ending(info: RunInfo) -> str:
    """What `case-study` noted about the end of the run, as a sentence."""
    if info.ended_at is None:
        return "So far: the run has not ended."
    result = info.result or {}
    success = ""
    if isinstance(result.get("success"), bool):
        success = " with success" if result["success"] else " with no success"
    summary = result.get("summary")
    words = f": {excerpt(summary, 120)}" if isinstance(summary, str) and summary else ""
    return f"The run has ended{success}{words}."


def _title(info: RunInfo) -> str:
    seed = "" if info.seed is None else f", seed {info.seed}"
    agent = "plain" if info.kind == "plain" else "CoAG"
    return f"{excerpt(info.id, 60)}: {agent} agent, {excerpt(info.model, 60)}{seed}"


# ---- pictures ----

SCALES: dict[SizeName, float] = {"small": 0.75, "medium": 1.0, "large": 1.5}
"""Pixels per layout unit."""
WIDTH, HEIGHT = 860, 700
"""Size of a picture in layout units."""
_SUPERSAMPLING = 2
_EDGE, _TOP, _BOARD = 24, 84, 370
_SHOWN_OPTIONS = 5
_COLOURS = (
    *("ground", "floor", "unseen", "line", "ink", "quiet", "dirt", "block", "charger"),
    *("robot", "alarm"),
)
_HEX: dict[ThemeName, str] = {
    "light": "fbfaf7 ffffff ecebe5 cdcac1 1d1f24 5d626d 966226 4d5561 cfebd5 1f5fbf b3261e",
    "dark": "17191e 22252c 1a1c22 4a4f5a e8e8e3 a6abb7 deb270 969eae 24502f 8ab4f8 f28b82",
}


@cache
def _palette(theme: ThemeName) -> Image.Image:
    """An image in the theme's colours and the shades between them, the same for all pictures."""
    colours = [bytes.fromhex(one) for one in _HEX[theme].split()]
    shades = {
        bytes((a * (4 - share) + b * share) // 4 for a, b in zip(back, ink, strict=True))
        for back in colours[:4]
        for ink in colours
        for share in range(5)
    }
    image = Image.new("P", (1, 1))
    image.putpalette(b"".join(sorted(shades)))
    return image


@cache
def _font(pixels: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font, so that pictures are the same on every machine."""
    font = ImageFont.load_default(pixels)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("This Pillow was built without FreeType, so it has no font to scale.")
    return font.font_variant(layout_engine=ImageFont.Layout.BASIC)


class _Pen:
    """Draws in layout units, with the names of a theme's colours, on a supersampled image."""

    def __init__(self, theme: ThemeName, size: SizeName) -> None:
        self._theme: ThemeName = theme
        colours = (f"#{one}" for one in _HEX[theme].split())
        self._colours = dict(zip(_COLOURS, colours, strict=True))
        self._scale = SCALES[size] * _SUPERSAMPLING
        across, down = (round(side * SCALES[size]) * _SUPERSAMPLING for side in (WIDTH, HEIGHT))
        self._image = Image.new("RGB", (across, down), self._colours["ground"])
        self._draw = ImageDraw.Draw(self._image)

    def _style(self, fill: str, edge: str) -> dict[str, Any]:
        colours = {"fill": self._colours.get(fill), "outline": self._colours.get(edge)}
        return {**colours, "width": round(self._scale)}

    def _pixels(self, units: Sequence[float]) -> list[int]:
        return [round(unit * self._scale) for unit in units]

    def box(self, corners: Sequence[float], fill: str = "", edge: str = "") -> None:
        self._draw.rectangle(self._pixels(corners), **self._style(fill, edge))

    def disc(self, x: float, y: float, radius: float, fill: str = "", edge: str = "") -> None:
        corners = self._pixels((x - radius, y - radius, x + radius, y + radius))
        self._draw.ellipse(corners, **self._style(fill, edge))

    def line(self, ends: Sequence[float], colour: str) -> None:
        width = round(2 * self._scale)
        self._draw.line(self._pixels(ends), self._colours[colour], width)

    def corner(self, right: float, top: float, side: float, colour: str) -> None:
        points = self._pixels((right - side, top, right, top, right, top + side))
        self._draw.polygon(points, self._colours[colour])

    def text(
        self, x: float, y: float, text: str, colour: str = "ink", size: int = 15, width: float = 0
    ) -> float:
        """Writes a text, cut to a width; gives where it ends."""
        font = _font(round(size * self._scale))
        most = (width or WIDTH - _EDGE - x) * self._scale
        short = text
        while short and font.getlength(short) > most:
            text = text[:-1].rstrip()
            short = f"{text}…" if text else ""
        at = x * self._scale, y * self._scale
        self._draw.text(at, short, self._colours[colour], font, "lm")
        return x + font.getlength(short) / self._scale

    def picture(self) -> Image.Image:
        small = self._image.reduce(_SUPERSAMPLING)
        return small.quantize(palette=_palette(self._theme), dither=Image.Dither.NONE)


def render(
    frame: Frame, title: str, theme: ThemeName = "light", size: SizeName = "medium"
) -> Image.Image:
    """Draws a frame."""
    pen, state, truth = _Pen(theme, size), frame.belief, frame.truth
    cycle = "" if frame.report.cycle is None else f"cycle {frame.report.cycle}"
    pen.text(_EDGE, 24, title, size=18, width=WIDTH - 2 * _EDGE - 90)
    pen.text(WIDTH - _EDGE - 75, 24, cycle, size=18)
    right = WIDTH - _EDGE - _BOARD
    pen.text(
        _EDGE, 62, "The world as it is" if truth else "The world is not in this trace", "quiet"
    )
    pen.text(right, 62, "As the agent believes it", "quiet")
    if truth is not None:
        robot = next(iter(truth.robots), None)
        seen = set(cells_of(truth.grid))
        world = VacuumState(
            grid=truth.grid,
            charger=truth.charger,
            position=robot and robot.position,
            battery=robot.battery if robot else 0,
            stranded=bool(robot and robot.stranded),
            dirty=truth.dirty,
            obstacles=tuple(one.cell for one in truth.obstacles),
            hidden=tuple(one.cell for one in truth.obstacles if not one.visible),
            forbidden=truth.forbidden,
        )
        _draw_board(pen, _EDGE, world, seen, set())
    seen = {*state.dirty, *state.clean, *state.obstacles}
    _draw_board(pen, right, state, seen, _mistaken(state, truth) & seen)
    _draw_report(pen, frame.report)
    return pen.picture()


def _mistaken(state: VacuumState, truth: WorldState | None) -> set[Cell]:
    """Cells that are otherwise than believed: in dirt, or in what blocks them."""
    if truth is None:
        return set()
    blocked = {one.cell for one in truth.obstacles}
    return (set(state.dirty) ^ set(truth.dirty)) | (set(state.obstacles) ^ blocked)


def _draw_board(
    pen: _Pen, left: float, state: VacuumState, seen: set[Cell], wrong: set[Cell]
) -> None:
    """A grid; hidden obstacles are striped, wrong cells have a marked corner."""
    side = _BOARD / max(*state.grid, 1)
    for cell in cells_of(state.grid):
        x, y = left + cell[0] * side, _TOP + cell[1] * side
        plain = "floor" if cell in seen else "unseen"
        pen.box((x, y, x + side, y + side), "charger" if cell == state.charger else plain, "line")
        if cell in state.dirty:
            for dx, dy in ((0.2, 0.2), (0.7, 0.15), (0.35, 0.8), (0.8, 0.75), (0.15, 0.55)):
                pen.disc(x + dx * side, y + dy * side, side * 0.05, "dirt")
        if cell in state.obstacles:
            fill = "" if cell in state.hidden else "block"
            edges = (x + side * 0.1, y + side * 0.1, x + side * 0.9, y + side * 0.9)
            pen.box(edges, fill, "block")
            for share in (0.4, 0.7) if cell in state.hidden else ():
                near, far = side * 0.1, side * share
                pen.line((x + near, y + far, x + far, y + near), "block")
        if cell in state.forbidden:
            pen.disc(x + side * 0.15, y + side * 0.85, side * 0.1, edge="alarm")
        if cell in wrong:
            pen.corner(x + side, y, side * 0.26, "alarm")
    if state.position is not None:
        x, y = (round(one + 0.5, 1) * side for one in state.position)
        pen.disc(left + x, _TOP + y, side * 0.28, "alarm" if state.stranded else "robot")
        pen.disc(left + x, _TOP + y, side * 0.1, "floor")
    words = f"battery {state.battery}{', stranded' if state.stranded else ''}"
    pen.text(left, _TOP + _BOARD + 20, words, "alarm" if state.stranded else "ink")


def _draw_report(pen: _Pen, report: Report) -> None:
    x, y = float(_EDGE), _TOP + _BOARD + 56
    for name in report.phases:
        x = pen.text(x, y, name, "robot" if name == report.phase else "quiet", 17) + 18
    words = excerpt(report.about).split()
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > 105 and len(lines) < 2:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    for number, line in enumerate(lines):
        pen.text(_EDGE, y + 26 + number * 21, line)
    colours = {"chosen": "robot", "rejected": "alarm"}
    for number, option in enumerate(report.options[:_SHOWN_OPTIONS]):
        line, colour = y + 74 + number * 20, colours.get(option.state, "ink")
        state = "" if option.state == "open" else option.state
        pen.text(_EDGE, line, state, colour, 13)
        end = pen.text(_EDGE + 65, line, excerpt(option.text, 60), colour, width=240)
        pen.text(max(end + 12, _EDGE + 320), line, excerpt(option.note, 160), "quiet", 13)


# ---- one file ----


def _check(path: Path, options: FilmOptions) -> None:
    seconds, file = options.seconds_per_cycle, repr(str(path))
    problem = ""
    if path.suffix.lower() not in SUFFIXES:
        problem = f"{file} does not name a kind of film: end it in {', '.join(SUFFIXES)}."
    elif not _SHORTEST <= seconds <= _LONGEST:
        problem = f"{seconds!r} seconds a cycle: give {_SHORTEST} to {_LONGEST:.0f}."
    elif path.is_dir() or not path.absolute().parent.is_dir():
        problem = f"{file} is a folder, or in none that exists. Name a file in a folder."
    if problem:
        raise ConfigurationError(problem)


def _write(path: Path, pictures: Sequence[Image.Image], times: Sequence[int]) -> None:
    """Writes beside the file and renames, so that there is never half a film."""
    draft = path.with_name(f".{path.name}.part")
    first, *rest = pictures
    gif = path.suffix.lower() == ".gif"
    settings: dict[str, Any] = {"save_all": True, "duration": list(times), "loop": 0}
    try:
        try:
            first.save(draft, "GIF" if gif else "PNG", append_images=rest, **settings)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise ConfigurationError(f"{str(path)!r} cannot be written: {reason}.") from error
