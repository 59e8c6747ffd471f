"""An examination of a model, and what follows from it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

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
)
from .probe_client import ProbeClient

# ---- What follows from the findings; plain functions over values ----


_NEEDED = (Probe.LISTED, Probe.ANSWER, Probe.TYPED)
"""Where a bad finding, or none, makes a model unusable."""


def is_usable(findings: Mapping[Probe, ProbeFinding]) -> bool:
    """True if an agent can work with the model."""
    graded = {findings[probe].grade for probe in _NEEDED}
    return Grade.BAD not in graded and findings[Probe.TYPED].found is ProbeOutcome.YES


def recommend(findings: Mapping[Probe, ProbeFinding], claimed: ModelInfo) -> Recommendation:
    """What to set.

    Args:
        findings: One for each probe.
        claimed: What the client claims now; it stays in force for what is not probed, or was
            answered late.
    """
    found = {probe: finding.found for probe, finding in findings.items()}
    native = found[Probe.TOOLS] is ProbeOutcome.YES

    def holds(probe: Probe, word: ProbeOutcome, ability: str) -> bool:
        late = found[probe] is ProbeOutcome.LATE
        return bool(claimed.get(ability, False)) if late else found[probe] is word

    claims: dict[str, bool | str] = {
        "vision": bool(claimed.get("vision", False)),
        "function_calling": holds(Probe.TOOLS, ProbeOutcome.YES, "function_calling"),
        "json_output": holds(Probe.JSON_MODE, ProbeOutcome.ENFORCED, "json_output"),
        "family": str(claimed.get("family", "unknown")),
        "structured_output": holds(Probe.SCHEMA, ProbeOutcome.ENFORCED, "structured_output"),
        "multiple_system_messages": found[Probe.SYSTEMS] is ProbeOutcome.YES,
    }
    return Recommendation(
        rung=probes.strictest_rung(found[Probe.SCHEMA], found[Probe.JSON_MODE]),
        proposal="native" if native else "json",
        parallel=native and found[Probe.PARALLEL] is ProbeOutcome.YES,
        model_info=claims,
        context_tokens=int(findings[Probe.CONTEXT].figures.get("counted_tokens", 0)),
    )


# ---- The examination: probe after probe, each bounded, until the report ----


_Ask: TypeAlias = Callable[[ProbeClient], Awaitable[tuple[ProbeFinding, ...]]]
_ANSWERS = (Probe.LISTED, Probe.ANSWER)
"""Probes that must not have found anything bad, or nothing more is asked."""
_CALLABLE = (
    ProbeOutcome.YES,
    ProbeOutcome.AS_TEXT,
    ProbeOutcome.INVALID,
    ProbeOutcome.IGNORED,
)
"""What may have been found of tools for it to be worth asking more about them."""

_STEPS: tuple[tuple[tuple[Probe, ...], _Ask], ...] = (
    ((Probe.LISTED,), probes.listed),
    ((Probe.ANSWER,), probes.answer),
    ((Probe.SYSTEM,), probes.SYSTEM.ask),
    ((Probe.SYSTEMS,), probes.SYSTEMS.ask),
    ((Probe.STREAM, Probe.STREAM_USAGE, Probe.LIMIT), probes.stream),
    ((Probe.SCHEMA,), probes.SCHEMA.ask),
    ((Probe.JSON_MODE,), probes.JSON_MODE.ask),
    ((Probe.TYPED,), probes.typed),
    ((Probe.TOOLS,), probes.TOOLS.ask),
    ((Probe.PARALLEL,), probes.PARALLEL.ask),
    ((Probe.REQUIRED,), probes.REQUIRED.ask),
    ((Probe.NONE,), probes.NONE.ask),
    ((Probe.TOOLS_WITH_SCHEMA,), probes.TOOLS_WITH_SCHEMA.ask),
    ((Probe.CONTEXT, Probe.CACHE), probes.context),
)
_OF_TOOLS = (Probe.PARALLEL, Probe.REQUIRED, Probe.NONE, Probe.TOOLS_WITH_SCHEMA)


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
    for group, ask in _STEPS:
        on_probe(group[0])
        started = time.monotonic()
        cause = _reason_to_skip(group[0], examined)
        findings = [_skipped(probe, cause) for probe in group] if cause else await ask(examined)
        seconds = time.monotonic() - started
        for finding in findings:
            timed = finding.model_copy(update={"seconds": seconds})
            examined.findings[finding.probe] = timed
            on_finding(timed)
    examined.findings[Probe.SPEED] = probes.speed(examined)
    on_finding(examined.findings[Probe.SPEED])
    return Report(
        model=model_name_of(client),
        usable=is_usable(examined.findings),
        findings=tuple(examined.findings[probe] for probe in Probe),
        claimed={**client.model_info},
        recommendation=recommend(examined.findings, client.model_info),
        usage=examined.usage,
    )


def _reason_to_skip(probe: Probe, examined: ProbeClient) -> Probe | None:
    """The earlier probe after which this one is not worth asking."""
    for needed in _ANSWERS:
        if needed in examined.findings and examined.findings[needed].grade is Grade.BAD:
            return needed
    if probe in _OF_TOOLS:
        tools = examined.found(Probe.TOOLS)
        wanted = (ProbeOutcome.YES,) if probe is Probe.PARALLEL else _CALLABLE
        return None if tools in wanted else Probe.TOOLS
    return None


def _skipped(probe: Probe, cause: Probe) -> ProbeFinding:
    text = f"Not asked: see {cause.value!r}."
    return probes.unknown(probe, text, ProbeOutcome.SKIPPED)
