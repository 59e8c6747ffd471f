from __future__ import annotations

from pathlib import Path

from vacuum_world.server import KeptWorld, StateFile, Tokens, WorldHub, open_world
from vacuum_world.world import create_world


async def test_a_watcher_that_falls_too_far_behind_is_let_go() -> None:
    hub, _ = open_world(create_world(0), None, None)
    watching = hub.watchers.watch(hub.scene)
    assert (await anext(watching)).number == 0
    for _ in range(400):
        hub.tick()
    seen = [moment.number async for moment in watching]
    assert seen == list(range(1, 257))


async def test_a_watcher_that_comes_after_the_end_gets_nothing() -> None:
    hub, _ = open_world(create_world(0), None, None)
    hub.watchers.close()
    assert [moment async for moment in hub.watchers.watch(hub.scene)] == []


def test_a_given_control_token_takes_the_place_of_the_kept_one(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    open_world(create_world(0), "first-token", path)
    hub, token = open_world(create_world(1), "second-token", path)
    assert (token, hub.state.seed) == ("second-token", 0)
    assert hub.tokens.is_control("second-token")
    assert not hub.tokens.is_control("first-token")
    _, kept = open_world(create_world(2), None, path)
    assert kept is None


def test_a_state_file_is_private_and_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    kept = KeptWorld(world=create_world(0), tokens=Tokens(control="0" * 64))
    hub = WorldHub(kept, StateFile(path))
    hub.join("ann")
    assert path.stat().st_mode & 0o077 == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["world.json"]
    loaded = StateFile(path).load()
    assert loaded is not None
    assert loaded.world == hub.state
