"""MiniGrid's context: what it perceives, foresees and forbids; and how little code it takes."""

from pathlib import Path

import pytest

from coag.compat import read_result
from coag.schema import Candidate, Percept, PerceptKind, SystemClock, Trust
from examples.minigrid import (
    LEVELS,
    Body,
    MiniGridContext,
    MiniGridState,
    never_into_lava,
    nothing_in_vain,
    plan,
)
from examples.minigrid._physics import ACTIONS, Action
from examples.minigrid._tools import tool_text

_MOST_LINES = 150
_ROOT = Path(__file__).parents[3]
_MODULE = _ROOT / "examples" / "minigrid" / "_context.py"
_PAGE = _ROOT / "docs" / "minigrid.md"


def _percept(body: Body, action: Action) -> Percept:
    """What an action of the body brings to the context."""
    result = read_result(tool_text(body, body.act(action)))
    return Percept(
        id="p1",
        at=SystemClock().now(),
        kind=PerceptKind.TOOL_RETURN,
        source=action,
        trust=Trust.UNTRUSTED,
        content=result.content,
        data=result.data,
        is_error=result.is_error,
        failure=result.failure,
    )


def _walked(level: str, seed: int, *actions: Action) -> tuple[Body, MiniGridContext]:
    body = Body(LEVELS[level], seed)
    context = MiniGridContext(reading=body.reading)
    for action in actions:
        context.perceive(_percept(body, action))
    return body, context


def _foreseen(context: MiniGridContext, action: str) -> MiniGridState | None:
    return context.project(Candidate(id="c1", action=action, arguments={}))


def test_the_whole_domain_is_at_most_150_lines_and_the_page_says_how_many() -> None:
    lines = len(_MODULE.read_text(encoding="utf-8").splitlines())
    assert lines <= _MOST_LINES
    assert f"| `_context.py` | {lines} |" in _PAGE.read_text(encoding="utf-8")


def test_what_was_seen_before_two_turns_is_still_known_after_them() -> None:
    body, context = _walked("doorkey-5x5", 1, "turn_right", "turn_right")
    assert "yellow key" not in body.reading.chart.cells().values()
    assert "yellow key at (0, 1): 1 behind." in context.describe()


def test_a_failed_action_is_described_until_the_next_one() -> None:
    body, context = _walked("doorkey-5x5", 1, "move_forward")
    assert "The latest action failed. move_forward: Nothing happened:" in context.describe()
    context.perceive(_percept(body, "pick_up"))
    assert "failed" not in context.describe()
    assert "You carry yellow key." in context.describe()


def test_text_without_a_reading_changes_nothing() -> None:
    _, context = _walked("doorkey-5x5", 1)
    before = context.state
    silent = _percept(Body(LEVELS["empty"], 0), "turn_left").model_copy(update={"data": None})
    context.perceive(silent)
    assert context.state == before


@pytest.mark.parametrize("level", sorted(LEVELS))
def test_predictions_of_what_is_known_come_true(level: str) -> None:
    for action in ACTIONS:
        body, context = _walked(level, 5, "turn_left", "turn_left")
        foreseen = _foreseen(context, action)
        assert foreseen is not None
        context.perceive(_percept(body, action))
        state = context.state
        assert (foreseen.at, foreseen.facing) == (state.at, state.facing)
        assert foreseen.carrying == state.carrying
        assert foreseen.ahead in (state.ahead, "not seen yet")
        assert (foreseen.problem is None) == (state.problem is None)


def test_a_prediction_says_where_things_would_lie_and_how_the_episode_would_end() -> None:
    _, context = _walked("doorkey-5x5", 1)
    foreseen = _foreseen(context, "turn_left")
    assert foreseen is not None
    assert foreseen.things == {"locked yellow door": "1 ahead", "yellow key": "1 to the right"}
    body, context = _walked("empty", 0)
    while context.state.ahead != "goal":
        way = plan(context.state.reading(), "goal")
        context.perceive(_percept(body, way[0]))
    foreseen = _foreseen(context, "move_forward")
    assert foreseen is not None
    assert foreseen.over == "success"


def test_nothing_is_foreseen_before_anything_was_seen() -> None:
    context = MiniGridContext()
    assert _foreseen(context, "move_forward") is None
    assert context.describe() == "Nothing has been seen yet: look."


def test_a_step_into_lava_is_forbidden_and_one_beside_it_is_not() -> None:
    body, context = _walked("lava-gap", 0)
    while context.state.ahead != "lava":
        context.perceive(_percept(body, "move_forward"))
    state = context.state
    step = Candidate(id="c1", action="move_forward")
    verdict = never_into_lava(step, state, _foreseen(context, "move_forward"))
    assert not verdict.allowed
    assert "the cell ahead is lava" in verdict.reason
    turn = Candidate(id="c2", action="turn_left")
    assert never_into_lava(turn, state, _foreseen(context, "turn_left")).allowed


def test_an_action_that_would_do_nothing_is_forbidden_with_the_reason() -> None:
    _, context = _walked("doorkey-5x5", 1, "turn_left")
    for action, reason in {
        "toggle": "the door is locked, and opens only for who carries the yellow key",
        "move_forward": "a locked yellow door is ahead and blocks the way",
        "drop": "you carry nothing",
    }.items():
        candidate = Candidate(id="c1", action=action)
        verdict = nothing_in_vain(candidate, context.state, _foreseen(context, action))
        assert not verdict.allowed
        assert reason in verdict.reason
    look = Candidate(id="c2", action="look")
    assert nothing_in_vain(look, context.state, _foreseen(context, "look")).allowed


def test_grounded_candidates_are_the_actions_that_would_do_something() -> None:
    _, context = _walked("doorkey-5x5", 1)
    offered = context.propose_grounded()
    assert offered is not None
    assert [each.action for each in offered] == ["turn_left", "turn_right", "pick_up"]


def test_turning_is_progress_and_looking_is_none() -> None:
    body, context = _walked("doorkey-5x5", 1)
    before = context.progress_key()
    looked = _percept(body, "turn_left").model_copy(update={"data": None})
    context.perceive(looked)
    assert context.progress_key() == before
    context.perceive(_percept(body, "turn_left"))
    assert context.progress_key() != before
