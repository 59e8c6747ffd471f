"""What scenarios are called beside their names."""

from __future__ import annotations

_ADVERSARIAL = (
    *("sudden-wall", "energy-dilemma", "phantom-object", "evolution", "sensor-dropout"),
    *("false-manual", "distraction", "poisoned-memory", "contradiction", "delayed-effect"),
)
PAPER = _ADVERSARIAL[:4]
"""The four scenarios of the paper, for which there is a target."""
_LETTERS = dict(zip(_ADVERSARIAL, "ABCDEFGHIJ", strict=True))


def lettered(scenario: str) -> str:
    """A scenario with its letter, where it has one: A sudden-wall."""
    letter = _LETTERS.get(scenario)
    return f"{letter} {scenario}" if letter else scenario
