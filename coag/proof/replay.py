"""Running an agent's run again, on what its trace holds: no model, no world, every record compared.

The trace is the tape. The agent is built by its recipe, and doubles take the place of the outside:
models answer what they answered, actions bring what they brought, memory recalls what it recalled,
the clock gives the times of the tape. Everything between is the agent's own code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from coag._util.html_cards import html_card
from coag.agent import (
    CoagAgent,
    RecoveredState,
    ReplayDoubles,
    reading_trace,
    rebuild,
    refuse_activity,
    restore,
    staged,
)
from coag.context import WorkingMemory
from coag.cycle import run_turn, write_snapshot
from coag.errors import CoagError, ConfigurationError, TraceError
from coag.memory import revoke_again
from coag.schema import (
    TRACE_VERSION,
    ActionCall,
    ActionsListed,
    ActionSpace,
    ActionSpec,
    ExecutionOutcome,
    Note,
    Outcome,
    Percept,
    Phase,
    Record,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Written,
    set_random,
)
from coag.store import HashEmbedder, open_store
from coag.tracing import (
    Parent,
    Rebuild,
    RunFolder,
    RunInfo,
    TraceProblem,
    read_lines,
    read_run,
    read_trace,
)

from .fork_past import end_turn_early, first_turn, inherited
from .replay_doubles import Stage, TapeMemory, TapeRules, TapeSource, bare
from .replay_stock import PlainSink, replay_plain
from .tape import (
    CheckingSink,
    Divergence,
    ReplayStopped,
    Tape,
    cancelled_before,
    is_outside,
    leave_if_cancelled,
)

AgentBuilder = Callable[[], CoagAgent | Awaitable[CoagAgent]]
_Builder = Callable[[], Awaitable[CoagAgent]]
"""Builds the agent of the run once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """The result of a replay."""

    run: str
    """Id of the run."""
    records: int
    """Records that were found alike."""
    divergence: Divergence | None = None
    remarks: tuple[str, ...] = ()
    """What was taken from the trace though it is no answer of a model or of the environment."""

    @property
    def same(self) -> bool:
        """True if nothing differs."""
        return self.divergence is None

    def _repr_html_(self) -> str:
        divergence = self.divergence
        title = f"Replay of {self.run}: all {self.records} records are alike"
        facts: list[tuple[str, object]] = []
        if divergence is not None:
            title = f"Replay of {self.run}: {self.records} records are alike, then it differs"
            facts = [
                ("record", divergence.seq),
                ("where", divergence.place),
                ("field", divergence.field),
                ("recorded", divergence.recorded),
                ("replayed", divergence.replayed),
                ("meaning", divergence.meaning),
            ]
        return html_card(title, facts=facts, lines=self.remarks)


async def replay(
    run: Path | str | RunFolder,
    *,
    agent: CoagAgent | AgentBuilder | None = None,
    trust: Iterable[str] = (),
) -> ReplayReport:
    """Runs a run again with no model and no world, up to where it first differs.

    The agent is built by the recipe in `run.json`. Its models, actions, approvals and recall
    answer as they are recorded; whatever else is in the trace, its code makes again, and every
    record must be as it was, except times and durations.

    Args:
        run: The run's folder.
        agent: The agent, for a run without a recipe: as it was before its first turn, or a
            function that builds it. It cannot be used afterwards, and nothing of it is written to.
        trust: Modules, or packages with their modules, from which the run may name its factory.

    Raises:
        ResumeError: There is no recipe, or it does not build the agent of the run.
        TraceError: The trace cannot be read, or is of a version that cannot be replayed.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    info = read_run(folder.path)
    _check_version(folder)
    refuse_activity(info, folder.path)
    problems: dict[str, None] = {}
    trusted = tuple(trust)

    def records() -> Iterator[TraceRecord]:
        def torn(problem: TraceProblem) -> None:
            problems.setdefault(problem.text)

        return (entry.body for entry in read_trace(folder.trace_path, torn))

    sink: CheckingSink
    if info.kind == "plain":
        sink = PlainSink(Tape(records()))
        await replay_plain(folder, info, sink, records, trusted)
    else:
        sink = CheckingSink(Tape(records()))
        async with AsyncExitStack() as opened:
            build = _builder(folder, info, agent, sink, trusted, opened)
            await _Replay(run=folder, info=info, build=build, records=records, sink=sink).go()
    return ReplayReport(
        run=info.id,
        records=sink.compared,
        divergence=sink.divergence,
        remarks=(*problems, *sink.remarks),
    )


def _check_version(folder: RunFolder) -> None:
    first = next(read_lines(folder.trace_path), None)
    if first is not None and first.version is not None and first.version < TRACE_VERSION:
        problem = f"is of version {first.version} of the format, which holds too little to replay"
        raise TraceError(folder.trace_path, f"{problem}; it can be read and verified")


# ---- Building the agent, as often as it is needed ----


def _builder(
    folder: RunFolder,
    info: RunInfo,
    given: CoagAgent | AgentBuilder | None,
    sink: CheckingSink,
    trust: Iterable[str],
    opened: AsyncExitStack,
) -> _Builder:
    """Builds the run's agent; what the recipe opened for it is closed with `opened`."""
    left = [given]
    model = next(_changed(info.parent, "--model "), None)

    async def own(model: str | None = None) -> CoagAgent:
        built = await rebuild(folder, Rebuild(purpose="replay", model=model), trust)
        opened.push_async_callback(built.close)
        if built.environment is not None:
            opened.push_async_callback(built.environment.close)
        return built

    async def make() -> CoagAgent:
        if isinstance(given, CoagAgent):
            if not left:
                several = "Several processes took part in this run, each with an agent of its own"
                raise ConfigurationError(f"{several}: give a function, replay(run, agent=build).")
            left.clear()
            return given
        if given is not None:
            made = given()
            return made if isinstance(made, CoagAgent) else await made
        if model is not None:
            try:
                return await own(model)
            except CoagError as error:
                sink.remark(f"The agent was built with the run's first model: {error}")
        return await own()

    return make


