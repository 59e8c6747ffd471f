"""From the messages of a request to facts; the only thing that temperaments read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from coag.models import ScriptedRequest
from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Direction,
    Reading,
    inside,
    last_state_line,
    neighbour,
)

from ._facts import Facts
from ._intentions import blocked_sentence, forbidden_sentence

_CELL = re.compile(r"\((\d+), ?(\d+)\)")
_SENTENCE_END = re.compile(r"[.\n]")
_SEEN = re.compile(r"Cells seen (clean|dirty|blocked): ([^.\n]*)")
_RESULT = re.compile(r'\{"ok": (?:true|false)[^{}]*\}')
_OBSTACLE = re.compile(r"blocked by an obstacle to the (north|east|south|west)")
_BLOCKED = re.compile(r"cell \((\d+), ?(\d+)\) is blocked")
_FORBIDDEN = re.compile(
    r"clean(?:ing)? (?:the )?cell \((\d+), ?(\d+)\) is forbidden"
    r"|(?:never|do not|must not) clean (?:the )?cell \((\d+), ?(\d+)\)",
    re.IGNORECASE,
)
_RECALLED = re.compile(r"## Recalled from long-term memory\n(.*?)</data>", re.DOTALL)
_REJECTED = re.compile(r"## Rejected in the previous cycle[^\n]*\n(.*?)</data>", re.DOTALL)
_WRITTEN = re.compile(r"^cycle \d+: tool_update_episodic_memory (\{.*?\}) done", re.MULTILINE)
_HISTORY = ("Your earlier actions", "State of the environment", "What just happened")
"""Sections of a CoAG prompt that tell of the past, from the oldest news to the latest."""
_UNSURE = re.compile(r"outcome unknown|may or may not have (?:happened|had its effect)")
_ACTIONS = re.compile(r"## Available actions\n((?:- [^\n]*(?:\n|$))+)")
_OFFERED = re.compile(r"^- (\w+): ", re.MULTILINE)
_DIRECTION: Mapping[str, Direction] = {direction: direction for direction in DIRECTIONS}
_PICK_UP = re.compile(r"`(\w*pick\w*)`", re.IGNORECASE)


@dataclass(slots=True)
class _Map:
    """What was seen of the cells, later readings in place of earlier ones."""

    dirty: dict[Cell, bool] = field(default_factory=dict[Cell, bool])
    blocked: dict[Cell, bool] = field(default_factory=dict[Cell, bool])

    def take(self, reading: Reading) -> None:
        here = reading.position
        self.dirty[here], self.blocked[here] = reading.dirty.here, False
        for direction in DIRECTIONS:
            cell = neighbour(here, direction)
            if inside(cell, reading.grid):
                self.dirty[cell] = bool(getattr(reading.dirty, direction))
                self.blocked[cell] = getattr(reading.blocked, direction)

    def take_words(self, text: str) -> None:
        for kind, listed in _SEEN.findall(text):
            for cell in _cells(listed):
                if kind == "blocked":
                    self.blocked[cell] = True
                else:
                    self.dirty[cell] = kind == "dirty"


def facts_of(request: ScriptedRequest) -> Facts:
    """What the request's messages say."""
    text = _in_order(request.text)
    seen = _Map()
    for line in text.splitlines():
        reading = last_state_line(line) if line.startswith("STATE ") else None
        if reading is not None:
            seen.take(reading)
    seen.take_words(text)
    sentences = (part for part in _SENTENCE_END.split(text) if "dirt" in part.lower())
    told = {cell for part in sentences for cell in _cells(part)}
    dirty = {cell for cell, is_dirty in seen.dirty.items() if is_dirty}
    results = _results(text)
    bumps = [bump for result in results if (bump := _bump(result)) is not None]
    remembered = {_cell(found) for found in _BLOCKED.findall(text)}
    forbidden = {_cell(found) for found in _FORBIDDEN.findall(text)}
    felt = {cell for cell, is_blocked in seen.blocked.items() if is_blocked}
    tool = _PICK_UP.search(text)
    refused, noted = _refused(text), _noted(text)
    return Facts(
        reading=last_state_line(text),
        unsure=_UNSURE.search(text, text.rfind("STATE {")) is not None,
        dirty=frozenset(dirty | {cell for cell in told if cell not in seen.dirty}),
        obstacles=frozenset(felt | remembered | {cell for _, cell in bumps}),
        forbidden=frozenset(forbidden),
        experienced=frozenset(
            cell for cell in forbidden if cell == refused or forbidden_sentence(cell) in noted
        ),
        bumped=_bump(results[-1]) if results else None,
        refused=refused,
        noted=noted,
        actions=_offered(request, text),
        phantom_tool=tool.group(1) if tool else None,
        phantom_tried=bool(tool and f"{tool.group(1)}(" in text),
    )


def _in_order(text: str) -> str:
    """The text with its news at the end, the latest last, as a dialogue has it by itself."""
    news: list[str] = []
    for title in _HISTORY:
        for section in re.findall(rf"## {title}\n.*?</data>", text, re.DOTALL):
            text = text.replace(section, "")
            news.append(section)
    return "\n".join([text, *news])


def _cells(text: str) -> set[Cell]:
    return {_cell(found) for found in _CELL.findall(text)}


def _cell(found: Iterable[str]) -> Cell:
    x, y = (int(number) for number in found if number)
    return x, y


def _results(text: str) -> list[Mapping[str, Any]]:
    """The outcomes of actions that tool results tell of, in order."""
    found: list[Mapping[str, Any]] = []
    for written in _RESULT.findall(text):
        try:
            found.append(cast("Mapping[str, Any]", json.loads(written)))
        except json.JSONDecodeError:
            continue
    return found


def _bump(result: Mapping[str, Any]) -> tuple[Cell, Cell] | None:
    way = _OBSTACLE.search(str(result.get("reason") or ""))
    place: Any = result.get("position")
    if way is None or not isinstance(place, list):
        return None
    x, y = cast("list[int]", place)
    return (x, y), neighbour((x, y), _DIRECTION[way.group(1)])


def _refused(text: str) -> Cell | None:
    """The cell whose cleaning the previous cycle rejected as forbidden."""
    for section in _REJECTED.findall(text):
        for found in _FORBIDDEN.findall(section):
            return _cell(found)
    return None


def _noted(text: str) -> frozenset[str]:
    """What stands in memory: recalled now, or among the latest writings."""
    kept = "\n".join([*_RECALLED.findall(text), *_WRITTEN.findall(text)])
    blocked = {blocked_sentence(_cell(found)) for found in _BLOCKED.findall(kept)}
    return frozenset(
        blocked | {forbidden_sentence(_cell(found)) for found in _FORBIDDEN.findall(kept)}
    )


def _offered(request: ScriptedRequest, text: str) -> frozenset[str]:
    listed = {name for part in _ACTIONS.findall(text) for name in _OFFERED.findall(part)}
    return frozenset(listed | {tool["name"] for tool in request.tools})
