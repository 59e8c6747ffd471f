"""What an agent's own text says of its battery, against the battery that it had."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from coag.schema import ModelCall, Receipt, TraceRecord
from vacuum_world.world import WorldState

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
    """The sentences of a text that may tell how things are, not how they may become."""
    for said in _said(text):
        yield from (each for each in _SENTENCE.split(said) if not _NOT_NOW.search(each))


def belief_error(records: Iterable[TraceRecord], world: WorldState, initial: int) -> int | None:
    """The largest gap between a stated battery and the true one; None if none was stated.

    Args:
        records: The run's trace, in order.
        world: The world afterwards; its log says which action left which charge.
        initial: The charge at the beginning.
    """
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
        told = cast("Mapping[str, Any]", parsed)
        for name in _FIELDS:
            value = told.get(name)
            parts = cast("list[Any]", value) if isinstance(value, list) else [value]
            yield from (part for part in parts if isinstance(part, str))
