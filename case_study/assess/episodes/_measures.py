"""What is measured of each episode of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from case_study.measures import EpisodeRecord, Recollection, measures_of

_OF_TALLY = ("bumps", "violations", "critical_cleans", "stranded", "left_dirty", "energy")
_COSTS = ("actions", "model_calls", "tokens")
_OF_MEMORY: Mapping[str, Callable[[Recollection], int]] = MappingProxyType(
    {
        "noted": lambda told: told.noted,
        "recalled": lambda told: told.recalled,
        "beside": lambda told: told.beside,
        "refused": lambda told: told.refused,
    }
)
EPISODE_MEASURES: tuple[str, ...] = ("success", *_COSTS, *_OF_TALLY, *_OF_MEMORY)
"""Names of the measures of an episode, in the order in which they are shown."""


def in_episode(measure: str, episode: int) -> str:
    """How a trial calls a measure of one of its episodes: `success.1`."""
    return f"{measure}.{episode}"


def is_of_episode(name: str) -> bool:
    """Whether a trial's measure is of one of its episodes."""
    return name.rpartition(".")[0] in EPISODE_MEASURES


def of_episode(
    record: EpisodeRecord, scenario: str, told: Recollection | None
) -> dict[str, float | None]:
    """The measures of an episode, by the name that a trial calls them.

    Args:
        record: What it came to.
        scenario: What was played.
        told: What was recalled in it; None where the trace does not tell.
    """
    found = {} if record.tally is None else measures_of([record.tally])
    own: dict[str, float | None] = {"success": float(record.succeeded(scenario))}
    own |= {name: found.get(name) for name in (*_COSTS, *_OF_TALLY)}
    own |= {name: None if told is None else float(of(told)) for name, of in _OF_MEMORY.items()}
    return {in_episode(name, record.episode): value for name, value in own.items()}
