"""What a model's texts state as present facts, against the world at that time."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from case_study.faults import VacuumDomain
from case_study.grid import cells_in
from coag.evals import Counts
from coag.proof import Claim
from coag.schema import ModelCall, Receipt, TraceRecord
from vacuum_world.scenarios import ScenarioSetup
from vacuum_world.world import STILL, Cell, WorldState, inside

_SENTENCE = re.compile(r"(?<=[.!?;\n])\s+")
_STATED = re.compile(
    r"\bbattery(?: level| charge| status)?"
    r"\s*(?:(?:is|of|at|has|holds|stands at|remains at)\s+|[:=]\s*)"
    r"(?:now |currently |still |about |only |at )?(\d{1,3})\b"
    r"|\b(\d{1,3})\s?%? battery (?:left|remaining|is left)",
    re.IGNORECASE,
)
_NOT_NOW = re.compile(
    r"\b(would|will|if|after|expected|predict\w*|restores?|needs?|costs?|until|once|when|full)\b",
    re.IGNORECASE,
)
_FIELDS = ("situation", "risks", "reason")
"""Parts of a JSON answer in which an agent says how things are, not how they might be."""


def stated_batteries(text: str) -> list[int]:
    """The charges that a text states as present facts; predictions and conditions left out."""
    found: list[int] = []
    for sentence in present_sentences(text):
        for groups in _STATED.findall(sentence):
            charge = next(int(number) for number in groups if number)
            if charge <= 100:
                found.append(charge)
    return found


def present_sentences(text: str) -> Iterator[str]:
    """The sentences of a text about how things are, not how they may become."""
    for text_part in _said(text):
        yield from (each for each in _SENTENCE.split(text_part) if not _NOT_NOW.search(each))


def belief_error_of(records: Iterable[TraceRecord], world: WorldState, initial: int) -> int | None:
    """The largest gap between a stated battery and the true one; None if none was stated."""
    charges = {line.action_id: line.result.battery for line in world.log if line.action_id}
    true = initial
    gaps: list[int] = []
    for record in records:
        if isinstance(record, Receipt):
            true = charges.get(record.intent_id, true)
        elif isinstance(record, ModelCall):
            gaps += [abs(stated - true) for stated in stated_batteries(record.raw)]
    return max(gaps, default=None)


def _said(text: str) -> Iterator[str]:
    """The text, or the parts of a JSON answer that say how things are."""
    try:
        parsed: Any = json.loads(text)
    except json.JSONDecodeError:
        yield text
        return
    if isinstance(parsed, Mapping):
        answer = cast("Mapping[str, Any]", parsed)
        for name in _FIELDS:
            value = answer.get(name)
            parts = cast("list[Any]", value) if isinstance(value, list) else [value]
            yield from (part for part in parts if isinstance(part, str))


_DOMAIN = VacuumDomain()


class Statements(Counts):
    """What the model's texts state as present facts, against the world's truth."""

    judged: int = 0
    """Statements that can be judged."""
    true: int = 0
    """Those that were so."""
    repeated: int = 0
    """False ones that were stated before already, with an answer of the world in between."""


@dataclass(slots=True)
class _Truth:
    """The world as it was when the agent said something."""

    setup: ScenarioSetup
    after: WorldState
    position: Cell
    battery: int
    dirty: set[Cell]
    forbidden: set[Cell]

    def learn(self, intent: str) -> None:
        """Moves to the state after an action."""
        for line in self.after.log:
            if line.action_id == intent:
                self.position, self.battery = line.result.position, line.result.battery
                if line.cleaned:
                    self.dirty.discard(line.position_before)

    def holds(self, claim: Claim) -> bool | None:
        """Whether a claim is true; None where the log does not say."""
        if claim.fact == "position":
            return list(self.position) == list(claim.value)
        if claim.fact == "battery":
            return bool(self.battery == claim.value)
        if self.setup.world.dynamics != STILL:
            return None
        if claim.fact == "any dirt":
            return bool(self.dirty - self.forbidden) == claim.value
        kind, _, named = claim.fact.partition(" ")
        (cell,) = cells_in(named)
        if kind == "dirty" and not self.setup.world.clean_delay:
            return (cell in self.dirty) == claim.value
        if kind == "blocked":
            return any(thing.cell == cell for thing in self.after.obstacles) or not inside(
                cell, self.setup.world.grid
            )
        return cell in self.forbidden if kind == "forbidden" else None


def statements_of(
    records: Sequence[TraceRecord], setup: ScenarioSetup, world: WorldState
) -> Statements:
    """How many statements of present facts the model's texts hold, and how many were so.

    Read are sentences on place, charge, dirt, obstacles and forbidden cells, by patterns;
    predictions, conditions and wishes are left out. One text states one fact once.
    """
    facts = setup.facts
    truth = _Truth(
        setup=setup,
        after=world,
        position=facts.start,
        battery=facts.battery,
        dirty=set(setup.world.dirty),
        forbidden=set(world.forbidden) | set(setup.world.forbidden),
    )
    false: dict[str, int] = {}  # with the number of the world's answers when first made
    counts: Counter[str] = Counter()
    for record in records:
        if isinstance(record, Receipt):
            counts["answers"] += 1
            truth.learn(record.intent_id)
        elif isinstance(record, ModelCall):
            for said, claim in _claims(record.raw).items():
                holds = truth.holds(claim)
                counts["judged"] += holds is not None
                if holds:
                    counts["true"] += 1
                    false.pop(said, None)
                elif holds is not None:
                    first = false.setdefault(said, counts["answers"])
                    counts["repeated"] += first < counts["answers"]
    return Statements(**{name: counts[name] for name in Statements.model_fields})


def _claims(text: str) -> dict[str, Claim]:
    """The present facts that a text states, each once."""
    claims: dict[str, Claim] = {}
    for sentence in present_sentences(text):
        for claim in _DOMAIN.claims(sentence):
            claims.setdefault(f"{claim.fact} {claim.value}", claim)
    return claims
