"""Scripted minds for MiniGrid: models that are functions of what they are sent, and no more.

They read the readings in the text of a request, the latest last, and the task. They show what the
code around a model does with its faults, and say nothing about how well a language model plays;
wherever a result of theirs is shown, it is named `scripted`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from coag.errors import UnknownNameError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest

from ._chart import GOAL, NOTHING, Cell, Chart, bearing
from ._forms import Intention, answer
from ._physics import Action, notable
from ._reading import Reading
from ._search import plan

SCRIPTED = "scripted"
"""The scheme of their model specs: `scripted:sound`."""
TASK = "Task: "
"""What the line of a message begins with that says what MiniGrid asks for."""
_FAULTY = 0.3
"""How often a mind of two minds is the faulty one."""

Mind = Callable[[Reading, str], tuple[Intention, ...]]
"""From a reading with the chart of all that was seen, and the aim, to what it wants to do."""


def sound(reading: Reading, aim: str) -> tuple[Intention, ...]:
    """The next step of the shortest way by what it has seen, or towards what it has not."""
    way = plan(reading, aim)
    if not way:
        return (Intention("respond", "There is nothing left to find out.", {"text": "I give up."}),)
    first = Intention(way[0], f"It is the first of {len(way)} steps on the shortest way.")
    return first, *_others(way[0])


def impulsive(reading: Reading, aim: str) -> tuple[Intention, ...]:
    """Straight at what it wants, through walls and lava, and again after it failed."""
    wanted = _wanted(reading, aim)
    urge = "move_forward" if wanted is None else _straight(reading, wanted)
    return Intention(urge, "Straight ahead is the quickest."), *_others(urge, *sound(reading, aim))


def _others(first: str, *rest: Intention) -> Iterator[Intention]:
    """The other intentions, and a turn at the end so that there is a choice."""
    offered = {first}
    for each in (*rest, Intention("turn_right", "To look round.")):
        if each.action not in offered:
            offered.add(each.action)
            yield each


def _wanted(reading: Reading, aim: str) -> tuple[Cell, str] | None:
    """What it is after: the goal where it is seen, else a key if its hand is empty, else a door."""
    kinds = [GOAL] if aim == "goal" else []
    kinds += ["door"] if reading.carrying != NOTHING else ["key", "door"]
    things = [pair for pair in reading.chart.cells().items() if notable(pair[1])]
    for kind in kinds:
        for cell, what in sorted(things):
            if what.endswith(kind) and not what.startswith("open") and cell != reading.at:
                return cell, what
    return None


def _straight(reading: Reading, wanted: tuple[Cell, str]) -> Action:
    """The step towards a cell as the crow flies; what is next to it is taken or toggled."""
    where = bearing(reading.at, reading.facing, wanted[0])
    if where == "1 ahead" and wanted[1] != GOAL:
        return "toggle" if wanted[1].endswith("door") else "pick_up"
    if "ahead" in where:
        return "move_forward"
    return "turn_left" if "left" in where else "turn_right"


MINDS: Mapping[str, Mind] = MappingProxyType({"sound": sound, "impulsive": impulsive})
"""The minds that are always the same."""
MIXED = ("fallible", "noisy")
"""Of two minds: `fallible` as one through all phases of a situation, `noisy` for each request."""


def open_mind(name: str, *, seed: int = 0) -> ScriptedModel:
    """The scripted model `scripted:NAME`.

    Args:
        name: `sound`, `impulsive`, or a mixture of both: `fallible` or `noisy`.
        seed: What a mixture is drawn by.

    Raises:
        UnknownNameError: There is no such mind; the message lists those that exist.
    """
    if name not in (*MINDS, *MIXED):
        raise UnknownNameError("scripted mind", name, (*MINDS, *MIXED))

    def script(request: ScriptedRequest) -> ScriptedReply:
        reading, aim = read_request(request.text)
        if reading is None:
            return answer(request, "Nothing is seen yet.", (Intention("look", "To begin."),))
        situation = f"I am at {reading.at}, facing {reading.facing}, with {reading.carrying}."
        if reading.over:
            done = Intention("respond", "It is over.", {"text": f"Over: {reading.over}."})
            return answer(request, situation, (done,))
        drawn_by = reading.line() if name == "fallible" else str(request.number)
        return answer(request, situation, _mind(name, f"{seed} {drawn_by}")(reading, aim))

    return ScriptedModel(script, name=f"{SCRIPTED}:{name}")


def _mind(name: str, drawn_by: str) -> Mind:
    """The mind itself, or which of the two a mixture is now."""
    if name in MINDS:
        return MINDS[name]
    return impulsive if random.Random(drawn_by).random() < _FAULTY else sound


def read_request(text: str) -> tuple[Reading | None, str]:
    """The latest reading in a text, with the chart of all of them, and what the task is after."""
    chart, latest = Chart(), None
    for reading in _readings(text):
        chart, latest = chart.with_seen(reading.chart), reading
    tasks = [line for line in text.splitlines() if TASK in line]
    aim = "goal" if any("goal" in line for line in tasks) else "door"
    return (None if latest is None else latest.with_chart(chart)), aim


def _readings(text: str) -> Iterator[Reading]:
    """Every JSON object of a text that is a reading, in order."""
    decoder = json.JSONDecoder()
    value: Any
    start = text.find('{"')
    while start >= 0:
        end = start + 1
        try:
            value, end = decoder.raw_decode(text, start)
        except ValueError:
            value = None
        if isinstance(value, dict) and "chart" in value and "carrying" in value:
            yield Reading.model_validate(value)
        start = text.find('{"', end)
