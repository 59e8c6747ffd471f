"""The temperaments by name, as models."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from coag.errors import UnknownNameError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest

from ._answers import answer
from ._intentions import Intend
from ._minds import gullible, impulsive, sound, stubborn

SCRIPTED = "scripted"
"""The scheme of their model specs: `scripted:sound`."""

TEMPERAMENTS: Mapping[str, Intend] = MappingProxyType(
    {"sound": sound, "stubborn": stubborn, "impulsive": impulsive, "gullible": gullible}
)
"""Every temperament by name."""


def open_temperament(name: str) -> ScriptedModel:
    """The scripted model `scripted:NAME`.

    Raises:
        UnknownNameError: There is no such temperament; the message lists those that exist.
    """
    if name not in TEMPERAMENTS:
        raise UnknownNameError("scripted temperament", name, TEMPERAMENTS)
    intend = TEMPERAMENTS[name]

    def script(request: ScriptedRequest) -> ScriptedReply:
        return answer(request, intend)

    return ScriptedModel(script, name=f"{SCRIPTED}:{name}")
