"""The seam: cognitive modules observe and contribute, and never break a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from coag.schema import CognitiveModule, Outcome, Percept, Phase, Section, Situation

ResultT = TypeVar("ResultT")


class ModuleSeam:
    """Calls the modules within their time and keeps what goes wrong away from the turn.

    Args:
        modules: In the order in which their sections stand in prompts.
        seconds: Time that each has for one call.
        on_problem: Is told, with the module's name, what went wrong (the trace notes it).
    """

    def __init__(
        self,
        modules: Sequence[CognitiveModule] = (),
        *,
        seconds: float = 2.0,
        on_problem: Callable[[str, str], None] = lambda name, problem: None,
    ) -> None:
        self.modules = tuple(modules)
        self._seconds = seconds
        self._on_problem = on_problem
        self.failed: set[str] = set()
        """Names of the modules that raised or were late in this turn."""

    async def observe(self, event: Percept | Outcome) -> None:
        """Tells every module of what was perceived or committed."""
        for module in self.modules:
            await self._guard(module.name, "observe", module.observe(event))

    async def contribute(
        self, phase: Phase, situation: Situation, budget: int
    ) -> tuple[Section, ...]:
        """The modules' sections for a phase; one that fails is left out."""
        sections: list[Section] = []
        for module in self.modules:
            contribution = module.contribute(phase, situation, budget)
            section = await self._guard(module.name, "contribute", contribution)
            if section is not None:
                limit = min(section.budget, budget)
                sections.append(section.model_copy(update={"budget": limit}))
        return tuple(sections)

    async def _guard(self, name: str, what: str, call: Awaitable[ResultT]) -> ResultT | None:
        try:
            async with asyncio.timeout(self._seconds):
                return await call
        except TimeoutError:
            self._report(name, f"{what} took longer than {self._seconds:g} s")
        except Exception as error:  # the seam: a module may raise anything, a turn goes on
            self._report(name, f"{what} raised {type(error).__name__}: {error}")
        return None

    def _report(self, name: str, problem: str) -> None:
        self.failed.add(name)
        self._on_problem(name, problem)

    def save_state(self) -> dict[str, Any]:
        """Every module's state by name."""
        return {module.name: dict(module.save_state()) for module in self.modules}

    def load_state(self, states: Mapping[str, Any]) -> None:
        """Gives the modules their saved states; those that have none are left as they are."""
        for module in self.modules:
            if module.name in states:
                module.load_state(states[module.name])
