"""Calls of stock agents under our rules: judged, approved, written down, begun at most once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import TextResultContent, ToolResult
from pydantic import ValidationError

from coag._util.timeouts import describe_error
from coag.context import CoagContext, WorkingMemory
from coag.cycle import (
    CURRENT_STATE,
    ActionDoor,
    Approvals,
    AskReconciliation,
    ConstraintSet,
    GuardDeps,
    NoActions,
    ProgressDetector,
    Ran,
    perceive,
    reconcile,
    run_selected,
    settled_by_person,
)
from coag.errors import ConfigurationError, StateError, TraceError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    Clock,
    Evaluation,
    Intent,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    Trust,
    UnsettledAction,
    Verdict,
    new_run_id,
)
from coag.tracing import (
    MemoryTrace,
    RunFolder,
    RunInfo,
    TraceWriter,
    installed_versions,
    list_runs,
    open_trace,
    read_run,
    read_trace,
)

from .tool_runner import ToolRunner

# ---- What a plain agent is told of a guarded call ----


NOTHING_DONE = "Nothing was done."
UNKNOWN = "Its outcome is unknown. Find out what it did before you call it again."
SHOWN = 300
"""Characters of arguments that a note shows."""


class GuardedResult(ToolResult):
    """What a guarded call came to."""

    may_have_happened: bool = False
    """Whether an error leaves open what the tool did: it was late, lost or cancelled."""


def said(name: str, text: str, *, is_error: bool = True, unknown: bool = False) -> GuardedResult:
    """A text as the result of a call."""
    content = TextResultContent(content=text)
    return GuardedResult(name=name, result=[content], is_error=is_error, may_have_happened=unknown)


def answer_of(ran: Ran) -> GuardedResult:
    """What came of a call."""
    name = ran.executed.action
    if ran.refused_by is not None:
        return refusal(name, ran.refused_by)
    returned = ran.returned or ActionResult(content=ran.executed.result, is_error=True)
    if returned.outcome_unknown:
        return said(name, f"{returned.content} {UNKNOWN}", unknown=True)
    return said(name, returned.content, is_error=returned.is_error)


def refusal(name: str, verdict: Verdict) -> GuardedResult:
    """That a call was not run, and what forbids it."""
    reason = verdict.reason.strip().rstrip(".") or "it gives no reason"
    text = f"{name} was not run. The rule {verdict.constraint!r} forbids it: {reason}."
    return said(name, f"{text} {NOTHING_DONE}")


def broken(name: str, problem: str, *, begun: bool) -> GuardedResult:
    """That a call could not be judged or written down: nobody acts unjudged or unrecorded."""
    if begun:
        return said(name, f"{name} was run, and then: {problem} {UNKNOWN}", unknown=True)
    return said(name, f"{name} was not run. {problem} {NOTHING_DONE}")


def verdicts_text(candidate: Candidate, judged: Evaluation) -> str:
    """What the rules said of a call, in one sentence."""
    call = f"{candidate.action}({_short(candidate.raw_arguments)})"
    died_of = judged.died_of
    if died_of is not None:
        return f"{call} is forbidden by {died_of.constraint}: {died_of.reason}"
    return f"{call} passed {', '.join(verdict.constraint for verdict in judged.verdicts)}"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


# ---- Calls that a cancellation ends with a result ----


async def until_cancelled(
    name: str, call: Coroutine[Any, Any, GuardedResult], token: CancellationToken | None
) -> GuardedResult:
    """The result of a call, or one that says that the token cancelled it.

    A stock agent hangs where a workbench raises. That this very task is cancelled is raised,
    after the call's end was written down.
    """
    if token is not None and token.is_cancelled():
        call.close()
        return said(name, f"{name} was cancelled before it began. {NOTHING_DONE}")
    calling = asyncio.create_task(call)
    if token is not None:
        token.link_future(calling)
    try:
        await asyncio.wait({calling})
    finally:
        if not calling.done():
            calling.cancel()
            await asyncio.wait({calling})
    if calling.cancelled():
        return said(name, f"{name} was cancelled before it ran. {NOTHING_DONE}")
    return calling.result()


UNSETTLED, SETTLED = "unsettled", "settled"
"""Keys of a run's result: actions whose outcome is not known, and intents found out about."""
ENDED = "The process ended while this ran. It may or may not have had its effect."


@dataclass(frozen=True, slots=True)
class Left:
    """What earlier runs had left open."""

    intents: tuple[Intent, ...] = ()
    """Actions that were begun and of whose end nothing is known, found now."""
    unsettled: tuple[UnsettledAction, ...] = ()
    """All whose outcome was not known when their run ended, nor found out by a later one."""
    problems: tuple[str, ...] = ()
    """Runs that could not be looked at, and why."""


