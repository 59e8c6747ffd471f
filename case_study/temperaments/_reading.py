"""From the messages of a request to facts; the only thing that temperaments read."""

from __future__ import annotations

import re
from functools import lru_cache

from coag.models import ScriptedRequest
from vacuum_world.world import Cell, Reading

from ._beliefs import believed
from ._facts import Facts
from ._happenings import Done, Happening, happenings, signs_in, without_signs
from ._heard import Heard, heard
from ._intentions import RESPOND, WORLD_ACTIONS, blocked_sentence, forbidden_sentence
from ._sentences import (
    blocked_in,
    claims_in,
    dirt_told,
    forbidden_by_task,
    forbidden_in,
    phantom_in,
    warns_of_sensors,
    wish_in,
)

_KEPT = 4_096
_WRITTEN = re.compile(r"^cycle \d+: tool_update_episodic_memory (\{.*?\}) done", re.MULTILINE)
_UNSURE = re.compile(r"outcome unknown|may or may not have (?:happened|had its effect)")
_ACTIONS = re.compile(r"## Available actions\n((?:- [^\n]*(?:\n|$))+)")
_OFFERED = re.compile(r"^- (\w+): ", re.MULTILINE)
_OLDER = re.compile(r"^\[\d+ older left out\]", re.MULTILINE)
_MOST_DEEDS = 10
"""Earlier actions that a CoAG agent keeps in mind."""
_OF_MEMORY = "tool_update_"


def facts_of(request: ScriptedRequest) -> Facts:
    """What the request's messages say."""
    return facts_in(heard(request), request)


def facts_in(said: Heard, request: ScriptedRequest) -> Facts:
    """What the texts say that were heard of a request."""
    told = dirt_told(said.task)
    row = [each for name, text in said.history for each in happenings(name, text)]
    beliefs = believed(row, told, warned=warns_of_sensors(said.task))
    reading = next((each for each in reversed(row) if isinstance(each, Reading)), None)
    felt = {cell for cell, is_blocked in beliefs.blocked.items() if is_blocked}
    remembered = _remembered(said)
    solid = frozenset({*beliefs.bumps, *remembered})
    noted, refused = _noted(said), _refused(said)
    forbidden = _forbidden(said, reading)
    signs = _signs(said, row)
    actions = _offered(request, said)
    phantom = phantom_in(said.task)
    seen_dirty = {cell for cell, is_dirty in beliefs.dirty.items() if is_dirty}
    return Facts(
        reading=reading,
        ordered=bool(told),
        unsure=_unsure(said),
        dirty=frozenset(seen_dirty | {cell for cell in told if cell not in beliefs.dirty}),
        left=beliefs.left(forgetful=said.partial or _forgetful(said.deeds)),
        cleaned=frozenset(beliefs.cleaned),
        visited=_visited(row),
        obstacles=frozenset(felt | solid),
        solid=solid,
        doubted=frozenset(beliefs.impossible) - solid,
        forbidden=forbidden,
        experienced=frozenset(
            cell for cell in forbidden if cell == refused or forbidden_sentence(cell) in noted
        ),
        bumped=beliefs.last.bump if beliefs.last else None,
        refused=refused,
        noted=noted,
        claims=frozenset(claim for sign in signs for claim in claims_in(sign)),
        read=_unnoted(said, row),
        wish=wish_in(said.others[-1]) if said.others else None,
        actions=actions,
        gadgets=frozenset(name for name in actions if _is_gadget(name)),
        phantom_tool=phantom,
        phantom_tried=phantom in said.called,
    )


def _forgetful(deeds: str) -> bool:
    """Whether actions are missing among those that are shown."""
    return _OLDER.search(deeds) is not None or deeds.count("\ncycle ") >= _MOST_DEEDS - 1


def _remembered(said: Heard) -> set[Cell]:
    """Cells that memory, or the domain's own account of it, calls blocked; signs do not count."""
    recalled = without_signs(said.recalled)
    found = set(blocked_in(recalled))
    found.update(blocked_in(without_signs(said.deeds)))
    for name, text in said.history:
        if not name and "is blocked" in text:
            found.update(blocked_in(without_signs(text)))
    for each in happenings("", recalled):
        if isinstance(each, Done) and each.bump is not None:
            found.add(each.bump[1])
    return found


def _forbidden(said: Heard, reading: Reading | None) -> frozenset[Cell]:
    found = set(forbidden_by_task(said.task, reading.grid if reading else (0, 0)))
    texts = (*said.rules, said.rejected, said.recalled, said.deeds)
    for text in texts:
        found.update(forbidden_in(without_signs(text)))
    return frozenset(found)


def _refused(said: Heard) -> Cell | None:
    """The cell whose cleaning the previous cycle rejected as forbidden."""
    return next(iter(forbidden_in(said.rejected)), None)


def _noted(said: Heard) -> frozenset[str]:
    """What stands in memory: recalled now, or among the latest writings."""
    kept = without_signs(_kept(said.recalled, said.deeds))
    blocked = {blocked_sentence(cell) for cell in blocked_in(kept)}
    return frozenset(blocked | {forbidden_sentence(cell) for cell in forbidden_in(kept)})


@lru_cache(maxsize=_KEPT)
def _kept(recalled: str, deeds: str) -> str:
    return "\n".join([recalled, *_WRITTEN.findall(deeds)])


def _signs(said: Heard, row: list[Happening]) -> set[str]:
    """The words of signs, read in the course of events or remembered."""
    read = {each.sign for each in row if isinstance(each, Done) and each.sign is not None}
    return read | set(signs_in(said.recalled)) | set(signs_in(said.deeds))


def _unnoted(said: Heard, row: list[Happening]) -> str | None:
    known = set(signs_in(_kept(said.recalled, said.deeds)))
    for each in reversed(row):
        if isinstance(each, Done) and each.sign is not None and each.sign not in known:
            return each.sign
    return None


def _visited(row: list[Happening]) -> frozenset[Cell]:
    """Cells that the robot has stood on."""
    told = (each.position for each in row if isinstance(each, Reading | Done))
    return frozenset(cell for cell in told if cell is not None)


def _unsure(said: Heard) -> bool:
    """Whether something of unknown outcome was told after the latest reading."""
    for _, text in reversed(said.history):
        at = text.rfind("STATE {")
        if _UNSURE.search(text, max(at, 0)):
            return True
        if at >= 0:
            return False
    return False


def _offered(request: ScriptedRequest, said: Heard) -> frozenset[str]:
    listed = {name for text in said.rules for name in _listed(text)}
    return frozenset(listed | {tool["name"] for tool in request.tools})


@lru_cache(maxsize=_KEPT)
def _listed(text: str) -> frozenset[str]:
    return frozenset(name for part in _ACTIONS.findall(text) for name in _OFFERED.findall(part))


def _is_gadget(name: str) -> bool:
    return name not in WORLD_ACTIONS and name != RESPOND and not name.startswith(_OF_MEMORY)
