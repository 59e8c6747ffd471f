"""The seam: cognitive modules observe and contribute, and never break a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from coag.errors import CoagError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSource,
    ActionSpec,
    Candidate,
    CognitiveModule,
    Constraint,
    ConstraintSource,
    Outcome,
    Percept,
    Phase,
    Section,
    Situation,
    Verdict,
)

ResultT = TypeVar("ResultT")

PROBLEM = 500
"""Characters of what a module raised that are kept."""
GRACE_SECONDS = 0.1
"""Time that a cancelled call has to clean up before it is left behind."""
_LEFT_BEHIND: set[asyncio.Task[Any]] = set()
"""Calls that were cancelled and go on; asyncio itself keeps weak references only."""


class ModuleSeam:
    """Calls the modules within their time and keeps what goes wrong away from the turn.

    It stands for those among them that bring actions or constraints, too: an `ActionSource` and
    a `ConstraintSource`.

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
            await self._guard(module.name, "observe", lambda m=module: m.observe(event))

    async def contribute(
        self, phase: Phase, situation: Situation, budget: int
    ) -> tuple[Section, ...]:
        """The modules' sections for a phase; one that fails is left out."""
        sections: list[Section] = []
        for module in self.modules:
            section = await self._guard(
                module.name,
                "contribute",
                lambda m=module: m.contribute(phase, situation, budget),
            )
            if isinstance(section, Section):
                limit = min(section.budget, budget)
                sections.append(section.model_copy(update={"budget": limit}))
            elif section is not None:
                problem = f"contribute gave a {type(section).__name__} instead of a Section"
                self._report(module.name, problem)
        return tuple(sections)

    async def _guard(
        self, name: str, what: str, call: Callable[[], Awaitable[ResultT]]
    ) -> ResultT | None:
        try:
            return await _within(self._seconds, call)
        except _LateError:
            self._report(name, f"{what} took longer than {self._seconds:g} s")
        except _SelfCancelledError:
            self._report(name, f"{what} was cancelled by itself")
        except Exception as error:  # the seam: a module may raise anything, a turn goes on
            self._report(name, f"{what} raised {_named(error)}")
        return None

    def action_specs(self) -> Sequence[ActionSpec]:
        """The actions that modules bring; those of a module that fails are left out."""
        return [spec for _, specs in self._offers() for spec in specs]

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Runs a module's action; what it raises is in the result."""
        for module, specs in self._offers():
            if any(spec.name == call.action for spec in specs):
                return await self._run(module, call)
        return ActionResult(content=f"No module offers {call.action!r} any more.", is_error=True)

    async def _run(self, source: ActionSource, call: ActionCall) -> ActionResult:
        try:
            return await _within(None, lambda: source.run_action(call))
        except CoagError:
            raise
        except _SelfCancelledError:
            text = f"{call.action} was cancelled by itself."
            return ActionResult(content=text, is_error=True)
        except Exception as error:  # the seam: see `_guard`
            text = f"{call.action} raised {_named(error)}"
            return ActionResult(content=text, is_error=True)

    def _offers(self) -> list[tuple[ActionSource, Sequence[ActionSpec]]]:
        offers: list[tuple[ActionSource, Sequence[ActionSpec]]] = []
        for module in self.modules:
            if isinstance(module, ActionSource):
                try:
                    offers.append((module, tuple(module.action_specs())))
                except Exception as error:  # the seam: see `_guard`
                    self._report(module.name, f"action_specs raised {_named(error)}")
        return offers

    def constraints(self) -> Sequence[Constraint]:
        """The constraints that modules bring; where one cannot tell its own, all is forbidden."""
        found: list[Constraint] = []
        for module in self.modules:
            if isinstance(module, ConstraintSource):
                try:
                    found += module.constraints()
                except Exception as error:  # the seam: see `_guard`
                    self._report(module.name, f"constraints raised {_named(error)}")
                    found.append(_Closed(f"{module.name}_constraints", _named(error)))
        return found

    def _report(self, name: str, problem: str) -> None:
        self.failed.add(name)
        self._on_problem(name, problem)

    def save_state(self) -> dict[str, Any]:
        """Every module's state by name; one that cannot give its state is left out."""
        states: dict[str, Any] = {}
        for module in self.modules:
            try:
                states[module.name] = dict(module.save_state())
            except Exception as error:  # the seam: see `_guard`
                self._report(module.name, f"save_state raised {_named(error)}")
        return states

    def load_state(self, states: Mapping[str, Any]) -> None:
        """Gives the modules their saved states; those that have none are left as they are."""
        for module in self.modules:
            if module.name in states:
                module.load_state(states[module.name])


class _Closed:
    """Stands for constraints that cannot be told: nothing may pass."""

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        self._problem = problem

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        return Verdict.forbid(f"the constraints in force are not known: {self._problem}")


def _named(error: Exception) -> str:
    try:
        message = str(error)
    except Exception:  # the seam: see `ModuleSeam._guard`
        message = "(its message cannot be read)"
    return f"{type(error).__name__}: {message}"[:PROBLEM]


class _LateError(Exception):
    """A module gave no answer in its time; a `TimeoutError` is its own."""


class _SelfCancelledError(Exception):
    """A module raised `CancelledError` though nobody had cancelled it."""


async def _within(seconds: float | None, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """What the call gives or raises, run in a task of its own, if it does so in time.

    A call that is late, or whose caller is cancelled, is cancelled; one that swallows that is
    left behind after `GRACE_SECONDS`.
    """
    task = asyncio.create_task(_held(call))
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _end(task)
        raise
    if not task.done():
        await _end(task)
        raise _LateError
    if task.cancelled():
        raise _SelfCancelledError
    value, exit_request = task.result()
    if exit_request is not None:
        raise exit_request
    return value


async def _held(
    call: Callable[[], Awaitable[ResultT]],
) -> tuple[ResultT, None] | tuple[Any, BaseException]:
    """Hands a request to end the process to the caller; in a task it would end the loop."""
    try:
        return await call(), None
    except (KeyboardInterrupt, SystemExit) as exit_request:
        return None, exit_request


async def _end(task: asyncio.Task[Any]) -> None:
    _LEFT_BEHIND.add(task)
    task.add_done_callback(_forget)
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)


def _forget(task: asyncio.Task[Any]) -> None:
    _LEFT_BEHIND.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not complain of it
