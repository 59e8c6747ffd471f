"""What follows from the findings; plain functions over values."""

from __future__ import annotations

from collections.abc import Mapping

from autogen_core.models import ModelInfo

from ._findings import Finding, Found, Grade, Probe, Recommendation
from ._forms import strictest_rung

_NEEDED = (Probe.LISTED, Probe.ANSWER, Probe.TYPED)
"""Where a bad finding, or none, makes a model unusable."""


def is_usable(findings: Mapping[Probe, Finding]) -> bool:
    """True if an agent can work with the model."""
    graded = {findings[probe].grade for probe in _NEEDED}
    return Grade.BAD not in graded and findings[Probe.TYPED].found is Found.YES


def recommend(findings: Mapping[Probe, Finding], claimed: ModelInfo) -> Recommendation:
    """What to set.

    Args:
        findings: One for each probe.
        claimed: What the client claims now; it stays in force for what is not probed, or was
            answered late.
    """
    found = {probe: finding.found for probe, finding in findings.items()}
    native = found[Probe.TOOLS] is Found.YES

    def holds(probe: Probe, word: Found, ability: str) -> bool:
        late = found[probe] is Found.LATE
        return bool(claimed.get(ability, False)) if late else found[probe] is word

    claims: dict[str, bool | str] = {
        "vision": bool(claimed.get("vision", False)),
        "function_calling": holds(Probe.TOOLS, Found.YES, "function_calling"),
        "json_output": holds(Probe.JSON_MODE, Found.ENFORCED, "json_output"),
        "family": str(claimed.get("family", "unknown")),
        "structured_output": holds(Probe.SCHEMA, Found.ENFORCED, "structured_output"),
        "multiple_system_messages": found[Probe.SYSTEMS] is Found.YES,
    }
    return Recommendation(
        rung=strictest_rung(found[Probe.SCHEMA], found[Probe.JSON_MODE]),
        proposal="native" if native else "json",
        parallel=native and found[Probe.PARALLEL] is Found.YES,
        model_info=claims,
        context_tokens=int(findings[Probe.CONTEXT].figures.get("counted_tokens", 0)),
    )
