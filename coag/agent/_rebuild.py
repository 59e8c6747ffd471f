"""Building the agent of a run again: by its recipe, or as a twin with other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from coag.compat import ToolRunner
from coag.cycle import ApproveFunction, AskReconciliation, Deps
from coag.errors import ResumeError
from coag.memory import LongTermMemory
from coag.schema import ActionCall, ActionSource, ActionSpace, Clock, TraceSink
from coag.tracing import Rebuild, RunFolder, read_run

from ._asking import ModelFace
from ._coag_agent import CoagAgent
from ._making import make
from ._mind import Mind, RunName, build_mind
from ._recipes import build_from
from ._resume import Remains, restore
from ._settings import Deliberation
from ._stand_in import AnswerSource, StandInAsker


async def build_again(run: RunFolder, told: Rebuild, trust: Iterable[str] = ()) -> Any:
    """What the recipe of a run makes.

    Args:
        run: The run.
        told: What for.
        trust: Modules from which the run may name its factory; see `coag.schema.from_run`.

    Raises:
        ResumeError: The run cannot be built again.
        TraceError: There is no run in the folder.
    """
    return await build_from(read_run(run.path).recipe, run.path, told, trust)


async def rebuild(run: RunFolder, told: Rebuild, trust: Iterable[str] = ()) -> CoagAgent:
    """The agent of a run as its recipe makes it, without what the run did.

    Args:
        run: The run.
        told: What for.
        trust: Modules from which the run may name its factory; see `coag.schema.from_run`.

    Raises:
        ResumeError: The run cannot be built again.
        TraceError: There is no run in the folder.
    """
    made = await build_again(run, told, trust)
    if not isinstance(made, CoagAgent):
        raise ResumeError(
            f"The recipe of {run.path} makes a {type(made).__name__}, not a CoagAgent."
        )
    return made


def twin(agent: CoagAgent, *, clock: Clock | None = None, **arguments: Any) -> CoagAgent:
    """An agent like one that has not begun its run, with other arguments in the place of some.

    Both share the context, so only one of them may be used.

    Args:
        agent: The agent as it was built.
        clock: Takes the place of the context's clock.
        **arguments: Arguments of `CoagAgent`; those that are not named stay as they were given.
    """
    given = agent.arguments
    if clock is not None:
        agent.context.clock = clock
    own = {field.name: getattr(given, field.name) for field in fields(given)}
    deliberation = own.pop("deliberation")
    own["model_context"] = own["model_context"] or agent.context
    return CoagAgent(**{**own, **deliberation, **arguments})


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubles:
    """What takes the place of everything that is not the agent's own code."""

    run: str
    """The run's id, which ids of intents begin with."""
    clock: Clock
    trace: TraceSink
    answers: AnswerSource
    """Answers for all models."""
    memory: LongTermMemory
    approve: ApproveFunction
    """Answers for whoever approves, where the agent has actions approved."""
    external: Callable[[ActionSpace], ActionSpace]
    """Makes the environment's actions; is given those that the agent's own code describes."""
    around: Callable[[ActionSource], ActionSource]
    """Makes what stands in the place of each source of internal actions."""
    reconcile: AskReconciliation
    """Tells what became of actions of unknown outcome."""
    proposal: str | None = None
    """What `proposal="auto"` came to, by a model that is not here; None if that is not known."""
    remembering: bool = True
    """Whether the run offered actions to remember events and facts."""
    rewriting: bool = True
    """Whether it offered the action to change standing rules."""


def staged(agent: CoagAgent, doubles: Doubles) -> Mind:
    """The mind of an agent that has not begun its run, with doubles around it.

    Nothing of the agent's own is written to, but it shares its context and its modules with
    that mind, so it may not be used any more.
    """
    given, context = agent.arguments, agent.context
    context.clock = doubles.clock
    own = replace(
        given,
        model_context=context,
        memory=doubles.memory,
        approve=None if given.approve is None else doubles.approve,
        environment=None,
        logs=None,
        rewriting=doubles.rewriting,
        deliberation=_decided(given.deliberation, doubles.proposal),
    )
    made = make(own, remembers=doubles.remembering)
    mind = build_mind(made.parts, RunName(doubles.run))
    mind.trace.sink = doubles.trace
    return replace(
        mind, deps=_staged(agent, mind.deps, ToolRunner(made.parts.tools.tools), doubles)
    )


def _staged(agent: CoagAgent, deps: Deps, tools: ToolRunner, doubles: Doubles) -> Deps:
    rules = deps.constraints
    for rule in agent.constraints.own():
        if rule.name not in rules.names():
            rules.add(rule.judge, name=rule.name)
    if not isinstance(deps.ask, ModelFace):
        raise AssertionError("An agent's mind asks by a ModelFace.")
    face = replace(deps.ask, asker=StandInAsker(doubles.answers), phases={}, on_text=None)
    return replace(
        deps,
        ask=face,
        offer=face.offer,
        actions=deps.actions.over(doubles.external(tools), doubles.around),
        announce=_nobody,
        reconcilers=(doubles.reconcile,),
    )


def _decided(given: Deliberation, proposal: str | None) -> Deliberation:
    if proposal is None or given.get("proposal", "auto") != "auto":
        return given
    return cast("Deliberation", {**given, "proposal": proposal})


def _nobody(calls: Sequence[ActionCall]) -> None:
    """Nobody is shown what is about to run."""


async def take_up(mind: Mind, remains: Remains) -> None:
    """Brings a staged mind to where a trace says that its run stood, as `resume` does."""
    await restore(mind, remains)
