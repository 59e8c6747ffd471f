"""The agent of a run built again: by its recipe, as a copy, or with stand-ins around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from coag.compat import ToolRunner
from coag.cycle import ApproveFunction, AskReconciliation
from coag.errors import ResumeError
from coag.memory import LongTermMemory
<<<<<<< HEAD
from coag.models import Answer, StructuredModel, publish_usage
from coag.schema import (
    ActionCall,
    ActionSource,
    ActionSpace,
    Clock,
    ModelCall,
    OutputMode,
    TraceSink,
)
=======
from coag.schema import ActionCall, ActionSource, ActionSpace, Clock, TraceSink
>>>>>>> adb91d9 (The agent is one class over one frozen value of arguments; approval is one pending state; the field's words)
from coag.tracing import Rebuild, RunFolder, read_run

from .agent import CoagAgent
from .arguments import DEFAULT
from .build import Mind, build_agent
from .recipes import build_from
from .replay_model import ReplayAnswers, ReplayAsker


<<<<<<< HEAD
_NO_RESULT = "The client brought no result"
_UNREADABLE = (
    "The client brought",
    "Among the tool calls",
    "A tool call of the answer",
    "The answer was empty",
)
"""How a problem begins with an answer that came and could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came of a request, with what its record does not tell."""

    call: ModelCall
    refused: bool = False
    """True if the client refused the form of the answer, and a looser one was asked for."""
    thought: str = ""
    """The model's own thought beside a text."""
    dropped: int = 0
    """Tool calls that were too many, and are not in the record."""


class AnswerSource(Protocol):
    """Knows what came of the requests that are about to be made."""

    async def answer(self) -> Answered:
        """What came of the request that is being made."""
        ...

    def upcoming(self) -> Sequence[ModelCall]:
        """The requests that this phase is about to make, as far as they are known."""
        ...


class StandInClient(ModelClient):
    """Answers, raises or is cancelled as the source says; nothing is sent anywhere.

    Args:
        source: Knows the answers.
        on_answer: Is told which model it was, before its answer is given.
    """

    def __init__(self, source: AnswerSource, on_answer: Callable[[str], None]) -> None:
        super().__init__()
        self._source = source
        self._on_answer = on_answer

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Gives or raises what the source says."""
        answered = await self._source.answer()
        call = answered.call
        self._on_answer(call.model)
        publish_usage(call.usage, failed=bool(call.error))
        if _ended(call) == "cancelled":
            raise asyncio.CancelledError
        if _ended(call) == "raised":
            raise _error(call.error or "", refused=answered.refused)
        if call.error and call.error.startswith(_NO_RESULT):
            return cast("CreateResult", _Unreadable(call.error))
        thought = (call.given.thought if call.given else None) or answered.thought
        return CreateResult.model_construct(
            finish_reason=call.finish_reason,
            content=_content(answered),
            usage=_usage(call),
            cached=False,
            thought=_thought(call) or thought or None,
            logprobs=None,
        )

    @property
    def model_info(self) -> ModelInfo:
        """What the upcoming requests show that their model could do."""
        upcoming = self._source.upcoming()
        rungs = [call.rung for call in upcoming]
        return ModelInfo(
            vision=False,
            function_calling=bool(upcoming and upcoming[0].tools),
            json_output=OutputMode.JSON_MODE in rungs,
            family="unknown",
            structured_output=rungs[:1] == [OutputMode.JSON_SCHEMA],
            multiple_system_messages=False,
        )


class StandInAsker(StructuredModel):
    """Asks a stand-in, on the rungs of the ladder that the recorded requests show."""

    def __init__(self, source: AnswerSource) -> None:
        def named(model: str) -> None:
            self.name = model

        self._source = source
        super().__init__(StandInClient(source, named), name="recorded", limit_name="none")

    async def ask(self, *args: Any, **options: Any) -> Answer[Any]:
        """Asks as `StructuredModel` does; which rungs hold is the recorded server's business."""
        info = self.client.model_info
        known = (
            (OutputMode.JSON_SCHEMA, "structured_output"),
            (OutputMode.JSON_MODE, "json_output"),
        )
        self._modes = (*(mode for mode, flag in known if info.get(flag)), OutputMode.PROMPT)
        upcoming = self._source.upcoming()
        self.name = upcoming[0].model if upcoming else self.name
        return await super().ask(*args, **options)


def _ended(call: ModelCall) -> str:
    """What the request came to: `raised`, `cancelled`, or an answer."""
    if call.given is not None:
        return call.given.ended
    if call.error == "cancelled":
        return "cancelled"
    nothing = call.error and not (call.raw or call.tool_calls or call.finish_reason)
    return "raised" if nothing and not (call.error or "").startswith(_UNREADABLE) else "text"


def _content(answered: Answered) -> Any:
    call = answered.call
    if call.tool_calls and call.repaired and call.rung is OutputMode.NATIVE:
        return "\n".join(_as_text(told) for told in _told_calls(answered))
    if call.tool_calls:
        return [
            FunctionCall(id=told.get("id", ""), name=told["name"], arguments=told["arguments"])
            for told in _told_calls(answered)
        ]
    if call.error and call.error.startswith(_UNREADABLE[0]) and not call.raw:
        return _Unreadable(call.error)
    thought_only = call.rung is OutputMode.NATIVE and call.error is not None
    return "" if thought_only else call.raw


