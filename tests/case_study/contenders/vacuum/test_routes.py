from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from case_study.contenders.vacuum import Ground, best_round
from vacuum_world.world import CLEAN_COST, FULL_BATTERY, MOVE_COST, Cell

GRID: Cell = (5, 5)
CELLS = st.tuples(st.integers(0, 4), st.integers(0, 4))
PLACE = Ground(grid=GRID, charger=(0, 0))


def test_round_goes_to_the_nearest_first_and_home_is_never_out_of_reach() -> None:
    assert best_round(PLACE, (1, 0), 100, [(4, 0), (2, 0)]) == (2, 0)
    assert best_round(PLACE, (2, 0), 15, [(2, 0)]) == (0, 0)
    assert best_round(PLACE, (2, 0), 20, [(2, 0)]) == (2, 0)


def test_nothing_is_begun_where_nothing_can_be_cleaned() -> None:
    assert best_round(PLACE, (4, 4), 10, [(4, 4)]) is None
    assert best_round(PLACE, (1, 1), 100, []) is None
    walled = Ground(grid=GRID, charger=(0, 0), blocked=frozenset({(3, 4), (4, 3)}))
    assert best_round(walled, (1, 1), 100, [(4, 4)]) is None


@given(
    start=CELLS,
    battery=st.integers(1, FULL_BATTERY),
    work=st.sets(CELLS, max_size=4),
    blocked=st.sets(CELLS, max_size=5),
)
def test_a_robot_that_follows_its_rounds_is_never_stranded(
    start: Cell, battery: int, work: set[Cell], blocked: set[Cell]
) -> None:
    ground = Ground(grid=GRID, charger=(0, 0), blocked=frozenset(blocked - {start, (0, 0)}))
    here, left = start, set(work)
    for _ in range(80):
        goal = best_round(ground, here, battery, sorted(left))
        if goal is None:
            return
        if goal == here and goal in left:
            battery -= CLEAN_COST
            left.discard(goal)
        else:
            assert ground.first_step(here, goal) is not None
            steps = ground.steps(here, goal)
            assert steps is not None
            battery -= steps * MOVE_COST
            here = goal
        assert battery > 0 or here == ground.charger
        if here == ground.charger:
            battery = FULL_BATTERY
    raise AssertionError("it went round for ever")