def _changed(parent: Parent | None, option: str) -> Iterator[str]:
    changes = () if parent is None else parent.changes
    return (change.removeprefix(option) for change in changes if change.startswith(option))


# ---- Running a whole run again: its processes, its turns, and what came between them ----


_NO_BOUNDS = ("respond", "cancelled", "error")
"""How a turn ends that no bound ended."""


@dataclass(slots=True, kw_only=True)
class _Replay:
    """A run that is being run again.

    Where another process resumed the run, that one is replayed from there on.
    """

    run: RunFolder
    info: RunInfo
    build: _Builder
    records: Callable[[], Iterator[TraceRecord]]
    """Reads the records of the run from the first one on."""
    sink: CheckingSink
    _process: Process | None = None
    _memory: TapeMemory | None = None
    listed: list[ActionSpec] = field(default_factory=list[ActionSpec])
    _turn: int = 0
    _begun: Sequence[Outcome] | None = None
    """For a process that began in the middle of a turn: the outcomes that the turn had had."""
    _stop: str | None = None
    """Why a fork stopped at once."""

    async def go(self) -> None:
        """Replays as far as the tape goes, or to where the replay differs."""
        await self._guarded(self._begin)
        while not self.sink.ended and (self.sink.resumes or self.sink.tape.head is not None):
            if self.sink.resumes:
                await self._guarded(self._resume)
            elif self.sink.divergence is not None:
                return
            else:
                await self._guarded(self._step)

    async def _guarded(self, step: Callable[[], Awaitable[None]]) -> None:
        before = self.sink.tape.position
        try:
            await step()
        except ReplayStopped:
            return
        except TraceError:
            raise
        except asyncio.CancelledError:
            leave_if_cancelled()
        except CoagError:
            if self.sink.tape.position == before and not self.sink.stopped:
                raise
        except BaseException:  # an error of the agent's own code ended the original turn, too
            last = self.sink.last
            broke_off = isinstance(last, TurnEnd) and last.reason == "error"
            if self._process is None or not broke_off:
                raise

    def memory_of(self, agent: CoagAgent) -> TapeMemory:
        """A memory in RAM for all processes, which knows nothing at first."""
        if self._memory is None:
            store = open_store(None, embedder=HashEmbedder(8))
            self._memory = TapeMemory(store, scope=agent.name)
        return self._memory

    # ---- where a process begins ----

    async def _begin(self) -> None:
        if self.sink.resumes or (head := self.sink.tape.head) is None:
            return
        reason = head.reason if isinstance(head, Snapshot) else None
        if isinstance(head, Snapshot) and reason is SnapshotReason.OPENED:
            self._process = Process(self, await self.build(), later=False)
            await self._process.begin(head)
        elif isinstance(head, Snapshot) and reason is SnapshotReason.FORKED:
            await self._begin_fork(head)
        else:
            self.sink.remark(
                "The trace does not begin with a snapshot, as where its first process ended at "
                "once: the run is taken to begin with the agent as it is built."
            )
            await self._take_over(await self.build())

    async def _begin_fork(self, head: Snapshot) -> None:
        """A fork begins in its parent's state, in the middle of a turn."""
        if self.info.parent is None:
            raise TraceError(
                self.run.info_path, "names no parent, though the trace begins as a fork"
            )
        self._inherit(self.info)
        following = next(islice(self.sink.tape.ahead(), 1, None), None)
        if isinstance(following, Note) and following.about == "fork":
            self._stop = following.text
        self._process = Process(self, await self.build(), later=True)
        stored = self.run.remembered_path.is_file()
        await self._process.begin(head, self.run.remembered() if stored else ())

    def _inherit(self, info: RunInfo) -> None:
        """Takes from a fork's ancestors, as far as they are there, what its turn was before it."""
        before, tape = RecoveredState(), self.sink.tape
        records, missing = inherited(self.run, info)
        for record in records:
            before.take(record)
            if isinstance(record, ActionsListed):
                self.listed[:] = record.specs
        self._turn, is_open = before.turn, before.turn_open
        if not before.turn:
            self._turn, is_open = first_turn(tape.ahead())
            end = next((record for record in tape.ahead() if isinstance(record, TurnEnd)), None)
            if missing and end is not None and end.reason not in _NO_BOUNDS:
                self.sink.remark(
                    f"The run that this one was forked from is not in {missing} any more: what its "
                    "turn had done before the fork is not known, and cannot count towards its "
                    "bounds."
                )
        self._begun = before.outcomes if is_open else None
        if not self.listed:
            listed = next((r for r in tape.ahead() if isinstance(r, ActionsListed)), None)
            self.listed[:] = [] if listed is None else listed.specs

    async def _resume(self) -> None:
        """Another process continues where the tape is now."""
        self.sink.restart()
        agent = await self.build()  # before anything is taken: else the error counts as the run's
        self.sink.skip(f"Another process continued the run at record {self.sink.tape.position}.")
        await self._take_over(agent)

    async def _take_over(self, agent: CoagAgent) -> None:
        remains = RecoveredState()
        for record in islice(self.records(), self.sink.tape.position):
            if not (isinstance(record, Note) and is_outside(record)):
                remains.take(record)
        remains.forget_bare_start()
        self._process = Process(self, agent, later=True)
        self._turn = remains.turn
        await restore(self._process.mind, remains)
        self._begun = remains.outcomes if remains.turn_open else None

    # ---- what it does ----

    async def _step(self) -> None:
        process, head = self._process, self.sink.tape.head
        if process is None or head is None:
            return
        if self._begun is not None:
            begun, self._begun = self._begun, None
            context, deps = process.mind.context, process.mind.deps
            memory = context.working_memory
            selected = memory.in_cycle and memory.phase is Phase.SELECTION
            if selected and self._stop is not None:
                await end_turn_early(context, deps, self._turn, self._stop)
            else:
                await process.turn(self._turn, begun)
            return
        match head:
            case TurnStart():
                self._turn = head.turn
                await process.turn(head.turn, None)
            case Percept():
                await process.stage.perceive(head)
            case Snapshot() if head.reason is SnapshotReason.LOADED:
                process.load(head)
            case Written() if head.what != "record":
                if head.what == "revoked" and self._memory is not None:
                    with reading_trace(head, "content"):  # procedures follow by the next snapshot
                        await revoke_again(self._memory, head)
                self.sink.skip(f"Not of a turn: {head.what} {head.id}.")
            case Note():
                self.sink.skip(f"Not of a turn: {head.about}: {head.text}")
            case _:
                await self._unstarted(process, head)

    async def _unstarted(self, process: Process, head: TraceRecord) -> None:
        """A turn whose beginning is not next: it first closes a cycle that was left."""
        starts = (r for r in self.sink.tape.ahead() if isinstance(r, TurnStart))
        start = next(starts, None)
        if process.mind.context.working_memory.in_cycle:
            self._turn = start.turn if start else self._turn + 1
            await process.turn(self._turn, None)
        else:
            self.sink.diverge("record", head.record, "nothing: no turn is open")


