"""An examination of a model, and what follows from it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping

from autogen_core.models import ChatCompletionClient, ModelInfo

from coag.models import model_name_of

from . import probes
from .findings import (
    Grade,
    Probe,
    ProbeFinding,
    ProbeLimits,
    ProbeOutcome,
    Recommendation,
    Report,
    finding,
)
from .probe_client import ProbeClient

_NEEDED = (Probe.LISTED, Probe.ANSWER, Probe.TYPED)
"""Where a bad finding, or none, makes a model unusable."""
_ANSWERS = (Probe.LISTED, Probe.ANSWER)
"""Probes that must not have found anything bad, or nothing more is asked."""
_OF_TOOLS = (Probe.PARALLEL, Probe.REQUIRED, Probe.NONE, Probe.TOOLS_WITH_SCHEMA)
_CALLABLE = (ProbeOutcome.YES, ProbeOutcome.AS_TEXT, ProbeOutcome.INVALID, ProbeOutcome.IGNORED)
"""What may have been found of tools for it to be worth asking more about them."""
_SPECIAL: Mapping[
    tuple[Probe, ...], Callable[[ProbeClient], Awaitable[tuple[ProbeFinding, ...]]]
] = {
    (Probe.LISTED,): probes.listed,
    (Probe.ANSWER,): probes.answer,
    (Probe.STREAM, Probe.STREAM_USAGE, Probe.LIMIT): probes.stream,
    (Probe.TYPED,): probes.typed,
    (Probe.CONTEXT, Probe.CACHE): probes.context,
}
"""Probes that are not one question, by what is asked at once."""


async def examine(
    client: ChatCompletionClient,
    *,
    limits: ProbeLimits | None = None,
    on_probe: Callable[[Probe], None] = lambda probe: None,
    on_finding: Callable[[ProbeFinding], None] = lambda finding: None,
) -> Report:
    """Finds out what the server behind a client can do; 16 requests with the default limits.

    Whatever the server does ends in a finding; a server that gives no plain answer is asked
    nothing more.

    Args:
        client: The client that agents would use, e.g. from `coag.models.open_model`; stays open.
        limits: The bounds of each request.
        on_probe: Called as each group of probes begins, with the first of the group.
        on_finding: Called with each finding as soon as there is one.
    """
    examined = ProbeClient(client, limits or ProbeLimits())
    groups = [*_SPECIAL, *((probe,) for probe in probes.QUESTIONS)]
    for group in sorted(groups, key=lambda group: list(Probe).index(group[0])):
        on_probe(group[0])
        started = time.monotonic()
        findings = await _findings_of(group, examined)
        seconds = time.monotonic() - started
        for one in findings:
            examined.findings[one.probe] = one.model_copy(update={"seconds": seconds})
            on_finding(examined.findings[one.probe])
    examined.findings[Probe.SPEED] = probes.speed(examined.findings)
    on_finding(examined.findings[Probe.SPEED])
    graded = {examined.findings[probe].grade for probe in _NEEDED}
    return Report(
        model=model_name_of(client),
        usable=Grade.BAD not in graded and examined.found(Probe.TYPED) is ProbeOutcome.YES,
        findings=tuple(examined.findings[probe] for probe in Probe),
        claimed={**client.model_info},
        recommendation=_recommend(examined, client.model_info),
        usage=examined.usage,
    )


async def _findings_of(group: tuple[Probe, ...], examined: ProbeClient) -> tuple[ProbeFinding, ...]:
    if cause := _reason_to_skip(group[0], examined):
        text = f"Not asked: see {cause.value!r}."
        return tuple(finding(probe, ProbeOutcome.SKIPPED, text) for probe in group)
    if group in _SPECIAL:
        return await _SPECIAL[group](examined)
    return (await probes.QUESTIONS[group[0]].ask(group[0], examined),)


def _reason_to_skip(probe: Probe, examined: ProbeClient) -> Probe | None:
    """The earlier probe after which this one is not worth asking."""
    for needed in _ANSWERS:
        if needed in examined.findings and examined.findings[needed].grade is Grade.BAD:
            return needed
    if probe not in _OF_TOOLS:
        return None
    wanted = (ProbeOutcome.YES,) if probe is Probe.PARALLEL else _CALLABLE
    return None if examined.found(Probe.TOOLS) in wanted else Probe.TOOLS


def _recommend(examined: ProbeClient, claimed: ModelInfo) -> Recommendation:
    """What to set; what the client claims stays in force for what was answered late."""
    found = examined.found

    def holds(probe: Probe, word: ProbeOutcome, ability: str) -> bool:
        late = found(probe) is ProbeOutcome.LATE
        return bool(claimed.get(ability, False)) if late else found(probe) is word

    native = found(Probe.TOOLS) is ProbeOutcome.YES
    figures = examined.findings[Probe.CONTEXT].figures
    return Recommendation(
        rung=probes.strictest_mode(found(Probe.SCHEMA), found(Probe.JSON_MODE)),
        proposal="native" if native else "json",
        parallel=native and found(Probe.PARALLEL) is ProbeOutcome.YES,
        model_info={
            "vision": bool(claimed.get("vision", False)),
            "function_calling": holds(Probe.TOOLS, ProbeOutcome.YES, "function_calling"),
            "json_output": holds(Probe.JSON_MODE, ProbeOutcome.ENFORCED, "json_output"),
            "family": str(claimed.get("family", "unknown")),
            "structured_output": holds(Probe.SCHEMA, ProbeOutcome.ENFORCED, "structured_output"),
            "multiple_system_messages": found(Probe.SYSTEMS) is ProbeOutcome.YES,
        },
        context_tokens=int(figures.get("counted_tokens", 0)),
    )
