"""The host of cognitive modules: they observe and contribute, and never break a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from coag._util.timeouts import LateError, SelfCancelledError, describe_error, within
from coag.errors import CoagError, StateError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSource,
    ActionSpec,
    ActionsWatcher,
    Candidate,
    CognitiveModule,
    Constraint,
    ConstraintSource,
    DepthAdvice,
    DepthAdviser,
    DepthEvidence,
    Outcome,
    Percept,
    PerceptSource,
    Phase,
    Resettable,
    Section,
    Situation,
    Trust,
    Verdict,
)

ResultT = TypeVar("ResultT")
PROBLEM = 500
"""Characters of what a module raised that are kept."""


def _raised(what: str, error: Exception) -> str:
    return f"{what} raised {describe_error(error)[:PROBLEM]}"


class ModuleHost:
    """Calls the modules within their time and keeps what goes wrong away from the turn.

    It also offers their actions and constraints: it is an `ActionSource` and a `ConstraintSource`.
    A module may raise anything; the turn continues.

    Args:
        modules: In the order of their sections in prompts.
        seconds: Time that each has to observe or to contribute.
        action_seconds: Time that one of their actions may take; one that takes longer may have had
            its effect, and its result says so.
        on_problem: Called with the module's name and its fault (the trace notes it).
    """

    def __init__(
        self,
        modules: Sequence[CognitiveModule] = (),
        *,
        seconds: float = 2.0,
        action_seconds: float = 60.0,
        on_problem: Callable[[str, str], None] = lambda name, problem: None,
    ) -> None:
        self.modules = tuple(modules)
        self._acting = [one for one in self.modules if isinstance(one, ActionSource)]
        self._ruling = [one for one in self.modules if isinstance(one, ConstraintSource)]
        self._sensing: list[tuple[str, PerceptSource]] = [
            (one.name, one) for one in self.modules if isinstance(one, PerceptSource)
        ]
        self.watching = [one for one in self.modules if isinstance(one, ActionsWatcher)]
        """Those that want to know which actions there are."""
        self._seconds = seconds
        self._action_seconds = action_seconds
        self._on_problem = on_problem
        self.failed: set[str] = set()
        """Names of the modules that raised or were late in this turn."""
        self.untrusted: set[str] = set()
        """Names of the modules that gave untrusted text for a prompt since the last outcome."""

    async def observe(self, event: Percept | Outcome) -> None:
        """Passes every module what was perceived or committed."""
        for module in self.modules:
            await self._guard(module.name, "observe", lambda m=module: m.observe(event))

    def actions_listed(self, specs: Sequence[ActionSpec]) -> None:
        """Tells the modules that want to know which actions there are."""
        for module in self.watching:
            try:
                module.actions_listed(specs)
            except Exception as error:
                self.report(module.name, _raised("actions_listed", error))

    async def take_percepts(self) -> list[Percept]:
        """What modules bring from outside; of one that fails nothing is taken."""
        taken: list[Percept] = []
        for name, module in self._sensing:
            taken += await self._guard(name, "take_percepts", module.take_percepts) or ()
        return taken

    def sense_by(self, source: PerceptSource) -> None:
        """Takes what arrives from this source only, as in a replay."""
        self._sensing = [("replay", source)]

    async def contribute(
        self, phase: Phase, situation: Situation, budget: int
    ) -> tuple[Section, ...]:
        """The modules' sections for a phase; one that fails is left out."""
        sections: list[Section] = []
        for module in self.modules:
            section = await self._guard(
                module.name, "contribute", lambda m=module: m.contribute(phase, situation, budget)
            )
            if isinstance(section, Section):
                if section.trust is Trust.UNTRUSTED:
                    self.untrusted.add(module.name)
                limit = min(section.budget, budget)
                sections.append(section.model_copy(update={"budget": limit}))
            elif section is not None:
                problem = f"contribute gave a {type(section).__name__} instead of a Section"
                self.report(module.name, problem)
        return tuple(sections)

    async def advise_depth(self, evidence: DepthEvidence) -> DepthAdvice | None:
        """What the first module advises that has learned which depth pays."""
        for module in self.modules:
            if not isinstance(module, DepthAdviser):
                continue
            call = module.advise_depth
            advice = await self._guard(module.name, "advise_depth", lambda c=call: c(evidence))
            if isinstance(advice, DepthAdvice):
                return advice.model_copy(update={"source": module.name})
            if advice is not None:
                problem = f"advise_depth gave a {type(advice).__name__} instead of a DepthAdvice"
                self.report(module.name, problem)
        return None

    async def _guard(
        self, name: str, what: str, call: Callable[[], Awaitable[ResultT]]
    ) -> ResultT | None:
        try:
            return await within(self._seconds, call)
        except LateError:
            self.report(name, f"{what} took longer than {self._seconds:g} s")
        except SelfCancelledError:
            self.report(name, f"{what} was cancelled by itself")
        except Exception as error:
            self.report(name, _raised(what, error))
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
        seconds, unknown = self._action_seconds, False
        try:
            return await within(seconds, lambda: source.run_action(call.model_copy(deep=True)))
        except CoagError:
            raise
        except LateError:
            text, unknown = f"{call.action} gave no answer within {seconds:g} s", True
            text += "; it may have acted."
        except SelfCancelledError:
            text = f"{call.action} was cancelled by itself."
        except Exception as error:
            text = _raised(call.action, error)
        return ActionResult(content=text, is_error=True, outcome_unknown=unknown)

    def _offers(self) -> list[tuple[ActionSource, Sequence[ActionSpec]]]:
        offers: list[tuple[ActionSource, Sequence[ActionSpec]]] = []
        for module in self._acting:
            try:
                offers.append((module, tuple(module.action_specs())))
            except Exception as error:
                self.report(module.name, _raised("action_specs", error))
        return offers

    def constraints(self) -> Sequence[Constraint]:
        """The constraints that modules bring; where one cannot give its own, all is forbidden."""
        result: list[Constraint] = []
        for module in self._ruling:
            try:
                result += module.constraints()
            except Exception as error:
                self.report(module.name, _raised("constraints", error))
                problem = describe_error(error)[:PROBLEM]
                result.append(_ForbidAll(f"{module.name}_constraints", problem))
        return result

    def report(self, name: str, problem: str) -> None:
        """Notes that a module failed in this turn, and what went wrong."""
        self.failed.add(name)
        self._on_problem(name, problem)

    def save_state(self, report: Callable[[str, str], None] | None = None) -> dict[str, Any]:
        """Every module's state by name; one that cannot give its state is left out.

        Args:
            report: Called with the module's name and its fault, in the place of `report`.
        """
        states: dict[str, Any] = {}
        for module in self.modules:
            try:
                states[module.name] = dict(module.save_state())
            except Exception as error:
                (report or self.report)(module.name, _raised("save_state", error))
        return states

    def load_state(self, states: Mapping[str, Any]) -> None:
        """Gives the modules their saved states; those that have none are reset, where they can be.

        Raises:
            StateError: A module does not take its state up; names it.
        """
        self.reset_state([one for one in self.modules if one.name not in states])
        for module in self.modules:
            if module.name in states:
                try:
                    module.load_state(states[module.name])
                except Exception as error:
                    problem = f"does not take its state up: {_raised('load_state', error)}"
                    raise StateError(f"Module {module.name!r} {problem}") from error

    def reset_state(self, modules: Iterable[CognitiveModule] | None = None) -> None:
        """Resets the modules that can be reset (None for all); the others stay as they are.

        Raises:
            StateError: Some could not; the others have forgotten. Names the first.
        """
        problems: list[str] = []
        for module in self.modules if modules is None else modules:
            if isinstance(module, Resettable):
                try:
                    module.reset_state()
                except Exception as error:
                    problem = f"has not forgotten: {_raised('reset_state', error)}"
                    problems.append(f"Module {module.name!r} {problem}")
        if problems:
            raise StateError(problems[0])


class _ForbidAll:
    """Takes the place of constraints that are not known: nothing may pass."""

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        self._problem = problem

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        return Verdict.forbid(f"the constraints in force are not known: {self._problem}")
