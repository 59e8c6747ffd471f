"""What failures came from, by a diagnosis of the trace."""

from __future__ import annotations

from coag.proof import diagnose

from ._episode import Episode
from ._tally import NO_FAILURE_FOUND, NOT_ATTRIBUTABLE, Blame


def blame_of(episode: Episode) -> Blame:
    """How many failures an episode's trace shows, and how many have one cause."""
    found = diagnose(episode.records, domain=episode.domain)
    attributed = sum(one.cause is not None for one in found)
    if episode.success:
        return Blame(failures=len(found), attributed=attributed)
    first = (found[0].cause or NOT_ATTRIBUTABLE) if found else NO_FAILURE_FOUND
    return Blame(
        failures=max(1, len(found)),
        attributed=attributed,
        failed_runs=1,
        causes={str(first): 1},
    )
