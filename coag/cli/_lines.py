"""A run's records as lines for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from coag.schema import (
    ActionsListed,
    Candidate,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Written,
    one_line,
)

_DIM = "bright_black"
_BAD = "red"
_GOOD = "green"
_SHORT = 60
"""Characters up to which a result is shown each time that it is met."""
_RAW = 200
"""Characters shown of an unusable answer."""
_SEEN = "[the receipt's result]"
_STATES = {
    SnapshotReason.LOADED: "a saved state took the place of the one before",
    SnapshotReason.FORKED: "the run begins where another one stood",
}
"""Snapshots of what no record before them led to."""


class RunLines:
    """Turns records into lines, in the order of the trace.

    It must see every record, also those that are not shown: a later one names the candidates
    of an earlier one by their ids, and what an action brought back is shown once, in its receipt.

    Args:
        plain: The run is that of a plain agent, which has no cycles and so no impasses either.
    """

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain
        self._actions: dict[str, str] = {}
        self._result = ""

    def of(self, record: TraceRecord) -> list[Text]:
        """The record's lines; none for a turn's start, nor for a snapshot of what came before."""
        return list(self._of(record))

    def _of(self, record: TraceRecord) -> Iterator[Text]:
        match record:
            case ModelCall():
                yield from _model_call(record)
            case Percept():
                refusal = self._plain and record.kind is PerceptKind.IMPASSE
                yield _percept(record, self._once(record.content), refusal=refusal)
            case Intent() | Receipt():
                yield _effect(record)
                if isinstance(record, Receipt):
                    self._result = record.content
            case Note():
                yield _line("note", f"{record.about}: {record.text}", "yellow")
            case Written():
                content = {
                    name: self._once(value) if isinstance(value, str) else value
                    for name, value in record.content.items()
                }
                text = f"{record.what} {record.id} {_json(content)}"
                yield _line("written", text, "cyan")
            case TurnEnd():
                said = self._once(record.response)
                text = f"{record.reason}: {said}" if said else record.reason
                yield _line("turn ended", text, "bold")
            case Snapshot() | ActionsListed() | TurnStart():
                if isinstance(record, Snapshot) and record.reason in _STATES:
                    yield _line("state", _STATES[record.reason], "yellow")
            case _:
                yield from self._outcome(record)

    def _outcome(self, outcome: Outcome) -> Iterator[Text]:
        match outcome:
            case RetrievalOutcome():
                yield from _retrieval(outcome)
            case ReasoningOutcome():
                yield from _reasoning(outcome)
            case ProposalOutcome():
                self._actions = {each.id: _call(each) for each in outcome.candidates}
                yield from _proposal(outcome)
            case EvaluationOutcome():
                yield _line("evaluation", f"{len(outcome.evaluations)} judged", "bold")
                for evaluation in outcome.evaluations:
                    yield self._evaluation(evaluation)
            case SelectionOutcome():
                yield self._selection(outcome)
            case ExecutionOutcome():
                yield from _execution(outcome, self._once(outcome.result))

    def _once(self, text: str) -> str:
        """The text, with a long result that the last receipt showed only named."""
        return text if len(self._result) <= _SHORT else text.replace(self._result, _SEEN)

    def _evaluation(self, evaluation: Evaluation) -> Text:
        action = self._named(evaluation.candidate_id)
        fatal = evaluation.died_of
        if fatal is not None:
            return _item(f"rejected {action}: {fatal.constraint}: {fatal.reason}", _BAD)
        score = "" if evaluation.score is None else f" scored {evaluation.score:.2f}"
        gain = "" if evaluation.gain is None else f" gain {evaluation.gain:+.2f}"
        reason = f": {evaluation.reason}" if evaluation.reason else ""
        return _item(f"survived {action}{gain}{score}{reason}", _GOOD)

    def _selection(self, outcome: SelectionOutcome) -> Text:
        reason = f": {outcome.reason}" if outcome.reason else ""
        if outcome.candidate_id is None:
            return _line("selection", f"impasse, no candidate survived{reason}", _BAD)
        action = self._named(outcome.candidate_id)
        return _line("selection", f"{action}, decided by {outcome.decided_by}{reason}", _GOOD)

    def _named(self, candidate_id: str) -> str:
        action = self._actions.get(candidate_id)
        return candidate_id if action is None else f"{candidate_id} {action}"


def _retrieval(outcome: RetrievalOutcome) -> Iterator[Text]:
    query = one_line(outcome.query, 120)
    yield _line("retrieval", f"{len(outcome.records)} recalled for {query!r}", "bold")
    for recalled in outcome.records:
        record = recalled.record
        yield _item(f"{recalled.score:.2f} {record.kind} {record.id[:12]} {record.text}")
        if recalled.why is not None and (because := recalled.why.told()):
            yield _item(f"  why: {because}", _DIM)
    if outcome.left_out:
        names = ", ".join(name[:12] for name in outcome.left_out)
        yield _item(f"no room in the prompt for: {names}", _DIM)
    if outcome.constraints:
        yield _item(f"constraints in force: {', '.join(outcome.constraints)}", _DIM)


def _reasoning(outcome: ReasoningOutcome) -> Iterator[Text]:
    yield _line("reasoning", f"goal {outcome.goal_status}: {outcome.situation}", "bold")
    for risk in outcome.risks:
        yield _item(f"risk: {risk}")


def _proposal(outcome: ProposalOutcome) -> Iterator[Text]:
    number = len(outcome.candidates)
    yield _line("proposal", f"{number} proposed by {outcome.proposed_by}", "bold")
    for candidate in outcome.candidates:
        reason = f": {candidate.reason}" if candidate.reason else ""
        yield _item(f"{candidate.id} {_call(candidate)}{reason}")


def _execution(outcome: ExecutionOutcome, result: str) -> Iterator[Text]:
    if outcome.status is ExecutionStatus.NONE:
        yield _line("execution", "nothing was run", _BAD)
        return
    action = f"{outcome.action} {_json(outcome.arguments or {})}"
    style = _GOOD if outcome.status is ExecutionStatus.DONE else _BAD
    yield _line("execution", f"{outcome.status} {action}", style)
    if outcome.response is not None:
        yield _item(f"response: {outcome.response}")
    elif result:
        yield _item(f"result: {result}")


def _model_call(call: ModelCall) -> Iterator[Text]:
    usage = call.usage
    again = "" if call.attempt == 1 else f", attempt {call.attempt}"
    mended = ", repaired" if call.repaired else ""
    yield _line(
        "model",
        f"{call.model} by {call.rung}{again}{mended}: {usage.prompt_tokens} prompt "
        f"({usage.cached_tokens} cached), {usage.completion_tokens} completion tokens, "
        f"{call.seconds:.1f} s",
        _DIM,
    )
    if call.error is not None:
        yield _item(f"unusable: {call.error}", _BAD)
        if call.raw:
            yield _item(f"answer: {one_line(call.raw, _RAW)}", _BAD)
    elif call.phase is None and call.raw:
        yield _item(f"answer: {call.raw}")
    for tool_call in call.tool_calls:
        yield _item(f"tool call: {tool_call.get('name')} {tool_call.get('arguments')}")


def _percept(percept: Percept, content: str, *, refusal: bool) -> Text:
    failed = "failed " if percept.is_error else ""
    what = "refusal" if refusal else f"{failed}{percept.kind} from {percept.source}"
    text = f"{what} ({percept.trust}): {content}"
    return _line("percept", text, _BAD if percept.is_error else "magenta")


def _effect(record: Intent | Receipt) -> Text:
    if isinstance(record, Intent):
        return _line("intent", f"{record.id} {record.action} {_json(record.arguments)}", _DIM)
    style = _DIM if record.status is ReceiptStatus.DONE else _BAD
    return _line("receipt", f"{record.intent_id} {record.status}: {record.content}", style)


def _call(candidate: Candidate) -> str:
    arguments = candidate.raw_arguments
    return f"{candidate.action} {arguments}"


def _line(what: str, text: str, style: str = "") -> Text:
    return Text(f"  {what:<11}{one_line(text)}", style=style)


def _item(text: str, style: str = "") -> Text:
    return Text(f"             {one_line(text)}", style=style)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
