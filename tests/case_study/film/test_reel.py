from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from kits.hostile import FORBIDDEN, HARM, hostile_records
from PIL import Image

from case_study.film._boards import believed_board, world_board
from case_study.film._canvas import Canvas
from case_study.film._deliberation import Deliberation
from case_study.film._picture import Setting, draw_scene
from case_study.film._reel import FIRST, LAST, read_reel
from case_study.film._scenes import Mark, said
from case_study.film._theme import THEMES
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

AT = datetime(2026, 11, 21, tzinfo=UTC)
WORLD: dict[str, Any] = {
    "grid": [4, 3],
    "charger": [0, 0],
    "dirty": [[1, 1], [9, 9]],
    "obstacles": [{"cell": [2, 2], "visible": False}],
    "robots": [
        {"name": "other", "position": [3, 0], "battery": 50},
        {"name": "robot", "position": [1, 0], "battery": 20},
    ],
    "forbidden": [[3, 2]],
}
SETTING = Setting(
    title="t", subtitle="s", phases=("proposal", "evaluation"), believed="b", without_truth="w"
)


def entries(records: list[TraceRecord]) -> Iterator[Entry]:
    return (Entry(seq=seq, body=record) for seq, record in enumerate(records))


def cycle(number: int) -> list[TraceRecord]:
    dead = Verdict(allowed=False, reason="not there", constraint="rule")
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
                Evaluation(candidate_id="a", verdicts=(dead,)),
                Evaluation(candidate_id="b", verdicts=(), score=0.5),
            ),
        ),
        SelectionOutcome(cycle=number, at=AT, candidate_id="b"),
        ExecutionOutcome(cycle=number, at=AT, status=ExecutionStatus.DONE, action="clean"),
    ]


def run(cycles: int) -> list[TraceRecord]:
    start = Snapshot(at=AT, cycle=0, working_memory={}, environment=WORLD)
    return [start, *(record for number in range(1, cycles + 1) for record in cycle(number))]


def test_rejected_candidate_names_what_it_died_of_and_the_chosen_one_is_marked() -> None:
    reel = read_reel(entries(run(1)), Deliberation("robot"), over=True)
    proposal, evaluation, selection, execution = reel.chapters[0].scenes
    assert [option.mark for option in proposal.options] == [Mark.PROPOSED] * 2
    rejected, allowed = evaluation.options
    assert (rejected.mark, rejected.died_of, rejected.reason) == (
        Mark.REJECTED,
        "rule",
        "not there",
    )
    assert rejected.way == "east"
    assert (allowed.mark, allowed.score) == (Mark.ALLOWED, 0.5)
    assert selection.options[1].mark is Mark.CHOSEN
    assert execution.about.startswith("clean: done.")


def test_world_is_read_with_its_hidden_obstacles_and_other_robots() -> None:
    board = world_board(WORLD, "robot")
    assert board is not None
    assert (board.robot, board.battery, board.others) == ((1, 0), 20, ((3, 0),))
    assert board.dirty == {(1, 1)}
    assert board.hidden == board.obstacles == {(2, 2)}
    assert board.forbidden == {(3, 2)}


def test_long_run_keeps_its_beginning_and_its_end_and_says_what_is_left_out() -> None:
    reel = read_reel(entries(run(100)), Deliberation("robot"), over=False)
    assert len(reel.first) == FIRST
    assert len(reel.last) == LAST
    assert reel.gap is not None
    assert (reel.gap.first, reel.gap.last, reel.gap.cycles) == (21, 80, 60)
    assert reel.cycles == 100
    assert reel.end is not None
    assert "goes on" in reel.end.about
    assert "100 candidates rejected by code" in reel.end.about


def test_texts_of_a_hostile_run_hold_nothing_that_steers() -> None:
    reel = read_reel(entries(hostile_records(cycles=2)), Deliberation(HARM), over=True)
    scenes = [scene for chapter in reel.chapters for scene in chapter.scenes]
    texts = [scene.about for scene in scenes]
    for option in (option for scene in scenes for option in scene.options):
        texts += [option.text, option.died_of, option.reason]
    assert texts
    assert not FORBIDDEN & set("".join(texts))
    assert max(map(len, texts)) < 1000
    canvas = Canvas(THEMES["light"], 0.5)
    draw_scene(canvas, scenes[-1], SETTING)
    assert canvas.picture(palette()).size == (430, 381)


def palette() -> Image.Image:
    image = Image.new("P", (1, 1))
    image.putpalette(THEMES["light"].palette())
    return image


@given(st.text(max_size=400))
def test_any_text_is_one_bounded_line(text: str) -> None:
    line = said(text, 50)
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


def test_palettes_fit_into_256_colours() -> None:
    for theme in THEMES.values():
        assert len(theme.palette()) <= 256 * 3


def test_last_picture_tells_how_the_run_ended() -> None:
    reel = read_reel(entries(run(1)), Deliberation("robot"), over=True, found="With success.")
    assert reel.end is not None
    assert reel.end.about.split("\n")[:2] == [
        "With success.",
        "0 of 1 dirty cells are clean; battery 20.",
    ]
