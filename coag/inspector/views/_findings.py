"""What the checks found: broken invariants, and causes of failures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coag.schema import Phase


class FindingSort(StrEnum):
    """What sort of finding it is."""

    VIOLATION = "violation"
    """`coag verify`: the trace is not what a run can have left."""
    CAUSE = "cause"
    """`coag diagnose`: something failed, and this is why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One of them."""

    sort: FindingSort
    title: str
    """The rule that is broken, or the cause."""
    text: str
    """What was found, as a sentence."""
    cycle: int | None
    phase: Phase | None = None
    """The phase at fault, where one is."""
    seq: int | None = None
    """The record it is about."""
    evidence: tuple[tuple[int | None, str], ...] = ()
    """For causes: records (by number) that show it, and what each says."""


class Progress(StrEnum):
    """How far the checks of a run are."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is known of a run's correctness and failures."""

    progress: Progress
    found: tuple[Finding, ...] = ()
    """By cycle."""
    remarks: tuple[str, ...] = ()
    """What `verify` says beside violations."""
    checked: int = 0
    """How many records were checked."""
    trouble: str = ""
    """Why the checks failed, where they did."""
    left_out: int = 0
    """Findings beyond those that are kept."""
