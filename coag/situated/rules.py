"""The rules of an activity: no operation without its manual, and what is fresh comes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coag.schema import Candidate, Verdict

from .perception import ToolPerception
from .records import parts_of

MANUAL_MOUNTED = "manual_mounted"
FRESH_SIGNALS = "fresh_signals"


class ManualMounted:
    """Forbids an operation of a tool whose manual is not mounted, or is in quarantine.

    Args:
        perception: Knows the tools; others than these need no manual.
        mounted: Gives the tools whose manuals are mounted.
    """

    name = MANUAL_MOUNTED

    def __init__(self, perception: ToolPerception, mounted: Callable[[], tuple[str, ...]]) -> None:
        self._perception = perception
        self._mounted = mounted

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges an action by its name."""
        del state, projection
        named = parts_of(candidate.action)
        known = self._perception.known(named[0]) if named else None
        if named is None or known is None:
            return Verdict.allow()
        tool = named[0]
        if (what := self._perception.changed(tool)) is not None:
            return Verdict.forbid(f"the {what} of {tool!r} changed, and nobody has approved yet")
        if known.has_manual and tool not in self._mounted():
            return Verdict.forbid(
                f"the manual of {tool!r} is not mounted: mount_manual(tool={tool!r}) first"
            )
        return Verdict.allow()


class FreshSignals:
    """Forbids everything while something fresh is unperceived, so that it is perceived first.

    Args:
        fresh: Gives what has arrived and is not perceived, in words; empty for nothing.
        in_force: Whether it forbids in this cycle: not where it has ended too many in a row.
    """

    name = FRESH_SIGNALS

    def __init__(self, fresh: Callable[[], str], in_force: bool) -> None:
        self._fresh = fresh
        self._in_force = in_force

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges every action alike."""
        del candidate, state, projection
        fresh = self._fresh() if self._in_force else ""
        if not fresh:
            return Verdict.allow()
        return Verdict.forbid(f"{fresh} has arrived since this cycle began: perceive it first")
