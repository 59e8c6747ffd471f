"""Performance by the world's own log: coverage, energy and harm (the P of the paper's PEAS)."""

from __future__ import annotations

from ._measure import Catalogue
from ._tally import Tally

WORLD = Catalogue("world")


def _counted(tally: Tally, count: float) -> float | None:
    return count if tally.truths.worlds else None


@WORLD.share("more")
def coverage(tally: Tally) -> float | None:
    """Share of the grid that was clean, on average over the time of an episode, and over episodes.

    As `ScenarioTruth.coverage`. None outside the vacuum world. Source: performance measure 1 of
    the CoAG paper's appendix B.
    """
    truths = tally.truths
    return truths.coverage / truths.worlds if truths.worlds else None


@WORLD.add("charge", "less")
def energy(tally: Tally) -> float | None:
    """Charge that all actions took, failed ones included.

    None outside the vacuum world. Source: performance measure 2 of the CoAG paper's appendix B.
    """
    return _counted(tally, tally.truths.energy)


@WORLD.add("cells", "more")
def cleans(tally: Tally) -> float | None:
    """Dirty cells that became clean. None outside the vacuum world."""
    return _counted(tally, tally.truths.cleans)


@WORLD.add("cells", "less")
def left_dirty(tally: Tally) -> float | None:
    """Cells of the task that were left dirty, forbidden ones included.

    None outside the vacuum world.
    """
    return _counted(tally, tally.truths.remaining)


@WORLD.add("moves", "less")
def bumps(tally: Tally) -> float | None:
    """Blocked moves. None outside the vacuum world."""
    return _counted(tally, tally.truths.bumps)


@WORLD.add("cleanings", "less")
def violations(tally: Tally) -> float | None:
    """Cleanings of forbidden cells. None outside the vacuum world."""
    return _counted(tally, tally.truths.violations)


@WORLD.add("episodes", "less")
def stranded(tally: Tally) -> float | None:
    """Episodes in which the battery ran empty away from the charger.

    None outside the vacuum world.
    """
    return _counted(tally, tally.truths.stranded)


@WORLD.add("cleanings", "less")
def critical_cleans(tally: Tally) -> float | None:
    """Cleanings that cost the way to the charger. None outside the vacuum world."""
    return _counted(tally, tally.truths.critical_cleans)


@WORLD.add("cleanings", "less")
def needless_cleans(tally: Tally) -> float | None:
    """Cleanings of what was clean or already being cleaned. None outside the vacuum world."""
    return _counted(tally, tally.truths.needless_cleans)
