"""What a cycle's decision rested on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import Field, TypeAdapter, ValidationError

from coag.errors import ConfigurationError
from coag.memory import ProcedureVersion
from coag.proof.forking import Choice, memory_of, outcomes_of, procedure_of
from coag.schema import (
    Candidate,
    EvaluationOutcome,
    ExecutionOutcome,
    HtmlTable,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    RecalledRecord,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    Value,
    Verdict,
    html_card,
    merge_patch,
)
from coag.tracing import RunFolder, RunInfo, cycle_of, known_cycles, read_run, read_trace

# ---- What an explanation of a decision consists of ----


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
    died_of: Verdict | None = None
    """The verdict that ended it; None for a survivor."""
    projection: dict[str, Any] | None = None
    """The state that the domain's forward model predicted."""
    score: float | None = None
    judged: str = ""
    """The model's judgement in words."""
    chosen: bool = False


class Explanation(Value):
    """What the decision of one cycle rested on, as far as its trace tells."""

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
    situation: str = ""
    """How Reasoning understood the situation."""
    risks: tuple[str, ...] = ()
    considered: tuple[Considered, ...] = ()
    """Every candidate; of a plain run every action that was begun."""
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
                one.died_of and f"{one.died_of.constraint}: {one.died_of.reason}",
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
                columns=("", "candidate", "score", "died of", "why proposed"), rows=rows
            ),
        )


# ---- What can be told of a turn of a plain agent, which leaves no deliberation behind ----


LIMITS = (
    "A plain agent's run: it holds what arrived, what the model was asked and answered, and what "
    "was begun; neither what was remembered nor what else was considered."
)


