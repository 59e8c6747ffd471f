"""Search finds the way where there is one, and what is worth looking at where it is not known."""

import pytest

from examples.minigrid import LEVELS, Body, Chart, Reading, everything, plan


def _played(level: str, seed: int, *, sees_all: bool) -> Body:
    body = Body(LEVELS[level], seed)
    seen = Chart()
    while not body.reading.over and body.actions < body.level.max_actions:
        seen = everything(body) if sees_all else seen.with_seen(body.reading.chart)
        way = plan(body.reading.with_chart(seen), body.level.aim)
        assert way, "there is always something to do"
        assert body.act(way[0]) == ""
    return body


@pytest.mark.parametrize("level", sorted(LEVELS))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_search_of_the_whole_grid_needs_no_more_actions_than_exploring(
    level: str, seed: int
) -> None:
    best = _played(level, seed, sees_all=True)
    exploring = _played(level, seed, sees_all=False)
    assert best.reward > 0
    assert exploring.reward > 0
    assert best.actions <= exploring.actions <= best.level.max_actions


def test_the_way_through_a_locked_door_takes_the_key_first() -> None:
    cells = {(0, 0): "floor", (1, 0): "locked red door", (2, 0): "goal", (0, 1): "red key"}
    reading = Reading(at=(0, 0), facing="south", chart=Chart.of(cells))
    way = ("pick_up", "turn_left", "toggle", "move_forward", "move_forward")
    assert plan(reading, "goal") == way
    assert plan(reading, "door") == way[:3]


def test_no_way_leads_through_lava() -> None:
    cells = {(0, 0): "floor", (1, 0): "lava", (2, 0): "goal"}
    walls = {(x, y): "wall" for x in range(-1, 4) for y in (-1, 1)} | {(-1, 0): "wall"}
    assert plan(Reading(chart=Chart.of({**cells, **walls})), "goal") == ()


def test_where_the_goal_is_not_seen_the_way_leads_to_what_is_not_seen() -> None:
    cells = {(0, 0): "floor", (1, 0): "floor", (0, -1): "wall", (0, 1): "wall", (-1, 0): "wall"}
    assert plan(Reading(chart=Chart.of(cells)), "goal") == ("move_forward",)
