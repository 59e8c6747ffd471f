"""The body reports what it sees, and nothing else; its reports are true."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coag.errors import UnknownNameError
from examples.minigrid import LEVELS, Body, Chart, everything, level_named
from examples.minigrid._body import scene_of
from examples.minigrid._chart import FACINGS
from examples.minigrid._physics import ACTIONS, Action

_PLAYS = st.lists(st.sampled_from(ACTIONS), max_size=25)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(LEVELS)), st.integers(0, 200), _PLAYS)
def test_what_a_body_reports_agrees_with_the_environment(
    level: str, seed: int, play: list[Action]
) -> None:
    body = Body(LEVELS[level], seed)
    start = [int(number) for number in body.environment.agent_pos]
    for action in play:
        body.act(action)
        truth, reading = everything(body).cells(), body.reading
        x, y = (int(number) for number in body.environment.agent_pos)
        assert reading.at == (x - start[0], y - start[1])
        assert reading.facing == FACINGS[body.environment.agent_dir]
        seen = reading.chart.cells()
        assert {cell: truth.get(cell, "wall") for cell in seen} == seen


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(LEVELS)), st.integers(0, 200), _PLAYS)
def test_the_forward_model_foresees_what_the_environment_does(
    level: str, seed: int, play: list[Action]
) -> None:
    body = Body(LEVELS[level], seed)
    for action in play:
        grid = everything(body).cells()
        foreseen, problem = scene_of(body.reading).after(grid, action)
        assert body.act(action) == problem
        if body.reading.over:
            break
        assert scene_of(body.reading) == type(foreseen)(
            foreseen.at, foreseen.facing, foreseen.carrying
        )
        assert everything(body).cells() == {**grid, **dict(foreseen.changed)}


def test_what_is_behind_a_wall_is_not_reported() -> None:
    body = Body(LEVELS["two-rooms"], 1)
    assert "goal" not in body.reading.chart.cells().values()
    assert "goal" in everything(body).cells().values()


def test_an_action_without_effect_says_why() -> None:
    body = Body(LEVELS["doorkey-5x5"], 1)
    assert body.act("toggle") == "only doors can be toggled, and ahead is a yellow key"
    assert body.act("move_forward") == "a yellow key is ahead and blocks the way"
    body.act("turn_left")
    assert body.act("toggle") == "the door is locked, and opens only for who carries the yellow key"


def test_the_reading_in_words_says_what_is_near_and_where_things_lie() -> None:
    words = Body(LEVELS["doorkey-5x5"], 1).reading.words()
    assert "You are at (0, 0), facing south. You carry nothing." in words
    assert "Ahead: yellow key (0, 1). Left: locked yellow door (1, 0)." in words
    assert "locked yellow door at (1, 0): 1 to the left." in words


def test_lava_ends_an_episode_without_reward() -> None:
    body = Body(LEVELS["lava-gap"], 0)
    for _ in range(20):
        body.act("move_forward")
    body.act("turn_right")
    while not body.reading.over:
        body.act("turn_right" if body.actions % 2 else "move_forward")
    assert (body.reading.over, body.reward) == ("death", 0.0)
    assert body.act("move_forward") == "the episode is over: death"


def test_a_level_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UnknownNameError, match="doorkey-5x5"):
        level_named("doorkey")


def test_a_seed_gives_the_same_instance_and_another_one_another() -> None:
    charts = [everything(Body(LEVELS["doorkey-6x6"], seed)) for seed in (3, 3, 4)]
    assert charts[0] == charts[1] != charts[2]
    assert isinstance(charts[0], Chart)