def explain_plain(info: RunInfo, records: Iterable[TraceRecord], turn: int) -> Explanation:
    """What a turn's actions rested on.

    Raises:
        ConfigurationError: The run has no such turn.
    """
    last, acted = 0, False
    of_turn: list[TraceRecord] = []
    for current, record in _by_turn(records):
        last = max(last, current)
        acted = acted or isinstance(record, ModelCall | Intent)
        if current == turn:
            of_turn.append(record)
    if last == 0 and acted:
        raise ConfigurationError(
            f"Run {info.id!r} is a plain agent's and was written down without turns. `coag log` "
            "shows it; a RecordedAgent around the agent writes its turns, too."
        )
    if not of_turn or turn < 1:
        what = "no turn yet" if last == 0 else f"turns up to {last}"
        raise ConfigurationError(f"Run {info.id!r} is a plain agent's and has {what}: no {turn}.")
    calls = [record for record in of_turn if isinstance(record, ModelCall)]
    begun = tuple(_begun(record) for record in of_turn if isinstance(record, Intent))
    ends = [record for record in of_turn if isinstance(record, TurnEnd)]
    notes = (f"{r.about}: {r.text}" for r in of_turn if isinstance(r, Note))
    return Explanation(
        run=info.id,
        kind=info.kind,
        cycle=turn,
        percepts=tuple(record for record in of_turn if isinstance(record, Percept)),
        models=tuple(dict.fromkeys(call.model for call in calls)),
        situation="\n".join(call.raw for call in calls if call.raw and call.error is None),
        considered=begun,
        decided_by="model" if begun else None,
        result=ends[-1].response if ends else "",
        notes=(LIMITS, *notes),
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


# ---- What the decision of a cycle rested on, read from the trace alone ----


_HISTORIES: TypeAdapter[dict[str, tuple[ProcedureVersion, ...]]] = TypeAdapter(
    dict[str, tuple[ProcedureVersion, ...]]
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
    return explain(read_run(folder.path), _records(folder), cycle)


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
        return explain_plain(info, records, cycle)
    seen = _Seen(cycle)
    for record in records:
        if seen.take(record):
            break
    if not seen.outcomes:
        known = known_cycles(info, seen.last)
        raise ConfigurationError(f"Run {info.id!r} has {known}: no cycle {cycle}.")
    return seen.explained(info)


def _records(folder: RunFolder) -> Iterator[TraceRecord]:
    return (entry.body for entry in read_trace(folder.trace_path, lambda problem: None))


class _Seen:
    """What a trace tells of one cycle, and of what led up to it."""

    def __init__(self, cycle: int) -> None:
        self.outcomes: dict[Phase, Outcome] = {}
        self.last = 0
        """The last cycle met."""
        self._cycle = cycle
        self._goal = ""
        self._state: dict[str, Any] = {}
        self._percepts: list[Percept] = []
        self._histories: Mapping[str, tuple[ProcedureVersion, ...]] = {}
        self._calls: list[ModelCall] = []
        self._notes: list[str] = []

    def take(self, record: TraceRecord) -> bool:
        """Takes in the next record; True once nothing further can matter."""
        self.last = max(self.last, cycle_of(record) or 0)
        match record:
            case Snapshot():
                self._snapshot(record)
            case Percept() if not self.outcomes:
                self._percepts.append(record)
                self._state = merge_patch(self._state, record.state_patch or {})
            case ModelCall() if self._is_now(record.cycle):
                self._calls.append(record)
            case Note() if record.cycle == self._cycle:
                self._notes.append(f"{record.about}: {record.text}")
            case _ if record.record == "outcome":
                return self._outcome(record)
            case _:
                pass
        return False

    def _is_now(self, cycle: int) -> bool:
        """Retrieval counts the cycle up, so its own calls still name the one before."""
        return bool(self.outcomes) and cycle == self._cycle

    def _outcome(self, outcome: Outcome) -> bool:
        if outcome.cycle == self._cycle:
            self.outcomes[outcome.phase] = outcome
            return isinstance(outcome, ExecutionOutcome)
        if isinstance(outcome, ExecutionOutcome):
            self._percepts.clear()
        return False

    def _snapshot(self, snapshot: Snapshot) -> None:
        self._histories = _histories(snapshot) or self._histories
        if self.outcomes:
            return
        goal = snapshot.working_memory.get("goal", "")
        self._goal = goal if isinstance(goal, str) else ""
        state = snapshot.working_memory.get("perceptual_state")
        self._state = cast("dict[str, Any]", state) if isinstance(state, dict) else {}
        if snapshot.reason is SnapshotReason.CYCLE:
            return
        memory = memory_of(snapshot)
        self._percepts = list(memory.percepts)
        if memory.in_cycle and memory.cycle == self._cycle:
            self.outcomes = {outcome.phase: outcome for outcome in outcomes_of(memory)}

    # ---- the explanation ----

    def explained(self, info: RunInfo) -> Explanation:
        """What was seen, as an explanation."""
        told: dict[str, Any] = {"considered": self._considered()}
        for outcome in self.outcomes.values():
            told |= _told(outcome)
        return Explanation.model_validate(
            {
                "run": info.id,
                "kind": info.kind,
                "cycle": self._cycle,
                "goal": self._goal,
                "state": self._state,
                "percepts": tuple(self._percepts),
                "procedures": self._procedures(),
                "models": tuple(dict.fromkeys(call.model for call in self._calls)),
                "notes": tuple(self._notes),
                **told,
            }
        )

    def _procedures(self) -> tuple[ProcedureUsed, ...]:
        retrieval = self.outcomes.get(Phase.RETRIEVAL)
        pinned = retrieval.procedures if isinstance(retrieval, RetrievalOutcome) else {}
        names = dict.fromkeys(procedure_of(call) for call in self._calls)
        return tuple(self._used(name, pinned[name]) for name in names if name in pinned)

    def _used(self, name: str, version: int) -> ProcedureUsed:
        history = self._histories.get(name, ())
        if not 0 < version <= len(history):
            return ProcedureUsed(name=name, version=version)
        told = history[version - 1]
        return ProcedureUsed(
            name=name, version=version, author=told.author, reason=told.reason, text=told.text
        )

    def _considered(self) -> tuple[Considered, ...]:
        proposal = self.outcomes.get(Phase.PROPOSAL)
        evaluation = self.outcomes.get(Phase.EVALUATION)
        selection = self.outcomes.get(Phase.SELECTION)
        chosen = selection.chosen if isinstance(selection, SelectionOutcome) else ()
        judged = evaluation if isinstance(evaluation, EvaluationOutcome) else None
        candidates = proposal.candidates if isinstance(proposal, ProposalOutcome) else ()
        return tuple(_considered(one, judged, one.id in chosen) for one in candidates)


def _histories(snapshot: Snapshot) -> Mapping[str, tuple[ProcedureVersion, ...]]:
    """Every version of each procedure, where the snapshot holds them and they can be read."""
    state = snapshot.procedures.get("state")
    try:
        return _HISTORIES.validate_python(state["procedures"] if state else {})
    except (ValidationError, KeyError, TypeError):  # a trace may hold anything
        return {}


def _considered(
    candidate: Candidate, evaluation: EvaluationOutcome | None, chosen: bool
) -> Considered:
    judgements = evaluation.evaluations if evaluation is not None else ()
    found = [each for each in judgements if each.candidate_id == candidate.id]
    judged: dict[str, Any] = {}
    if found:
        judged = {
            "verdicts": found[0].verdicts,
            "died_of": found[0].died_of,
            "projection": found[0].projection,
            "score": found[0].score,
            "judged": found[0].reason,
        }
    return Considered(
        id=candidate.id,
        choice=Choice.of(candidate),
        because=candidate.reason,
        expected_effect=candidate.expected_effect,
        chosen=chosen,
        **judged,
    )


def _told(outcome: Outcome) -> dict[str, Any]:
    """What one outcome adds to an explanation."""
    match outcome:
        case RetrievalOutcome():
            return {
                "query": outcome.query,
                "recalled": outcome.records,
                "left_out": outcome.left_out,
                "constraints": outcome.constraints,
            }
        case ReasoningOutcome():
            return {"situation": outcome.situation, "risks": outcome.risks}
        case SelectionOutcome():
            return {"decided_by": outcome.decided_by, "reason": outcome.reason}
        case ExecutionOutcome():
            answer = outcome.response
            result = outcome.result if answer is None else answer
            return {"status": outcome.status.value, "result": result}
        case _:
            return {}