class PlainRun:
    """A run's trace, in RAM or in a folder; a `TraceSink`. It begins at the first `open`.

    Args:
        logs: The folder of all runs; None keeps the trace in RAM.
        agent: Who acts; names the run.
        clock: Dates the run.
        configuration: The settings, as JSON.
    """

    def __init__(
        self, logs: Path | None, agent: str, clock: Clock, configuration: Mapping[str, Any]
    ) -> None:
        self.id = ""
        """The run's id; empty before the first run, and between two."""
        self._logs = logs
        self._agent = agent
        self._clock = clock
        self._configuration = dict(configuration)
        self._folder: RunFolder | None = None
        self._trace: TraceWriter | MemoryTrace = MemoryTrace()

    @property
    def folder(self) -> RunFolder:
        """The folder of the run, or of the one that has just ended.

        Raises:
            ConfigurationError: There is none.
        """
        if self._folder is None:
            raise ConfigurationError(
                "This run is kept in RAM: for a folder, give `logs=DIR`."
                if self._logs is None
                else "No run has begun: its folder is made with the first call."
            )
        return self._folder

    @property
    def records(self) -> tuple[TraceRecord, ...]:
        """What the run, or the one that has just ended, has written so far, oldest first."""
        if isinstance(self._trace, MemoryTrace):
            return self._trace.records
        if self.id:
            self._trace.flush()
        return tuple(entry.body for entry in read_trace(self.folder.trace_path))

    def open(self) -> Left | None:
        """Begins a run and tells what earlier ones had left open; None if one goes on.

        Raises:
            TraceError: The folder cannot be written to. Nothing has been done yet.
        """
        if self.id:
            return None
        now = self._clock.now()
        if self._logs is None:
            self.id, self._trace = new_run_id(now, self._agent), MemoryTrace()
            return Left()
        left = settle_runs(self._logs, self._agent, self._clock)
        info = RunInfo(
            id=new_run_id(now, self._agent),
            kind="plain",
            agent=self._agent,
            model="",
            versions=installed_versions(),
            configuration=self._configuration,
            started_at=now,
        )
        self._folder = RunFolder.create(self._logs, info)
        self._trace = open_trace(self._folder, clock=self._clock)
        self.id = info.id
        return left

    def close(self) -> None:
        """Ends the run, if one goes on; the next `open` begins another."""
        if self.id and isinstance(self._trace, TraceWriter):
            self._trace.close()
            records = [entry.body for entry in read_trace(self.folder.trace_path)]
            self.folder.finish(at=self._clock.now(), result=_known_of(records, ()) or None)
        self.id = ""

    def write(self, record: TraceRecord) -> None:
        """Appends a record."""
        self._trace.write(record)

    def flush(self) -> None:
        """Makes what was written survive the death of this process."""
        self._trace.flush()


def settle_runs(logs: Path, agent: str, clock: Clock) -> Left:
    """Gives the actions of runs that nobody goes on with the receipt that they lack.

    A run that another writer holds goes on, and is left alone.

    Args:
        logs: The folder of all runs.
        agent: Only runs of this agent.
        clock: Dates the receipts.
    """
    intents: list[Intent] = []
    problems: list[str] = []
    unsettled: dict[str, UnsettledAction] = {}
    settled: set[str] = set()
    for folder in list_runs(logs) if logs.is_dir() else ():
        try:
            info = read_run(folder.path)
            if info.kind != "plain" or info.agent != agent:
                continue
            result = info.result or {}
            if info.ended_at is None:
                lost, result = _settle(folder, clock)
                intents += lost
            left = map(UnsettledAction.model_validate, result.get(UNSETTLED, ()))
            unsettled |= {one.intent_id: one for one in left}
            settled.update(result.get(SETTLED, ()))
        except (TraceError, ValidationError) as error:
            problems.append(str(error))
    open_ones = tuple(one for name, one in unsettled.items() if name not in settled)
    return Left(tuple(intents), open_ones, tuple(problems))


