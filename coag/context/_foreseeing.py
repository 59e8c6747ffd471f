"""What a percept will change, known before it is taken in."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Generic

from coag.schema import Percept, PerceptKind

from ._people import ServesPeople
from ._states import StateT


class ForeseesPercepts(ServesPeople[StateT], Generic[StateT]):
    """Reads percepts by the domain's hooks, without taking them in."""

    def foresee_percept(self, percept: Percept) -> Percept:
        """The percept as `perceive` will take it in: with what it changes, settles and opens."""
        percept = self._with_person(self._read(percept))
        opens = percept.kind is PerceptKind.MESSAGE and (
            self._opens_goal(percept) or (self.leaves_person(percept) and bool(percept.content))
        )
        return percept.model_copy(update={"sets_goal": True}) if opens else percept

    def read(self, percepts: Iterable[Percept]) -> tuple[Percept, ...]:
        """The percepts with the state changes that they will make in this order.

        Working memory stays as it is; `supposing` shows what it will be.
        """
        read: list[Percept] = []
        with self.supposing(()):
            for percept in percepts:
                read.append(self._read(percept))
                self._memory = self._memory.perceive(read[-1])
        return tuple(read)

    @contextmanager
    def supposing(self, percepts: Iterable[Percept]) -> Generator[None]:
        """Within, the state is what it will be once these percepts, which were read, are perceived.

        For judging what runs before they are. Nothing may be awaited within.
        """
        before = self._memory
        try:
            for percept in percepts:
                self._memory = self._memory.perceive(percept)
            yield
        finally:
            self._memory = before

    def _read(self, percept: Percept) -> Percept:
        """The percept with the state change that it makes, and what it settles."""
        if percept.state_patch is not None:
            return percept
        percept = percept.model_copy(update=self.change_by(percept))
        settled = [one.intent_id for one in self._memory.unsettled if self.settles(percept, one)]
        return percept.model_copy(update={"settles": tuple(settled)}) if settled else percept
