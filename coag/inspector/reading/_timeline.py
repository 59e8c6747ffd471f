"""The cycles of a trace in order, as its index knows them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from coag.tracing import TraceIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The lines of one cycle, of a plain run of one turn."""

    cycle: int
    first: int
    """Position of its first line."""
    end: int
    """Position behind its last one."""


class Timeline:
    """Which lines of a trace make up each cycle, of a plain run each turn.

    Neighbouring stretches of one cycle are one: a turn that broke off, and the one that went on
    with it. What stands before a cycle and names none belongs to it, and at the end of a trace to
    the last.

    Args:
        index: Scanned as far as it was; more may come.
    """

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._cycles = array("Q")
        self._firsts = array("Q")
        """The first line of each; it ends where the next one begins."""
        self._taken = 0
        """Stretches that were taken up and can no longer change."""
        self._free = -1
        """The first line of what is of no cycle yet; -1 for none."""

    def refresh(self) -> None:
        """Takes up what the index has scanned since.

        The last stretch may still become another cycle's, so it counts once it names its own.
        """
        while self._taken < self._index.stretches:
            stretch = self._index.stretch(self._taken)
            if stretch.cycle:
                self._begin(stretch.cycle, stretch.first)
            elif self._taken == self._index.stretches - 1:
                return
            elif self._free < 0:
                self._free = stretch.first
            self._taken += 1

    def _begin(self, cycle: int, first: int) -> None:
        if not self._cycles or self._cycles[-1] != cycle:
            self._cycles.append(cycle)
            self._firsts.append(first if self._free < 0 else self._free)
        self._free = -1

    def __len__(self) -> int:
        return len(self._cycles)

    def span(self, position: int) -> Span:
        """The lines of a cycle.

        Args:
            position: Of the cycle among all, from 0.
        """
        last = position + 1 == len(self._firsts)
        return Span(
            cycle=self._cycles[position],
            first=self._firsts[position],
            end=self._index.lines if last else self._firsts[position + 1],
        )

    def cycle(self, position: int) -> int:
        """The number of the cycle at a position."""
        return self._cycles[position]

    def find(self, cycle: int) -> int | None:
        """The position of a cycle; None where it is not among those that were scanned.

        Where a damaged trace has it twice, it is the first.
        """
        try:
            return self._cycles.index(cycle)
        except ValueError:
            return None
