"""Components that break: sensors, tools, the world, recall, and the model's answers.

A `Breaker` decides in which cycles a component is broken. Every component of a run asks it; only
the one that the fault is about gets a yes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import (
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
)

from case_study.grid import around
from case_study.local_world import LocalClient, LocalWorld
from case_study.temperaments import TEMPERAMENTS, answer, offered
from coag.errors import RecordStoreError
from coag.models import ScriptedReply, ScriptedRequest
from coag.proof import Cause
from coag.schema import MemoryKind, Phase, RecalledRecord
from coag.store import RecordStore, Search, WrappedStore
from vacuum_world.client import OutcomeUnknownError
from vacuum_world.world import (
    DIRECTIONS,
    ActionResult,
    AddObstacle,
    Cell,
    Direction,
    Intervention,
    Reading,
    RemoveDirt,
    SetBattery,
    WorldState,
    cells_of,
    inside,
    intervene,
    last_state_line,
    neighbour,
    obstacle_cells,
    robot_of,
    state_line,
)

from .stages import Stage, rule_record, wall_record

NO_ANSWER = "no answer"
VARIANTS: Mapping[Cause, tuple[str, ...]] = {
    Cause.MISPERCEPTION: ("battery gauge off", "located next door", "proximity flipped"),
    Cause.MISSED_RETRIEVAL: ("needed record left out", "memory out of reach"),
    Cause.WRONG_FACT: ("cell shifted", "false wall", "walled in"),
    Cause.FAULTY_REASONING: ("wrong place", "imagines a rule", "gives up"),
    Cause.INVALID_PROPOSAL: ("unknown action", "into a wall", "nothing proposed"),
    Cause.FAULTY_EVALUATION: ("upside down", "drawn by lot"),
    Cause.BAD_SELECTION: ("the worst", "any but the best"),
    Cause.FAILED_EXECUTION: ("raises", "does nothing", "line lost"),
    Cause.CHANGED_ENVIRONMENT: ("hidden wall in the way", "battery drained", "somebody cleans"),
    Cause.UNUSABLE_ANSWER: ("prose", "cut off", NO_ANSWER),
}
"""In which ways each component breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One component that breaks, by the cause that its failures have, and when.

    It waits from `cycle` on for its first opportunity, and the component then stays broken for so
    many `cycles`.
    """

    cause: Cause
    variant: str
    cycle: int
    cycles: int
    seed: int
    """What its details are drawn from."""


@dataclass(slots=True)
class Breaker:
    """Strikes from the first opportunity on, for as many cycles as the fault lasts."""

    fault: Fault | None = None
    """None for a run in which nothing breaks."""
    now: Callable[[], int] = lambda: 0
    """The cycle that is going on."""
    struck: list[int] = field(default_factory=list[int])
    """The cycles in which it struck, once for every time."""

    def due(self, cause: Cause, cycle: int | None = None) -> bool:
        """Whether the component with this cause is to break, now or in a cycle."""
        if self.fault is None or self.fault.cause is not cause:
            return False
        at = self.now() if cycle is None else cycle
        first = self.struck[0] if self.struck else max(self.fault.cycle, at)
        return first <= at < first + self.fault.cycles

    def strike(self, cycle: int | None = None) -> None:
        """Notes that the component broke."""
        self.struck.append(self.now() if cycle is None else cycle)

    @property
    def variant(self) -> str:
        """In which way the component breaks; empty where nothing does."""
        return self.fault.variant if self.fault else ""

    def dice(self, about: object = "") -> random.Random:
        """Chance for the details: the same dice for the same question."""
        return random.Random(f"{self.fault.seed if self.fault else 0} {about}")


# ---- sensors, tools and the world ----

_RAISED = (
    RuntimeError("motor controller: no acknowledgement"),
    OSError("bus error while writing to the drive"),
    ValueError("checksum mismatch in frame 3"),
)


class BrokenRobot(LocalClient):
    """Drives one robot in a world of this process, as well as its breaker lets it."""

    def __init__(self, world: LocalWorld, robot_id: str, breaker: Breaker) -> None:
        super().__init__(world, robot_id)
        self._here = world
        self._breaker = breaker

    async def sense(self) -> Reading:
        """All sensors at one moment, as far as they work."""
        true = await super().sense()
        if not self._breaker.due(Cause.MISPERCEPTION):
            return true
        reported = lied(self._breaker.variant, true, self._breaker.dice())
        if reported != true:
            self._breaker.strike()
        return reported

    async def move(self, direction: Direction, action_id: str | None = None) -> ActionResult:
        """Move one cell, if the motors and the world let it."""
        act = super().move
        return await self._act(direction, lambda: act(direction, action_id))

    async def clean(self, action_id: str | None = None) -> ActionResult:
        """Clean the robot's cell, if the brush and the world let it."""
        act = super().clean
        return await self._act(None, lambda: act(action_id))

    async def _act(
        self, direction: Direction | None, act: Callable[[], Awaitable[ActionResult]]
    ) -> ActionResult:
        breaker, world = self._breaker, self._here
        if breaker.due(Cause.CHANGED_ENVIRONMENT):
            change = changed(breaker.variant, world.now, self.robot_id, direction, breaker.dice())
            if change is not None:
                world.now = intervene(world.now, change).state
                breaker.strike()
        if not breaker.due(Cause.FAILED_EXECUTION):
            return await act()
        breaker.strike()
        if breaker.variant == "raises":
            raise breaker.dice().choice(_RAISED)
        if breaker.variant == "line lost":
            await act()
            raise OutcomeUnknownError("POST /api/agent", self.url, "read timed out")
        true = await super().sense()
        return ActionResult(
            ok=True, failure=None, reason=None, position=true.position, battery=true.battery
        )


