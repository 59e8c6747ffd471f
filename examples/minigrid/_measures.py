"""What is measured of an episode: the case study's own measures, from its trace."""

from __future__ import annotations

from pathlib import Path

from coag.evals import TraceEpisode, TraceTally, tally_of
from coag.schema import Value
from coag.tracing import RunFolder, read_trace

from ._minds import read_request
from ._physics import ACTIONS
from ._reading import Over
from ._tools import LOOK


class Outcome(Value):
    """The outcome of an episode, by the environment; kept beside the run."""

    run: str
    """Name of the run's folder."""
    reward: float
    """What the environment gave; more than 0 means success."""
    over: Over
    """How it ended; empty if it was stopped by a bound, or by the contender."""
    shortest: int
    """The fewest actions to success."""
    bound: int
    """How many were allowed."""

    @property
    def success(self) -> bool:
        """Whether the environment rewarded it."""
        return self.reward > 0

    @property
    def own_measures(self) -> dict[str, float | None]:
        """What MiniGrid itself counts."""
        return {"reward": self.reward, "died": float(self.over == "death")}


def tally_in(room: Path, outcome: Outcome) -> TraceTally:
    """What is counted of an episode whose run is in a folder.

    Raises:
        TraceError: The run cannot be read.
    """
    entries = read_trace(RunFolder(room / outcome.run).trace_path, lambda problem: None)
    episode = TraceEpisode(
        records=tuple(entry.body for entry in entries),
        success=outcome.success,
        tools=frozenset({*ACTIONS, LOOK}),
        looks=frozenset({LOOK}),
        shortest=outcome.shortest,
        bound=outcome.bound,
        where=_where,
    )
    return tally_of(episode)


def _where(text: str) -> object:
    """Where a result says that the agent is, and where it looks."""
    reading, _ = read_request(text)
    return None if reading is None else (reading.at, reading.facing)
