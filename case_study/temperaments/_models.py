"""The temperaments by name, as models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from coag.errors import UnknownNameError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest

from ._answers import answer
from ._chance import CHANCE, drawn_answer
from ._intentions import Intend
from ._minds import gullible, impulsive, sound, stubborn
from ._mixtures import MIXTURES, Draw
from ._skimming import SKIMMING, skimming

SCRIPTED = "scripted"
"""The scheme of their model specs: `scripted:sound`."""

TEMPERAMENTS: Mapping[str, Intend] = MappingProxyType(
    {"sound": sound, "stubborn": stubborn, "impulsive": impulsive, "gullible": gullible}
)
"""Every temperament by name."""

SCRIPTS: tuple[str, ...] = (*TEMPERAMENTS, *MIXTURES, *SKIMMING, CHANCE)
"""Every name that a scripted model can have: temperaments, mixtures, skimming ones, and chance."""


def is_scripted(spec: str) -> bool:
    """Whether a model spec names a scripted model."""
    return spec.startswith(f"{SCRIPTED}:")


def reads_states(spec: str) -> bool:
    """Whether a model spec names a scripted mind: one that reads states and keeps to no schema."""
    return is_scripted(spec) and spec != f"{SCRIPTED}:{CHANCE}"


def open_temperament(name: str, *, seed: int = 0) -> ScriptedModel:
    """The scripted model `scripted:NAME`.

    Args:
        name: One of `SCRIPTS`.
        seed: What is drawn by chance is drawn by this; the pure temperaments take no notice of it.

    Raises:
        UnknownNameError: There is no such temperament; the message lists those that exist.
    """
    return ScriptedModel(script_named(name, seed=seed), name=f"{SCRIPTED}:{name}")


def script_named(name: str, *, seed: int = 0) -> Callable[[ScriptedRequest], ScriptedReply]:
    """What the scripted model of this name answers, as a function; see `open_temperament`."""
    if name not in SCRIPTS:
        raise UnknownNameError("scripted temperament", name, SCRIPTS)
    if name == CHANCE:
        return lambda request: drawn_answer(request, seed)
    if name in SKIMMING:
        return lambda request: skimming(request, SKIMMING[name], seed)
    draw = MIXTURES.get(name) or _always(TEMPERAMENTS[name])

    def script(request: ScriptedRequest) -> ScriptedReply:
        return answer(request, draw(request, seed))

    return script


def _always(intend: Intend) -> Draw:
    return lambda request, seed: intend