# ---- A process of the run: its mind behind doubles, turn by turn ----


_IMAGES_KEPT = 4
"""Images of a dialogue that a context shows; a snapshot names them, and does not hold them."""
_LEFT = "The cycle that selected this was left in the middle."


class Process:
    """The mind of a run behind doubles."""

    def __init__(self, replay: _Replay, agent: CoagAgent, *, later: bool) -> None:
        self._sink = sink = replay.sink
        self._memory = memory = replay.memory_of(agent)
        memory.clock = sink
        self.stage = stage = memory.stage = Stage(sink, replay.listed)

        def external(own: ActionSpace) -> ActionSpace:
            stage.own = own
            return stage

        info = replay.info
        mind = staged(
            agent,
            ReplayDoubles(
                run=info.id,
                clock=sink,
                trace=sink,
                answers=stage,
                memory=memory,
                approve=stage.approve,
                external=external,
                around=lambda source: TapeSource(source, stage, memory),
                reconcile=stage.reconcile,
                configuration=info.configuration,
                proposal=info.configuration.get("settings", {}).get("proposal"),
                depth=next(_changed(info.parent, "--depth "), None),
                # Runs of older versions do not say: they always offered actions of memory.
                remembering=bool(info.configuration.get("remembering", True)),
                rewriting=bool(info.configuration.get("rewriting", True)),
            ),
        )
        left_out = _changed(info.parent, "--without-constraint ")
        rules = TapeRules(mind.deps.constraints, sink, from_outside=later, left_out=left_out)
        self._rules = rules
        mind.deps = replace(mind.deps, constraints=rules)
        mind.deps.modules.sense_by(stage)
        self.mind = stage.mind = mind
        sink.on_taken = self._on_taken

    # ---- what came from outside between records ----

    def _on_taken(self, record: TraceRecord) -> None:
        """Adopts changes from outside that the snapshot of the next cycle shows."""
        del record
        self._sink.settle()
        snapshot = self._sink.tape.head
        if not (isinstance(snapshot, Snapshot) and snapshot.reason is SnapshotReason.CYCLE):
            return
        deps = self.mind.deps
        if self.stage.answered:
            self.stage.answered = False
            with reading_trace(snapshot, "modules"):
                deps.modules.load_state(snapshot.modules)
        mine, state = deps.procedures.pin(), snapshot.procedures.get("state")
        now: dict[str, int] = snapshot.procedures.get("versions", {})
        with reading_trace(snapshot, "procedures"):
            newer = [name for name, version in now.items() if version > mine.get(name, version)]
            if state is None or not newer:
                return
            deps.procedures.load_state(state)
        for name in newer:
            author = deps.procedures.get(name).author
            self._sink.remark(
                f"{name}@{now[name]} was written from outside, by {author}, before cycle "
                f"{snapshot.cycle + 1}."
            )

    # ---- what the process does ----

    async def begin(self, snapshot: Snapshot, remembered: Iterable[Record] = ()) -> None:
        """Starts with the state that the run began with, and with a fork's memory."""
        await self._memory.keep(remembered)
        self._restore(snapshot)
        self.mind.deps.snapshots.reset()
        if snapshot.reason is SnapshotReason.FORKED:
            memory = self.mind.context.working_memory
            self._rules.adapt(memory.cognitive_state.retrieval if memory.in_cycle else None)
        write_snapshot(self.mind.context, self.mind.deps, snapshot.reason)

    def load(self, snapshot: Snapshot) -> None:
        """Adopts a state that was loaded."""
        self._restore(snapshot)
        self._sink.remark("A saved state that was loaded: it is what the trace has of it.")
        write_snapshot(self.mind.context, self.mind.deps, snapshot.reason)

    async def turn(self, number: int, begun: Sequence[Outcome] | None) -> None:
        """Runs a turn, or what is left of one."""
        self._note_running()

        async def read() -> None:
            arriving, mind = self._arriving(), self.mind
            turn = run_turn(arriving, mind.context, mind.deps, turn=number, begun=begun)
            async with aclosing(turn):
                async for _ in turn:
                    if self._sink.leave_turn():
                        return

        await self._sink.run(read(), cancelled_before(tuple(self._sink.tape.in_turn())))

    def _arriving(self) -> Iterator[Percept]:
        """The percepts of the turn that are next on the tape, one when it is asked for."""
        while True:
            self._sink.settle()
            head = self._sink.tape.head
            if not isinstance(head, Percept) or not self.stage.is_input(head):
                return
            self.stage.count([head])
            yield bare(head)

    def _note_running(self) -> None:
        """What a loaded state was saved in the middle of; no snapshot has it."""
        if not self.mind.context.working_memory.in_cycle:
            return
        outcome = self._sink.tape.next_of(ExecutionOutcome)
        for percept in outcome.queued if outcome is not None else ():
            if percept.content.startswith(_LEFT) and percept.caused_by is not None:
                call = ActionCall(
                    id=percept.caused_by,
                    action=percept.source,
                    arguments=percept.arguments or {},
                )
                self.mind.deps.actions.running[call.id] = call

    def _restore(self, snapshot: Snapshot) -> None:
        deps, context = self.mind.deps, self.mind.context
        with reading_trace(snapshot, "working_memory"):
            memory = WorkingMemory.model_validate(snapshot.working_memory)
            context.restore(memory)
        if snapshot.reason is not SnapshotReason.FORKED:
            named = (name for message in memory.dialogue for name in message.images)
            context.images.load(dict.fromkeys(list(dict.fromkeys(named))[-_IMAGES_KEPT:], "data:"))
        if (state := snapshot.procedures.get("state")) is not None:
            with reading_trace(snapshot, "procedures"):
                deps.procedures.load_state(state)
        with reading_trace(snapshot, "modules"):
            deps.modules.load_state(snapshot.modules)
        with reading_trace(snapshot, "detector"):
            deps.detector.load_state(snapshot.detector)
        deps.ids.load(snapshot.ids)
        if snapshot.random is not None:
            with reading_trace(snapshot, "random"):
                set_random(deps.random, snapshot.random)