def lied(variant: str, reading: Reading, dice: random.Random) -> Reading:
    """What the agent gets in place of a true reading."""
    here, grid = reading.position, reading.grid
    update: dict[str, Any]
    if variant == "battery gauge off":
        off = dice.choice((-60, -45, -30, -20, 20, 30, 45, 60))
        update = {"battery": min(100, max(5, reading.battery + off))}
    elif variant == "located next door":
        update = {"position": dice.choice(around(here, grid))}
    else:
        way = dice.choice([way for way in DIRECTIONS if inside(neighbour(here, way), grid)])
        felt = {way: not getattr(reading.blocked, way)}
        update = {"blocked": reading.blocked.model_copy(update=felt)}
    return reading.model_copy(update=update)


def changed(
    variant: str, world: WorldState, robot_id: str, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """What is done to the world while a robot is about to move there, or to clean (None).

    None where it cannot be done now.
    """
    robot = robot_of(world, robot_id)
    here, charger = robot.position, world.charger
    if variant == "battery drained":
        left = dice.choice((6, 8, 11, 16, 21))
        drains = left < robot.battery and here != charger
        return SetBattery(robot=robot.id, battery=left) if drains else None
    if variant == "somebody cleans":
        return RemoveDirt(cell=here) if direction is None and here in world.dirty else None
    there = neighbour(here, direction) if direction else here
    free = inside(there, world.grid) and there not in obstacle_cells(world)
    return AddObstacle(cell=there, visible=False) if free and there not in (here, charger) else None


# ---- recall ----

Hits = list[RecalledRecord]


class BrokenStore(WrappedStore):
    """A store whose searches for episodes break; all else goes to the true one."""

    def __init__(self, store: RecordStore, breaker: Breaker, stage: Stage) -> None:
        super().__init__(store)
        self._breaker = breaker
        self._stage = stage

    async def search(self, search: Search) -> Hits:
        """The most similar records, as far as recall works."""
        hits = returned = await super().search(search)
        if search.text is None or search.kind is not MemoryKind.EPISODIC:
            return hits
        breaker, needed = self._breaker, self._stage.needed
        cycle = breaker.now() + 1  # Retrieval is the first phase of the next cycle
        if breaker.due(Cause.MISSED_RETRIEVAL, cycle):
            if breaker.variant == "memory out of reach":
                breaker.strike(cycle)
                raise RecordStoreError("The memory cannot be reached: the connection was refused.")
            returned = [hit for hit in hits if hit.record.id not in needed]
        elif breaker.due(Cause.WRONG_FACT, cycle):
            if breaker.variant == "cell shifted":
                returned = [self._shifted(hit) if hit.record.id in needed else hit for hit in hits]
            else:
                returned = [*self._false_walls(hits), *hits][: search.k]
        if returned != hits:
            breaker.strike(cycle)
        return returned

    def _shifted(self, hit: RecalledRecord) -> RecalledRecord:
        """The needed record with another cell in its text, under its id."""
        facts, grid = self._stage.setup.facts, self._stage.setup.world.grid
        cells = [cell for cell in cells_of(grid) if cell != (facts.wall or facts.forbidden)]
        cell = self._breaker.dice().choice(cells)
        other = wall_record(facts.start, cell) if facts.wall else rule_record(cell)
        update = {"text": other.text, "metadata": other.metadata}
        return hit.model_copy(update={"record": hit.record.model_copy(update=update)})

    def _false_walls(self, hits: Hits) -> Hits:
        """Untrue records: of one wall between start and work, or of walls around some dirt."""
        facts, world, dice = self._stage.setup.facts, self._stage.setup.world, self._breaker.dice()
        if self._breaker.variant == "false wall":
            here, taken = facts.start, {*facts.dirty, facts.wall, world.charger}
            cells = [cell for cell in around(here, world.grid) if cell not in taken]
            walls = [dice.choice(cells)] if cells else []
        else:
            targets = [cell for cell in facts.dirty if cell not in (facts.start, facts.forbidden)]
            here = dice.choice(targets) if targets else facts.start
            walls = around(here, world.grid) if targets else []
        score = max((hit.score for hit in hits), default=0.5)
        return [RecalledRecord(record=wall_record(here, wall), score=score) for wall in walls]


# ---- the model ----

Reply = dict[str, Any]
_UNKNOWN = ("go_to", "vacuum", "recharge_battery", "move", "clean_cell", "scan_room", "wait")
_PROSE = (
    "Sure! I would be happy to help with that.",
    "Let me think about it first...",
    "No.",
)
_PHASES = {
    "situation": Phase.REASONING,
    "candidates": Phase.PROPOSAL,
    "evaluations": Phase.EVALUATION,
    "choice": Phase.SELECTION,
}
"""The phase that a field of the wanted answer belongs to."""
_SPOILED = {
    Phase.PROPOSAL: Cause.INVALID_PROPOSAL,
    Phase.EVALUATION: Cause.FAULTY_EVALUATION,
    Phase.SELECTION: Cause.BAD_SELECTION,
}


def spoiled(variant: str, reply: Reply, text: str, dice: random.Random) -> Reply:
    """An answer of Proposal, Evaluation or Selection to a prompt, spoiled where it can be."""
    match variant:
        case "nothing proposed":
            return {**reply, "candidates": []}
        case "unknown action":
            every: list[Reply] = reply["candidates"]
            count = dice.choice((1, len(every)))
            unknown = [{**one, "action": dice.choice(_UNKNOWN)} for one in every[:count]]
            return {**reply, "candidates": [*unknown, *every[count:]]}
        case "into a wall":
            reading = last_state_line(text)
            blocked = [way for way in DIRECTIONS if reading and getattr(reading.blocked, way)]
            if not blocked:
                return reply
            way = json.dumps({"direction": dice.choice(blocked)})
            first = {**reply["candidates"][0], "action": "move_agent", "arguments": way}
            return {**reply, "candidates": [first, *reply["candidates"][1:]][: dice.choice((1, 4))]}
        case "upside down" | "drawn by lot":
            scores = [
                round(1 - one["score"] if variant == "upside down" else dice.uniform(0.05, 0.95), 2)
                for one in reply["evaluations"]
            ]
            pairs = zip(reply["evaluations"], scores, strict=True)
            return {**reply, "evaluations": [{**one, "score": score} for one, score in pairs]}
        case _:
            scores = [one.score for one in offered(text)]
            if len(scores) < 2:
                return reply
            ranked = sorted(range(len(scores)), key=lambda place: -scores[place])
            place = ranked[-1] if variant == "the worst" else dice.choice(ranked[1:])
            return {**reply, "choice": place + 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """One false belief."""

    reading: Reading
    """What it takes the sensors to say."""
    rule: str = ""
    """A rule that it takes to be in force."""
    sentence: str = ""
    """How its situation says so; empty where the situation shows it anyway."""
    gives_up: bool = False


def believed(variant: str, reading: Reading, dice: random.Random) -> Belief | None:
    """A belief, from what the sensors say; None where there is no occasion for it."""
    if variant == "wrong place":
        cells: list[Cell] = [cell for cell in cells_of(reading.grid) if cell != reading.position]
        return Belief(reading=reading.model_copy(update={"position": dice.choice(cells)}))
    if variant == "gives up":
        return Belief(reading=reading, sentence="There is no way to reach the goal.", gives_up=True)
    if not reading.dirty.here:
        return None
    words = f"leaning cell {reading.position} is forbidden."
    return Belief(reading=reading, rule=f"Note: c{words}", sentence=f"C{words}")


def believing(request: ScriptedRequest, belief: Belief) -> ScriptedRequest:
    """The request as a model with this belief reads it."""
    reading = last_state_line(request.text)
    if reading is None:
        return request
    true, false = state_line(reading), state_line(belief.reading)
    messages = [_replaced(one, true, false) for one in request.messages]
    if belief.rule:
        messages.append(SystemMessage(content=belief.rule))
    return replace(request, messages=tuple(messages))


def _replaced(message: LLMMessage, old: str, new: str) -> LLMMessage:
    content: Any = message.content
    if isinstance(message, FunctionExecutionResultMessage):
        content = [
            one.model_copy(update={"content": one.content.replace(old, new)})
            for one in message.content
        ]
    elif isinstance(message.content, str):
        content = message.content.replace(old, new)
    return message.model_copy(update={"content": content})


class BrokenModel:
    """Answers as the sound temperament does, as far as its breaker lets it."""

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker
        self._believed: tuple[int, Belief] | None = None

    def answer(self, request: ScriptedRequest) -> ScriptedReply:
        """A script."""
        fields: Mapping[str, Any] = (request.schema or {}).get("properties", {})
        phase = next((phase for name, phase in _PHASES.items() if name in fields), None)
        belief = self._belief(request, phase)
        reply = answer(believing(request, belief) if belief else request, TEMPERAMENTS["sound"])
        if belief:
            reply = _with_belief(reply, belief)
        if isinstance(reply, dict) and phase and phase in _SPOILED:
            reply = self._spoiled(dict(reply), request, _SPOILED[phase])
        elif phase is None and isinstance(reply, CreateResult):
            reply = self._spoiled_call(reply, request)
        return self._unusable(reply, phase)

    def _belief(self, request: ScriptedRequest, phase: Phase | None) -> Belief | None:
        """What it believes in this cycle: formed in Reasoning, and held in what follows."""
        breaker = self._breaker
        if not breaker.due(Cause.FAULTY_REASONING):
            return None
        cycle, reading = breaker.now(), last_state_line(request.text)
        if phase in (Phase.REASONING, None):
            dice = breaker.dice(f"belief {cycle}")
            formed = believed(breaker.variant, reading, dice) if reading else None
            self._believed = (cycle, formed) if formed else None
            if formed:
                breaker.strike()
        held = self._believed
        return held[1] if held and held[0] == cycle else None

    def _spoiled(self, reply: Reply, request: ScriptedRequest, cause: Cause) -> Reply:
        breaker = self._breaker
        if not breaker.due(cause):
            return reply
        dice = breaker.dice(f"answer {breaker.now()}")
        changed_reply = spoiled(breaker.variant, reply, request.text, dice)
        if changed_reply != reply:
            breaker.strike()
        return changed_reply

    def _spoiled_call(self, reply: CreateResult, request: ScriptedRequest) -> CreateResult:
        """A plain agent's tool call, spoiled as a proposal of one candidate is."""
        if isinstance(reply.content, str):
            return reply
        call = reply.content[0]
        proposed = {"candidates": [{"action": call.name, "arguments": call.arguments}]}
        made = self._spoiled(proposed, request, Cause.INVALID_PROPOSAL)
        calls = [
            FunctionCall(id=call.id, name=one["action"], arguments=one["arguments"])
            for one in made["candidates"]
        ]
        return reply.model_copy(update={"content": calls or ""})

    def _unusable(self, reply: ScriptedReply, phase: Phase | None) -> ScriptedReply:
        breaker = self._breaker
        if not breaker.due(Cause.UNUSABLE_ANSWER):
            return reply
        if phase not in (breaker.dice("phase").choice(list(_PHASES.values())), None):
            return reply
        breaker.strike()
        if breaker.variant == NO_ANSWER:
            raise ConnectionError("Connection error.")
        dice = breaker.dice(f"answer {breaker.now()}")
        if breaker.variant == "prose":
            return dice.choice(_PROSE)
        text = json.dumps(reply) if isinstance(reply, dict) else "Let me see."
        return text[: dice.randint(1, max(1, len(text) // 3))].replace('"', "", 1)


def _with_belief(reply: ScriptedReply, belief: Belief) -> ScriptedReply:
    """The answer with the belief in its situation; giving up also ends the turn."""
    if isinstance(reply, CreateResult):
        if belief.gives_up:
            return belief.sentence
        thought = f"{reply.thought or ''} {belief.sentence}".strip()
        return reply.model_copy(update={"thought": thought})
    if not isinstance(reply, dict):
        return reply
    said: Reply = dict(reply)
    if "situation" in said:
        first, _, following = str(said["situation"]).partition(" Next:")
        said["situation"] = f"{first} {belief.sentence} Next:{following}".replace("  ", " ")
        if belief.gives_up:
            said["goal_status"] = "impossible"
    elif "candidates" in said and belief.gives_up:
        answered = {"action": "respond", "arguments": json.dumps({"text": belief.sentence})}
        said["candidates"] = [{"reason": belief.sentence, **answered, "expected_effect": ""}]
    return said
