"""What a cycle's decision rested on, read from the trace alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from coag._util.html_cards import HtmlTable, html_card
from coag.errors import ConfigurationError
from coag.memory import ProcedureVersion
from coag.schema import (
    Candidate,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Percept,
    PerceptKind,
    RecalledRecord,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    Value,
    Verdict,
)
from coag.tracing import (
    CandidateSummary,
    CycleSummary,
    RunFolder,
    RunInfo,
    cycle_of,
    known_cycles,
    read_run,
    read_trace,
    refusal_of,
    situation_after,
    summarize_cycle,
)

from .boundary import Choice, procedure_of
from .fork_past import memory_of, outcomes_of

LIMITS = (
    "A plain agent's run: it holds what arrived, what the model was asked and answered, and what "
    "was begun; neither what was remembered nor what else was considered."
)
_HISTORIES: TypeAdapter[dict[str, tuple[ProcedureVersion, ...]]] = TypeAdapter(
    dict[str, tuple[ProcedureVersion, ...]]
)
_Histories = dict[str, tuple[ProcedureVersion, ...]]


class ProcedureUsed(Value):
    """A procedure by which a model was asked in the cycle, in the version that was pinned."""

    name: str
    version: int
    author: str = ""
    """Who wrote this version; `seed` for a developer's file, empty where the trace lacks it."""
    reason: str = ""
    """Why it was written."""
    text: str = ""


class Considered(Value):
    """A candidate, and everything that was found out about it."""

    id: str
    choice: Choice
    because: str = ""
    """Why it was proposed."""
    expected_effect: str = ""
    verdicts: tuple[Verdict, ...] = ()
    """What each check and constraint said, in order; the first that forbids ends the list."""
    rejected_by: Verdict | None = None
    """The verdict that forbade it; None for a survivor."""
    projection: dict[str, Any] | None = None
    """The state that the domain's forward model predicted."""
    score: float | None = None
    judged: str = ""
    """The model's judgement in words."""
    chosen: bool = False

    @classmethod
    def of(cls, one: CandidateSummary) -> Considered:
        """A candidate of a cycle's summary."""
        candidate, evaluation = one.candidate, one.evaluation
        return cls(
            id=candidate.id,
            choice=Choice.of(candidate),
            because=candidate.reason,
            expected_effect=candidate.expected_effect,
            verdicts=evaluation.verdicts if evaluation else (),
            rejected_by=one.rejected_by,
            projection=evaluation.projection if evaluation else None,
            score=evaluation.score if evaluation else None,
            judged=evaluation.reason if evaluation else "",
            chosen=one.chosen,
        )


class Explanation(Value):
    """What the decision of one cycle rested on, as far as its trace shows."""

    run: str
    """The run's id."""
    kind: str
    """`coag` or `plain`."""
    cycle: int
    """The cycle; of a plain run the turn, which may hold several actions."""
    goal: str = ""
    state: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The perceptual state that the decision rested on, as JSON; empty where there is none."""
    percepts: tuple[Percept, ...] = ()
    """What had arrived since the last action."""
    query: str = ""
    """What long-term memory was asked."""
    recalled: tuple[RecalledRecord, ...] = ()
    """What it brought back, best first, with scores and provenance."""
    left_out: tuple[str, ...] = ()
    """Ids of what it brought back too and for which the prompt had no room, best first."""
    procedures: tuple[ProcedureUsed, ...] = ()
    """In the order in which models were asked by them."""
    constraints: tuple[str, ...] = ()
    """Those in force, in the order in which they are asked."""
    models: tuple[str, ...] = ()
    """The models that were asked."""
    depth: str = ""
    """With `depth="auto"`: how deeply the cycle deliberated, and why, in one line."""
    situation: str = ""
    """How Reasoning understood the situation."""
    risks: tuple[str, ...] = ()
    considered: tuple[Considered, ...] = ()
    """Every candidate; of a plain run every action that was begun or refused."""
    decided_by: str | None = None
    """`model`, `rank` or `only_survivor`; None for an impasse, or if nothing was decided yet."""
    reason: str = ""
    """Why it was chosen, in the words of who decided."""
    status: str | None = None
    """How Execution ended; None if it was not reached, and for plain runs."""
    result: str = ""
    """What was brought back, or the answer."""
    notes: tuple[str, ...] = ()
    """What did not go as it should: fallbacks, repairs, parts left out."""

    @property
    def chosen(self) -> tuple[Choice, ...]:
        """What was decided on; empty for an impasse."""
        return tuple(one.choice for one in self.considered if one.chosen)

    def _repr_html_(self) -> str:
        rows = [
            (
                "chosen" if one.chosen else "",
                str(one.choice),
                one.score,
                one.rejected_by and f"{one.rejected_by.constraint}: {one.rejected_by.reason}",
                one.because,
            )
            for one in self.considered
        ]
        return html_card(
            f"Cycle {self.cycle} of {self.run}",
            facts=[
                ("goal", self.goal or None),
                ("situation", self.situation or None),
                ("recalled", len(self.recalled) or None),
                ("no room in the prompt for", len(self.left_out) or None),
                ("constraints", ", ".join(self.constraints) or None),
                ("decided by", self.decided_by),
                ("reason", self.reason or None),
                ("status", self.status),
                ("result", self.result or None),
            ],
            lines=self.notes,
            table=HtmlTable(
                columns=("", "candidate", "score", "rejected by", "why proposed"), rows=rows
            ),
        )


def why(run: RunFolder | Path | str, cycle: int) -> Explanation:
    """What a cycle's decision rested on.

    Args:
        run: The run's folder.
        cycle: The cycle; of a plain run the turn.

    Raises:
        ConfigurationError: The run has no such cycle.
        TraceError: The run cannot be read.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    entries = read_trace(folder.trace_path, lambda problem: None)
    return explain(read_run(folder.path), (entry.body for entry in entries), cycle)


