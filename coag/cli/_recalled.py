"""What was recalled, and why, as lines for a person."""

from __future__ import annotations

from coag.schema import RecalledRecord

_LEAST = 0.005
"""A part of a score that adds less is not told."""


def why_recalled(hit: RecalledRecord) -> str:
    """Which parts of the score brought a record, the weightiest first; empty if not told."""
    if hit.why is None:
        return ""
    parts = {name: part for name, part in hit.why if abs(part) >= _LEAST}
    told = sorted(parts.items(), key=lambda one: -abs(one[1]))
    return ", ".join(f"{name} {part:+.2f}" for name, part in told)
