"""Model answers that break: false beliefs, invalid proposals, wrong scores, no answer at all."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from autogen_core import FunctionCall
from autogen_core.models import (
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from case_study.grid import cells_in, ways_sensed
from case_study.temperaments import Intend, answer, offered
from coag.models import ScriptedReply, ScriptedRequest
from coag.proof import Cause
from coag.schema import Phase
from vacuum_world.world import DIRECTIONS, Cell, Reading, cells_of, last_state_line, state_line

from .components import Breaker

_STATE_SECTION = re.compile(r"(## State of the environment\n<data[^\n]*\n.*?)(</data>)", re.DOTALL)
_SEEN_DIRTY = re.compile(r"^Cells seen dirty: ([^.\n]*)", re.MULTILINE)
_PERCEIVED = ("STATE ", "Cells ", "You are at ", "Dirt left", "No dirt is left", "Moves: ")
"""How lines of the state begin; all others that name dirt are the task's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """One false belief."""

    reading: Reading
    words: str = ""
    """What it believes besides, as the robot's state would say it."""
    rule: str = ""
    """A rule that it takes to be in force, as its developer would say it."""
    sentence: str = ""
    """How its situation says so; empty where the situation shows it anyway."""
    status: str | None = None
    """The status that it gives the goal; None where that follows."""


_SENTENCES = {
    "overlooks dirt": ("There is no dirt left.", "All cells are clean now.", "Nothing is dirty."),
    "imagines dirt": ("There is dirt at {}.", "Cell {} is dirty too."),
    "imagines a wall": ("Cell {} is blocked.", "An obstacle stands at {}."),
    "imagines a rule": ("Cleaning cell {} is forbidden.", "I must not clean cell {}."),
    "thinks it is done": ("Everything that was asked for is done.", "The goal is reached."),
    "gives up": ("There is no way to do it.", "Nothing that I can do reaches the goal."),
}
BELIEFS = ("wrong place", "wrong charge", *_SENTENCES)
"""The ways in which a situation is misunderstood."""


def believed(variant: str, reading: Reading, text: str, dice: random.Random) -> Belief | None:
    """A belief, from what the sensors say, the prompt's text and dice; None if there is none."""
    dirty, cells, cell = _dirty(text), cells_of(reading.grid), None
    news: dict[str, Any] = {}
    belief: dict[str, Any] = {}
    match variant:
        case "wrong place":
            news["position"] = dice.choice([c for c in cells if c != reading.position])
        case "wrong charge":
            charges = [n for n in range(5, 101, 5) if abs(n - reading.battery) >= 25]
            news["battery"] = dice.choice(charges)
        case "overlooks dirt" if dirty:
            seen = {name: False for name, found in reading.dirty.model_dump().items() if found}
            news["dirty"] = reading.dirty.model_copy(update=seen)
            listed = ", ".join(map(str, sorted(dirty)))
            belief["words"] = f"Cells you have cleaned: {listed}.\nCells seen clean: {listed}."
        case "imagines dirt":
            cell = dice.choice([c for c in cells if c not in {*dirty, reading.charger}])
            belief["words"] = f"Cells seen dirty: {cell}."
        case "imagines a wall" if not all(ways_sensed(reading).values()):
            cell = dice.choice([c for c, blocked in ways_sensed(reading).items() if not blocked])
            belief["words"] = f"Cells seen blocked: {cell}."
        case "imagines a rule" if dirty:
            cell = dice.choice(sorted(dirty))
            belief["rule"] = f"Note: cleaning cell {cell} is forbidden."
        case "thinks it is done":
            belief["status"] = "achieved"
        case "gives up":
            belief["status"] = "impossible"
        case _:
            return None
    if variant in _SENTENCES:
        belief["sentence"] = dice.choice(_SENTENCES[variant]).format(cell)
    return Belief(reading=reading.model_copy(update=news), **belief)


def believing(request: ScriptedRequest, belief: Belief) -> ScriptedRequest:
    """The request as a model with this belief reads it."""
    reading = last_state_line(request.text)
    if reading is None:
        return request
    true, believed = state_line(reading), state_line(belief.reading)

    def stated(text: str) -> str:
        return _STATE_SECTION.sub(lambda found: f"{found[1]}{belief.words}\n{found[2]}", text)

    messages = [
        _changed(one, lambda text: text.replace(true, believed)) for one in request.messages
    ]
    changed = messages
    if belief.words:
        changed = [
            one if isinstance(one, FunctionExecutionResultMessage) else _changed(one, stated)
            for one in messages
        ]
        if changed == messages:
            changed = _with_result(messages, belief.words)
    if belief.rule:
        changed = [*changed, SystemMessage(content=belief.rule)]
    return replace(request, messages=tuple(changed))