def _known_of(records: Sequence[TraceRecord], lost: Sequence[Intent]) -> dict[str, Any]:
    """What `run.json` keeps of actions of unknown outcome, for the runs that follow."""
    unsettled = {
        one.id: UnsettledAction(
            intent_id=one.id, action=one.action, arguments=one.arguments, cycle=one.cycle
        )
        for one in lost
    }
    settled: set[str] = set()
    for record in records:
        if isinstance(record, Snapshot):
            memory = WorkingMemory.model_validate(record.working_memory)
            unsettled |= {one.intent_id: one for one in memory.unsettled}
        if isinstance(record, Percept) and record.kind is PerceptKind.UNKNOWN_OUTCOME:
            begun = record.caused_by or record.id
            unsettled[begun] = UnsettledAction(
                intent_id=begun,
                action=record.source,
                arguments=record.arguments or {},
                cycle=0,
            )
        if isinstance(record, Percept):
            settled.update(record.settles)
    left = [one.model_dump(mode="json") for name, one in unsettled.items() if name not in settled]
    return {UNSETTLED: left, SETTLED: sorted(settled)} if left or settled else {}


def _settle(folder: RunFolder, clock: Clock) -> tuple[list[Intent], dict[str, Any]]:
    writer = open_trace(folder, clock=clock)  # refused while somebody else writes
    try:
        records = [entry.body for entry in read_trace(folder.trace_path)]
        ended = {each.intent_id for each in records if isinstance(each, Receipt)}
        lost = [each for each in records if isinstance(each, Intent) and each.id not in ended]
        for intent in lost:
            writer.write(
                Receipt(
                    intent_id=intent.id,
                    at=clock.now(),
                    cycle=intent.cycle,
                    status=ReceiptStatus.UNKNOWN,
                    content=ENDED,
                )
            )
    finally:
        writer.close()
    result = {"unknown_outcomes": [intent.id for intent in lost], **_known_of(records, lost)}
    folder.finish(at=clock.now(), result=result)
    return lost, result


_STALE = "Until the workbench is reset, nothing more is run."


class _NoTools:
    """Stands for the tools where none is called."""

    async def specs(self) -> Mapping[str, ActionSpec]:
        return {}

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    async def execute(self, call: ActionCall) -> ActionResult:
        return await NoActions().execute(call)


