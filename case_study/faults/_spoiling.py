"""Answers that are spoiled on their way from the model: proposals, scores, choices, and all."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from vacuum_world.world import DIRECTIONS, last_state_line

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
