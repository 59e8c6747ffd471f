"""Going on from a phase of a run, otherwise than it did; the run itself stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from coag.errors import ConfigurationError
from coag.schema import HtmlTable, ModelCall, Percept, SelectionOutcome, Value, html_card
from coag.tracing import RunFolder

from .boundary import Boundary, CycleStory, Stories, procedure_of
from .changes import Changes
from .past import Later, Past, outcomes_of, read_past
from .taken import Play, TakenUp, acts, taken_up

NOTHING = Changes()
_LIVE = "With --live (live=True) the fork acts, for real, on what the recipe's factory built."


@runtime_checkable
class Describable(Protocol):
    """An environment that can say in a sentence how it stands."""

    def describe(self, state: Any) -> str:
        """What a state comes to, for a person."""
        ...


class ForkReport(Value):
    """What came of a fork, beside what came of the run that it was forked from."""

    run: Path
    """The fork's run folder."""
    parent: Path
    """The run folder that it was forked from."""
    at: Boundary
    """The first phase that was run anew."""
    changes: tuple[str, ...]
    """What was changed, as it is written on the command line."""
    notices: tuple[str, ...]
    """What to know before comparing the two."""
    parent_cycles: tuple[CycleStory, ...]
    """The parent's cycles from the boundary's on."""
    fork_cycles: tuple[CycleStory, ...]
    """The fork's."""
    parent_end: str | None
    """How the parent's environment stood when its last cycle began, where it can tell."""
    fork_end: str | None
    """How the fork's environment stands, where it can tell."""
    stopped: str | None
    """Why the fork stopped before an Execution; None if it went to the end."""

    def _repr_html_(self) -> str:
        return html_card(
            f"Fork at {self.at} of {self.parent.name}",
            facts=[
                ("fork", self.run.name),
                ("changed", "; ".join(self.changes) or "nothing"),
                ("parent ended", self.parent_end),
                ("fork ended", self.fork_end),
                ("stopped", self.stopped),
            ],
            lines=self.notices,
            table=_side_by_side(self.parent_cycles, self.fork_cycles),
        )


def _side_by_side(parent: Sequence[CycleStory], fork: Sequence[CycleStory]) -> HtmlTable:
    """Each cycle of two runs, as far as it decided."""
    told: dict[int, list[str]] = {}
    for place, stories in enumerate((parent, fork)):
        for story in stories:
            told.setdefault(story.cycle, ["", ""])[place] = _decided(story)
    rows = [(cycle, *told[cycle]) for cycle in sorted(told)]
    return HtmlTable(columns=("cycle", "parent", "fork"), rows=rows)


def _decided(story: CycleStory) -> str:
    if not story.chosen:
        return "no decision" if story.chosen is None else "impasse"
    chosen = ", ".join(map(str, story.chosen))
    return f"{chosen}: {story.status}" if story.status else chosen


