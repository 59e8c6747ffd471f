"""Seen cells are drawn and read back, and lie where they lie."""

from hypothesis import given
from hypothesis import strategies as st

from examples.minigrid import Chart
from examples.minigrid._chart import FACINGS, Facing, bearing, beside, turned

_NAMES = ("floor", "wall", "lava", "goal", "yellow key", "locked yellow door", "open red door")
_CELLS = st.tuples(st.integers(-9, 9), st.integers(-9, 9))
_GRIDS = st.dictionaries(_CELLS, st.sampled_from(_NAMES), max_size=30)


@given(_GRIDS)
def test_a_chart_gives_back_what_was_put_on_it(cells: dict[tuple[int, int], str]) -> None:
    assert Chart.of(cells).cells() == cells


@given(_GRIDS, _GRIDS)
def test_what_was_seen_later_takes_the_place_of_what_was_seen_before(
    earlier: dict[tuple[int, int], str], later: dict[tuple[int, int], str]
) -> None:
    assert Chart.of(earlier).with_seen(Chart.of(later)).cells() == {**earlier, **later}


def test_a_chart_is_a_picture_with_north_at_the_top() -> None:
    chart = Chart.of({(0, 0): "floor", (1, 0): "yellow key", (1, 1): "wall"})
    assert chart.rows == (".a", "?#")
    assert chart.legend == {"a": "yellow key"}


@given(_CELLS, st.sampled_from(FACINGS), st.integers(1, 9))
def test_bearings_are_as_seen_by_who_looks(at: tuple[int, int], facing: Facing, steps: int) -> None:
    assert bearing(at, facing, beside(at, facing, steps)) == f"{steps} ahead"
    assert bearing(at, facing, beside(at, turned(facing, 1), steps)) == f"{steps} to the right"
    assert bearing(at, facing, beside(at, turned(facing, -1), steps)) == f"{steps} to the left"
    assert bearing(at, facing, beside(at, turned(facing, 2), steps)) == f"{steps} behind"


def test_a_bearing_names_both_ways() -> None:
    assert bearing((0, 0), "east", (2, -1)) == "2 ahead, 1 to the left"
    assert bearing((3, 3), "south", (3, 3)) == "where you are"
