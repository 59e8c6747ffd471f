"""What can be told of a plain agent's failures: it has no phases, no state and no predictions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coag.schema import UNPARSED, Failure, Intent, Receipt, ReceiptStatus

from ._causes import Cause, Diagnosis, Evidence
from ._domain import Domain
from ._mind import unusable_answer
from ._scene import Scene
from ._story import Story
from ._words import ended, quoted
from ._world import not_known

_NUMBER = re.compile(r"\d+")
_OPEN = (ReceiptStatus.UNKNOWN, ReceiptStatus.CANCELLED)
"""Receipts that do not say whether the action had its effect."""
_SHAPE = 400
"""Characters by which failures are compared."""
_REMEMBERED = 100
"""Failed calls that are remembered."""
_UNKNOWN_TOOL = ("not found", "no tool", "unknown tool", "does not exist", "not available")
_BAD_ARGUMENTS = ("validation error", "unparsed", "invalid argument", "field required")


def diagnose_plain(scene: Scene, failed: dict[str, str]) -> Iterator[Diagnosis]:
    """The failures of one turn: of its tool calls and of its model.

    Args:
        scene: The turn.
        failed: Why calls failed so far, by the call; it is kept up to date.
    """
    unusable = unusable_answer(None)(scene, Story(Domain())) or _empty(scene)
    if unusable is not None:
        yield unusable
    intents = {intent.id: intent for _, intent in scene.intents}
    for seq, receipt in scene.receipts:
        if receipt.status is not ReceiptStatus.DONE:
            intent = intents.get(receipt.intent_id)
            cause, reason = _cause(receipt, intent)
            call = f"{intent.action} {intent.arguments}" if intent else ""
            if cause is None and failed.get(call) == _shape(receipt.content):
                cause = Cause.INVALID_PROPOSAL
                reason = "The same call had failed in the same way, and it was told so."
            failed[call] = _shape(receipt.content)
            while len(failed) > _REMEMBERED:
                del failed[next(iter(failed))]
            named = intent.action if intent else "An action"
            if receipt.status in _OPEN and cause is not Cause.INVALID_PROPOSAL:
                shown = ended(quoted(receipt.content))
                seen = Evidence(seq=seq, cycle=scene.cycle, phase=None, text=shown)
                yield not_known(scene, named, seen)
                continue
            text = ended(f"{named} failed: {quoted(receipt.content)}")
            yield Diagnosis(
                cycle=scene.cycle,
                failure=text,
                cause=cause,
                reason=reason,
                evidence=(Evidence(seq=seq, cycle=scene.cycle, phase=None, text=text),),
            )


def _shape(content: str) -> str:
    """A failure's text without its numbers, which tell of the moment."""
    return _NUMBER.sub("#", content)[:_SHAPE]


def _empty(scene: Scene) -> Diagnosis | None:
    """An answer of nothing at all: neither text nor a call."""
    for seq, call in scene.calls:
        if call.error is None and call.empty:
            text = "The model's answer was empty."
            return Diagnosis(
                cycle=scene.cycle,
                failure="The turn got no answer that could be used.",
                cause=Cause.UNUSABLE_ANSWER,
                reason=text,
                evidence=(Evidence(seq=seq, cycle=scene.cycle, phase=None, text=text),),
            )
    return None


def _cause(receipt: Receipt, intent: Intent | None) -> tuple[Cause | None, str]:
    told = receipt.content.casefold()
    if intent is not None and UNPARSED in intent.arguments:
        return Cause.INVALID_PROPOSAL, "The arguments are no JSON object."
    if any(words in told for words in _UNKNOWN_TOOL):
        return Cause.INVALID_PROPOSAL, "There is no such tool."
    if any(words in told for words in _BAD_ARGUMENTS):
        return Cause.INVALID_PROPOSAL, "The arguments do not fit the tool."
    if receipt.status in _OPEN or receipt.failure is not Failure.DETERMINISTIC:
        return Cause.FAILED_EXECUTION, "The tool gave no reason that lies in the world."
    return None, (
        "What the agent perceived and expected was not recorded, so a sensor, the memory, the "
        "reasoning and the world cannot be told apart."
    )
