"""Lists of a state over time."""

from __future__ import annotations

from coag.inspector.tracks.beliefs import list_tracks, lists_of
from coag.inspector.views import ListChange, ListTrack


def test_lists_of_scalars_and_positions_are_followed_and_nothing_else() -> None:
    state = {
        "position": [1, 2],
        "map": {"dirty": [[0, 1], [2, 2]], "names": ["a", "b", "c", "d", "e"]},
        "people": [{"name": "a"}],
        "long": [[n, n] for n in range(1_000)],
        "none": [],
    }
    assert lists_of(state) == {
        "map.dirty": ("[0, 1]", "[2, 2]"),
        "map.names": ('"a"', '"b"', '"c"', '"d"', '"e"'),
        "none": (),
    }
    assert lists_of("no object") == {}


def test_only_cycles_in_which_a_list_changed_are_told() -> None:
    held = [["a", "b"], ["b", "a"], ["b"], ["b", "c", "c"]]
    moments = [(at, lists_of({"dirty": items})) for at, items in enumerate(held, 1)]
    assert list_tracks(moments) == (
        ListTrack(
            path="dirty",
            changes=(
                ListChange(cycle=1, added=('"a"', '"b"'), length=2),
                ListChange(cycle=3, removed=('"a"',), length=1),
                ListChange(cycle=4, added=('"c"', '"c"'), length=3),
            ),
        ),
    )


def test_lists_that_never_change_or_are_not_always_there_are_told_of_as_far_as_they_are() -> None:
    moments = [(1, lists_of({"a": ["x"], "b": []})), (2, lists_of({})), (3, lists_of({"b": ["y"]}))]
    assert [(one.path, len(one.changes)) for one in list_tracks(moments)] == [("b", 2)]
