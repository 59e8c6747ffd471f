"""Model answers that break: false beliefs, invalid proposals, wrong scores, no answer at all."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import (
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from case_study.temperaments import Intend, answer
from coag.models import Script, ScriptedReply, ScriptedRequest
from coag.proof import Cause
from coag.schema import Phase
from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Reading,
    cells_of,
    inside,
    last_state_line,
    neighbour,
    state_line,
)

from .components import Breaker

_STATE_SECTION = re.compile(r"(## State of the environment\n<data[^\n]*\n.*?)(</data>)", re.DOTALL)
_GOAL = re.compile(r"\((\d+), (\d+)\)")
_SEEN_DIRTY = re.compile(r"^Cells seen dirty: ([^.\n]*)", re.MULTILINE)
_PERCEIVED = ("STATE ", "Cells ", "You are at ", "Dirt left", "No dirt is left", "Moves: ")
"""How lines begin that tell the state; all others that name dirt are the task's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """One false belief."""

    reading: Reading
    """What it takes the sensors to say."""
    words: str = ""
    """What it believes besides, as the robot's state would say it."""
    rule: str = ""
    """A rule that it takes to be in force, as its developer would say it."""
    told: str = ""
    """How it says so in its situation; empty where the situation tells it anyway."""
    status: str | None = None
    """What it takes the goal to be; None where that follows."""


Believe = Callable[[Reading, str, random.Random], Belief | None]
"""From what the sensors say, the prompt's text and dice, to a belief; None if there is none."""


def _wrong_place(reading: Reading, text: str, dice: random.Random) -> Belief | None:
    places = [c for c in cells_of(reading.grid) if c != reading.position]
    return Belief(reading=reading.model_copy(update={"position": dice.choice(places)}))


def _wrong_charge(reading: Reading, text: str, dice: random.Random) -> Belief | None:
    charges = [n for n in range(5, 101, 5) if abs(n - reading.battery) >= 25]
    return Belief(reading=reading.model_copy(update={"battery": dice.choice(charges)}))


def _overlooks_dirt(reading: Reading, text: str, dice: random.Random) -> Belief | None:
    dirty = _dirty(text)
    if not dirty:
        return None
    listed = ", ".join(str(cell) for cell in sorted(dirty))
    nothing = {name: False for name, seen in reading.dirty.model_dump().items() if seen}
    told = dice.choice(("There is no dirt left.", "All cells are clean now.", "Nothing is dirty."))
    clean = reading.model_copy(update={"dirty": reading.dirty.model_copy(update=nothing)})
    words = f"Cells you have cleaned: {listed}.\nCells seen clean: {listed}."
    return Belief(reading=clean, words=words, told=told)


def _imagines_dirt(reading: Reading, text: str, dice: random.Random) -> Belief | None:
    dirty = _dirty(text)
    cell = dice.choice(
        [c for c in cells_of(reading.grid) if c not in dirty and c != reading.charger]
    )
    told = dice.choice((f"There is dirt at {cell}.", f"Cell {cell} is dirty too."))
    return Belief(reading=reading, words=f"Cells seen dirty: {cell}.", told=told)


def _imagines_wall(reading: Reading, text: str, dice: random.Random) -> Belief | None:
    free: list[Cell] = []
    for direction in DIRECTIONS:
        cell = neighbour(reading.position, direction)
        if inside(cell, reading.grid) and not getattr(reading.blocked, direction):
            free.append(cell)
    if not free:
        return None
    cell = dice.choice(free)
    told = dice.choice((f"Cell {cell} is blocked.", f"An obstacle stands at {cell}."))
    return Belief(reading=reading, words=f"Cells seen blocked: {cell}.", told=told)


def _imagines_rule(reading: Reading, text: str, dice: random.Random) -> Belief | None:
    dirty = sorted(_dirty(text))
    if not dirty:
        return None
    cell = dice.choice(dirty)
    told = dice.choice((f"Cleaning cell {cell} is forbidden.", f"I must not clean cell {cell}."))
    return Belief(reading=reading, rule=f"Note: cleaning cell {cell} is forbidden.", told=told)