def _changed(message: LLMMessage, change: Callable[[str], str]) -> LLMMessage:
    content: Any = message.content
    if isinstance(message, FunctionExecutionResultMessage):
        content = [
            one.model_copy(update={"content": change(one.content)}) for one in message.content
        ]
    elif isinstance(message.content, str):
        content = change(message.content)
    return message.model_copy(update={"content": content})


def _with_result(messages: Sequence[LLMMessage], words: str) -> list[LLMMessage]:
    """The messages with the words after the latest result, or else after the task."""
    changed, kinds = list(messages), (FunctionExecutionResultMessage, UserMessage)
    results, tasks = ([i for i, one in enumerate(changed) if isinstance(one, k)] for k in kinds)
    if results:
        message = changed[results[-1]]
        *others, last = cast("FunctionExecutionResultMessage", message).content
        last = last.model_copy(update={"content": f"{last.content}\n{words}"})
        changed[results[-1]] = message.model_copy(update={"content": [*others, last]})
    elif tasks:
        changed[tasks[0]] = _changed(changed[tasks[0]], lambda text: f"{text}\n{words}")
    return changed


def _dirty(text: str) -> set[Cell]:
    """The cells believed to be dirty: seen so, or else named by the task."""
    seen = _SEEN_DIRTY.findall(text)
    lines = [line for line in text.splitlines() if not line.startswith(_PERCEIVED)]
    goal = [line for line in lines if "dirt" in line.lower() and cells_in(line)]
    return {cell for part in (seen[-1:] if seen else goal[:1]) for cell in cells_in(part)}


Reply = dict[str, Any]
Spoil = Callable[[Reply, str, random.Random], Reply | None]
"""From an answer, the prompt's text and dice to the spoiled answer; None if it cannot be."""

_UNKNOWN = (
    *("go_to", "vacuum", "recharge_battery", "move", "clean_cell", "scan_room"),
    *("pickup_quantum_energy_pack", "wait"),
)
_VALUES = ("up", "left", "north-east", "N", "forward", "South", "")
_TORN = ('{"direction": "nor', "direction=north", "north", "[1, 2")


def _for_some(name: str, spoil: Callable[[Reply, random.Random], str]) -> Spoil:
    """Spoils one field of the first candidate, or of all of them."""

    def spoiled(reply: Reply, text: str, dice: random.Random) -> Reply:
        candidates: list[Reply] = reply["candidates"]
        count = dice.choice((1, len(candidates)))
        changed = [{**one, name: spoil(one, dice)} for one in candidates[:count]]
        return {**reply, "candidates": [*changed, *candidates[count:]]}

    return spoiled


def _missing(candidate: Reply, dice: random.Random) -> str:
    return "{}" if candidate["arguments"] != "{}" else json.dumps({"force": dice.randint(1, 9)})


def _into_walls(reply: Reply, text: str, dice: random.Random) -> Reply | None:
    """Moves to where the sensors feel that it cannot go, in place of what it would do."""
    reading = last_state_line(text)
    blocked = [way for way in DIRECTIONS if reading and getattr(reading.blocked, way)]
    if not blocked:
        return None
    way = json.dumps({"direction": dice.choice(blocked)})
    first = {**reply["candidates"][0], "action": "move_agent", "arguments": way}
    return {**reply, "candidates": [first, *reply["candidates"][1:]][: dice.choice((1, 4))]}


PROPOSALS: Mapping[str, Spoil] = {
    "unknown action": _for_some("action", lambda one, dice: dice.choice(_UNKNOWN)),
    "missing or foreign arguments": _for_some("arguments", _missing),
    "wrong value": _for_some(
        "arguments", lambda one, dice: json.dumps({"direction": dice.choice(_VALUES)})
    ),
    "torn arguments": _for_some("arguments", lambda one, dice: dice.choice(_TORN)),
    "nothing proposed": lambda reply, text, dice: {**reply, "candidates": []},
    "into a wall": _into_walls,
}
"""The ways in which proposals are invalid."""


def _rescored(rescore: Callable[[list[float], random.Random], list[float]]) -> Spoil:
    def spoiled(reply: Reply, text: str, dice: random.Random) -> Reply | None:
        judged: list[Reply] = reply["evaluations"]
        scores = rescore([one["score"] for one in judged], dice)
        again = [{**one, "score": score} for one, score in zip(judged, scores, strict=True)]
        return {**reply, "evaluations": again} if again != judged else None

    return spoiled


