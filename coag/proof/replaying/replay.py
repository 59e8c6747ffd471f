"""Running an agent's run again, on what its trace holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from coag.agent import CoagAgent, rebuild
from coag.errors import CoagError, ConfigurationError, ResumeError, TraceError
from coag.schema import PHASES, TRACE_VERSION, Outcome, Phase, TraceRecord, html_card
from coag.tracing import Rebuild, RunFolder, RunInfo, TraceProblem, read_lines, read_run, read_trace

from .compare import meaning_of
from .plain import PlainSink, replay_plain
from .rerun import Builder, Replayed, model_of
from .sink import CheckingSink, Parting, Tape

AgentBuilder = Callable[[], CoagAgent | Awaitable[CoagAgent]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where a replay first differs from the recorded run."""

    seq: int
    """Number of the recorded record, from 0."""
    cycle: int
    """The cycle that was going on; of a plain agent the turn."""
    phase: str | None
    """The phase that was going on; None outside of one."""
    record: str
    """What sort of record it is: `model_call`, `receipt`, ..., or the phase of an outcome."""
    field: str
    """Path of the first field that differs; `record` where another sort of record came."""
    recorded: str
    """Its recorded value as JSON, cut."""
    replayed: str
    """Its value in the replay, cut."""
    meaning: str
    """What that likely means, as a sentence."""

    def __str__(self) -> str:
        where = f"cycle {self.cycle}, {self.phase or 'between phases'}, {self.record}"
        return (
            f"record {self.seq + 1}, {where}: {self.field} was {self.recorded}, "
            f"now {self.replayed}. {self.meaning}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """What a replay came to."""

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
        found = self.divergence
        title = f"Replay of {self.run}: all {self.records} records are alike"
        facts: list[tuple[str, object]] = []
        if found is not None:
            title = f"Replay of {self.run}: {self.records} records are alike, then it differs"
            facts = [
                ("record", found.seq),
                (
                    "where",
                    f"cycle {found.cycle}, {found.phase or 'between phases'}, {found.record}",
                ),
                ("field", found.field),
                ("recorded", found.recorded),
                ("replayed", found.replayed),
                ("meaning", found.meaning),
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
    answer as they are recorded; whatever else is in the trace, its code makes anew, and every
    record must be as it was, but for times and durations.

    Args:
        run: The run's folder.
        agent: The agent, for a run without a recipe: as it was before its first turn, or a
            function that builds it. It is used up, and nothing of it is written to.
        trust: Modules, or packages with their modules, from which the run may name its factory.

    Raises:
        ResumeError: There is no recipe, or it does not build the agent of the run.
        TraceError: The trace cannot be read, or is of a version that cannot be replayed.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    info = read_run(folder.path)
    _check_version(folder)
    remarks: list[str] = []
    trusted = tuple(trust)

    def records() -> Iterator[TraceRecord]:
        def torn(problem: TraceProblem) -> None:
            if problem.text not in remarks:
                remarks.append(problem.text)

        return (entry.body for entry in read_trace(folder.trace_path, torn))

    if info.kind == "plain":
        plain = PlainSink(Tape(records()))
        await replay_plain(folder, _with_recipe(folder, info), plain, records, trusted)
        return _report(info.id, plain, remarks)
    sink = CheckingSink(Tape(records()))
    build = _builder(folder, info, agent, sink, trusted)
    replayed = Replayed(run=folder, info=info, build=build, records=records, sink=sink)
    await replayed.go()
    return _report(info.id, sink, remarks)


def _check_version(folder: RunFolder) -> None:
    first = next(read_lines(folder.trace_path), None)
    if first is not None and first.version is not None and first.version < TRACE_VERSION:
        raise TraceError(
            folder.trace_path,
            f"is of version {first.version} of the format, which holds too little for a replay; "
            "it can be read and verified",
        )


def _builder(
    folder: RunFolder,
    info: RunInfo,
    given: CoagAgent | AgentBuilder | None,
    sink: CheckingSink,
    trust: Iterable[str],
) -> Builder:
    """How to build the agent, as often as it is needed."""
    if isinstance(given, CoagAgent):
        return _Once(given).build
    if given is not None:
        return lambda: _made(given)
    _with_recipe(folder, info)
    model = model_of(info.parent)

    async def build() -> CoagAgent:
        if model is not None:
            try:
                return await rebuild(folder, Rebuild(purpose="replay", model=model), trust)
            except CoagError as error:
                sink.remark(f"The agent was built with the run's first model: {error}")
        return await rebuild(folder, Rebuild(purpose="replay"), trust)

    return build


def _with_recipe(folder: RunFolder, info: RunInfo) -> RunInfo:
    if info.recipe is None:
        raise ResumeError(
            f"{folder.path} has no recipe in its run.json, so its agent cannot be built again. "
            "Give the agent, `replay(run, agent=...)`, or let the next run have one: "
            "CoagAgent(..., recipe=Recipe(factory='module:function', arguments={...}))."
        )
    return info


async def _made(given: AgentBuilder) -> CoagAgent:
    made = given()
    return made if isinstance(made, CoagAgent) else await made


class _Once:
    """An agent that was given, which serves one process of the run."""

    def __init__(self, agent: CoagAgent) -> None:
        self._agent: CoagAgent | None = agent

    async def build(self) -> CoagAgent:
        if self._agent is None:
            raise ConfigurationError(
                "Several processes took part in this run, and each needs the agent as it was "
                "built: give a function, replay(run, agent=build)."
            )
        agent, self._agent = self._agent, None
        return agent


def _report(run: str, sink: CheckingSink, problems: list[str]) -> ReplayReport:
    return ReplayReport(
        run=run,
        records=sink.compared,
        divergence=_divergence(sink.parting, sink.last_outcome) if sink.parting else None,
        remarks=(*problems, *sink.remarks),
    )


def _divergence(parting: Parting, last: Outcome | None) -> Divergence:
    phase = _phase(parting, last)
    found = parting.difference
    return Divergence(
        seq=parting.seq,
        cycle=parting.cycle,
        phase=phase,
        record=parting.kind,
        field=found.field,
        recorded=found.recorded,
        replayed=found.replayed,
        meaning=meaning_of(parting.kind, found.field),
    )


def _phase(parting: Parting, last: Outcome | None) -> str | None:
    """The phase that was going on: that of the outcome itself, or the one after the last."""
    if parting.kind in {phase.value for phase in PHASES}:
        return parting.kind
    if last is None or last.phase is Phase.EXECUTION:
        return Phase.RETRIEVAL.value if parting.kind == "note" and last else None
    return PHASES[PHASES.index(last.phase) + 1].value