def explain(info: RunInfo, records: Iterable[TraceRecord], cycle: int) -> Explanation:
    """What a cycle's decision rested on, by its records alone.

    Args:
        info: What is known about the run.
        records: Those from the cycle's beginning on, where it begins with a snapshot, and before
            them a snapshot that holds the procedures' texts; or all of the run.
        cycle: The cycle; of a plain run the turn.

    Raises:
        ConfigurationError: There is no such cycle among them.
    """
    if info.kind != "coag":
        return _explain_plain(info, records, cycle)
    summary, histories = _read(info, records, cycle)
    retrieval, reasoning, execution = summary.retrieval, summary.reasoning, summary.execution
    pinned = retrieval.procedures if retrieval else {}
    used = dict.fromkeys(procedure_of(call) for call in summary.calls)
    return Explanation(
        run=info.id,
        kind=info.kind,
        cycle=cycle,
        goal=summary.goal,
        state=dict(summary.state),
        percepts=summary.percepts,
        query=retrieval.query if retrieval else "",
        recalled=retrieval.records if retrieval else (),
        left_out=retrieval.left_out if retrieval else (),
        procedures=tuple(
            _procedure(name, pinned[name], histories) for name in used if name in pinned
        ),
        constraints=retrieval.constraints if retrieval else (),
        models=tuple(dict.fromkeys(call.model for call in summary.calls)),
        depth=_depth(summary),
        situation=summary.situation,
        risks=reasoning.risks if reasoning else (),
        considered=tuple(map(Considered.of, summary.candidates)),
        decided_by=summary.decided_by,
        reason=summary.reason,
        status=None if execution is None else execution.status.value,
        result=summary.result,
        notes=summary.problems,
    )


def _depth(summary: CycleSummary) -> str:
    reasoning, evaluation = summary.reasoning, summary.evaluation
    if reasoning is None or reasoning.depth is None:
        return ""
    again = evaluation.escalated if evaluation else ""
    more = f"; the model was asked again: {again}" if again else ""
    return f"{reasoning.depth.line}{more}"


def _read(
    info: RunInfo, records: Iterable[TraceRecord], cycle: int
) -> tuple[CycleSummary, _Histories]:
    """The summary of a cycle, and the histories of procedures that a snapshot before it holds."""
    own: list[TraceRecord] = []
    """What was perceived and noted before the cycle, and its records."""
    goal, state, histories = "", dict[str, Any](), _Histories()
    last, begun = 0, False
    for record in records:
        last = max(last, cycle_of(record) or 0)
        if not begun:
            goal, state = situation_after(record, goal, state)
        if isinstance(record, Snapshot):
            histories = _histories(record) or histories
            if not begun and record.reason is not SnapshotReason.CYCLE:
                memory = memory_of(record)
                held = list(outcomes_of(memory)) if memory.cycle == cycle else []
                own = [*(one for one in own if isinstance(one, Note)), *memory.percepts, *held]
                begun = bool(held)
        elif _is_own(record, cycle, begun=begun):
            own.append(record)
            begun = begun or record.record == "outcome"
        if isinstance(record, ExecutionOutcome):
            if record.cycle == cycle:
                break
            own = [one for one in own if not isinstance(one, Percept)]
    if not begun:
        known = known_cycles(info, last)
        raise ConfigurationError(f"Run {info.id!r} has {known}: no cycle {cycle}.")
    return replace(summarize_cycle(own, cycle=cycle), goal=goal, state=state), histories


def _is_own(record: TraceRecord, cycle: int, *, begun: bool) -> bool:
    match record:
        case Percept():
            return not begun
        case ModelCall():  # Retrieval's own calls name the cycle before
            return begun and record.cycle == cycle
        case Note():
            return record.cycle == cycle
        case _:
            return record.record == "outcome" and record.cycle == cycle


