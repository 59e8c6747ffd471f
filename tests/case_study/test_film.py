from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.hostile import FORBIDDEN, hostile_run
from PIL import Image

from case_study.film import FilmOptions, excerpt, filmed_run, make_film, read_cycles, render
from case_study.measures import CaseResult
from coag.context import WorkingMemory
from coag.errors import ConfigurationError, TraceError, UnknownNameError
from coag.schema import (
    Candidate,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    TraceRecord,
    Verdict,
)
from coag.tracing import RunFolder, RunInfo, list_runs, open_trace
from vacuum_world.world import create_world, join, sense, state_line

Played = Callable[..., Awaitable[RunFolder]]
SMALL = FilmOptions(size="small", seconds_per_cycle=0.6)
AT = datetime(2026, 11, 21, tzinfo=UTC)
WORLD: dict[str, Any] = create_world(1).model_dump(mode="json")


@pytest.fixture
def played(play: Callable[..., Awaitable[CaseResult]]) -> Played:
    """Plays a case, and gives the folder of its first run."""

    async def run(scenario: str, agent: str, temperament: str, **options: object) -> RunFolder:
        result = await play(scenario, agent, temperament, **options)
        return next(list_runs(Path(result.run)))

    return run


def pictures(path: Path) -> Iterator[Image.Image]:
    with Image.open(path) as film:
        for number in range(getattr(film, "n_frames", 1)):
            film.seek(number)
            yield film.convert("RGB")


async def test_a_film_has_a_picture_for_each_phase_and_one_for_the_end(
    played: Played, tmp_path: Path
) -> None:
    run = await played("energy-dilemma", "coag", "impulsive", max_actions=2)
    made = make_film(run, tmp_path / "film.gif", SMALL)
    assert made.pictures == 2 * 6 + 1
    assert made.notices == ()
    assert made.size == made.path.stat().st_size < 150_000
    assert made.seconds == pytest.approx(0.6 * 2 + 0.54, abs=0.1)
    assert len({picture.tobytes() for picture in pictures(made.path)}) == made.pictures
    again = make_film(run, tmp_path / "again.gif", SMALL)
    assert again.path.read_bytes() == made.path.read_bytes()
    cycles = make_film(
        run, tmp_path / "c.gif", FilmOptions(seconds_per_cycle=2, size="small", theme="dark")
    )
    assert cycles.seconds == pytest.approx(2 * 2 + 0.9 * 2, abs=0.1)
    light, dark = next(pictures(made.path)), next(pictures(cycles.path))
    assert sum(light.resize((1, 1)).tobytes()) > 3 * 200
    assert sum(dark.resize((1, 1)).tobytes()) < 3 * 70
    animated = make_film(run, tmp_path / "film.apng", SMALL)
    with Image.open(animated.path) as film:
        assert (film.format, getattr(film, "n_frames", 1)) == ("PNG", made.pictures)
    case = run.path.parent
    assert filmed_run(str(case), tmp_path) == run
    assert filmed_run(case.name, tmp_path) == filmed_run("latest", tmp_path) == run
    with pytest.raises(UnknownNameError, match="nope"):
        filmed_run("nope", tmp_path)


async def test_a_plain_run_is_filmed_and_the_notices_say_what_cannot_be_shown(
    played: Played, tmp_path: Path
) -> None:
    run = await played("energy-dilemma", "baseline", "impulsive", max_actions=2)
    made = make_film(run, tmp_path / "film.gif", SMALL)
    assert made.pictures == 2 * 2 + 1
    assert made.notices[0].startswith("A plain run records no state of the world")


@pytest.mark.broken_trace("it cuts, damages, empties and removes the trace")
async def test_broken_traces_are_filmed_as_far_as_they_go_or_refused(
    played: Played, tmp_path: Path
) -> None:
    run = await played("energy-dilemma", "coag", "sound", max_actions=2)
    film = tmp_path / "film.gif"
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    run.trace_path.write_bytes(b"".join([*lines[:5], b"no record\n", *lines[6:]]))
    with pytest.raises(TraceError, match="line 6"):
        make_film(run, film, SMALL)
    assert not film.exists()
    run.trace_path.write_bytes(b"".join(lines[:20]) + lines[20][:30])
    run.reopen()
    made = make_film(run, film, SMALL)
    assert made.notices[0].startswith("The trace is not whole: line 21, the last one")
    assert made.notices[-1].startswith("The run has not ended")
    run.trace_path.write_bytes(b"")
    with pytest.raises(ConfigurationError, match="no cycle yet"):
        make_film(run, film, SMALL)
    run.trace_path.unlink()
    with pytest.raises(TraceError, match="is not there"):
        make_film(run, film, SMALL)


