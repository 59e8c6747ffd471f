"""The Dynamic Vacuum World for a diagnosis: facts, sentences, the way to the goal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, cast

from case_study.grid import cells_in
from case_study.robot import forbidden_cells, remembered_obstacles
from case_study.rounds import Ground, actions_left
from coag.proof import Circumstances, Claim, DomainKnowledge
from coag.schema import RecalledRecord, Record
from vacuum_world.world import DIRECTIONS, Cell, cells_of, inside, last_state_line, neighbour

MOST_WORK = 7
"""Dirty cells up to which the ways to the goal are worked out."""
_SENTENCE = re.compile(r"[^.\n]+")
_HERE = re.compile(
    r"\b(?:I am|I stand|robot is|we are)\b[^.\n(]{0,20}\((\d+), ?(\d+)\)", re.IGNORECASE
)
_BATTERY = re.compile(
    r"battery(?: level| charge)?(?: is| holds| has| of| at|:)+ (\d+)", re.IGNORECASE
)
_NO_DIRT = re.compile(
    r"no dirt (?:is )?left|nothing is dirty|all (?:the )?cells are clean", re.IGNORECASE
)
_WISH = re.compile(r"\b(?:goal|task|asked|needs? to|should|wants? to)\b", re.IGNORECASE)
_FORBIDDEN = re.compile(r"forbidden|must not|never clean|do not clean", re.IGNORECASE)
_LIST = r"((?:cells? )?\(\d+, ?\d+\)(?:(?:, and |, | and )\(\d+, ?\d+\))*)"
_DIRTY = (
    re.compile(
        rf"(?<!no )\bdirt(?:y)?(?: cells?)?(?: is| was| left| at| on| in| stands|:)* {_LIST}",
        re.IGNORECASE,
    ),
    re.compile(rf"{_LIST} (?:is|are)(?: still)? dirty", re.IGNORECASE),
)
_BLOCKED = (
    re.compile(rf"\bblocked cells?(?: is| are| at|:)* {_LIST}", re.IGNORECASE),
    re.compile(rf"\bobstacle (?:stands |is )?at {_LIST}", re.IGNORECASE),
    re.compile(rf"{_LIST} (?:is|are)(?: still)? blocked", re.IGNORECASE),
)
ANY_DIRT = "any dirt"


class VacuumDomain(DomainKnowledge):
    """Facts are what the sensors say now; ways are counted in moves and cleanings."""

    complete = True

    def facts(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Place, charge, dirt here and in the next cells, obstacles that are felt, and a bump."""
        here = _cell_of(state.get("position"))
        if here is None:
            return {}
        grid = _cell_of(state.get("grid")) or (0, 0)
        dirty, felt = _cells(state.get("dirty")), cast("dict[str, Any]", state.get("blocked") or {})
        found: dict[str, Any] = {
            "position": list(here),
            "battery": state.get("battery"),
            f"dirty {here}": here in dirty,
        }
        for direction in DIRECTIONS:
            cell = neighbour(here, direction)
            if inside(cell, grid):
                found[f"dirty {cell}"] = cell in dirty
                found[f"felt {cell}"] = bool(felt.get(direction))
        bump = _cell_of(state.get("bump"))
        if bump is not None:
            found[f"blocked {bump}"] = True
        return found

    def expected(
        self, before: Mapping[str, Any], projection: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Place and charge, and the dirt that is to be gone."""
        gone = _cells(before.get("dirty")) - _cells(projection.get("dirty"))
        return {
            "position": projection.get("position"),
            "battery": projection.get("battery"),
            **{f"dirty {cell}": False for cell in gone},
        }

    def goal_facts(self, goal: str) -> Mapping[str, Any]:
        """The dirty cells that the task lists; all others are clean."""
        reading, listed = last_state_line(goal), _listed(goal)
        if reading is None or not listed:
            return {}
        return {f"dirty {cell}": cell in listed for cell in cells_of(reading.grid)}

    def may_change(self, fact: str, old: Any, new: Any, achieved: bool) -> bool:
        """Dirt comes back only where it was cleaned, and never goes by itself."""
        return not fact.startswith("dirty") or (bool(new) and achieved)

    def claims(self, text: str) -> Sequence[Claim]:
        """What sentences say of place, charge, dirt, obstacles and rules."""
        found: list[Claim] = []
        for here in _HERE.finditer(text):
            value = [int(here[1]), int(here[2])]
            found.append(Claim(fact="position", value=value, text=here[0]))
        for charge in _BATTERY.finditer(text):
            found.append(Claim(fact="battery", value=int(charge[1]), text=charge[0]))
        for sentence in _SENTENCE.findall(text):
            found += _of_cells(sentence.strip())
        return found

    def record_claims(self, record: Record) -> Sequence[Claim]:
        """The sentences of its text, and the cell that it was blocked at."""
        claims = [
            one for one in self.claims(record.text) if one.fact not in ("position", "battery")
        ]
        claimed = {claim.fact for claim in claims}
        cells = remembered_obstacles([RecalledRecord(record=record, score=1.0)])
        blocked = [fact for cell in cells if (fact := f"blocked {cell}") not in claimed]
        return [*claims, *(Claim(fact=fact, text=record.text) for fact in blocked)]

    def holds(self, claim: Claim, now: Circumstances, *, remembered: bool) -> bool | None:
        """Whether a claim holds; an obstacle that is not felt may still be there."""
        here = _cell_of(now.state.get("position"))
        if here is None:
            return None
        if claim.fact in ("position", "battery"):
            return bool(now.state.get(claim.fact) == claim.value)
        if claim.fact == ANY_DIRT:
            return bool(_work(now)) == claim.value
        kind, _, named = claim.fact.partition(" ")
        cell = cells_in(named)[0]
        if kind == "dirty":
            return _is_dirty(cell, now) == claim.value
        believed = set[str]() if remembered else {one.fact for one in now.recalled}
        if kind == "blocked":
            if remembered:
                free = here == cell or cell == _cell_of(now.state.get("charger"))
                return False if free else None
            grid = _cell_of(now.state.get("grid"))
            outside = grid is not None and not inside(cell, grid)
            felt = outside or cell in _cells(now.state.get("obstacles"))
            return felt or claim.fact in believed or claim.fact in now.observed
        if cell in forbidden_cells(now.constraints) or claim.fact in believed:
            return True
        return False if not remembered or cell in _listed(now.goal) else None

    def remaining(self, now: Circumstances) -> float | None:
        """Moves and cleanings until all work is done, the charge kept for the way home."""
        here, grid = _cell_of(now.state.get("position")), _cell_of(now.state.get("grid"))
        work = _work(now)
        if here is None or grid is None or len(work) > MOST_WORK:
            return None
        named = {name for name, value in now.observed.items() if value and name[:7] == "blocked"}
        named |= {claim.fact for claim in now.recalled if claim.fact[:7] == "blocked"}
        blocked = _cells(now.state.get("obstacles")) | {cells_in(name)[0] for name in named}
        if work & (blocked - {here}):
            return inf
        careful = "keep_charge_to_reach_charger" in now.constraints
        ground = Ground(
            grid=grid,
            charger=_cell_of(now.state.get("charger")) or (0, 0),
            blocked=frozenset(blocked - {here}),
            keeps="distance" if careful else "nothing",
        )
        left = actions_left(ground, here, int(now.state.get("battery") or 0), frozenset(work))
        return inf if left is None else left


def _of_cells(sentence: str) -> list[Claim]:
    """What a sentence says of the cells that it names, where the words stand next to them."""
    if _NO_DIRT.search(sentence):
        return [Claim(fact=ANY_DIRT, value=False, text=sentence)]
    if _FORBIDDEN.search(sentence) and "clean" in sentence.lower():
        return [Claim(fact=f"forbidden {cell}", text=sentence) for cell in cells_in(sentence)]
    if _WISH.search(sentence):
        return []  # what is wanted, not what is
    found: list[Claim] = []
    for kind, patterns in (("dirty", _DIRTY), ("blocked", _BLOCKED)):
        listed = [match[1] for pattern in patterns for match in pattern.finditer(sentence)]
        cells = dict.fromkeys(cell for part in listed for cell in cells_in(part))
        found += [Claim(fact=f"{kind} {cell}", text=sentence) for cell in cells]
    return found


def _work(now: Circumstances) -> set[Cell]:
    """The cells that are to be cleaned, by all that is known."""
    dirty, clean = _cells(now.state.get("dirty")), _cells(now.state.get("clean"))
    recalled = {cells_in(one.fact)[0] for one in now.recalled if one.fact[:5] == "dirty"}
    ruled = {cells_in(one.fact)[0] for one in now.recalled if one.fact[:9] == "forbidden"}
    unseen = (_listed(now.goal) | recalled) - dirty - clean
    return (dirty | unseen) - forbidden_cells(now.constraints) - ruled


def _is_dirty(cell: Cell, now: Circumstances) -> bool | None:
    if cell in _cells(now.state.get("dirty")):
        return True
    if cell in _cells(now.state.get("clean")):
        return False
    listed = _listed(now.goal)
    return cell in listed if listed else None


def _listed(goal: str) -> set[Cell]:
    lines = [line for line in goal.splitlines() if not line.startswith("STATE")]
    sentences = [part for line in lines for part in line.split(".") if "dirt" in part.lower()]
    return {cell for sentence in sentences for cell in cells_in(sentence)}


def _cell_of(value: Any) -> Cell | None:
    return (value[0], value[1]) if value else None


def _cells(value: Any) -> set[Cell]:
    return {(one[0], one[1]) for one in value or ()}
