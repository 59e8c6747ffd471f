"""The vacuum world as a domain of awareness."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kits.happenings import asked, executed, failed, returned, situation

from case_study.robot import VacuumAdapter, VacuumContext, vacuum_self
from coag import CoagAgent, ScriptedModel
from coag.awareness import (
    Awareness,
    AwarenessSettings,
    CompositeAdapter,
    ConversationAdapter,
    TransitionType,
)
from coag.models import ScriptedRequest
from coag.schema import Candidate, Percept, Phase, Verdict
from vacuum_world.world import (
    Direction,
    Obstacle,
    Spawn,
    WorldState,
    clean,
    join,
    move,
    seeded_streams,
    sense,
    state_line,
)


def _world(**changes: Any) -> WorldState:
    given: dict[str, Any] = {"spawn": Spawn(position=(1, 2)), "dirty": ((1, 1), (1, 2)), **changes}
    return join(WorldState(seed=0, streams=seeded_streams(0), **given), "robot").state


def _sensed(world: WorldState, tool: str = "sense") -> Percept:
    return returned(tool, state_line(sense(world, "r1")))


def _aware(**options: Any) -> Awareness:
    return Awareness(VacuumAdapter(), self_model=vacuum_self(), **options)


async def _lived(module: Awareness, *events: Any) -> Awareness:
    for event in events:
        await module.observe(event)
    return module


async def _shown(module: Awareness) -> str:
    section = await module.contribute(Phase.PROPOSAL, situation(), 500)
    return "" if section is None else section.text


def _attention(module: Awareness) -> list[str]:
    return [one.description for one in module.state.attention.visible]


def _verdict(module: Awareness, action: str) -> Verdict:
    (rule,) = module.constraints()
    return rule(Candidate(id="c", action=action, arguments={}), None, None)


async def test_a_reading_brings_tiles_the_charger_energy_and_dirt() -> None:
    module = await _lived(_aware(), asked("Clean the room."), _sensed(_world()))
    world = module.state.world
    tile = world.get("tile (1, 2)")
    assert tile is not None
    assert tile.state == {"x": 1, "y": 2, "dirty": True}
    assert {one.type for one in world.entities} == {"room", "tile", "charger", "robot"}
    (energy,) = module.state.self_model.resources
    assert (energy.name, energy.remaining, energy.capacity) == ("energy", 100, 100)
    assert _attention(module) == ["Dirt on tile (1, 2)", "Dirt on tile (1, 1)"]
    assert module.state.trajectory.transitions[-1].type is TransitionType.PROGRESS


async def test_cleaning_is_progress_and_the_dirt_is_no_opportunity_any_more() -> None:
    world = _world()
    module = await _lived(_aware(), asked("Clean the room."), _sensed(world))
    cleaned = clean(world, "r1").state
    await _lived(module, executed("clean_current_cell"), _sensed(cleaned, "clean_current_cell"))
    assert module.state.trajectory.transitions[-1].description == "tile (1, 2) is clean now"
    for _ in range(3):
        await _lived(module, executed("sense"), _sensed(cleaned))
    assert _attention(module) == ["Dirt on tile (1, 1)"]
    assert "robot at (1, 2)" in await _shown(module)
    assert "5 tiles seen, 1 known dirty" in await _shown(module)


async def test_going_to_and_fro_is_no_progress() -> None:
    world, module = _world(), _aware(settings=AwarenessSettings(stalled_cycles=4))
    await _lived(module, asked("Clean the room."), _sensed(world))
    ways: list[Direction] = ["north", "south"]
    for way in ways * 5:
        world = move(world, "r1", way).state
        await _lived(module, executed("move_agent"), _sensed(world, "move_agent"))
    assert "No progress for a while on: Clean the room." in _attention(module)


async def test_an_obstacle_is_there_until_it_is_felt_no_more() -> None:
    blocked = _world(obstacles=(Obstacle(cell=(2, 2)),))
    module = await _lived(_aware(), _sensed(blocked))
    assert "obstacle at (2, 2)" in await _shown(module)
    await _lived(module, _sensed(_world()))
    assert "obstacle at (2, 2)" not in await _shown(module)
    obstacle = module.state.world.get("obstacle at (2, 2)")
    assert obstacle is not None
    assert obstacle.state["there"] is False


@pytest.mark.parametrize(
    ("battery", "allowed"),
    [
        (100, ["sense", "move_agent", "clean_current_cell", "respond"]),
        (7, ["sense", "move_agent", "respond"]),
        (0, ["sense", "respond"]),
    ],
)
async def test_what_the_energy_is_not_enough_for_is_forbidden(
    battery: int, allowed: list[str]
) -> None:
    reading = sense(_world(), "r1").model_copy(update={"battery": battery})
    module = await _lived(_aware(), returned("sense", state_line(reading)))
    actions = ["sense", "move_agent", "clean_current_cell", "respond"]
    assert [action for action in actions if _verdict(module, action).allowed] == allowed
    if battery == 7:
        reason = _verdict(module, "clean_current_cell").reason
        assert reason == "'clean_current_cell' takes 10 energy, 7 left."
        assert "The energy hardly reaches the charger" in _attention(module)


async def test_a_return_without_a_reading_keeps_what_is_known() -> None:
    module = await _lived(_aware(), _sensed(_world()))
    before = module.state.world
    await _lived(module, failed("move_agent", "no answer"), returned("move_agent", "no answer"))
    assert module.state.world == before
    assert "Dirt on tile (1, 1)" in _attention(module)


async def test_a_whole_room_stays_within_the_bounds_and_comes_back() -> None:
    world, module = _world(), _aware()
    await _lived(module, asked("Clean the room."))
    for way in ("east", "south", "west", "west", "north", "north") * 10:
        world = move(world, "r1", way).state
        await _lived(module, executed("move_agent"), _sensed(world, "move_agent"))
    saved = json.loads(json.dumps(module.save_state()))
    other = _aware()
    other.load_state(saved)
    assert other.state == module.state
    assert await _shown(other) == await _shown(module)
    assert len(module.state.attention.items) < 20


async def test_it_goes_together_with_talk() -> None:
    adapter = CompositeAdapter([VacuumAdapter(), ConversationAdapter()])
    module = Awareness(
        adapter, reads=lambda percept, state: {"vacuum": percept.model_dump(mode="json")}
    )
    await _lived(module, asked("Clean the room."), _sensed(_world()))
    assert "Dirt on tile (1, 1)" in _attention(module)
    assert {one.type for one in module.state.world.entities} >= {"vacuum:tile", "vacuum:room"}


async def test_an_agent_in_the_world_is_told_where_it_stands_and_kept_from_what_it_cannot() -> None:
    worlds = [_world()]

    async def clean_current_cell() -> str:
        """Cleans the cell."""
        worlds.append(clean(worlds[-1], "r1").state)
        low = sense(worlds[-1], "r1").model_copy(update={"battery": 5})
        return f'{{"ok": true}}\n{state_line(low)}'

    def think(request: ScriptedRequest) -> dict[str, Any]:
        tired = "takes 10 energy, 5 left" in request.text
        done = {"action": "respond", "arguments": {"text": "I must charge."}}
        return {
            "situation": "Dirt.",
            "candidates": [done if tired else {"action": "clean_current_cell"}],
        }

    model, module = ScriptedModel(think), _aware()
    agent = CoagAgent(
        "robot",
        model,
        tools=[clean_current_cell],
        model_context=VacuumContext(reading=sense(worlds[0], "r1")),
        modules=[module],
        depth="compact",
        proposal="json",
    )
    assert (await agent.run(task="Clean.")).messages[-1].to_text() == "I must charge."
    assert len(worlds) == 2
    assert "RESOURCES: energy 5.0 of 100" in model.requests[-1].text
    assert "[threat] The energy hardly reaches the charger" in model.requests[-1].text