def _told_calls(answered: Answered) -> list[Mapping[str, Any]]:
    told: list[Mapping[str, Any]] = list(answered.call.tool_calls)
    return [*told, *([told[-1]] * answered.dropped)]


def _thought(call: ModelCall) -> str:
    """The thought that stands in the record's `raw`, where no text does."""
    if call.rung is not OutputMode.NATIVE or not (call.tool_calls or call.error):
        return ""
    return call.raw


def _as_text(told: Mapping[str, Any]) -> str:
    """A tool call as a model writes one."""
    call = {"name": told["name"], "arguments": told["arguments"]}
    return f"<tool_call>{json.dumps(call)}</tool_call>"


def _usage(call: ModelCall) -> Any:
    """The recorded usage; None where it was estimated, so that it is estimated again."""
    if call.usage_estimated:
        return None
    return RequestUsage(
        prompt_tokens=call.usage.prompt_tokens, completion_tokens=call.usage.completion_tokens
    )


def _error(reason: str, *, refused: bool) -> Exception:
    """An error that reads as the recorded one, and is a refusal if that was one."""
    name, _, text = reason.partition(": ")
    base: type[Exception] = ValueError if refused else Exception
    if name == "TimeoutError":
        return TimeoutError(text)
    named = type(name if name.isidentifier() else "RecordedError", (base,), {})
    return cast("type[Exception]", named)(text)


class _Unreadable:
    """Shows as what a client brought in the place of an answer."""

    def __init__(self, problem: str) -> None:
        self._shown = problem.partition(" but ")[2].removesuffix(".")

    def __repr__(self) -> str:
        return self._shown


# ---- Building the agent of a run again: by its recipe, or as a twin with other parts ----


async def build_again(run: RunFolder, told: Rebuild, trust: Iterable[str] = ()) -> Any:
=======
async def build_again(run: RunFolder, purpose: Rebuild, trust: Iterable[str] = ()) -> Any:
>>>>>>> adb91d9 (The agent is one class over one frozen value of arguments; approval is one pending state; the field's words)
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
    agent = await build_again(run, purpose, trust)
    if not isinstance(agent, CoagAgent):
        raise ResumeError(
            f"The recipe of {run.path} makes a {type(agent).__name__}, not a CoagAgent."
        )
    return agent


def twin(agent: CoagAgent, *, clock: Clock | None = None, **arguments: Any) -> CoagAgent:
    """A copy of an agent that has not begun its run, with other arguments in the place of some.

    Both share the context, so only one of them may be used.

    Args:
        agent: The agent as it was built.
        clock: Takes the place of the context's clock.
        **arguments: Arguments of `CoagAgent`; those that are not named stay as they were given.
    """
    if clock is not None:
        agent.context.clock = clock
    shared: dict[str, Any] = {"model_context": agent.model_context}
    return CoagAgent(**{**agent.arguments.keywords(), **shared, **arguments})


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
    """Answers for whoever approves, where the agent has actions approved."""
    external: Callable[[ActionSpace], ActionSpace]
    """Makes the environment's actions; is given those that the agent's own code describes."""
    around: Callable[[ActionSource], ActionSource]
    """Makes what takes the place of each source of internal actions."""
    reconcile: AskReconciliation
    """Answers what became of actions of unknown outcome."""
    proposal: str | None = None
    """What `proposal="auto"` came to, by a model that is not here; None if that is not known."""
    remembering: bool = True
    """Whether the run offered actions to remember events and facts."""
    rewriting: bool = True
    """Whether it offered the action to change standing rules."""


def staged(agent: CoagAgent, doubles: ReplayDoubles) -> Mind:
    """The mind of an agent that has not begun its run, with doubles around it.

    Nothing of the agent's own is written to, but it shares its context and its modules with
    that mind, so it may not be used any more.
    """
    given, context = agent.arguments, agent.context
    context.clock = doubles.clock
    decided = given.proposal
    if doubles.proposal is not None and decided in ("auto", DEFAULT):
        decided = cast("Any", doubles.proposal)
    own = replace(
        given,
        model_context=context,
        memory=doubles.memory,
        approve=None if given.approve is None else doubles.approve,
        environment=None,
        logs=None,
        rewriting=doubles.rewriting,
        proposal=decided,
    )
    mind = build_agent(own, remembers=doubles.remembering)
    mind.trace.run_id, mind.trace.sink = doubles.run, doubles.trace
    rules = mind.deps.constraints
    for rule in agent.constraints.own():
        if rule.name not in rules.names():
            rules.add(rule.judge, name=rule.name)
    gateway = replace(mind.gateway, asker=ReplayAsker(doubles.answers), phases={}, on_text=None)
    tools = ToolRunner(mind.tools.tools)
    deps = replace(
        mind.deps,
        ask=gateway,
        offer=gateway.offer,
        actions=mind.deps.actions.over(doubles.external(tools), doubles.around),
        announce=_announce_nothing,
        reconcilers=(doubles.reconcile,),
    )
    return replace(mind, gateway=gateway, deps=deps)


def _announce_nothing(calls: Sequence[ActionCall]) -> None:
    """Nobody is shown what is about to run."""