@pytest.mark.broken_trace("the run's texts are hostile, its state is none")
def test_a_hostile_run_of_another_domain_is_refused_without_harm(tmp_path: Path) -> None:
    run = hostile_run(tmp_path, size=1_000_000)
    with pytest.raises(ConfigurationError, match="another domain"):
        make_film(run, tmp_path / "film.gif", SMALL)


@pytest.mark.parametrize("name", ["film.mp4", "film", "no/film.gif", "folder.gif"])
def test_output_that_cannot_be_written_is_refused_before_anything_is_read(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder.gif").mkdir()
    with pytest.raises(ConfigurationError, match=name[:2]):
        make_film(RunFolder(tmp_path / "nowhere"), tmp_path / name)


@pytest.mark.parametrize("seconds", [0, 61, float("nan")])
def test_options_out_of_range_are_refused(tmp_path: Path, seconds: float) -> None:
    options = FilmOptions(seconds_per_cycle=seconds)
    with pytest.raises(ConfigurationError, match=r"give 0\.1 to"):
        make_film(RunFolder(tmp_path), tmp_path / "film.gif", options)


# ---- frames ----


def cycle(number: int) -> list[TraceRecord]:
    rejected = Verdict(allowed=False, reason="not there", constraint="rule")
    return [
        RetrievalOutcome(cycle=number, at=AT, query=""),
        ReasoningOutcome(cycle=number, at=AT, situation="I am here."),
        ProposalOutcome(
            cycle=number,
            at=AT,
            candidates=(
                Candidate(id="a", action="move_agent", raw_arguments='{"direction": "east"}'),
                Candidate(id="b", action="clean_current_cell"),
            ),
        ),
        EvaluationOutcome(
            cycle=number,
            at=AT,
            evaluations=(
                Evaluation(candidate_id="a", verdicts=(rejected,)),
                Evaluation(candidate_id="b", verdicts=(), score=0.5),
            ),
        ),
        SelectionOutcome(cycle=number, at=AT, candidate_id="b"),
        ExecutionOutcome(cycle=number, at=AT, status=ExecutionStatus.DONE, action="clean"),
    ]


def test_a_rejected_candidate_names_its_constraint_and_the_chosen_one_is_marked() -> None:
    memory = WorkingMemory(activity="main").to_json()
    start = Snapshot(at=AT, cycle=0, working_memory=memory, environment=WORLD)
    (frames,) = read_cycles([start, *cycle(1)])
    _, _, proposal, evaluation, selection, execution = (frame.report for frame in frames)
    assert [option.state for option in proposal.options] == ["open"] * 2
    rejected, allowed = evaluation.options
    assert (rejected.state, rejected.note) == ("rejected", "rule: not there")
    assert (allowed.state, allowed.note) == ("open", "0.50")
    assert selection.options[1].state == "chosen"
    assert execution.phase == "Execution"
    assert frames[0].truth is not None
    assert render(frames[0], "a run", size="small").size == (645, 525)


@pytest.mark.broken_trace("it holds results without what led to them")
def test_of_a_long_run_the_beginning_and_the_end_are_shown(tmp_path: Path) -> None:
    info = RunInfo(id="long-run", kind="plain", agent="robot", model="m", started_at=AT)
    folder = RunFolder.create(tmp_path, info)
    joined = join(create_world(1), "robot")
    sensed = state_line(sense(joined.state, joined.result.id))
    with open_trace(folder) as trace:
        for turn in range(1, 51):
            trace.write(
                Receipt(at=AT, cycle=turn, intent_id="1", status=ReceiptStatus.DONE, content=sensed)
            )
    made = make_film(folder, tmp_path / "film.gif", SMALL)
    assert made.pictures == 40 + 1
    assert "Cycles 21 to 30 are left out: the first and the last 20 of 50" in made.notices[1]


@given(st.text(max_size=400))
def test_any_text_is_one_bounded_line_that_steers_nothing(text: str) -> None:
    line = excerpt(text, 50)
    assert len(line) <= 50
    assert len(line.splitlines()) <= 1
    assert not FORBIDDEN & set(line)
    line.encode("utf-8")
