"""Films of runs, from their traces alone: one picture a phase, drawn by `case_study.drawing`.

`read_film` reads a trace once and in bounded memory; of a long run it keeps the beginning and the
end. All texts of a run are untrusted: they are shown as one line of plain text.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from PIL import Image

from case_study.drawing import (
    Board,
    Frame,
    Labels,
    Mark,
    Option,
    SizeName,
    ThemeName,
    believed_board,
    render,
    world_board,
)
from case_study.robot import WAYS, VacuumState
from coag._util.json_diff import merge_patch
from coag._util.text import counted, ellipsis, well_formed
from coag.errors import ConfigurationError, TraceError
from coag.schema import (
    PHASES,
    Candidate,
    Entry,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    ModelCall,
    Percept,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    TraceRecord,
    TurnEnd,
    one_line,
    parsed_arguments,
)
from coag.tracing import (
    RunFolder,
    RunInfo,
    TraceProblem,
    find_run,
    list_runs,
    read_run,
    read_trace,
)
from vacuum_world.world import Cell, last_state_line

Stage = Literal["reading", "drawing"]
OnProgress = Callable[[Stage, int, int | None], None]
"""Called with what is being done, how far it is (a cycle, or a picture), and of how many."""

SUFFIXES = (".gif", ".png", ".apng")
EDGE_CYCLES = 20
"""Cycles that are shown from the beginning and from the end."""
_FRAMES_A_CYCLE, _MOST_OPTIONS, _PATH_LENGTH = 12, 8, 400
_SLOWEST, _FASTEST = 0.1, 50.0
"""Pictures a second; a GIF counts time in hundredths of a second."""
_SHORTEST, _LONGEST = 0.1, 60.0
"""Seconds a cycle."""
_PLAIN_PHASES = ("model", "action")
"""What a plain run has in place of phases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmOptions:
    """How a film is made."""

    seconds_per_cycle: float = 5.0
    """How long the pictures of a cycle are shown together."""
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
    film = _read_run(run, info, notices, on_progress)
    labels = _labels(info)
    shots = list(film.shots())
    cycle, fps = options.seconds_per_cycle, options.fps
    seconds = [cycle * share if fps is None else 1 / fps for _, share in shots]
    times = [max(20, round(each * 100) * 10) for each in seconds]

    def pictures() -> Iterator[Image.Image]:
        for number, (content, _) in enumerate(shots, 1):
            yield render(content, labels, options.theme, options.size)
            on_progress("drawing", number, len(shots))

    _write(path, pictures(), times)
    return FilmReport(
        path=path,
        pictures=len(shots),
        seconds=sum(times) / 1000,
        size=path.stat().st_size,
        notices=(*notices, *_missing(film, info)),
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
    if not runs:
        raise ConfigurationError(f"The case {str(case)!r} has no run yet.")
    if len(runs) > 1:
        named = ", ".join(str(run.path) for run in runs[:10])
        raise ConfigurationError(f"The case {str(case)!r} has {len(runs)} runs. Name one: {named}")
    return runs[0]


# ---- from a trace to frames ----


@dataclass(slots=True, kw_only=True)
class Film:
    """The frames of a run by cycle: all of a short run, the beginning and the end of a long one."""

    first: list[list[Frame]] = field(default_factory=list[list[Frame]])
    last: deque[list[Frame]] = field(default_factory=lambda: deque(maxlen=EDGE_CYCLES))
    cycles: int = 0
    end: Frame | None = None
    """The last picture; None for a run without a cycle."""

    @property
    def frames(self) -> list[Frame]:
        """All frames but the last picture."""
        return [frame for cycle in (*self.first, *self.last) for frame in cycle]

    @property
    def gap(self) -> tuple[int, int] | None:
        """The first and the last cycle that are not shown; None where all are."""
        if self.cycles == len(self.first) + len(self.last):
            return None
        return self.first[-1][0].cycle + 1, self.last[0][0].cycle - 1

    def shots(self) -> Iterator[tuple[Frame | Sequence[str], float]]:
        """Pictures in order, each with its share of a cycle's time."""
        for number, cycle in enumerate((*self.first, *self.last)):
            if number == EDGE_CYCLES and self.gap is not None:
                low, high = self.gap
                count = self.cycles - len(self.first) - len(self.last)
                notice = f"Cycles {low} to {high} are left out", f"{count} of {self.cycles} cycles"
                yield notice, 0.6
            whole = sum(frame.weight for frame in cycle)
            yield from ((frame, frame.weight / whole) for frame in cycle)
        if self.end is not None:
            yield self.end, 0.9


def read_film(
    entries: Iterable[Entry],
    *,
    name: str = "robot",
    plain: bool = False,
    ending: str = "",
    on_cycle: Callable[[int], None] = lambda cycle: None,
) -> Film:
    """Reads a trace once and makes the frames of its film."""
    film = Film()
    reader = _FrameReader(name, plain=plain)
    for cycle in reader.cycles(entry.body for entry in entries):
        on_cycle(cycle[0].cycle)
        film.cycles += 1
        (film.first if len(film.first) < EDGE_CYCLES else film.last).append(cycle)
    if film.cycles:
        caption = "\n".join([ending or "The run has ended.", *reader.summary(film)])
        film.end = replace(film.frames[-1], phase="", options=(), caption=caption)
    return film


class _FrameReader:
    """Takes the records of a run in order and makes the frames of each cycle."""

    def __init__(self, name: str, *, plain: bool) -> None:
        self._name = name
        self._plain = plain
        self._state: Any = {}
        self._truth: Board | None = None
        self._belief: Board | None = None
        self._path: deque[Cell] = deque(maxlen=_PATH_LENGTH)
        self._frames: list[Frame] = []
        self._options: dict[str, Option] = {}
        self._intent: Intent | None = None
        self._executed: ExecutionOutcome | None = None
        self._snapshot_since = False
        self._counts = {"actions": 0, "candidates rejected by code": 0, "impasses": 0}
        self._turn_end: TurnEnd | None = None

    def cycles(self, records: Iterable[TraceRecord]) -> Iterator[list[Frame]]:
        for record in records:
            begins = isinstance(record, RetrievalOutcome)
            if self._plain and self._frames and not isinstance(record, Percept):
                begins = record.cycle != self._frames[0].cycle
            if begins:
                yield from self._flush()
            (self._take_plain if self._plain else self._take)(record)
            if isinstance(record, TurnEnd):
                self._turn_end = record
            self._counts["actions"] += isinstance(record, Receipt)
        yield from self._flush()

    def summary(self, film: Film) -> Iterator[str]:
        """How things are at the end, and what it took, as sentences."""
        opening, frame = film.frames[0], film.frames[-1]
        before, after = opening.truth or opening.belief, frame.truth or frame.belief
        if before and after:
            clean = len(before.dirty - after.dirty)
            whose = "" if frame.truth else " (as far as it was sensed)"
            yield (
                f"{clean} of {len(before.dirty)} dirty cells are clean{whose}; "
                f"battery {after.battery}{', stranded' if after.stranded else ''}."
            )
        counts = [f"{count} {what}" for what, count in self._counts.items() if count]
        yield f"{', '.join(counts) or 'No action'}."
        end = self._turn_end
        if end is not None and end.reason == "respond":
            yield f"Its last words: {excerpt(end.response, 200)}"
        elif end is not None and end.reason != "actions":
            yield f"Its last turn ended for: {excerpt(end.reason, 60)}."

    def _flush(self) -> Iterator[list[Frame]]:
        if self._executed is not None:
            self._show_execution(self._executed)
        if self._frames:
            yield self._frames
        self._frames, self._options, self._executed = [], {}, None

    def _show(self, cycle: int, phase: str, caption: str, **more: Any) -> None:
        if len(self._frames) < _FRAMES_A_CYCLE:
            self._frames.append(
                Frame(
                    cycle=cycle,
                    phase=phase,
                    caption=caption,
                    options=tuple(self._options.values()),
                    truth=self._truth,
                    belief=self._belief,
                    path=tuple(self._path),
                    **more,
                )
            )

    def _note_place(self) -> None:
        board = self._truth or self._belief
        if board and board.robot and (not self._path or self._path[-1] != board.robot):
            self._path.append(board.robot)

    def _believe(self, state: Any) -> None:
        self._state = state if isinstance(state, dict) else {}
        self._belief = believed_board(self._state)

    def _take(self, record: TraceRecord) -> None:  # noqa: C901 - one case for each kind
        match record:
            case Snapshot():
                self._believe(record.working_memory.get("perceptual_state"))
                if record.environment is not None:
                    self._truth = world_board(record.environment, self._name)
                    self._snapshot_since = True
                self._note_place()
            case Percept() if record.state_patch:
                self._believe(merge_patch(self._state, record.state_patch))
            case ExecutionOutcome():
                self._executed, self._snapshot_since = record, False
            case RetrievalOutcome():
                self._note_place()
                if record.records:
                    first = excerpt(record.records[0].record.text, 160)
                    caption = f"Recalled {len(record.records)}: {first}"
                    self._show(record.cycle, "retrieval", caption, weight=1.2)
            case ReasoningOutcome():
                caption = excerpt(record.situation) or "It says nothing."
                self._show(record.cycle, "reasoning", caption, weight=1.2)
            case ProposalOutcome():
                offered, count = record.candidates[:_MOST_OPTIONS], len(record.candidates)
                self._options = {one.id: _proposed(one) for one in offered}
                caption = f"{counted(count, 'candidate')}, nothing done yet."
                self._show(record.cycle, "proposal", caption if count else "No candidate.")
            case EvaluationOutcome():
                self._evaluate(record)
            case SelectionOutcome():
                self._select(record)
            case _:
                pass

    def _evaluate(self, outcome: EvaluationOutcome) -> None:
        reasons: list[str] = []
        for one in outcome.evaluations:
            option, verdict = self._options.get(one.candidate_id), one.rejected_by
            if option is None:
                continue
            if verdict is None:
                judged = replace(option, mark="allowed", score=one.score)
            else:
                reasons.append(excerpt(verdict.reason, 160))
                name = excerpt(verdict.constraint, 60)
                judged = replace(option, mark="rejected", rejected_by=name, reason=reasons[-1])
            self._options[one.candidate_id] = judged
        total = len(outcome.evaluations)
        rejected = sum(not one.survived for one in outcome.evaluations)
        self._counts["candidates rejected by code"] += rejected
        caption = f"All {total} are allowed." if total else "There is nothing to judge."
        if rejected:
            caption = f"{rejected} of {total} rejected by code: {''.join(reasons[:1])}"
        self._show(outcome.cycle, "evaluation", caption, weight=1.6 if rejected else 1.0)

    def _select(self, outcome: SelectionOutcome) -> None:
        self._counts["impasses"] += outcome.impasse
        for chosen in set(outcome.chosen) & self._options.keys():
            self._options[chosen] = replace(self._options[chosen], mark="chosen")
        who = {"model": "the model", "rank": "the ranking"}.get(str(outcome.decided_by))
        how = f"Chosen by {who}." if who else "The only one left."
        caption = f"{how} {excerpt(outcome.reason, 160)}".strip()
        if outcome.impasse:
            caption = "An impasse: no candidate survived."
        self._show(outcome.cycle, "selection", caption, weight=1.6 if outcome.impasse else 1.0)

    def _show_execution(self, outcome: ExecutionOutcome) -> None:
        """Shows the result of an execution, when all that it changed is known."""
        reading, by_return = last_state_line(outcome.result), False
        if self._truth is not None and reading is not None and not self._snapshot_since:
            self._truth, by_return = self._truth.after(reading), True
        self._note_place()
        if outcome.status is ExecutionStatus.NONE:
            caption = "Nothing was done."
        elif outcome.response is not None:
            caption = f"Answers: {excerpt(outcome.response, 200)}"
        else:
            done = call_text(outcome.action or "", outcome.arguments)
            caption = f"{done}: {_result_words(outcome.status.value, outcome.result)}"
        self._show(outcome.cycle, "execution", caption, weight=1.2, by_return=by_return)

    def _take_plain(self, record: TraceRecord) -> None:
        match record:
            case ModelCall():
                if not self._state:
                    for message in record.messages:
                        self._sense(message.get("content"))
                self._options = {
                    str(place): _called(call) for place, call in enumerate(record.tool_calls[:4])
                }
                thought = record.given.thought if record.given else None
                text = excerpt(record.raw) or excerpt(thought or "") or excerpt(record.error or "")
                self._show(record.cycle, _PLAIN_PHASES[0], text or "It says nothing.")
            case Intent():
                self._intent = record
            case Receipt():
                self._sense(record.content)
                intent, self._intent = self._intent, None
                done = call_text(intent.action, intent.arguments) if intent else "An action"
                caption = f"{done}: {_result_words(record.status.value, record.content)}"
                self._show(record.cycle, _PLAIN_PHASES[1], caption)
            case _:
                pass

    def _sense(self, text: object) -> None:
        reading = last_state_line(text) if isinstance(text, str) else None
        if reading is not None:
            self._believe(VacuumState.model_validate(self._state).sensed(reading).model_dump())
            self._note_place()


def excerpt(text: str, limit: int = 240) -> str:
    """The beginning of an untrusted text on one line, without characters that could steer."""
    line = one_line(well_formed(text[:4_000]), limit=4_000)
    return ellipsis(line, limit)


def call_text(action: str, arguments: Mapping[str, Any] | str | None) -> str:
    """An action with its arguments, as short as can be read."""
    if isinstance(arguments, Mapping):
        values = list(arguments.values())[:4]
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
        values_text = ", ".join(excerpt(text, 60) for text in texts)
    else:
        values_text = excerpt(arguments or "", 60)
    return f"{excerpt(action, 60)} {values_text}".strip()


def _option(action: str, arguments: Mapping[str, Any], mark: Mark, reason: str = "") -> Option:
    wanted = arguments.get("direction") if action == "move_agent" else None
    way = WAYS.get(str(wanted))
    return Option(text=call_text(action, arguments), mark=mark, reason=reason, way=way)


def _proposed(candidate: Candidate) -> Option:
    arguments = candidate.arguments or parsed_arguments(candidate.raw_arguments)
    return _option(candidate.action, arguments, "proposed", excerpt(candidate.reason, 120))


def _called(call: dict[str, object]) -> Option:
    arguments = parsed_arguments(str(call.get("arguments", "")))
    return _option(str(call.get("name", "")), arguments, "chosen")


def _result_words(status: str, result: str) -> str:
    """How an action ended, with the world's reason where it gave one."""
    reading = last_state_line(result)
    if reading is None:
        return f"{status}. {excerpt(result, 160)}".strip()
    x, y = reading.position
    reason = parsed_arguments(excerpt(result.partition("\n")[0], 600)).get("reason")
    why = f" {excerpt(reason, 120)}" if isinstance(reason, str) and reason else ""
    stranded = " Stranded." if reading.stranded else ""
    return f"{status}.{why} Now at ({x}, {y}) with battery {reading.battery}.{stranded}"


# ---- one run, one file ----


def _check(path: Path, options: FilmOptions) -> None:
    fps, seconds, file = options.fps, options.seconds_per_cycle, repr(str(path))
    problem = ""
    if path.suffix.lower() not in SUFFIXES:
        problem = f"{file} does not name a kind of film: end it in {', '.join(SUFFIXES)}."
    elif fps is not None and not _SLOWEST <= fps <= _FASTEST:
        problem = f"{fps!r} pictures a second: give {_SLOWEST} to {_FASTEST:.0f}."
    elif not _SHORTEST <= seconds <= _LONGEST:
        problem = f"{seconds!r} seconds a cycle: give {_SHORTEST} to {_LONGEST:.0f}."
    elif path.is_dir():
        problem = f"{file} is a folder. Name a file in it."
    elif not path.absolute().parent.is_dir():
        problem = f"There is no folder {str(path.parent)!r} to write the film to."
    if problem:
        raise ConfigurationError(problem)


def _read_run(run: RunFolder, info: RunInfo, notices: list[str], on_progress: OnProgress) -> Film:
    if not run.trace_path.is_file():
        raise TraceError(run.trace_path, "is not there: nothing was recorded, or it was removed")

    def note(problem: TraceProblem) -> None:
        if not notices:
            notices.append(f"The trace is not whole: {problem.text}.")

    film = read_film(
        read_trace(run.trace_path, note),
        name=info.agent,
        plain=info.kind == "plain",
        ending=_ending(info),
        on_cycle=lambda cycle: on_progress("reading", cycle, None),
    )
    if film.end is None:
        raise ConfigurationError(f"Run {info.id!r} has no cycle yet, so there is nothing to show.")
    if not any(frame.truth or frame.belief for frame in film.frames):
        raise ConfigurationError(
            f"Run {info.id!r} is of another domain: no state in its trace is one of the vacuum "
            "world, neither the environment's nor the agent's. A film shows runs of case-study."
        )
    return film


def _ending(info: RunInfo) -> str:
    """What `case-study` noted about the end of the run, as a sentence."""
    if info.ended_at is None:
        return "So far: the run has not ended."
    result = info.result or {}
    success, summary = result.get("success"), result.get("summary")
    if not isinstance(success, bool):
        return ""
    words = f": {excerpt(summary, 120)}" if isinstance(summary, str) and summary else ""
    return f"The run has ended with {'success' if success else 'no success'}{words}."


def _labels(info: RunInfo) -> Labels:
    plain = info.kind == "plain"
    arguments = info.recipe.arguments if info.recipe else info.configuration
    request = arguments.get("request")
    place = cast("dict[str, Any]", request) if isinstance(request, dict) else arguments
    scenario, episode = place.get("scenario"), arguments.get("episode")
    number = f", episode {episode}" if isinstance(episode, int) and episode > 1 else ""
    seed = "" if info.seed is None else f", seed {info.seed}"
    return Labels(
        title=excerpt(scenario if isinstance(scenario, str) else info.id, 60) + number,
        subtitle=f"{'plain' if plain else 'CoAG'} agent, {excerpt(info.model, 60)}{seed}",
        phases=_PLAIN_PHASES if plain else tuple(phase.value for phase in PHASES),
        belief_title="What its tools have returned" if plain else "As the agent believes it",
        no_truth="A plain run records no state of the world: hidden obstacles and dirt out of "
        "sight are not known."
        if plain
        else "No snapshot of this run holds the state of the world.",
    )


def _write(path: Path, pictures: Iterator[Image.Image], times: Sequence[int]) -> None:
    """Writes beside the file and renames, so that there is never half a film."""
    draft = path.with_name(f".{path.name}.part")
    settings: dict[str, Any] = {"save_all": True, "duration": list(times), "loop": 0}
    first = next(pictures)
    # Pillow reads the pictures of a PNG twice; those of a GIF are drawn as they are written.
    gif = path.suffix.lower() == ".gif"
    rest = pictures if gif else list(pictures)
    settings |= {"disposal": 1} if gif else {}
    try:
        try:
            first.save(draft, "GIF" if gif else "PNG", append_images=rest, **settings)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise ConfigurationError(f"{str(path)!r} cannot be written: {reason}.") from error


def _missing(film: Film, info: RunInfo) -> Iterator[str]:
    if film.gap is not None:
        low, high = film.gap
        yield (
            f"Cycles {low} to {high} are left out: the first and the last {EDGE_CYCLES} of "
            f"{film.cycles} are shown."
        )
    if info.kind == "plain":
        yield (
            "A plain run records no state of the world and no phases: its film shows what its "
            "tools returned, not hidden obstacles, dirt out of sight, or what was rejected."
        )
    elif not any(frame.truth for frame in film.frames):
        yield "No snapshot of this run holds the state of the world: only the belief is shown."
    if info.ended_at is None:
        yield "The run has not ended. This is how far it came."
