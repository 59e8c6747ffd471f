"""What scenarios are called beside their names."""

from __future__ import annotations

from vacuum_world.scenarios import ADVERSARIAL

_LETTERS: dict[str, str] = dict(zip(ADVERSARIAL, "ABCDEFGHIJ", strict=True))


def lettered(scenario: str) -> str:
    """A scenario with its letter, where it has one: A sudden-wall."""
    letter = _LETTERS.get(scenario)
    return f"{letter} {scenario}" if letter else scenario
