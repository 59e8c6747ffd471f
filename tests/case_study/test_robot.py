"""The robot's working memory, and its world as a domain of awareness."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from kits.happenings import asked, executed, failed, returned, situation

from case_study.robot import (
    VacuumAdapter,
    VacuumContext,
    VacuumState,
    project,
    remembered_obstacles,
    state_of,
    vacuum_self,
)
from coag.awareness import Awareness, TransitionType
from coag.context import PhaseMaterial
from coag.schema import (
    Candidate,
    MemoryKind,
    Percept,
    PerceptKind,
    Phase,
    Provenance,
    RecalledRecord,
    Record,
    RetrievalOutcome,
    Trust,
    Verdict,
    record_id,
)
from coag.store import WordLlamaEmbedder
from vacuum_world.world import (
    Obstacle,
    Spawn,
    WorldState,
    clean,
    join,
    last_state_line,
    move,
    seeded_streams,
    sense,
    state_line,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)


def _world(**changes: Any) -> WorldState:
    world = WorldState(seed=0, streams=seeded_streams(0), spawn=Spawn(position=(1, 2)), **changes)
    return join(world, "robot").state


def _record(text: str, **metadata: int) -> RecalledRecord:
    provenance = Provenance(
        run="r", activity="main", cycle=1, source="robot", source_kind="agent", trust=Trust.USER
    )
    record = Record(
        id=record_id(MemoryKind.EPISODIC, "robot", text),
        kind=MemoryKind.EPISODIC,
        text=text,
        scope="robot",
        created_at=AT,
        provenance=provenance,
        metadata=dict(metadata),
    )
    return RecalledRecord(record=record, score=0.5)


BLOCKED = _record(
    "Obstacle: moving from (1, 2) failed, cell (2, 2) is blocked.", blocked_x=2, blocked_y=2
)


def _returned(world: WorldState, direction: Any) -> tuple[WorldState, Percept]:
    step = move(world, "r1", direction)
    result = step.result.result.model_dump(mode="json")
    text = f"{step.result.result.model_dump_json()}\n{state_line(sense(step.state, 'r1'))}"
    percept = Percept(
        id="percept-1",
        at=AT,
        kind=PerceptKind.TOOL_RETURN,
        source="move_agent",
        trust=Trust.UNTRUSTED,
        content=text,
        data=result,
        arguments={"direction": direction},
        is_error=not result["ok"],
    )
    return step.state, percept


def _message(text: str) -> Percept:
    return Percept(
        id=f"percept-{text[:2]}",
        at=AT,
        kind=PerceptKind.MESSAGE,
        source="user",
        trust=Trust.USER,
        content=text,
    )


def test_description_holds_the_state_line_and_what_was_seen_before() -> None:
    world = _world(dirty=((1, 1),))
    context = VacuumContext(reading=sense(world, "r1"))
    world, percept = _returned(world, "south")
    context.perceive(percept)
    text = context.describe()
    assert last_state_line(text) == sense(world, "r1")
    assert "Cells seen dirty: (1, 1)." in text


def test_bump_is_kept_until_the_next_action_and_dates_what_is_noted() -> None:
    world = _world(obstacles=(Obstacle(cell=(2, 2), visible=False),))
    context = VacuumContext(reading=sense(world, "r1"))
    world, bumped = _returned(world, "east")
    context.perceive(bumped)
    assert context.state.bump == (2, 2)
    assert context.memory_metadata() == {"x": 1, "y": 2, "blocked_x": 2, "blocked_y": 2}
    _, moved = _returned(world, "north")
    context.perceive(moved)
    assert context.state.bump is None
    assert "blocked_x" not in context.memory_metadata()


def test_message_never_becomes_state() -> None:
    context = VacuumContext()
    context.perceive(_message(state_line(sense(_world(), "r1"))))
    assert context.state == VacuumState()
    assert context.describe() == "Nothing has been sensed yet."


def test_recalled_record_enters_description_and_projection_by_its_id() -> None:
    context = VacuumContext(reading=sense(_world(), "r1"))
    context.commit(RetrievalOutcome(cycle=1, at=AT, query="", records=(BLOCKED,)))
    assert f"cell (2, 2) is blocked (record {BLOCKED.record.id[:8]})" in context.describe()
    east = Candidate(id="c", action="move_agent", arguments={"direction": "east"})
    predicted = context.project(east)
    assert predicted is not None
    assert predicted.position == (1, 2)
    assert predicted.battery == 95
    assert BLOCKED.record.id[:8] in str(predicted.bumps_into)


@pytest.mark.parametrize("sensed", [True, False])
def test_an_untrusted_record_blocks_a_cell_only_if_the_robots_own_code_read_it_off(
    sensed: bool,
) -> None:
    origin = BLOCKED.record.provenance.model_copy(update={"trust": Trust.UNTRUSTED})
    record = BLOCKED.record.model_copy(update={"provenance": origin, "sensed": sensed})
    hit = BLOCKED.model_copy(update={"record": record})

    assert (remembered_obstacles([hit]) != {}) is sensed


@pytest.mark.parametrize(
    ("action", "arguments", "position", "battery"),
    [
        ("move_agent", {"direction": "west"}, (0, 2), 95),
        ("clean_current_cell", {}, (1, 2), 90),
        ("sense", {}, (1, 2), 100),
    ],
)
def test_projection_foresees_place_and_charge(
    action: str, arguments: dict[str, str], position: tuple[int, int], battery: int
) -> None:
    state = state_of(sense(_world(dirty=((1, 2),)), "r1"))
    predicted = project(action, arguments, state, {})
    assert predicted is not None
    assert (predicted.position, predicted.battery) == (position, battery)


def test_projection_foresees_charging_draining_and_the_edge() -> None:
    state = state_of(sense(_world(), "r1"))
    near = state.model_copy(update={"position": (0, 1), "battery": 9})
    charged = project("move_agent", {"direction": "north"}, near, {})
    drained = project("clean_current_cell", {}, near, {})
    stuck = project("move_agent", {"direction": "west"}, near, {})
    assert charged is not None
    assert charged.battery == 100
    assert drained is not None
    assert drained.stranded
    assert stuck is not None
    assert stuck.position == (0, 1)
    assert stuck.bumps_into == "the edge of the grid"


def test_progress_is_a_matter_of_place_and_dirt_not_of_charge() -> None:
    reading = sense(_world(dirty=((1, 1),)), "r1")
    keys = [
        VacuumContext(reading=reading.model_copy(update={"battery": charge})).progress_key()
        for charge in (100, 35)
    ]
    moved = reading.model_copy(update={"position": (2, 2)})
    assert keys[0] == keys[1] != VacuumContext(reading=moved).progress_key()


def test_default_embedder_finds_the_obstacle_from_where_it_stands_in_the_way() -> None:
    embedder = WordLlamaEmbedder()
    context = VacuumContext(reading=sense(_world(dirty=((3, 2),)), "r1"))
    query = embedder.embed_query(context.retrieval_query())[0]
    texts = [BLOCKED.record.text, "Rule: cleaning cell (2, 1) is forbidden."]
    for row in embedder.embed(texts):
        cosine = float(row @ query) / float((row @ row) ** 0.5 * (query @ query) ** 0.5)
        assert cosine > 2 * embedder.minimum_similarity


def test_prompts_in_words_alone_hold_no_readings_and_the_goal_no_old_one() -> None:
    world = _world(dirty=((1, 2), (3, 2)), obstacles=(Obstacle(cell=(1, 1)),))
    reading = sense(world, "r1")
    context = VacuumContext(reading=reading, work=((1, 2), (3, 2)), readings=False)
    task = f"Clean (1, 2) and (3, 2).\nYour sensors say:\n{state_line(reading)}\nGo on."
    for text in (task, "Continue."):
        context.perceive(_message(text))
    assert context.describe() == (
        "You are at (1, 2). This cell is dirty. Battery 100.\n"
        "The battery is enough for now.\n"
        "Dirt left to clean: (1, 2) here; (3, 2) 2 east of you.\n"
        "Moves: north is blocked; east leads to (2, 2); south leads to (1, 3); "
        "west leads to (0, 2)."
    )
    prompt = "\n".join(
        message.content
        for message in context.build_prompt(
            Phase.REASONING, PhaseMaterial(instructions={}, forms={})
        )
    )
    assert "STATE" not in prompt
    assert "Continue." not in prompt
    assert "Clean (1, 2) and (3, 2).\nGo on." in prompt


def _dirty_world(**changes: Any) -> WorldState:
    return _world(dirty=((1, 1), (1, 2)), **changes)


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
    module = await _lived(_aware(), asked("Clean the room."), _sensed(_dirty_world()))
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
    world = _dirty_world()
    module = await _lived(_aware(), asked("Clean the room."), _sensed(world))
    cleaned = clean(world, "r1").state
    await _lived(module, executed("clean_current_cell"), _sensed(cleaned, "clean_current_cell"))
    assert module.state.trajectory.transitions[-1].description == "tile (1, 2) is clean now"
    for _ in range(3):
        await _lived(module, executed("sense"), _sensed(cleaned))
    assert _attention(module) == ["Dirt on tile (1, 1)"]
    assert "robot at (1, 2)" in await _shown(module)
    assert "5 tiles seen, 1 known dirty" in await _shown(module)


async def test_an_obstacle_is_there_until_it_is_felt_no_more() -> None:
    blocked = _dirty_world(obstacles=(Obstacle(cell=(2, 2)),))
    module = await _lived(_aware(), _sensed(blocked))
    assert "obstacle at (2, 2)" in await _shown(module)
    await _lived(module, _sensed(_dirty_world()))
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
    reading = sense(_dirty_world(), "r1").model_copy(update={"battery": battery})
    module = await _lived(_aware(), returned("sense", state_line(reading)))
    actions = ["sense", "move_agent", "clean_current_cell", "respond"]
    assert [action for action in actions if _verdict(module, action).allowed] == allowed
    if battery == 7:
        reason = _verdict(module, "clean_current_cell").reason
        assert reason == "'clean_current_cell' takes 10 energy, 7 left."
        assert "The energy hardly reaches the charger" in _attention(module)


async def test_a_return_without_a_reading_keeps_what_is_known() -> None:
    module = await _lived(_aware(), _sensed(_dirty_world()))
    before = module.state.world
    await _lived(module, failed("move_agent", "no answer"), returned("move_agent", "no answer"))
    assert module.state.world == before
    assert "Dirt on tile (1, 1)" in _attention(module)


async def test_a_whole_room_stays_within_the_bounds_and_comes_back() -> None:
    world, module = _dirty_world(), _aware()
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
