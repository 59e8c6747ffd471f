from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.hostile import FORBIDDEN, HARM, hostile_records, hostile_run
from PIL import Image

from case_study.drawing import Labels, believed_board, render, world_board
from case_study.film import EDGE_CYCLES, FilmOptions, excerpt, filmed_run, make_film, read_film
from case_study.measures import CaseResult
from coag.errors import ConfigurationError, TraceError, UnknownNameError
from coag.schema import (
    Candidate,
    Entry,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    ProposalOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    TraceRecord,
    Verdict,
)
from coag.tracing import RunFolder, list_runs
from vacuum_world.world import create_world

Played = Callable[..., Awaitable[RunFolder]]
SMALL = FilmOptions(size="small", fps=10)
AT = datetime(2026, 11, 21, tzinfo=UTC)
_PLACED: dict[str, Any] = {
    "grid": [4, 3],
    "charger": [0, 0],
    "dirty": [[1, 1]],
    "obstacles": [{"cell": [2, 2], "visible": False}],
    "robots": [
        {"id": "r1", "name": "other", "position": [3, 0], "battery": 50},
        {"id": "r2", "name": "robot", "position": [1, 0], "battery": 20},
    ],
    "forbidden": [[3, 2]],
}
WORLD: dict[str, Any] = create_world(1).model_dump(mode="json") | _PLACED
LABELS = Labels(
    title="t", subtitle="s", phases=("proposal", "evaluation"), belief_title="b", no_truth="w"
)


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
    assert made.pictures == 2 * 5 + 1
    assert made.notices == ()
    assert made.size == made.path.stat().st_size < 150_000
    assert made.seconds == pytest.approx(1.1)
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
    assert made.notices[0].startswith("A plain run records no state of the world and no phases")


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


@pytest.mark.parametrize(
    "options",
    [FilmOptions(fps=0), FilmOptions(fps=51), FilmOptions(seconds_per_cycle=float("nan"))],
)
def test_options_out_of_range_are_refused(tmp_path: Path, options: FilmOptions) -> None:
    with pytest.raises(ConfigurationError, match=r"give 0\.1 to"):
        make_film(RunFolder(tmp_path), tmp_path / "film.gif", options)


# ---- frames ----


def entries(records: list[TraceRecord]) -> Iterator[Entry]:
    return (Entry(seq=seq, body=record) for seq, record in enumerate(records))


def cycle(number: int) -> list[TraceRecord]:
    rejected = Verdict(allowed=False, reason="not there", constraint="rule")
    return [
        RetrievalOutcome(cycle=number, at=AT, query=""),
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


def run(cycles: int) -> list[TraceRecord]:
    start = Snapshot(at=AT, cycle=0, working_memory={}, environment=WORLD)
    return [start, *(record for number in range(1, cycles + 1) for record in cycle(number))]


def test_a_rejected_candidate_names_its_constraint_and_the_chosen_one_is_marked() -> None:
    film = read_film(entries(run(1)), ending="With success.")
    proposal, evaluation, selection, execution = film.frames
    assert [option.mark for option in proposal.options] == ["proposed"] * 2
    rejected, allowed = evaluation.options
    assert (rejected.mark, rejected.rejected_by, rejected.reason, rejected.way) == (
        *("rejected", "rule", "not there", "east"),
    )
    assert (allowed.mark, allowed.score) == ("allowed", 0.5)
    assert selection.options[1].mark == "chosen"
    assert execution.caption.startswith("clean: done.")
    assert film.end is not None
    assert film.end.caption.split("\n")[:2] == [
        "With success.",
        "0 of 1 dirty cells are clean; battery 20.",
    ]


def test_the_world_is_read_with_its_hidden_obstacles_and_other_robots() -> None:
    board = world_board(WORLD, "robot")
    assert board is not None
    assert (board.robot, board.battery, board.others) == ((1, 0), 20, ((3, 0),))
    assert board.dirty == {(1, 1)}
    assert board.hidden == board.obstacles == {(2, 2)}
    assert board.forbidden == {(3, 2)}


def test_of_a_long_run_the_beginning_and_the_end_are_shown() -> None:
    film = read_film(entries(run(100)))
    assert (len(film.first), len(film.last), film.cycles) == (EDGE_CYCLES, EDGE_CYCLES, 100)
    assert film.gap == (21, 80)
    cards = [content for content, _ in film.shots() if isinstance(content, tuple)]
    assert cards == [("Cycles 21 to 80 are left out", "60 of 100 cycles")]
    assert film.end is not None
    assert "100 candidates rejected by code" in film.end.caption


def test_texts_of_a_hostile_run_hold_nothing_that_steers() -> None:
    film = read_film(entries(hostile_records(cycles=2)), name=HARM)
    texts = [frame.caption for frame in film.frames]
    for option in (option for frame in film.frames for option in frame.options):
        texts += [option.text, option.rejected_by, option.reason]
    assert texts
    assert not FORBIDDEN & set("".join(texts))
    assert max(map(len, texts)) < 1000
    assert render(film.frames[-1], LABELS, size="small").size == (645, 572)


@given(st.text(max_size=400))
def test_any_text_is_one_bounded_line(text: str) -> None:
    line = excerpt(text, 50)
    assert len(line) <= 50
    assert len(line.splitlines()) <= 1
    line.encode("utf-8")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["grid", "charger", "position", "dirty", "robots", "battery"]),
                inner,
            )
        ),
    )
)
def test_any_json_is_a_board_or_none(value: Any) -> None:
    for board in (world_board(value, "robot"), believed_board(value)):
        assert board is None or max(board.grid) <= 50
