"""False situations: what a model takes to be the case, whatever it is shown."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from autogen_core.models import (
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from coag.models import ScriptedRequest
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