EVALUATIONS: Mapping[str, Spoil] = {
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
"""The ways in which scores are wrong."""


def _chosen(choose: Callable[[list[int], random.Random], int]) -> Spoil:
    """Another choice, made of the places of the candidates, the best first."""

    def spoiled(reply: Reply, text: str, dice: random.Random) -> Reply | None:
        scores = [one.score for one in offered(text)]
        if len(scores) < 2:
            return None
        ranked = sorted(range(len(scores)), key=lambda place: -scores[place])
        choice = choose(ranked, dice) + 1
        return {**reply, "choice": choice} if choice != reply["choice"] else None

    return spoiled


SELECTIONS: Mapping[str, Spoil] = {
    "the worst": _chosen(lambda ranked, dice: ranked[-1]),
    "the second": _chosen(lambda ranked, dice: ranked[1]),
    "the last": _chosen(lambda ranked, dice: max(ranked)),
    "any but the best": _chosen(lambda ranked, dice: dice.choice(ranked[1:])),
}
"""The ways in which the choice is bad."""


def _one_of(*texts: str) -> Callable[[str, random.Random], str]:
    return lambda text, dice: dice.choice(texts)


UNUSABLE: Mapping[str, Callable[[str, random.Random], str]] = {
    "empty": lambda text, dice: "",
    "prose": _one_of(
        "Sure! I would be happy to help with that.", "Let me think about it first...", "No."
    ),
    "cut off": lambda text, dice: text[: dice.randint(1, max(1, len(text) // 3))].replace(
        '"', "", 1
    ),
    "another form": _one_of(
        '{"answer": 42}', '{"result": {"ok": true}}', "[]", '{"score": "high"}'
    ),
    "noise": lambda text, dice: "".join(dice.choices("�\x00\t{}[]:,#~ 0123abc", k=80)),
}
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


class BrokenModel:
    """Answers as a temperament does, as far as its breaker lets it."""

    def __init__(self, intend: Intend, breaker: Breaker) -> None:
        self._intend = intend
        self._breaker = breaker
        self._believed: tuple[int, Belief] | None = None

    def answer(self, request: ScriptedRequest) -> ScriptedReply:
        """A script."""
        fields: Mapping[str, Any] = (request.schema or {}).get("properties", {})
        phase = next((phase for name, phase in _PHASE_BY_FIELD.items() if name in fields), None)
        belief = self._belief(request, phase)
        reply = answer(believing(request, belief) if belief else request, self._intend)
        if belief:
            reply = _with_belief(reply, belief)
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
        cycle, reading = breaker.now(), last_state_line(request.text)
        if phase in (Phase.REASONING, None):
            dice = breaker.dice(f"belief {cycle}")
            formed = believed(breaker.variant, reading, request.text, dice) if reading else None
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
        proposed = {"candidates": [{"action": call.name, "arguments": call.arguments}]}
        spoiled = self._spoiled(proposed, request, Cause.INVALID_PROPOSAL, PROPOSALS)
        calls = [
            FunctionCall(id=call.id, name=candidate["action"], arguments=candidate["arguments"])
            for candidate in spoiled["candidates"]
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
        text = json.dumps(reply) if isinstance(reply, dict) else "Let me see."
        return UNUSABLE[breaker.variant](text, breaker.dice(f"answer {breaker.now()}"))


def _with_belief(reply: ScriptedReply, belief: Belief) -> ScriptedReply:
    """The answer with the belief in its situation; it also acts on a belief that ends the turn."""
    if isinstance(reply, CreateResult):
        if belief.status is not None:
            return belief.sentence
        thought = f"{reply.thought or ''} {belief.sentence}".strip()
        return reply.model_copy(update={"thought": thought})
    if not isinstance(reply, dict):
        return reply
    changed: Reply = dict(reply)
    if "situation" in changed:
        first, _, following = str(changed["situation"]).partition(" Next:")
        changed["situation"] = f"{first} {belief.sentence} Next:{following}".replace("  ", " ")
        changed["goal_status"] = belief.status or changed["goal_status"]
    elif "candidates" in changed and belief.status is not None:
        answered = {"action": "respond", "arguments": json.dumps({"text": belief.sentence})}
        changed["candidates"] = [{"reason": belief.sentence, **answered, "expected_effect": ""}]
    return changed
