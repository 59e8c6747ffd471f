"""What an observation changes of what is assumed and what is not known."""

from __future__ import annotations

from collections import defaultdict

from coag.errors import ObservationError

from .state import Belief, folded


class BeliefDraft:
    """Assumptions, or unknowns, while they are changed; open ones are found without a search.

    Args:
        beliefs: Those of a world, oldest first.
    """

    def __init__(self, beliefs: tuple[Belief, ...] = ()) -> None:
        self._made: tuple[Belief, ...] | None = beliefs
        self._beliefs = list(beliefs)
        self._open: defaultdict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(beliefs):
            if one.resolved is None:
                self._open[folded(one.text)].append(place)

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """All of them as they are now."""
        if self._made is None:
            self._made = tuple(self._beliefs)
        return self._made

    def say(self, texts: tuple[str, ...], step: int) -> None:
        """Adds those that are new; one that is open already is not said twice."""
        for text in texts:
            if not self.has_open(text):
                self._open[folded(text)].append(len(self._beliefs))
                self._beliefs.append(Belief(text=text, step=step))
                self._made = None

    def has_open(self, text: str) -> bool:
        """Whether this is said and not settled, whatever its case and spacing."""
        return folded(text) in self._open

    def settle(self, text: str, step: int) -> None:
        """Settles all that say this and are open."""
        for place in self._open.pop(folded(text), ()):
            self._beliefs[place] = self._beliefs[place].model_copy(update={"resolved": step})
            self._made = None


def settle_all(
    assumptions: BeliefDraft, unknowns: BeliefDraft, resolved: tuple[str, ...], step: int
) -> None:
    """Settles assumptions and unknowns.

    Raises:
        ObservationError: One of them is not open.
    """
    for place, text in enumerate(resolved):
        if not assumptions.has_open(text) and not unknowns.has_open(text):
            raise ObservationError(
                f"resolved[{place}]",
                f"no open assumption or unknown says {text!r}; give it as it was said.",
            )
    for text in resolved:
        assumptions.settle(text, step)
        unknowns.settle(text, step)
