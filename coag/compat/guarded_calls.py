"""Calls of a stock agent under guard: judged, approved, recorded, begun at most once.

`GuardedCalls` makes a call as `CoagAgent` runs what it selected: by `coag.cycle.run_selected`. It
keeps the context that rules judge by, the detector of repeated failures and the trace of the run.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeVar

from autogen_core import CancellationToken
from autogen_core.tools import TextResultContent, ToolResult

from coag._util.text import ellipsis
from coag._util.timeouts import describe_error, until_done
from coag.context import CoagContext
from coag.cycle import (
    CURRENT_STATE,
    RESPOND,
    ActionExecutor,
    ActionRun,
    ApprovalPolicy,
    ApproveFunction,
    ConstraintSet,
    GuardDeps,
    ProgressDetector,
    approvals_of,
    perceive,
    reconcile,
    run_selected,
    settled_by_person,
)
from coag.errors import ConfigurationError, StateError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpace,
    ActionSpec,
    Candidate,
    CompletesArguments,
    Constraint,
    Evaluation,
    Intent,
    Percept,
    PerceptKind,
    Snapshot,
    SnapshotReason,
    Trust,
    UnsettledAction,
    Verdict,
)

from .guard_trace import GuardTrace
from .tool_runner import ToolRunner

# ---- What the agent gets back from a guarded call ----


NOTHING_DONE = "Nothing was done."
UNKNOWN = "Its outcome is unknown. Find out what it did before you call it again."
PERCEPTS = 1_000
"""Messages and results by which rules judge: the newest."""
_SHOWN = 300
"""Characters of arguments that a note shows."""
_ELSEWHERE = (
    "Another event loop or thread is using this workbench just now. Call it again afterwards, or "
    "give each thread a workbench of its own."
)
_STALE = "Until the workbench is reset, nothing more is run."
ResultT = TypeVar("ResultT", bound=ToolResult)


class GuardedResult(ToolResult):
    """The result of a guarded call."""

    may_have_happened: bool = False
    """Whether an error leaves open what the tool did: it was late, lost or cancelled."""


def text_result(
    name: str, text: str, *, is_error: bool = True, unknown: bool = False
) -> GuardedResult:
    """A text as the result of a call."""
    content = TextResultContent(content=text)
    return GuardedResult(name=name, result=[content], is_error=is_error, may_have_happened=unknown)


async def result_when_cancelled(
    call: Coroutine[Any, Any, ResultT],
    token: CancellationToken | None,
    *,
    before: ResultT,
    during: ResultT,
) -> ResultT:
    """The result of a call; a stock agent hangs where a workbench raises."""
    if token is not None and token.is_cancelled():
        call.close()
        return before
    calling = asyncio.create_task(call)
    if token is not None:
        token.link_future(calling)
    try:
        await asyncio.wait({calling})
    finally:
        await end_call(calling)
    return during if calling.cancelled() else calling.result()


async def end_call(calling: asyncio.Task[Any]) -> None:
    """Cancels a call that runs, and waits until it is recorded what is known of it.

    However often the waiter is cancelled meanwhile: another call must not begin before.
    """
    calling.cancel()
    stopped = await until_done([calling], cancel=False)
    if stopped is not None:
        raise stopped


def _result_of(ran: ActionRun) -> GuardedResult:
    name = ran.executed.action
    if ran.refused_by is not None:
        return refusal(name, ran.refused_by)
    returned = ran.returned or ActionResult(content=ran.executed.result, is_error=True)
    unknown = returned.outcome_unknown
    text = f"{returned.content} {UNKNOWN}" if unknown else returned.content
    return text_result(name, text, is_error=unknown or returned.is_error, unknown=unknown)


def refusal(name: str, verdict: Verdict) -> GuardedResult:
    """The result of a call that a rule forbids."""
    return _not_run(name, forbids(verdict))


def forbids(verdict: Verdict) -> str:
    """By which rule something is forbidden, and why."""
    reason = verdict.reason.strip().rstrip(".") or "it gives no reason"
    return f"The rule {verdict.constraint!r} forbids it: {reason}."


def _not_run(name: str, problem: str) -> GuardedResult:
    return text_result(name, f"{name} was not run. {problem} {NOTHING_DONE}")


# ---- The guard ----


Show = Callable[[object], None]
_SHOW: ContextVar[Show] = ContextVar("coag_guarded_call_show")
_WITHIN: ContextVar[tuple[object, ...]] = ContextVar("coag_guarded_call_within", default=())
"""The guards of the calls within which this runs, e.g. an agent that is a tool."""


def show_event(event: object) -> None:
    """Passes what a streaming tool shows to the caller that waits for it."""
    _SHOW.get()(event)


class GuardedTools(ActionSpace, CompletesArguments, Protocol):
    """Tools as a guard calls them: a `ToolRunner`, or those of another framework."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What the last listing left out, and why."""
        ...


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """What code says of a call that has not run."""

    evaluation: Evaluation
    refusal: str
    """The answer to the model where a rule forbids it; empty where none does."""