def _done(reading: Reading, text: str, dice: random.Random) -> Belief | None:
    told = dice.choice(("Everything that was asked for is done.", "The goal is reached."))
    return Belief(reading=reading, told=told, status="achieved")


def _gives_up(reading: Reading, text: str, dice: random.Random) -> Belief | None:
    told = dice.choice(("There is no way to do it.", "Nothing that I can do reaches the goal."))
    return Belief(reading=reading, told=told, status="impossible")


BELIEFS: Mapping[str, Believe] = MappingProxyType(
    {
        "wrong place": _wrong_place,
        "wrong charge": _wrong_charge,
        "overlooks dirt": _overlooks_dirt,
        "imagines dirt": _imagines_dirt,
        "imagines a wall": _imagines_wall,
        "imagines a rule": _imagines_rule,
        "thinks it is done": _done,
        "gives up": _gives_up,
    }
)
"""The ways in which a situation is misunderstood, by name."""


def belief_of(request: ScriptedRequest, variant: str, dice: random.Random) -> Belief | None:
    """The false belief that a request leads to; None where it leads to none."""
    reading = last_state_line(request.text)
    return None if reading is None else BELIEFS[variant](reading, request.text, dice)


def believing(request: ScriptedRequest, belief: Belief) -> ScriptedRequest:
    """The request as one reads it who has this belief."""
    reading = last_state_line(request.text)
    if reading is None:
        return request
    true, believed = state_line(reading), state_line(belief.reading)
    messages = [_replaced(message, true, believed) for message in request.messages]
    told = [_with_state(message, belief.words) for message in messages]
    if belief.words and told == messages:
        told = _with_result(messages, belief.words)
    if belief.rule:
        told.append(SystemMessage(content=belief.rule))
    return replace(request, messages=tuple(told))


def _replaced(message: LLMMessage, true: str, believed: str) -> LLMMessage:
    """The message with another reading, be it said to the model or told by a tool."""
    if isinstance(message, FunctionExecutionResultMessage):
        results = [
            result.model_copy(update={"content": result.content.replace(true, believed)})
            for result in message.content
        ]
        return message.model_copy(update={"content": results})
    if isinstance(message.content, str):
        return message.model_copy(update={"content": message.content.replace(true, believed)})
    return message


def _with_state(message: LLMMessage, words: str) -> LLMMessage:
    """The message with the words at the end of the state, where it holds one."""
    if not isinstance(message.content, str):
        return message
    return message.model_copy(update={"content": _with(message.content, words)})


def _with_result(messages: Sequence[LLMMessage], words: str) -> list[LLMMessage]:
    """The messages with the words after the latest result, or else after the task."""
    told = list(messages)
    for index, message in reversed(list(enumerate(told))):
        if isinstance(message, FunctionExecutionResultMessage):
            *others, last = message.content
            last = last.model_copy(update={"content": f"{last.content}\n{words}"})
            told[index] = message.model_copy(update={"content": [*others, last]})
            return told
    for index, message in enumerate(told):
        if isinstance(message, UserMessage) and isinstance(message.content, str):
            told[index] = message.model_copy(update={"content": f"{message.content}\n{words}"})
            return told
    return told


def _with(text: str, words: str) -> str:
    if not words:
        return text
    return _STATE_SECTION.sub(lambda found: f"{found[1]}{words}\n{found[2]}", text)


def _dirty(text: str) -> set[Cell]:
    """The cells that are held for dirty: seen so, or else named by the task."""
    seen = _SEEN_DIRTY.findall(text)
    lines = [line for line in text.splitlines() if not line.startswith(_PERCEIVED)]
    goal = [line for line in lines if "dirt" in line.lower() and _GOAL.search(line)]
    source = seen[-1:] if seen else goal[:1]
    return {(int(x), int(y)) for part in source for x, y in _GOAL.findall(part)}


