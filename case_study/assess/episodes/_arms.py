"""The two arms of each contender that has a long-term memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from case_study.contenders import CONTENDERS
from case_study.runner import Between
from coag.errors import UnknownNameError

BETWEEN: tuple[Between, ...] = ("kept", "emptied")
"""The arms: memory goes on to the next episode, or each begins with none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A contender whose memory is kept, or emptied, between episodes; the rest is the same."""

    contender: str
    """One of `case_study.contenders.CONTENDERS`."""
    between: Between
    """What becomes of its memory when an episode ends."""

    @property
    def name(self) -> str:
        """How it is asked for and shown: `coag-full:kept`."""
        return f"{self.contender}:{self.between}"

    @property
    def summary(self) -> str:
        """What it is, in a sentence."""
        how = "its memory lasts" if self.between == "kept" else "its memory is emptied before each"
        return f"{CONTENDERS[self.contender].summary}; episodes in a row, {how}"


ARMS: Mapping[str, Arm] = MappingProxyType(
    {
        arm.name: arm
        for contender in CONTENDERS.values()
        if contender.has_memory
        for arm in (Arm(contender=contender.name, between=between) for between in BETWEEN)
    }
)
"""Every arm by name, those of a contender side by side."""


def arm_named(name: str) -> Arm:
    """The arm of this name.

    Raises:
        UnknownNameError: There is none; the message lists those that exist.
    """
    if name not in ARMS:
        raise UnknownNameError("arm", name, ARMS)
    return ARMS[name]


def arms_of(names: tuple[str, ...]) -> dict[str, dict[Between, str]]:
    """The arms among some names by contender, of contenders of which both are there."""
    found: dict[str, dict[Between, str]] = {}
    for arm in (ARMS[name] for name in names if name in ARMS):
        found.setdefault(arm.contender, {})[arm.between] = arm.name
    return {name: arms for name, arms in found.items() if len(arms) == len(BETWEEN)}