@dataclass(slots=True)
class _CallExecutor:
    """The tools, for one call: it is judged, approved and run by one and the same definition."""

    runner: GuardedTools
    call_id: str | None
    running: dict[str, ActionCall]
    """Calls that have begun and not ended."""
    listed: Mapping[str, ActionSpec] | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        return self.runner.problems

    async def specs(self) -> Mapping[str, ActionSpec]:
        if self.listed is None:
            # A tool of this name would pass for the answer, which patterns of rules leave out.
            specs = [spec for spec in await self.runner.specs() if spec.name != RESPOND.name]
            self.listed = {spec.name: spec for spec in specs}
        return self.listed

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.runner.complete(spec, arguments)

    async def execute(self, call: ActionCall) -> ActionResult:
        own_id = call.id if self.call_id is None else self.call_id
        self.running[call.id] = call
        try:
            return await self.runner.execute(call.model_copy(update={"id": own_id}))
        finally:
            del self.running[call.id]


@dataclass(slots=True)
class _LoopCalls:
    """The calls under way in one event loop."""

    loop: asyncio.AbstractEventLoop
    calls: int = 0
    in_turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def occupied(self) -> bool:
        return self.calls > 0 and not self.loop.is_closed()


class _LoopGate:
    """Lets the calls of one event loop in at a time, whatever threads there are."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._now: _LoopCalls | None = None

    @contextmanager
    def entered(self) -> Generator[_LoopCalls | None]:
        """The calls of this loop, one more of them; None where another loop is at work."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._now is None or (self._now.loop is not loop and not self._now.occupied):
                self._now = _LoopCalls(loop)
            here = self._now if self._now.loop is loop else None
            if here is not None:
                here.calls += 1
        try:
            yield here
        finally:
            if here is not None:
                with self._lock:
                    here.calls -= 1


