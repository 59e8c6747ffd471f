from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from vacuum_world.errors import NameTakenError, WorldFullError
from vacuum_world.world import (
    Stream,
    WorldState,
    create_world,
    draw,
    join,
    leave,
    move,
    pick,
)

MakeWorld = Callable[..., WorldState]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"obstacles": [{"cell": [2, 2]}]}, "share a cell"),
        ({"obstacles": [{"cell": [0, 0]}]}, "stands on the charger"),
        ({"dirty": [[5, 5]]}, "outside the grid"),
        ({"grid": [1, 5]}, "greater than or equal to 2"),
        ({"suprise": 1}, "Extra inputs"),
        ({"dynamics": {"dirt_entropy": 2}}, "less than or equal to 1"),
    ],
)
def test_an_impossible_world_cannot_be_loaded(
    make_world: MakeWorld, change: dict[str, Any], reason: str
) -> None:
    impossible = make_world().model_dump(mode="json") | change
    with pytest.raises(ValidationError, match=reason):
        WorldState.model_validate(impossible)


def test_two_robots_cannot_have_one_name(make_world: MakeWorld) -> None:
    world = make_world()
    with pytest.raises(NameTakenError, match="'ann' is already in this world"):
        join(world, "ann")
    twin = world.robots[0].model_copy(update={"id": "r2", "position": (0, 1)})
    crowded = world.model_copy(update={"robots": (*world.robots, twin)})
    with pytest.raises(ValidationError, match="the same name"):
        WorldState.model_validate_json(crowded.model_dump_json())


def test_ids_are_never_used_twice(make_world: MakeWorld) -> None:
    world = leave(make_world(), "r1").state
    assert join(world, "ann").result.id == "r2"


def test_a_full_world_lets_nobody_in() -> None:
    world = create_world(0, grid=(2, 2))
    for name in ("ann", "bob", "cyd", "dan"):
        world = world.model_copy(update={"obstacles": ()})
        world = join(world, name).state
    with pytest.raises(WorldFullError):
        join(world, "eve")


def test_a_snapshot_continues_as_the_world_itself_does(make_world: MakeWorld) -> None:
    world = create_world(5)
    world = join(world, "ann").state
    copy = WorldState.model_validate_json(world.model_dump_json())
    for _ in range(20):
        world = move(world, "r1", "east").state
        copy = move(copy, "r1", "east").state
    assert copy.model_dump_json() == world.model_dump_json()


def test_a_stream_gives_the_same_numbers_everywhere() -> None:
    stream, numbers = Stream(seed=7), list[float]()
    for _ in range(3):
        number, stream = draw(stream)
        numbers.append(round(number, 6))
    assert numbers == [0.960928, 0.842297, 0.552958]
    assert stream == Stream(seed=7, draws=3)


def test_every_option_is_picked_about_as_often() -> None:
    stream, counts = Stream(seed=1), {"a": 0, "b": 0, "c": 0}
    for _ in range(900):
        option, stream = pick(stream, "abc")
        counts[option] += 1
    assert min(counts.values()) > 240