Reply = dict[str, Any]
Spoil = Callable[[Reply, str, random.Random], Reply | None]
"""From an answer, the prompt's text and dice to the spoiled answer; None if it cannot be."""

_UNKNOWN = (
    "go_to",
    "vacuum",
    "recharge_battery",
    "move",
    "clean_cell",
    "scan_room",
    "pickup_quantum_energy_pack",
    "wait",
)
_VALUES = ("up", "left", "north-east", "N", "forward", "South", "")
_CANDIDATE = re.compile(r"^(\d+)\. \w+ \{", re.MULTILINE)
_SCORE = re.compile(r"^ +score (\d\.\d+)", re.MULTILINE)


def _for_some(spoil: Callable[[Reply, random.Random], Reply]) -> Spoil:
    """Spoils the first candidate, or all of them."""

    def spoiled(reply: Reply, text: str, dice: random.Random) -> Reply | None:
        candidates: list[Reply] = [dict(one) for one in reply["candidates"]]
        count = dice.choice((1, len(candidates)))
        changed = [spoil(one, dice) for one in candidates[:count]]
        return {**reply, "candidates": [*changed, *candidates[count:]]}

    return spoiled


def _unknown(candidate: Reply, dice: random.Random) -> Reply:
    return {**candidate, "action": dice.choice(_UNKNOWN)}


def _missing(candidate: Reply, dice: random.Random) -> Reply:
    lacking = "{}" if candidate["arguments"] != "{}" else json.dumps({"force": dice.randint(1, 9)})
    return {**candidate, "arguments": lacking}


def _wrong_value(candidate: Reply, dice: random.Random) -> Reply:
    value = json.dumps({"direction": dice.choice(_VALUES)})
    return {**candidate, "arguments": value}


def _torn(candidate: Reply, dice: random.Random) -> Reply:
    torn = dice.choice(('{"direction": "nor', "direction=north", "north", "[1, 2"))
    return {**candidate, "arguments": torn}


def _nothing(reply: Reply, text: str, dice: random.Random) -> Reply | None:
    return {**reply, "candidates": []}


def _into_walls(reply: Reply, text: str, dice: random.Random) -> Reply | None:
    """Moves to where the sensors feel that it cannot go, in place of what it would do."""
    reading = last_state_line(text)
    if reading is None:
        return None
    blocked = [way for way in DIRECTIONS if getattr(reading.blocked, way)]
    if not blocked:
        return None
    way = json.dumps({"direction": dice.choice(blocked)})
    first = {**reply["candidates"][0], "action": "move_agent", "arguments": way}
    return {**reply, "candidates": [first, *reply["candidates"][1:]][: dice.choice((1, 4))]}


PROPOSALS: Mapping[str, Spoil] = MappingProxyType(
    {
        "unknown action": _for_some(_unknown),
        "missing or foreign arguments": _for_some(_missing),
        "wrong value": _for_some(_wrong_value),
        "torn arguments": _for_some(_torn),
        "nothing proposed": _nothing,
        "into a wall": _into_walls,
    }
)
"""The ways in which proposals are invalid."""


def _rescored(rescore: Callable[[list[float], random.Random], list[float]]) -> Spoil:
    def spoiled(reply: Reply, text: str, dice: random.Random) -> Reply | None:
        judged: list[Reply] = [dict(one) for one in reply["evaluations"]]
        scores = rescore([one["score"] for one in judged], dice)
        again = [{**one, "score": score} for one, score in zip(judged, scores, strict=True)]
        return {**reply, "evaluations": again} if again != judged else None

    return spoiled


