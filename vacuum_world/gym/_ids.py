"""The names by which Gymnasium makes the world."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import gymnasium

from vacuum_world.scenarios import SCENARIOS

WORLD_ID = "coag/VacuumWorld-v0"
_ENTRY = "vacuum_world.gym:VacuumWorldEnv"


def _own_id(scenario: str) -> str:
    return f"coag/{''.join(word.capitalize() for word in scenario.split('-'))}-v0"


IDS: Mapping[str, str] = MappingProxyType(
    {WORLD_ID: "sudden-wall", **{_own_id(name): name for name in SCENARIOS}}
)
"""Every id with the scenario that it makes unless told otherwise."""


def register_worlds() -> None:
    """Make the ids known to Gymnasium; those known already stay as they are."""
    for name, scenario in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(  # pyright: ignore[reportUnknownMemberType]  its `kwargs` is untyped
                id=name, entry_point=_ENTRY, kwargs={"scenario": scenario}
            )