class GuardedCalls:
    """Makes calls under guard and perceives what they return; the part of a `Guard` for calls.

    Whatever happens is a result, except that the waiting task is cancelled or the process is to
    end. Each call counts as a cycle of the context's working memory.
    """

    def __init__(  # noqa: PLR0913 - as ConstrainedWorkbench: all but three have defaults
        self,
        name: str,
        context: CoagContext[Any],
        runner: ToolRunner,
        *,
        constraints: Sequence[Constraint] = (),
        approval: ApprovalPolicy | None = None,
        approve: ApproveFunction | None = None,
        logs: str | None = None,
        settings: Mapping[str, Any] | None = None,
        parallel: bool = False,
    ) -> None:
        approvals = approvals_of(approval, approve, context.clock, context.ids, constraints)
        folder = None if logs is None else Path(logs)
        self.context = context
        _keep_percepts(self.context)
        self.trace = GuardTrace(folder, name, context.clock, settings or {})
        self.runner = runner
        self.unfinished: tuple[Intent, ...] = ()
        """Calls that earlier runs left open, as found when this run began."""
        self._heard: OrderedDict[str, None] = OrderedDict()
        """What is known of the dialogue, by digests; see `Guard.hear`."""
        self._name = name
        self._constraints = ConstraintSet(constraints, [context], approvals=approvals)
        self._approvals = approvals
        self._parallel = parallel
        self._detector = ProgressDetector()
        self._running: dict[str, ActionCall] = {}
        """Calls that have begun and not ended; a state that is saved names them."""
        self._reconcilers = (runner.reconcile, context.reconcile)
        self._gate = _LoopGate()

    # ---- calls ----

    async def call(
        self,
        name: str,
        arguments: object,
        call_id: str | None,
        show: Show = lambda event: None,
        tools: GuardedTools | None = None,
    ) -> GuardedResult:
        """Makes one call; where rules judge it, after those that came before.

        While calls are under way in another event loop, e.g. of another thread, it is refused:
        what the rules judge by belongs to one loop at a time.

        Args:
            name: The tool.
            arguments: What it is called with, as JSON.
            call_id: The model's own id of the call.
            show: Gets what a streaming tool shows while it runs.
            tools: Those of this call; the guard's own where none are given.
        """
        started: list[ActionCall] = []
        with self._gate.entered() as here:
            if here is None:
                return _not_run(name, _ELSEWHERE)
            _SHOW.set(show)
            try:
                executor = _CallExecutor(tools or self.runner, call_id, self._running)
                spec = (await executor.specs()).get(name) if self._parallel else None
                beside = spec is not None and spec.read_only and not self._counts(name)
                async with self._in_turn(here, beside=beside):
                    within = _WITHIN.set((*_WITHIN.get(), self))
                    try:
                        await self.open()
                        deps = self._deps(executor, started.extend)
                        return await self._guarded(name, arguments, deps)
                    finally:
                        _WITHIN.reset(within)
            except Exception as error:  # a hook may raise anything; a stock agent hangs where we do
                problem = describe_error(error)
                if not started:  # it could not be judged or recorded
                    return _not_run(name, problem)
                text = f"{name} was run, and then: {problem} {UNKNOWN}"
                return text_result(name, text, unknown=True)

    @asynccontextmanager
    async def _judging(self, actions: ActionExecutor) -> AsyncGenerator[GuardDeps]:
        """The turn of judging what is not run; it counts as a cycle.

        Within a call it does not wait for that call's end.
        """
        with self._entered() as here:
            async with self._in_turn(here, beside=self in _WITHIN.get()):
                await self.open()
                deps = self._deps(actions)
                self._set_cycle(self.context.working_memory.cycle + 1)
                if self.context.working_memory.unsettled:
                    await self.perceive(await reconcile(self.context, deps))
                self._constraints.pin()
                yield deps

    @contextmanager
    def _entered(self) -> Generator[_LoopCalls]:
        with self._gate.entered() as here:
            if here is None:
                raise ConfigurationError(_ELSEWHERE)
            yield here

    @asynccontextmanager
    async def _in_turn(self, here: _LoopCalls, *, beside: bool) -> AsyncGenerator[None]:
        """Waits for earlier calls, unless this one changes nothing or nobody judges the state."""
        judged = self.context.has_forward_model or self._approvals is not None
        if beside or not (self._constraints.pin() or judged):
            yield
            return
        async with here.in_turn:
            yield

    def _counts(self, name: str) -> bool:
        """Whether a rule counts the calls of a tool; sets what is counted from now on."""
        self._constraints.pin()
        memory, counted = self.context.working_memory, self._constraints.counted()
        if counted and counted != memory.counted:
            self.context.restore(memory.model_copy(update={"counted": counted}))
        return self._constraints.counts(name)

    async def _guarded(self, name: str, arguments: object, deps: GuardDeps) -> GuardedResult:
        memory = self.context.working_memory
        self._set_cycle(memory.cycle + 1)
        raw = as_json(arguments)
        candidate = Candidate(id=deps.ids("call"), action=name, raw_arguments=raw)
        if memory.unsettled:
            await self.perceive(await reconcile(self.context, deps))
        if self._stale:
            verdict = Verdict(allowed=False, constraint=CURRENT_STATE, reason=self._stale)
            judged = Evaluation(candidate_id=candidate.id, verdicts=(verdict,))
            self._note_verdicts(candidate, judged, deps)
            return refusal(name, verdict)
        self._counts(name)
        judged_by = partial(self._note_verdicts, deps=deps)
        ended = await run_selected([candidate], self.context, deps, judged=judged_by)
        await self.perceive(percept for ran in ended.ran for percept in ran.queued)
        if ended.broken is not None and not isinstance(ended.broken, asyncio.CancelledError):
            raise ended.broken
        result = _result_of(ended.ran[0])
        if not self._stale:
            return result
        text = f"{result.to_text()}\n{self._stale}"
        return text_result(name, text, unknown=result.may_have_happened)

    def _offering(self, tools: GuardedTools) -> ActionExecutor:
        """Tools of which calls are judged, and not run."""
        return _CallExecutor(tools, None, {})

    def _deps(
        self,
        executor: ActionExecutor | None = None,
        announce: Callable[[Sequence[ActionCall]], None] = lambda calls: None,
    ) -> GuardDeps:
        return GuardDeps(
            actions=executor or _CallExecutor(self.runner, None, self._running),
            trace=self.trace,
            clock=self.context.clock,
            ids=self.context.ids,
            approvals=self._approvals,
            agent=self._name,
            constraints=self._constraints,
            detector=self._detector,
            announce=announce,
            reconcilers=self._reconcilers,
            run=lambda: self.trace.id,
        )

    @property
    def _stale(self) -> str:
        """Why the state is out of date; empty while it is not."""
        problem = self.context.working_memory.stale
        return f"The perceptual state is out of date: {problem} {_STALE}" if problem else ""

    def _note_verdicts(self, candidate: Candidate, judged: Evaluation, deps: GuardDeps) -> None:
        problems: Sequence[str] = getattr(deps.actions, "problems", ())
        refused_by = judged.rejected_by
        passed = f"passed {', '.join(verdict.constraint for verdict in judged.verdicts)}"
        if refused_by is not None:
            passed = f"is forbidden by {refused_by.constraint}: {refused_by.reason}"
        self.note(
            "constraint",
            f"{candidate.action}({ellipsis(candidate.raw_arguments, _SHOWN)}) {passed}",
            call=candidate.id,
            verdicts=[verdict.model_dump(mode="json") for verdict in judged.verdicts],
            **({"problems": list(problems)} if problems else {}),
        )

    # ---- the run and its state ----

    async def open(self) -> None:
        """Begins the run, unless it is open; calls that earlier ones left open are perceived."""
        earlier = self.trace.open()
        if earlier is None:
            return
        self._record_state()
        for problem in earlier.problems:
            self.note("run", problem)
        self.unfinished = earlier.intents
        self._counts("")
        for rule, text in self._constraints.texts().items():
            self.note("rule", f"{rule}: {text}", rule=rule)
        known = {one.intent_id for one in self.context.working_memory.unsettled}
        new = [one for one in earlier.unsettled if one.intent_id not in known]
        await self.perceive([_unknown_outcome(action, self.context) for action in new])

    async def perceive(self, percepts: Iterable[Percept]) -> None:
        """Takes in percepts; where a hook cannot read one, nothing more runs on the old state."""
        with suppress(StateError):  # working memory keeps what was raised, and forbids
            await perceive(percepts, self.context, self._deps())
        self.trace.flush()

    async def settle(self, intent_id: str, *, happened: bool) -> None:
        """Takes in what a person says became of a call of unknown outcome."""
        await self.open()
        found = settled_by_person(
            intent_id, happened=happened, context=self.context, deps=self._deps()
        )
        await self.perceive([found])

    def note(self, about: str, text: str, **details: Any) -> None:
        """Writes a note to the trace, if a run is open."""
        if self.trace.id:
            self._deps().note(self.context, about, text, **details)

    async def reset(self) -> None:
        """Forgets the state and what failed. Calls are counted on, for the trace's sake."""
        cycle = self.context.working_memory.cycle
        await self.context.clear()
        _keep_percepts(self.context)
        self._set_cycle(cycle)
        self._detector.load_state({})
        self.note("reset", "The workbench was reset.")
        self._record_state()

    async def save_state(self) -> dict[str, Any]:
        """What the guard knows, as JSON."""
        return {
            "context": dict(await self.context.save_state()),
            "detector": self._detector.save_state(),
            "ids": self.context.ids.save(),
            "pending": [call.model_dump(mode="json") for call in self._running.values()],
        }

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from what `save_state` returned."""
        await self.context.load_state(state["context"])
        self._detector.load_state(state["detector"])
        self.context.ids.load(state["ids"])
        for call in map(ActionCall.model_validate, state["pending"]):
            action = UnsettledAction(
                intent_id=call.id,
                action=call.action,
                arguments=call.arguments,
                cycle=self.context.working_memory.cycle,
            )
            self.context.perceive(_unknown_outcome(action, self.context))
        self._record_state()

    def _set_cycle(self, number: int) -> None:
        memory = self.context.working_memory
        self.context.restore(memory.model_copy(update={"cycle": number}))

    def _record_state(self) -> None:
        """Records a state that no percept of this run led to; nothing between runs."""
        if not self.trace.id:
            return
        memory = self.context.working_memory
        self.trace.write(
            Snapshot(
                at=self.context.clock.now(),
                cycle=memory.cycle,
                reason=SnapshotReason.LOADED,
                working_memory=memory.to_json(),
                detector=self._detector.save_state(),
                ids=self.context.ids.save(),
            )
        )
        self.trace.flush()


def _keep_percepts(context: CoagContext[Any]) -> None:
    """A stock agent may show its model all that it ever read, so rules judge by more of it."""
    memory = context.working_memory
    limits = memory.limits.model_copy(update={"percepts": PERCEPTS})
    context.restore(memory.model_copy(update={"limits": limits}))


def _unknown_outcome(action: UnsettledAction, context: CoagContext[Any]) -> Percept:
    return Percept(
        id=context.ids("percept"),
        at=context.clock.now(),
        kind=PerceptKind.UNKNOWN_OUTCOME,
        source=action.action,
        trust=Trust.UNTRUSTED,
        content=f"An earlier run began {action.action}. {UNKNOWN}",
        caused_by=action.intent_id,
        arguments=action.arguments,
        is_error=True,
    )


def as_json(arguments: object) -> str:
    """The arguments as JSON; what is none becomes a text that no schema lets pass."""
    try:
        return json.dumps(arguments if arguments is not None else {}, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return f"[no JSON: {type(arguments).__name__}]"
