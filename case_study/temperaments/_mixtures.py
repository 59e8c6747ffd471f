"""Mixtures of temperaments: mostly sound, now and then one of the faulty ones, by a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from types import MappingProxyType

from coag.models import ScriptedRequest

from ._facts import Facts
from ._intentions import Intend
from ._minds import gullible, impulsive, sound, stubborn
from ._reading import facts_of

FAULTY: tuple[Intend, ...] = (stubborn, impulsive, gullible)
SHARE = 0.3
"""How often one of them decides."""

Draw = Callable[[ScriptedRequest, int], Intend]
"""From a request and a seed to the temperament that answers it."""


def fallible(request: ScriptedRequest, seed: int) -> Intend:
    """Whoever decides in a situation decides in all of its phases, and whenever it comes again.

    A situation is what the sensors say: every phase is told that.
    """
    return _drawn(f"fallible {seed} {_situation(facts_of(request))}")


def noisy(request: ScriptedRequest, seed: int) -> Intend:
    """Drawn anew for each request, so that a later phase may catch an earlier one's fault."""
    return _drawn(f"noisy {seed} {request.number} {_situation(facts_of(request))}")


MIXTURES: Mapping[str, Draw] = MappingProxyType({"fallible": fallible, "noisy": noisy})
"""Every mixture by name."""


def _situation(facts: Facts) -> str:
    return "" if facts.reading is None else facts.reading.model_dump_json()


def _drawn(text: str) -> Intend:
    """One of the temperaments, by a hash: the same text draws the same one, in any process."""
    digest = blake2b(text.encode(), digest_size=8).digest()
    chance = int.from_bytes(digest[:4]) / 2**32
    if chance >= SHARE:
        return sound
    return FAULTY[int.from_bytes(digest[4:]) % len(FAULTY)]