async def fork(
    run: RunFolder | Path | str,
    at: Boundary | str,
    changes: Changes = NOTHING,
    *,
    turns: int | None = None,
    live: bool = False,
    logs: Path | str | None = None,
    trust: Iterable[str] = (),
) -> ForkReport:
    """Takes a run up right before one of its phases and lets it go on, as a run of its own.

    Nothing of the past is repeated, and nothing of the parent is touched: the fork has a memory
    of its own, which holds what the parent's held there, and acts in an environment that says it
    is a copy, put back into the state it had there. Without one, or where that state is not known,
    it stops before the first Execution that may have an effect outside.

    Args:
        run: The run's folder.
        at: The boundary, e.g. `3.evaluation`.
        changes: What to do otherwise.
        turns: How many turns to take after the one that it is in, with the parent's later
            messages; None for as many as the parent took.
        live: Lets it act, for real, on what the recipe's factory built, as that is, where there is
            no copy that can be put back.
        logs: Folder for the fork's run folder; None for the one that the parent's lies in.
        trust: Modules, or packages with their modules, from which the run may name its factory.

    Raises:
        ConfigurationError: There is no such boundary, or a change does not fit the run.
        ResumeError: The run's agent cannot be built again.
        CoagError: What a turn may raise: the fork's run is closed then and stays to be read.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    boundary = at if isinstance(at, Boundary) else Boundary.parse(at)
    if turns is not None and turns < 0:
        raise ConfigurationError(f"turns must be 0 or more, not {turns!r}.")
    past, later = read_past(folder, boundary)
    if past.info.parent is not None:
        changes = changes.inheriting(past.info.parent.changes)
    where = folder.path.parent if logs is None else Path(logs)
    async with taken_up(past, later, changes, logs=where, trust=trust) as taken:
        allowed = taken.restored or live
        stop = _stop(taken, allowed=allowed)
        play = Play(agent=taken.agent, remains=taken.remains, stop=stop, acting=allowed)
        stopped = await play.go_on(_inputs(later, turns))
        return ForkReport(
            run=_folder(taken).path,
            parent=folder.path,
            at=boundary,
            changes=changes.listed(),
            notices=tuple(_notices(past, later, taken, turns, live=live)),
            parent_cycles=later.cycles,
            fork_cycles=_cycles(taken, boundary),
            parent_end=_described(taken, later.environment),
            fork_end=await _end(taken) if allowed else None,
            stopped=stopped,
        )


def _folder(taken: TakenUp) -> RunFolder:
    if taken.agent.run_folder is None:
        raise AssertionError("The fork was given a folder of logs.")
    return taken.agent.run_folder


def _inputs(later: Later, turns: int | None) -> Sequence[Sequence[Percept]]:
    return later.inputs if turns is None else later.inputs[:turns]


def _stop(taken: TakenUp, *, allowed: bool) -> Any:
    async def stop(selection: SelectionOutcome) -> str | None:
        names = () if allowed else await acts(taken.agent, selection)
        if not names:
            return None
        return f"Stopped before the Execution of {', '.join(names)}: {_why_not(taken)} {_LIVE}"

    return stop


def _why_not(taken: TakenUp) -> str:
    """Why a fork may not act, and what to do about it."""
    if taken.agent.environment is not None and not taken.copied:
        return (
            "the environment does not say that it is a copy, so what is done in it may be real. "
            'Let the factory open a copy where rebuild.purpose is "fork", with is_copy = True.'
        )
    return (
        "the trace does not know how the environment stood there. Give "
        "CoagAgent(environment=...) one that tells its state (snapshot, restore, close) and, in "
        "a fork, that it is a copy (is_copy = True)."
    )


def _notices(
    past: Past, later: Later, taken: TakenUp, turns: int | None, *, live: bool
) -> Iterator[str]:
    if taken.restored:
        cycle = past.boundary.cycle
        yield f"The environment was put back to where it stood when cycle {cycle} began."
    elif live:
        yield "It acts on what the recipe's factory built, as that is now."
    for record in taken.gone:
        if past.working_memory.in_cycle and _was_recalled(past, record.id):
            yield (
                f"Record {record.id[:12]} was taken out of this cycle's recall, but the phases "
                f"before {past.boundary.phase.value} had seen it."
            )
    if turns is not None and turns > len(later.inputs):
        yield f"The parent took {len(later.inputs)} later turns: so many can be taken, not {turns}."
    yield from _unused(taken, past.boundary)
    if later.sensed:
        yield f"{later.sensed} percepts that reached the parent on their own are left out."
    if taken.agent.context.dialogue_source is not None:
        yield "The context that selects its dialogue keeps a state that the trace does not hold."


def _unused(taken: TakenUp, boundary: Boundary) -> Iterator[str]:
    """Texts of procedures that no model was given, as in a turn that asks by another procedure."""
    calls = [record for record in taken.agent.trace if isinstance(record, ModelCall)]
    asked = dict.fromkeys(procedure_of(call) for call in calls if call.cycle >= boundary.cycle)
    for name in taken.procedures:
        if name not in asked:
            others = ", ".join(filter(None, asked)) or "none"
            yield (
                f"No model was asked by procedure {name!r}, so its new text changed nothing. "
                f"Those that were used: {others}."
            )


def _was_recalled(past: Past, record: str) -> bool:
    retrieval = past.working_memory.cognitive_state.retrieval
    return any(hit.record.id == record for hit in (retrieval.records if retrieval else ()))


def _cycles(taken: TakenUp, boundary: Boundary) -> tuple[CycleStory, ...]:
    stories = Stories(first=boundary.cycle)
    for outcome in outcomes_of(taken.stands):
        stories.take(outcome)
    for record in taken.agent.trace:
        stories.take(record)
    return stories.told()


def _described(taken: TakenUp, state: object) -> str | None:
    environment = taken.agent.environment
    if state is None or not isinstance(environment, Describable):
        return None
    return environment.describe(state)


async def _end(taken: TakenUp) -> str | None:
    environment = taken.agent.environment
    if environment is None or not isinstance(environment, Describable):
        return None
    try:
        return environment.describe(await environment.snapshot())
    except Exception as error:  # somebody's environment; what the fork did stays to be read
        return f"not known: the environment raised {type(error).__name__}: {error}"