class GuardedRun:
    """The context, the detector and the trace of a guard around plain tools.

    Each call counts as a cycle of the context's working memory.

    Args:
        name: Who calls, for approvers.
        context: Keeps the state that rules judge by.
        constraints: The rules.
        approvals: Who has to agree to what.
        trace: Where everything is written.
    """

    def __init__(
        self,
        name: str,
        context: CoagContext[Any],
        constraints: ConstraintSet,
        approvals: Approvals | None,
        trace: PlainRun,
    ) -> None:
        self.name = name
        self.context = context
        self.constraints = constraints
        self.approvals = approvals
        self.trace = trace
        self.detector = ProgressDetector()
        self.unfinished: tuple[Intent, ...] = ()
        """Calls that earlier runs left open, as found when this run began."""
        self.running: dict[str, ActionCall] = {}
        """Calls that have begun and not ended; a state that is saved names them."""
        self.reconcilers: tuple[AskReconciliation, ...] = (context.reconcile,)
        """Asked what became of calls of unknown outcome."""

    def deps(
        self,
        actions: ActionDoor | None = None,
        announce: Callable[[Sequence[ActionCall]], None] = lambda calls: None,
    ) -> GuardDeps:
        """What a call may use."""
        return GuardDeps(
            actions=actions or _NoTools(),
            trace=self.trace,
            clock=self.context.clock,
            ids=self.context.ids,
            approvals=self.approvals,
            agent=self.name,
            constraints=self.constraints,
            detector=self.detector,
            announce=announce,
            reconcilers=self.reconcilers,
            run=lambda: self.trace.id,
        )

    async def open(self) -> None:
        """Begins the run, unless it goes on; calls that earlier ones left open are perceived.

        Raises:
            TraceError: It cannot be written down.
        """
        left = self.trace.open()
        if left is None:
            return
        self._note_state()
        for problem in left.problems:
            self.note("run", problem)
        self.unfinished = left.intents
        known = {one.intent_id for one in self.context.working_memory.unsettled}
        fresh = [one for one in left.unsettled if one.intent_id not in known]
        await self.perceive([self._lost(action) for action in fresh])

    def next_cycle(self) -> None:
        """Another call begins."""
        self._set_cycle(self.context.working_memory.cycle + 1)

    async def perceive(self, percepts: Iterable[Percept]) -> None:
        """Takes in percepts; where a hook cannot read one, nothing more runs on the old state."""
        with suppress(StateError):  # working memory keeps what was raised, and forbids
            await perceive(percepts, self.context, self.deps())
        self.trace.flush()

    @property
    def stale(self) -> str:
        """Why the state is out of date; empty while it is not."""
        problem = self.context.working_memory.stale
        return f"The perceptual state is out of date: {problem} {_STALE}" if problem else ""

    @property
    def forbids(self) -> Verdict | None:
        """What forbids every call before any rule is asked."""
        if not self.stale:
            return None
        return Verdict(allowed=False, constraint=CURRENT_STATE, reason=self.stale)

    async def settle(self, intent_id: str, *, happened: bool) -> None:
        """Takes in what a person says became of a call of unknown outcome.

        Raises:
            UnknownNameError: No call with this intent is of unknown outcome.
        """
        deps = self.deps()
        found = settled_by_person(intent_id, happened=happened, context=self.context, deps=deps)
        await self.perceive([found])

    async def reconcile(self) -> None:
        """Asks what became of calls of unknown outcome, before anything is judged."""
        if self.context.working_memory.unsettled:
            await self.perceive(await reconcile(self.context, self.deps()))

    def note(self, about: str, text: str, **details: Any) -> None:
        """Writes a note to the trace of the run that goes on, if one does."""
        if self.trace.id:
            self.deps().note(self.context, about, text, **details)

    async def reset(self) -> None:
        """Forgets the state and what failed. Calls are counted on, for the trace's sake."""
        cycle = self.context.working_memory.cycle
        await self.context.clear()
        self._set_cycle(cycle)
        self.detector.load_state({})
        self.note("reset", "The workbench was reset.")
        self._note_state()

    async def save_state(self) -> dict[str, Any]:
        """What the guard knows, as JSON."""
        return {
            "context": dict(await self.context.save_state()),
            "detector": self.detector.save_state(),
            "ids": self.context.ids.save(),
            "pending": [call.model_dump(mode="json") for call in self.running.values()],
        }

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `save_state` gave.

        Raises:
            StateError: The perceptual state does not fit the context's schema.
        """
        await self.context.load_state(state["context"])
        self.detector.load_state(state["detector"])
        self.context.ids.load(state["ids"])
        for call in map(ActionCall.model_validate, state["pending"]):
            cycle = self.context.working_memory.cycle
            self.context.perceive(
                self._lost(
                    UnsettledAction(
                        intent_id=call.id,
                        action=call.action,
                        arguments=call.arguments,
                        cycle=cycle,
                    )
                )
            )
        self._note_state()

    def _set_cycle(self, number: int) -> None:
        memory = self.context.working_memory
        self.context.restore(memory.model_copy(update={"cycle": number}))

    def _note_state(self) -> None:
        """Writes down a state that no percept of this run led to; nothing between runs."""
        if not self.trace.id:
            return
        memory = self.context.working_memory
        self.trace.write(
            Snapshot(
                at=self.context.clock.now(),
                cycle=memory.cycle,
                reason=SnapshotReason.LOADED,
                working_memory=memory.to_json(),
                detector=self.detector.save_state(),
                ids=self.context.ids.save(),
            )
        )
        self.trace.flush()

    def _lost(self, action: UnsettledAction) -> Percept:
        return Percept(
            id=self.context.ids("percept"),
            at=self.context.clock.now(),
            kind=PerceptKind.UNKNOWN_OUTCOME,
            source=action.action,
            trust=Trust.UNTRUSTED,
            content=f"An earlier run began {action.action}. {UNKNOWN}",
            caused_by=action.intent_id,
            arguments=action.arguments,
            is_error=True,
        )


# ---- Calls of a plain agent, run as `CoagAgent` runs what it selected ----


Show = Callable[[object], None]
_ELSEWHERE = (
    "Another event loop or thread is using this workbench just now. Call it again afterwards, or "
    "give each thread a workbench of its own."
)
_SHOW: ContextVar[Show] = ContextVar("coag_guarded_call_show")


def show_event(event: object) -> None:
    """Passes on what a streaming tool shows, to whoever waits for the call that it is part of."""
    _SHOW.get()(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A call that an agent wants made."""

    name: str
    arguments: Mapping[str, Any] | None
    """As the agent gives them: not checked yet, and of a stock agent not always a mapping."""
    call_id: str | None = None
    """The agent's own id of the call, which the tool gets."""
    show: Show = lambda event: None
    """Is told what the tool shows while it runs."""


@dataclass(slots=True)
class _Door:
    """The tools, for one call: by the definition by which it is judged it is approved and run."""

    runner: ToolRunner
    call_id: str | None
    running: dict[str, ActionCall]
    """Calls that have begun and not ended."""
    listed: Mapping[str, ActionSpec] | None = None

    async def specs(self) -> Mapping[str, ActionSpec]:
        if self.listed is None:
            self.listed = {spec.name: spec for spec in await self.runner.specs()}
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
class _Room:
    """An event loop in which calls are made."""

    loop: asyncio.AbstractEventLoop
    calls: int = 0
    """How many are under way."""
    in_turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def occupied(self) -> bool:
        return self.calls > 0 and not self.loop.is_closed()


