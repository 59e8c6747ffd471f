"""Findings, put into the views of what they are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from coag.inspector.views import CycleRow, CycleView, Finding, Findings, RunView


class Placed:
    """The findings of a run by cycle.

    Args:
        findings: What was found so far.
    """

    def __init__(self, findings: Findings) -> None:
        found: defaultdict[int | None, list[Finding]] = defaultdict(list)
        for finding in findings.found:
            found[finding.cycle].append(finding)
        self._found: Mapping[int | None, Sequence[Finding]] = found

    def found(self, cycle: int) -> Sequence[Finding]:
        """What was found in a cycle."""
        return self._found.get(cycle, ())

    def row(self, row: CycleRow) -> CycleRow:
        """The row with what was found in its cycle."""
        found = self._found.get(row.number)
        return replace(row, findings=tuple(found)) if found else row

    def run(self, view: RunView) -> RunView:
        """The run with what was found in each row, of the timeline and of the strip."""
        return replace(
            view,
            rows=tuple(self.row(row) for row in view.rows),
            strip=tuple(self.row(row) for row in view.strip),
        )

    def cycle(self, view: CycleView) -> CycleView:
        """The cycle with what was found in its phases, and the rest for the cycle itself."""
        found = self._found.get(view.row.number)
        if not found:
            return view
        there = {phase.phase for phase in view.phases}
        phases = tuple(
            replace(phase, findings=tuple(one for one in found if one.phase is phase.phase))
            for phase in view.phases
        )
        rest = tuple(one for one in found if one.phase is None or one.phase not in there)
        return replace(view, row=self.row(view.row), phases=phases, findings=rest)