EVALUATIONS: Mapping[str, Spoil] = MappingProxyType(
    {
        "upside down": _rescored(lambda scores, dice: [round(1 - s, 2) for s in scores]),
        "in reverse": _rescored(lambda scores, dice: scores[::-1]),
        "best gets nothing": _rescored(
            lambda scores, dice: [0.0 if s == max(scores) else s for s in scores]
        ),
        "favours the last": _rescored(lambda scores, dice: [*scores[:-1], 1.0]),
        "drawn by lot": _rescored(
            lambda scores, dice: [round(dice.uniform(0.05, 0.95), 2) for _ in scores]
        ),
    }
)
"""The ways in which scores are wrong."""


def _chosen(choose: Callable[[list[float], random.Random], int]) -> Spoil:
    def spoiled(reply: Reply, text: str, dice: random.Random) -> Reply | None:
        scores = _scores(text)
        if len(scores) < 2:
            return None
        choice = choose(scores, dice) + 1
        return {**reply, "choice": choice} if choice != reply["choice"] else None

    return spoiled


def _ranked(scores: list[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda index: -scores[index])


SELECTIONS: Mapping[str, Spoil] = MappingProxyType(
    {
        "the worst": _chosen(lambda scores, dice: _ranked(scores)[-1]),
        "the second": _chosen(lambda scores, dice: _ranked(scores)[1]),
        "the last": _chosen(lambda scores, dice: len(scores) - 1),
        "any but the best": _chosen(lambda scores, dice: dice.choice(_ranked(scores)[1:])),
    }
)
"""The ways in which the choice is bad."""


def _scores(text: str) -> list[float]:
    """The scores of the candidates that a prompt for Selection lists."""
    heads = list(_CANDIDATE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    found = [_SCORE.search(text, head.end(), end) for head, end in zip(heads, ends, strict=True)]
    return [float(score.group(1)) if score else 0.0 for score in found]


def _cut_off(whole: str, dice: random.Random) -> str:
    return whole[: dice.randint(1, max(1, len(whole) // 3))].replace('"', "", 1)


UNUSABLE: Mapping[str, Callable[[str, random.Random], str]] = MappingProxyType(
    {
        "empty": lambda whole, dice: "",
        "prose": lambda whole, dice: dice.choice(
            ("Sure! I would be happy to help with that.", "Let me think about it first...", "No.")
        ),
        "cut off": _cut_off,
        "another form": lambda whole, dice: dice.choice(
            ('{"answer": 42}', '{"result": {"ok": true}}', "[]", '{"score": "high"}')
        ),
        "noise": lambda whole, dice: "".join(dice.choices("�\x00\t{}[]:,#~ 0123abc", k=80)),
    }
)
"""The ways in which an answer cannot be used. One more, `no answer`, is a call that fails."""


NO_ANSWER = "no answer"
_PHASE_BY_FIELD = {
    "situation": Phase.REASONING,
    "candidates": Phase.PROPOSAL,
    "evaluations": Phase.EVALUATION,
    "choice": Phase.SELECTION,
}
_SPOILS: Mapping[Phase, tuple[Cause, Mapping[str, Spoil]]] = {
    Phase.PROPOSAL: (Cause.INVALID_PROPOSAL, PROPOSALS),
    Phase.EVALUATION: (Cause.FAULTY_EVALUATION, EVALUATIONS),
    Phase.SELECTION: (Cause.BAD_SELECTION, SELECTIONS),
}


def broken_script(intend: Intend, breaker: Breaker) -> Script:
    """A script that answers as a temperament does, as far as its breaker lets it."""
    return _Model(intend, breaker).answer


class _Model:
    """What one run's model does."""

    def __init__(self, intend: Intend, breaker: Breaker) -> None:
        self._intend = intend
        self._breaker = breaker
        self._believed: tuple[int, Belief] | None = None

    def answer(self, request: ScriptedRequest) -> ScriptedReply:
        phase = _phase_of(request)
        belief = self._belief(request, phase)
        reply = answer(believing(request, belief) if belief else request, self._intend)
        if belief:
            reply = _told(reply, belief)
        if phase is not None and phase in _SPOILS and isinstance(reply, dict):
            reply = self._spoiled(reply, request, *_SPOILS[phase])
        elif phase is None and isinstance(reply, CreateResult):
            reply = self._spoiled_call(reply, request)
        return self._unusable(reply, phase)

    def _belief(self, request: ScriptedRequest, phase: Phase | None) -> Belief | None:
        """What it believes in this cycle: formed in Reasoning, and held in what follows."""
        breaker = self._breaker
        if not breaker.due(Cause.FAULTY_REASONING):
            return None
        cycle = breaker.now()
        if phase in (Phase.REASONING, None):
            dice = breaker.dice(f"belief {cycle}")
            formed = belief_of(request, breaker.variant, dice)
            self._believed = (cycle, formed) if formed else None
            if formed:
                breaker.strike()
        held = self._believed
        return held[1] if held and held[0] == cycle else None

    def _spoiled(
        self, reply: Reply, request: ScriptedRequest, cause: Cause, spoils: Mapping[str, Spoil]
    ) -> Reply:
        breaker = self._breaker
        if not breaker.due(cause):
            return reply
        dice = breaker.dice(f"answer {breaker.now()}")
        spoiled = spoils[breaker.variant](reply, request.text, dice)
        if spoiled is None:
            return reply
        breaker.strike()
        return spoiled

    def _spoiled_call(self, reply: CreateResult, request: ScriptedRequest) -> CreateResult:
        """A plain agent's tool call, spoiled as a proposal of one candidate is."""
        if isinstance(reply.content, str):
            return reply
        call = reply.content[0]
        one = {"action": call.name, "arguments": call.arguments}
        proposed = {"candidates": [one]}
        whole = self._spoiled(proposed, request, Cause.INVALID_PROPOSAL, PROPOSALS)
        if whole is proposed:
            return reply
        calls = [
            FunctionCall(id=call.id, name=told["action"], arguments=told["arguments"])
            for told in whole["candidates"]
        ]
        return reply.model_copy(update={"content": calls or ""})

    def _unusable(self, reply: ScriptedReply, phase: Phase | None) -> ScriptedReply:
        breaker = self._breaker
        if not breaker.due(Cause.UNUSABLE_ANSWER):
            return reply
        broken = breaker.dice("phase").choice(list(_PHASE_BY_FIELD.values()))
        if phase not in (broken, None):
            return reply
        breaker.strike()
        if breaker.variant == NO_ANSWER:
            raise ConnectionError("Connection error.")
        whole = json.dumps(reply) if isinstance(reply, dict) else "Let me see."
        return UNUSABLE[breaker.variant](whole, breaker.dice(f"answer {breaker.now()}"))


def _phase_of(request: ScriptedRequest) -> Phase | None:
    """The phase that asks; None for a plain agent."""
    asked: Mapping[str, Any] = (request.schema or {}).get("properties", {})
    return next((phase for name, phase in _PHASE_BY_FIELD.items() if name in asked), None)


def _told(reply: ScriptedReply, belief: Belief) -> ScriptedReply:
    """The answer of one who believes so: said in the situation, acted upon where it ends all."""
    if isinstance(reply, CreateResult):
        if belief.status is not None:
            return belief.told
        thought = f"{reply.thought or ''} {belief.told}".strip()
        return reply.model_copy(update={"thought": thought})
    if not isinstance(reply, dict):
        return reply
    told: Reply = dict(reply)
    if "situation" in told:
        first, _, following = str(told["situation"]).partition(" Next:")
        told["situation"] = f"{first} {belief.told} Next:{following}".replace("  ", " ")
        told["goal_status"] = belief.status or told["goal_status"]
    elif "candidates" in told and belief.status is not None:
        told["candidates"] = [
            {
                "reason": belief.told,
                "action": "respond",
                "arguments": json.dumps({"text": belief.told}),
                "expected_effect": "",
            }
        ]
    return told
