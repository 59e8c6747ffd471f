"""Diagnosing a run: every failure, and the one part of the architecture it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from coag.proof.verifying import TraceSource
from coag.schema import Entry, Phase, Record, TraceRecord
from coag.tracing import RunFolder, read_trace

from ._belief import refuted_belief
from ._causes import Diagnosis
from ._domain import Domain
from ._memory import changed_record, missed_record, untrue_record
from ._mind import (
    Rule,
    bad_selection,
    early_answer,
    false_situation,
    faulty_evaluation,
    unusable_answer,
)
from ._plain import diagnose_plain
from ._rejection import invalid_proposal
from ._scene import Scene, Scenes
from ._story import AHEAD, Story
from ._words import short
from ._world import (
    broken_tool,
    broken_turn,
    contradictory_return,
    never_answered,
    refused_at_last,
    refused_by_the_world,
)

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
