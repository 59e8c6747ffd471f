"""What the checks found: broken invariants, and causes of failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
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
    follows: int | None = None
    """An earlier cycle whose finding it may only follow from; None for none."""
    cycles: tuple[int, ...] = ()
    """Of one that stands for the same in several cycles: all of them, in order; else empty."""


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

    @property
    def together(self) -> tuple[Finding, ...]:
        """The findings, of which those that say the same of neighbouring cycles are one."""
        return _together(self.found)

    @property
    def first(self) -> Finding | None:
        """Where it first went wrong: the earliest that follows from no other one."""
        placed = [one for one in self.together if one.cycle is not None and one.follows is None]
        return min(placed, key=_earliest, default=None)


def _earliest(finding: Finding) -> tuple[int, bool]:
    """Within a cycle a cause tells more than a violation."""
    return finding.cycle or 0, finding.sort is not FindingSort.CAUSE


def _together(found: Iterable[Finding]) -> tuple[Finding, ...]:
    kept: list[Finding] = []
    latest: dict[tuple[object, ...], int] = {}
    """Where in `kept` the last one that says so stands."""
    for one in found:
        says = (one.sort, one.title, one.text, one.phase, one.follows)
        at = latest.get(says)
        before = kept[at] if at is not None else None
        if at is None or before is None or not _beside(before, one):
            latest[says] = len(kept)
            kept.append(one)
            continue
        cycles = (*(before.cycles or (before.cycle,)), one.cycle)
        kept[at] = replace(before, cycles=tuple(each for each in cycles if each is not None))
    return tuple(kept)


def _beside(before: Finding, one: Finding) -> bool:
    """Whether a finding is of the cycle right after that of another one."""
    last = before.cycles[-1] if before.cycles else before.cycle
    return last is not None and one.cycle == last + 1
