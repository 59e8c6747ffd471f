"""A measure: a function of a tally, with what a table needs to know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

from ._tally import Tally

Part = Literal["robustness", "engineering", "world", "decisions", "cost"]
Better = Literal["more", "less", "neither"]
Of = Callable[[Tally], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is measured of a case, e.g. `grounding`; the function's docstring defines it."""

    name: str
    """How results call it."""
    of: Of
    """The function."""
    part: Part
    """What it is about."""
    unit: str
    """Its unit, e.g. `share` or `tokens`."""
    low: float
    """The least that it can be."""
    high: float
    """The most that it can be; infinite where there is no bound."""
    better: Better
    """Whether more of it is better, or less, or neither."""

    @property
    def meaning(self) -> str:
        """What it means, in one sentence."""
        return (self.of.__doc__ or self.name).strip().partition("\n\n")[0].replace("\n    ", " ")

    def __call__(self, tally: Tally) -> float | None:
        """What it is of a tally; None where it has no meaning or no evidence."""
        found = self.of(tally)
        return None if found is None else round(float(found), 6)


class Catalogue:
    """Measures of one part, in the order in which they are shown."""

    def __init__(self, part: Part) -> None:
        self._part: Part = part
        self.measures: list[Measure] = []

    def add(
        self, unit: str, better: Better, *, low: float = 0.0, high: float = inf
    ) -> Callable[[Of], Of]:
        """Makes a measure of a function, under the function's name."""

        def added(of: Of) -> Of:
            self.measures.append(
                Measure(
                    name=of.__name__,
                    of=of,
                    part=self._part,
                    unit=unit,
                    low=low,
                    high=high,
                    better=better,
                )
            )
            return of

        return added

    def share(self, better: Better) -> Callable[[Of], Of]:
        """Makes a measure of a function that gives a share from 0 to 1."""
        return self.add("share", better, high=1.0)


def ratio(part: float, whole: float) -> float | None:
    """A share; None of nothing."""
    return part / whole if whole else None
