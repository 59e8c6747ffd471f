"""A fault, and the one who decides when it strikes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from coag.proof import Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One component that breaks, and when."""

    cause: Cause
    """The component, by the cause that its failures have."""
    variant: str
    """In which way it breaks."""
    cycle: int
    """The first cycle in which it may strike; it waits for its first opportunity."""
    cycles: int
    """For how many cycles it then stays broken."""
    seed: int
    """What its details are drawn from."""


@dataclass(slots=True)
class Breaker:
    """Strikes from the first opportunity on, for as many cycles as the fault lasts.

    Every component of a run asks it; only the one that the fault is about gets a yes.
    """

    fault: Fault | None = None
    """None for a run in which nothing breaks."""
    now: Callable[[], int] = lambda: 0
    """The cycle that is going on."""
    struck: list[int] = field(default_factory=list[int])
    """The cycles in which it struck, once for every time."""

    def due(self, cause: Cause, cycle: int | None = None) -> bool:
        """Whether the component with this cause is to break now.

        Args:
            cause: Which component asks.
            cycle: The cycle it asks for; None for the one that is going on.
        """
        if self.fault is None or self.fault.cause is not cause:
            return False
        at = self.now() if cycle is None else cycle
        first = self.struck[0] if self.struck else max(self.fault.cycle, at)
        return first <= at < first + self.fault.cycles

    def strike(self, cycle: int | None = None) -> None:
        """Notes that the component broke."""
        self.struck.append(self.now() if cycle is None else cycle)

    @property
    def variant(self) -> str:
        """In which way the component breaks; empty where nothing does."""
        return self.fault.variant if self.fault else ""

    def dice(self, about: object = "") -> random.Random:
        """Chance for the details: the same dice for the same question."""
        return random.Random(f"{self.fault.seed if self.fault else 0} {about}")
