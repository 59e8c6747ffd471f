"""Parts of deliberation that the settings leave out, so that it can be measured what they give."""

from __future__ import annotations

from collections.abc import Mapping

from ._deps import AnyContext, Deps
from ._settings import Part

_TOLD: Mapping[Part, str] = {
    "retrieval": "nothing is recalled",
    "reasoning": "the model is not asked how things stand",
    "evaluation": "the model scores nothing and is shown no predictions",
    "rewriting": "the agent cannot change its standing rules",
}


def leaves_out(part: Part, context: AnyContext, deps: Deps) -> bool:
    """Whether the settings leave a part out; if so, the trace is told."""
    if part not in deps.settings.without:
        return False
    deps.note(
        context, "left_out", f"Left out by the settings: {part}, so {_TOLD[part]}.", part=part
    )
    return True
