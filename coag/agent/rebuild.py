"""The agent of a run built again: by its recipe, as a copy, or with stand-ins around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from coag.compat import ToolRunner
from coag.cycle import ApproveFunction, AskReconciliation
from coag.memory import LongTermMemory
from coag.schema import ActionCall, ActionSource, ActionSpace, Clock, Detachable, TraceSink
from coag.tracing import Rebuild, RunFolder, read_run

from .agent import CoagAgent
from .arguments import DEFAULT
from .build import Mind
from .memories import modules_apart
from .recipes import build_from, of_kind
from .replay_model import ReplayAnswers, ReplayAsker


async def build_again(run: RunFolder, purpose: Rebuild, trust: Iterable[str] = ()) -> Any:
    """What the recipe of a run makes.

    Args:
        run: The run.
        purpose: What for.
        trust: Modules from which the run may name its factory; see `coag.schema.from_run`.

    Raises:
        ResumeError: The run cannot be built again.
        TraceError: There is no run in the folder.
    """
    return await build_from(read_run(run.path).recipe, run.path, purpose, trust)


async def rebuild(run: RunFolder, purpose: Rebuild, trust: Iterable[str] = ()) -> CoagAgent:
    """The agent of a run as its recipe makes it, without what the run did; see `build_again`."""
    return of_kind(await build_again(run, purpose, trust), CoagAgent, run)


def twin(agent: CoagAgent, *, clock: Clock | None = None, **arguments: Any) -> CoagAgent:
    """A copy of an agent that has not begun its run, with other arguments in the place of some.

    Both share the context, so only one of them may be used.

    Args:
        agent: The agent as it was built.
        clock: Takes the place of the context's clock.
        **arguments: Arguments of `CoagAgent`; others stay as they were given.
    """
    if clock is not None:
        agent.context.clock = clock
    shared: dict[str, Any] = {"model_context": agent.model_context}
    return CoagAgent(**{**agent.arguments.keywords(), **shared, **arguments})


def detach_modules(agent: CoagAgent) -> None:
    """Lets an agent's modules keep to themselves what they learn; see `coag.schema.Detachable`.

    Raises:
        CoagError: One cannot read what it is to be detached from.
    """
    for module in agent.arguments.modules:
        if isinstance(module, Detachable):
            module.detach()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDoubles:
    """What takes the place of everything that is not the agent's own code."""

    run: str
    """The run's id, which ids of intents begin with."""
    clock: Clock
    trace: TraceSink
    answers: ReplayAnswers
    """Answers for all models."""
    memory: LongTermMemory
    approve: ApproveFunction
    """Answers for the approver, where the agent has actions approved."""
    external: Callable[[ActionSpace], ActionSpace]
    """Makes the environment's actions; is given those that the agent's own code describes."""
    around: Callable[[ActionSource], ActionSource]
    """Makes what takes the place of each source of internal actions."""
    reconcile: AskReconciliation
    """Answers what became of actions of unknown outcome."""
    depth: str | None = None
    """How the cycles of a fork deliberated, where that was changed."""
    configuration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the run was recorded with; it takes the place of defaults that have changed since."""
    proposal: str | None = None
    """What `proposal="auto"` chose, for a model that is not here; None if that is not known."""
    remembering: bool = True
    """Whether the run offered actions to remember events and facts."""
    rewriting: bool = True
    """Whether it offered the action to change standing rules."""


def staged(agent: CoagAgent, doubles: ReplayDoubles) -> Mind:
    """The mind of an agent that has not begun its run, with doubles around it.

    Nothing of the agent's own is written to, but it shares its context and its modules, which are
    detached, with that mind, so it may not be used any more.

    Raises:
        CoagError: A module cannot read what it has to be detached from.
    """
    given, context = agent.arguments, agent.context
    context.clock = doubles.clock
    detach_modules(agent)
    decided = given.proposal
    if doubles.proposal is not None and decided in ("auto", DEFAULT):
        decided = cast("Any", doubles.proposal)
    own = replace(
        given,
        model_context=context,
        memory=doubles.memory,
        memory_dynamics=None,
        modules=(*given.modules, *modules_apart(agent.long_term_memory, given.modules)),
        approve=None if given.approve is None else doubles.approve,
        environment=None,
        logs=None,
        rewriting=doubles.rewriting,
        proposal=decided,
        depth=given.depth if doubles.depth is None else cast("Any", doubles.depth),
        **given.recorded_defaults(doubles.configuration),
    )
    mind = Mind(own, remembers=doubles.remembering)
    mind.trace.run_id, mind.trace.sink = doubles.run, doubles.trace
    rules = mind.deps.constraints
    for rule in agent.constraints.own():
        if rule.name not in rules.names():
            rules.add(rule.judge, name=rule.name)
    mind.gateway = replace(
        mind.gateway, asker=ReplayAsker(doubles.answers), phases={}, begin_text=None
    )
    tools = ToolRunner(mind.tools.tools)
    mind.deps = replace(
        mind.deps,
        ask=mind.gateway,
        offer=mind.gateway.offer,
        actions=mind.deps.actions.over(doubles.external(tools), doubles.around),
        announce=_announce_nothing,
        reconcilers=(doubles.reconcile,),
    )
    return mind


def _announce_nothing(calls: Sequence[ActionCall]) -> None:
    """Nobody is shown what is about to run."""