class GuardedCalls:
    """Makes calls under guard: judged, approved, run and recorded, and their returns perceived.

    Whatever happens is a result, except that the waiting task is cancelled or the process is to
    end.

    Args:
        run: What the guard knows.
        runner: Runs the tools; shows what they stream by `show_event`.
        parallel: Whether calls of read-only tools run beside others where rules judge them.
    """

    def __init__(self, run: GuardedRun, runner: ToolRunner, *, parallel: bool) -> None:
        self._run = run
        self._run.reconcilers = (runner.reconcile, *run.reconcilers)
        self._runner = runner
        self._parallel = parallel
        self._gate = Lock()
        self._room: _Room | None = None

    async def call(self, wanted: Wanted) -> GuardedResult:
        """Makes one call; where rules judge it, after those that came before.

        While calls are under way in another event loop, e.g. of another thread, it is refused:
        what the rules judge by belongs to one loop at a time.
        """
        room = self._enter(asyncio.get_running_loop())
        if room is None:
            return said(wanted.name, f"{wanted.name} was not run. {_ELSEWHERE} {NOTHING_DONE}")
        try:
            return await self._call(wanted, room)
        finally:
            with self._gate:
                room.calls -= 1

    def _enter(self, loop: asyncio.AbstractEventLoop) -> _Room | None:
        """The room of this loop with one more call in it; None if another loop is at work."""
        with self._gate:
            if self._room is None or (self._room.loop is not loop and not self._room.occupied):
                self._room = _Room(loop)
            if self._room.loop is not loop:
                return None
            self._room.calls += 1
            return self._room

    async def _call(self, wanted: Wanted, room: _Room) -> GuardedResult:
        _SHOW.set(wanted.show)
        begun: list[ActionCall] = []
        try:
            door = _Door(self._runner, wanted.call_id, self._run.running)
            spec = (await door.specs()).get(wanted.name) if self._parallel else None
            async with self._in_turn(room, beside=spec is not None and spec.read_only):
                await self._run.open()
                return await self._guarded(wanted, self._run.deps(door, begun.extend))
        except Exception as error:  # a hook may raise anything; a stock agent hangs where this does
            return broken(wanted.name, describe_error(error), begun=bool(begun))

    async def _guarded(self, wanted: Wanted, deps: GuardDeps) -> GuardedResult:
        run = self._run
        run.next_cycle()
        arguments = _as_json(wanted.arguments)
        candidate = Candidate(id=deps.ids("call"), action=wanted.name, raw_arguments=arguments)
        await run.reconcile()
        forbidden = run.forbids
        if forbidden is not None:
            self._tell(candidate, Evaluation(candidate_id=candidate.id, verdicts=(forbidden,)))
            return refusal(wanted.name, forbidden)
        run.constraints.pin()
        ended = await run_selected([candidate], run.context, deps, judged=self._tell)
        await run.perceive(percept for done in ended.ran for percept in done.queued)
        if ended.broken is not None and not isinstance(ended.broken, asyncio.CancelledError):
            raise ended.broken
        answer = answer_of(ended.ran[0])
        if run.stale:
            text = f"{answer.to_text()}\n{run.stale}"
            return said(wanted.name, text, unknown=answer.may_have_happened)
        return answer

    def _tell(self, candidate: Candidate, judged: Evaluation) -> None:
        """Notes what the rules said, and what could not be offered."""
        problems = self._runner.problems
        self._run.note(
            "constraint",
            verdicts_text(candidate, judged),
            call=candidate.id,
            verdicts=[verdict.model_dump(mode="json") for verdict in judged.verdicts],
            **({"problems": list(problems)} if problems else {}),
        )

    @asynccontextmanager
    async def _in_turn(self, room: _Room, *, beside: bool) -> AsyncGenerator[None]:
        """Waits for the calls before, where what they change is judged by.

        Args:
            room: The event loop.
            beside: Whether the call may run beside them, since it changes nothing.
        """
        judged = bool(self._run.constraints.pin()) or self._run.approvals is not None
        if beside or not judged:
            yield
            return
        async with room.in_turn:
            yield


def _as_json(arguments: object) -> str:
    """The arguments as JSON; what is none becomes a text that no schema lets pass."""
    try:
        return json.dumps(arguments if arguments is not None else {}, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return f"[no JSON: {type(arguments).__name__}]"
