"""Every failure of a trace, each with its cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from coag.proof.verify import TraceSource
from coag.schema import (
    UNPARSED,
    Entry,
    Failure,
    Intent,
    Phase,
    Receipt,
    ReceiptStatus,
    Record,
    TraceRecord,
)
from coag.tracing import RunFolder, read_trace

from .causes import Cause, Diagnosis, Domain, Evidence, ended, quoted, short
from .judging import (
    Rule,
    bad_selection,
    changed_record,
    early_answer,
    false_situation,
    faulty_evaluation,
    invalid_proposal,
    missed_record,
    untrue_record,
    unusable_answer,
)
from .scene import AHEAD, Scene, Scenes, Story
from .world import (
    broken_tool,
    broken_turn,
    contradictory_return,
    never_answered,
    not_known,
    refused_at_last,
    refused_by_the_world,
    refuted_belief,
)

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


# ---- Diagnosing a run: every failure, and the one part of the architecture it comes from ----


RULES: Sequence[Rule] = (
    changed_record,
    missed_record,
    untrue_record,
    unusable_answer(Phase.REASONING),
    false_situation,
    unusable_answer(Phase.PROPOSAL),
    invalid_proposal,
    unusable_answer(Phase.EVALUATION),
    faulty_evaluation,
    unusable_answer(Phase.SELECTION),
    bad_selection,
    early_answer,
    refused_at_last,
    contradictory_return,
    broken_tool,
    never_answered,
    refuted_belief,
    refused_by_the_world,
    broken_turn,
)
"""In the order in which the parts of a cycle work: the first that applies is the cause, what
comes behind it are its consequences."""


def diagnose(
    trace: TraceSource, *, domain: Domain | None = None, memory: Iterable[Record] = ()
) -> list[Diagnosis]:
    """Every failure in a trace, each with its cause; at most one a cycle.

    See `diagnoses`, which gives them one by one.

    Raises:
        TraceError: There is no run in the folder, or its trace cannot be read.
    """
    return list(diagnoses(trace, domain=domain, memory=memory))


def diagnoses(
    trace: TraceSource, *, domain: Domain | None = None, memory: Iterable[Record] = ()
) -> Iterator[Diagnosis]:
    """Every failure in a trace, as it is found, in bounded memory.

    Args:
        trace: A run's folder, or the records of one run in order.
        domain: What is known of the run's domain; None for what JSON shows of any.
        memory: Records that long-term memory holds, besides those that the trace shows.

    Raises:
        TraceError: There is no run in the folder, or its trace cannot be read.
    """
    story = Story(domain or Domain())
    story.know(memory)
    for scene in Scenes().of(_entries(trace)):
        story.ahead.append(scene)
        if len(story.ahead) > AHEAD:
            yield from map(_bounded, _judge(story.ahead.popleft(), story))
    while story.ahead:
        yield from map(_bounded, _judge(story.ahead.popleft(), story))


def _bounded(found: Diagnosis) -> Diagnosis:
    """A diagnosis whose sentences are short, whatever the trace and a domain hold."""
    evidence = tuple(replace(one, text=short(one.text)) for one in found.evidence)
    failure, reason = short(found.failure), short(found.reason)
    return replace(found, failure=failure, reason=reason, evidence=evidence)


def _judge(scene: Scene, story: Story) -> Iterator[Diagnosis]:
    if not scene.outcomes:
        yield from diagnose_plain(scene, story.failed_calls)
        return
    story.begin(scene)
    for rule in RULES:
        found = rule(scene, story)
        if found is not None:
            if found.fact:
                story.misperceived[found.fact] = scene.cycle
            yield found
            break
    story.end(scene)


def _entries(trace: TraceSource) -> Iterable[Entry | TraceRecord]:
    if isinstance(trace, RunFolder):
        return read_trace(trace.trace_path, lambda problem: None)
    if isinstance(trace, Path | str):
        return read_trace(RunFolder(Path(trace)).trace_path, lambda problem: None)
    return trace
