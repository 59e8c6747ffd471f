"""Diagnosing a run: every failure, and the one part of the architecture it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

from coag.schema import (
    UNPARSED,
    Failure,
    Intent,
    Receipt,
    ReceiptStatus,
    Record,
)
from coag.tracing import RunFolder, read_trace

from .causes import Cause, Diagnosis, DomainKnowledge, ended, quoted, short
from .diagnose_history import AHEAD, ObservedCycle, RunHistory
from .diagnose_rules import RULES, broken_hook, not_known, refused_calls, unusable_answer
from .verify import TraceSource


def diagnose(
    trace: TraceSource, *, domain: DomainKnowledge | None = None, memory: Iterable[Record] = ()
) -> list[Diagnosis]:
    """Every failure in a trace, each with its cause; at most one a cycle.

    `diagnoses` gives them one by one.

    Raises:
        TraceError: There is no run in the folder, or its trace cannot be read.
    """
    return list(diagnoses(trace, domain=domain, memory=memory))


def diagnoses(
    trace: TraceSource, *, domain: DomainKnowledge | None = None, memory: Iterable[Record] = ()
) -> Iterator[Diagnosis]:
    """Every failure in a trace, as it is found, in bounded memory.

    Args:
        trace: A run's folder, or the records of one run in order.
        domain: What is known of the run's domain; None for what JSON shows of any.
        memory: Records that long-term memory holds, besides those that the trace shows.

    Raises:
        TraceError: There is no run in the folder, or its trace cannot be read.
    """
    run = RunHistory(domain or DomainKnowledge())
    for record in memory:
        run.know(record)
    if isinstance(trace, Path | str):
        trace = RunFolder(Path(trace))
    if isinstance(trace, RunFolder):
        trace = read_trace(trace.trace_path, lambda problem: None)
    for cycle in chain(run.cycles(trace), repeat(None, AHEAD)):  # at the end, those ahead are left
        if cycle is not None:
            run.ahead.append(cycle)
        if run.ahead and (cycle is None or len(run.ahead) > AHEAD):
            yield from map(_bounded, _judge(run.ahead.popleft(), run))


def _bounded(found: Diagnosis) -> Diagnosis:
    """A diagnosis whose sentences are short, whatever the trace and a domain hold."""
    evidence = tuple(replace(one, text=short(one.text)) for one in found.evidence)
    failure, reason = short(found.failure), short(found.reason)
    return replace(found, failure=failure, reason=reason, evidence=evidence)


def _judge(cycle: ObservedCycle, run: RunHistory) -> Iterator[Diagnosis]:
    if not cycle.summary.outcomes:
        yield from _diagnose_plain(cycle, run.failed_calls)
        return
    run.begin(cycle)
    diagnosis = next(filter(None, (rule(cycle) for rule in RULES)), None)
    if diagnosis is not None:
        if diagnosis.fact:
            run.misperceived[diagnosis.fact] = cycle.cycle
        yield diagnosis
    run.end(cycle)


# ---- A turn of a plain agent: failures of its tool calls and of its model ----


_NUMBER = re.compile(r"\d+")
_OPEN = (ReceiptStatus.UNKNOWN, ReceiptStatus.CANCELLED)
"""Receipts that do not say whether the action had its effect."""
_SHAPE = 400
"""Characters by which failures are compared."""
_REMEMBERED = 100
"""Failed calls that are remembered."""
_UNKNOWN_TOOL = ("not found", "no tool", "unknown tool", "does not exist", "not available")
_BAD_ARGUMENTS = ("validation error", "unparsed", "invalid argument", "field required")


def _diagnose_plain(cycle: ObservedCycle, failed: dict[str, str]) -> Iterator[Diagnosis]:
    yield from refused_calls(cycle)
    hook = broken_hook(cycle)
    if hook is not None:
        yield hook
    unusable = unusable_answer(cycle, None) or _empty_answer(cycle)
    if unusable is not None:
        yield unusable
    intents = {intent.id: intent for intent, _ in cycle.summary.effects}
    for receipt in (one.body for one in cycle.entries):
        if not isinstance(receipt, Receipt) or receipt.status is ReceiptStatus.DONE:
            continue
        intent = intents.get(receipt.intent_id)
        cause, reason = _cause(receipt, intent)
        call = f"{intent.action} {intent.arguments}" if intent else ""
        shape = _NUMBER.sub("#", receipt.content)[:_SHAPE]  # its numbers are of the moment
        if cause is None and failed.get(call) == shape:
            cause = Cause.INVALID_PROPOSAL
            reason = "The same call had failed in the same way, and the agent knew it."
        failed[call] = shape
        while len(failed) > _REMEMBERED:
            del failed[next(iter(failed))]
        named = intent.action if intent else "An action"
        if receipt.status in _OPEN and cause is not Cause.INVALID_PROPOSAL:
            content = cycle.shown_by(receipt, ended(quoted(receipt.content)))
            yield not_known(cycle, named, content)
            continue
        text = ended(f"{named} failed: {quoted(receipt.content)}")
        yield cycle.failure(text, cause, reason, cycle.shown_by(receipt, text))


def _empty_answer(cycle: ObservedCycle) -> Diagnosis | None:
    """An answer of nothing at all: neither text nor a call."""
    for call in cycle.summary.calls:
        if call.error is None and not call.raw.strip() and not call.tool_calls:
            text = "The model's answer was empty."
            return cycle.failure(
                "The turn got no answer that could be used.",
                Cause.UNUSABLE_ANSWER,
                text,
                cycle.shown_by(call, text),
            )
    return None


def _cause(receipt: Receipt, intent: Intent | None) -> tuple[Cause | None, str]:
    content = receipt.content.casefold()
    if intent is not None and UNPARSED in intent.arguments:
        return Cause.INVALID_PROPOSAL, "The arguments are no JSON object."
    if any(words in content for words in _UNKNOWN_TOOL):
        return Cause.INVALID_PROPOSAL, "There is no such tool."
    if any(words in content for words in _BAD_ARGUMENTS):
        return Cause.INVALID_PROPOSAL, "The arguments do not fit the tool."
    if receipt.status in _OPEN or receipt.failure is not Failure.DETERMINISTIC:
        return Cause.FAILED_EXECUTION, "The tool gave no reason that lies in the world."
    return None, (
        "What the agent perceived and expected was not recorded, so a sensor, the memory, the "
        "reasoning and the world cannot be distinguished."
    )
