"""What a return says, for the rules about what came back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from coag.schema import Phase

from ._causes import Evidence
from ._scene import Return, Scene
from ._words import short

_REASON = 240
"""Characters of a reason that are told."""


def told(returned: Return) -> Mapping[str, Any]:
    data: Any = returned.percept.data
    return cast("Mapping[str, Any]", data) if isinstance(data, dict) else {}


def why_failed(returned: Return) -> str:
    reason = told(returned).get("reason")
    return short(str(reason or returned.percept.content), _REASON)


def seen_in(returned: Return, scene: Scene, text: str) -> Evidence:
    return Evidence(seq=returned.seq, cycle=scene.cycle, phase=Phase.EXECUTION, text=text)