def _histories(snapshot: Snapshot) -> _Histories:
    """Every version of each procedure, where the snapshot holds them and they can be read."""
    state = snapshot.procedures.get("state")
    try:
        return _HISTORIES.validate_python(state["procedures"] if state else {})
    except (ValidationError, KeyError, TypeError):  # a trace may hold anything
        return {}


def _procedure(name: str, version: int, histories: _Histories) -> ProcedureUsed:
    history = dict(enumerate(histories.get(name, ()), 1))
    if version not in history:
        return ProcedureUsed(name=name, version=version)
    fields = history[version].model_dump(include={"author", "reason", "text"})
    return ProcedureUsed(name=name, version=version, **fields)


# ---- A turn of a plain agent, which leaves no deliberation behind ----


def _explain_plain(info: RunInfo, records: Iterable[TraceRecord], turn: int) -> Explanation:
    last, acted = 0, False
    own: list[TraceRecord] = []
    before: list[Percept] = []
    """What arrived since the last action of the turns before."""
    for current, record in _by_turn(records):
        last = max(last, current)
        acted = acted or isinstance(record, ModelCall | Intent)
        own += [record] if current == turn else []
        if isinstance(record, Percept) and current < turn:
            before.append(record)
        elif current < turn and isinstance(record, ModelCall | Intent | TurnEnd):
            before.clear()
    if last == 0 and acted:
        problem = f"Run {info.id!r} is a plain agent's and was written down without turns"
        raise ConfigurationError(f"{problem}, as a RecordedAgent writes them: see `coag log`.")
    if not own or turn < 1:
        what = "no turn yet" if last == 0 else f"turns up to {last}"
        raise ConfigurationError(f"Run {info.id!r} is a plain agent's and has {what}: no {turn}.")
    summary = summarize_cycle(own, cycle=turn)
    begun = tuple(_begun(intent) for intent, _ in summary.effects)
    ids = {one.id for one in begun}
    others = (one for one in summary.returned if one.caused_by not in ids)
    ended = (receipt.content for _, receipt in summary.effects if receipt is not None)
    return Explanation(
        run=info.id,
        kind=info.kind,
        cycle=turn,
        percepts=(*before, *(one for one in (*summary.percepts, *others) if not _refuses(one))),
        models=tuple(dict.fromkeys(call.model for call in summary.calls)),
        situation="\n".join(call.raw for call in summary.calls if call.raw and not call.error),
        considered=(*begun, *refusals(own)),
        decided_by="model" if begun else None,
        result=summary.turn_end.response if summary.turn_end else "\n".join(ended),
        notes=(LIMITS, *summary.problems),
    )


def _by_turn(records: Iterable[TraceRecord]) -> Iterator[tuple[int, TraceRecord]]:
    """Each record with its turn; a percept between two turns is of the later one."""
    current, over = 0, True
    for record in records:
        named = cycle_of(record)
        current = current if named is None else named
        over = isinstance(record, TurnEnd) or (over and named is None)
        between = over and isinstance(record, Percept)
        yield (current + 1 if between else current), record


def _begun(intent: Intent) -> Considered:
    arguments = json.dumps(intent.arguments, ensure_ascii=False, sort_keys=True)
    choice = Choice(action=intent.action, arguments=arguments)
    return Considered(id=intent.id, choice=choice, chosen=True)


# ---- Calls under guard that were refused: they were not begun, and leave notes only ----


_REFUSED = " was refused right before it was to run. "


def _refuses(percept: Percept) -> bool:
    return percept.kind is PerceptKind.IMPASSE and _REFUSED in percept.content


def refusals(records: Iterable[TraceRecord]) -> Iterator[Considered]:
    """The calls among a plain run's records that were refused, each with its last verdict."""
    passed: Note | None = None
    for record in records:
        if isinstance(record, Note) and "verdicts" in record.details:
            verdict = refusal_of(record)
            passed = record if verdict is None else None
            if verdict is not None:
                end = f") is forbidden by {verdict.constraint}: {verdict.reason}"
                yield _refused(record.text.removesuffix(end), record, verdict)
        elif isinstance(record, Percept) and passed is not None and _refuses(record):
            name, _, reason = record.content.partition(_REFUSED)[2].partition(": ")
            verdict = Verdict(allowed=False, constraint=name, reason=reason)
            yield _refused(passed.text.rpartition(") passed ")[0], passed, verdict)
            passed = None


def _refused(call: str, note: Note, verdict: Verdict) -> Considered:
    """A refused call, which its note shows as `NAME(ARGUMENTS`."""
    action, _, arguments = call.partition("(")
    named = Candidate(
        id=str(note.details.get("call") or "call"), action=action, raw_arguments=arguments
    )
    return Considered(id=named.id, choice=Choice.of(named), rejected_by=verdict)
