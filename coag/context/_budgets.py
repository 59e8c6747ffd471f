"""How many tokens each part of a prompt may take."""

from __future__ import annotations

from coag.schema import Value


class Budgets(Value):
    """Token budgets of the sections of a prompt (estimated tokens, not characters).

    Their sum bounds every prompt, however long the run: 11,000 tokens with the defaults, and in a
    growing prompt `cognition` once more for each answer given so far in the cycle.
    """

    system: int = 1_500
    """The developer's system message."""
    procedure: int = 1_200
    """The procedure of the phase, standing rules included."""
    actions: int = 1_500
    """The list of available actions."""
    goal: int = 400
    dialogue: int = 1_200
    state: int = 800
    percepts: int = 1_200
    """What has arrived since the last action."""
    deeds: int = 800
    """Earlier actions and their results, newest kept."""
    recalled: int = 800
    rejections: int = 400
    cognition: int = 800
    """The current cycle's reasoning, candidates or evaluations."""
    module: int = 400
    """Each cognitive module's section."""
