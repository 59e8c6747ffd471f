"""All fields of a belief that are worth a drawing."""

from __future__ import annotations

from coag.inspector.views import Belief

from ._belief import belief_svg


def belief_svgs(belief: Belief, *, prefix: str) -> list[str]:
    """A drawing of each field, in order; empty for what has no point or never changed.

    Args:
        belief: The fields.
        prefix: What all ids begin with, unique in the page.
    """
    return [
        belief_svg(track, prefix=f"{prefix}{at}") if track.points and not track.steady else ""
        for at, track in enumerate(belief.tracks)
    ]
