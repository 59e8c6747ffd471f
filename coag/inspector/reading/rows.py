"""Records of a run as rows, model calls as parts."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from pydantic_core import from_json

from coag._util.json_diff import differences
from coag.inspector.views import (
    CallView,
    Change,
    CycleRow,
    MessageView,
    PartKind,
    PromptPart,
    Rejected,
)
from coag.schema import (
    PHASES,
    Candidate,
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    Trust,
    TurnEnd,
    estimate_tokens,
)
from coag.tracing import RecordKind, TraceIndex

from .runs import LINE, call_in_a_line, in_a_line, told_in_a_line

# ---- The cycles of a trace in order, as its index knows them ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The lines of one cycle, of a plain run of one turn."""

    cycle: int
    first: int
    """Position of its first line."""
    end: int
    """Position behind its last one."""


class Timeline:
    """Which lines of a trace make up each cycle, of a plain run each turn.

    Neighbouring stretches of one cycle are one: a turn that broke off, and the one that went on
    with it. What stands before a cycle and names none belongs to it, and at the end of a trace to
    the last.

    Args:
        index: Scanned as far as it was; more may come.
    """

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._cycles = array("Q")
        self._firsts = array("Q")
        """The first line of each; it ends where the next one begins."""
        self._taken = 0
        """Stretches that were taken up and can no longer change."""
        self._free = -1
        """The first line of what is of no cycle yet; -1 for none."""

    def refresh(self) -> None:
        """Takes up what the index has scanned since.

        The last stretch may still become another cycle's, so it counts once it names its own.
        """
        while self._taken < self._index.stretches:
            stretch = self._index.stretch(self._taken)
            if stretch.cycle:
                self._begin(stretch.cycle, stretch.first)
            elif self._taken == self._index.stretches - 1:
                return
            elif self._free < 0:
                self._free = stretch.first
            self._taken += 1

    def _begin(self, cycle: int, first: int) -> None:
        if not self._cycles or self._cycles[-1] != cycle:
            self._cycles.append(cycle)
            self._firsts.append(first if self._free < 0 else self._free)
        self._free = -1

    def __len__(self) -> int:
        return len(self._cycles)

    def span(self, position: int) -> Span:
        """The lines of a cycle.

        Args:
            position: Of the cycle among all, from 0.
        """
        last = position + 1 == len(self._firsts)
        return Span(
            cycle=self._cycles[position],
            first=self._firsts[position],
            end=self._index.lines if last else self._firsts[position + 1],
        )

    def cycle(self, position: int) -> int:
        """The number of the cycle at a position."""
        return self._cycles[position]

    def find(self, cycle: int) -> int | None:
        """The position of a cycle; None where it is not among those that were scanned.

        Where a damaged trace has it twice, it is the first.
        """
        try:
            return self._cycles.index(cycle)
        except ValueError:
            return None


# ---- One cycle of a run on one row, from as few of its records as that needs ----


_OF_CYCLES = frozenset({RecordKind.OUTCOME, RecordKind.TURN_END})
_OF_TURNS = frozenset(
    {
        RecordKind.MODEL_CALL,
        RecordKind.INTENT,
        RecordKind.RECEIPT,
        RecordKind.NOTE,
        RecordKind.TURN_END,
    }
)
_PLAIN_STATUS = {ReceiptStatus.DONE: "done", ReceiptStatus.FAILED: "failed"}
_TURN_STATUS = {"error": "failed", "cancelled": "cancelled"}
"""Of a plain run's turn in which nothing was called, by the reason of its end; else it is done."""
_DEEDS = 8
"""Actions of one batch or turn that are named in a row."""


def row_of(index: TraceIndex, span: Span, *, plain: bool) -> CycleRow:
    """The row of a cycle, or of a plain run's turn.

    Raises:
        TraceError: The trace cannot be read.
    """
    kinds = _OF_TURNS if plain else _OF_CYCLES
    positions = range(span.first, span.end)
    wanted = [at for at in positions if index.kind(at) in kinds]
    records = [line.entry.body for line in index.read(wanted) if line.entry is not None]
    began, ended = index.times([span.first, span.end - 1])
    notes = sum(index.kind(at) is RecordKind.NOTE for at in positions)
    return row_from(records, cycle=span.cycle, began=began, ended=ended, notes=notes, plain=plain)


def row_from(
    records: Sequence[TraceRecord],
    *,
    cycle: int,
    began: datetime | None,
    ended: datetime | None,
    notes: int,
    plain: bool,
) -> CycleRow:
    """The row that records of a cycle, or of a plain run's turn, give.

    Args:
        records: Outcomes and ends of turns, of a plain run requests, intents and receipts too;
            others are passed over.
        cycle: Its number.
        began: When its first record was written; None where that is not known.
        ended: When its last one was.
        notes: How many notes it has.
        plain: True for a plain run.
    """
    ends = [record.reason for record in records if isinstance(record, TurnEnd)]
    seconds = (ended - began).total_seconds() if began is not None and ended is not None else None
    told = _of_turn(records) if plain else _of_cycle(outcomes_in(records))
    return CycleRow(
        number=cycle,
        at=began,
        seconds=seconds,
        notes=notes,
        ended=in_a_line(ends[-1]) if ends else "",
        **told,
    )


def outcomes_in(records: Iterable[TraceRecord]) -> dict[Phase, Outcome]:
    """The outcomes among records by phase; of a phase that was begun anew the last."""
    return {record.phase: record for record in records if record.record == "outcome"}


def deaths(
    candidates: Iterable[Candidate], evaluation: EvaluationOutcome | None
) -> tuple[Rejected, ...]:
    """The candidates that did not live, and what each died of."""
    by_id = {candidate.id: candidate for candidate in candidates}
    found: list[Rejected] = []
    for judged in evaluation.evaluations if evaluation else ():
        verdict = judged.died_of
        if verdict is None:
            continue
        candidate = by_id.get(judged.candidate_id)
        found.append(
            Rejected(
                action=in_a_line(judged.candidate_id) if candidate is None else named(candidate),
                constraint=in_a_line(verdict.constraint),
                reason=in_a_line(verdict.reason),
            )
        )
    return tuple(found)


def named(candidate: Candidate) -> str:
    """A candidate on one line, its arguments as the model wrote them."""
    arguments = in_a_line(candidate.raw_arguments)
    name = in_a_line(candidate.action)
    return name if arguments in ("", "{}") else f"{name} {arguments}"


def _of_cycle(outcomes: dict[Phase, Outcome]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "phases": tuple(phase for phase in PHASES if phase in outcomes),
        "usage": sum((each.usage for each in outcomes.values()), TokenUsage()),
    }
    evaluation, candidates = outcomes.get(Phase.EVALUATION), _candidates(outcomes)
    if isinstance(evaluation, EvaluationOutcome):
        told["rejected"] = deaths(candidates, evaluation)
    told["candidates"] = len(candidates)
    for outcome in outcomes.values():
        match outcome:
            case RetrievalOutcome():
                told["recalled"] = len(outcome.records)
            case ReasoningOutcome():
                told["situation"] = in_a_line(outcome.situation)
            case SelectionOutcome():
                told |= _selected(outcome, candidates)
            case ExecutionOutcome():
                told |= _executed(outcome)
            case _:
                pass
    return told


def _candidates(outcomes: dict[Phase, Outcome]) -> tuple[Candidate, ...]:
    proposal = outcomes.get(Phase.PROPOSAL)
    return proposal.candidates if isinstance(proposal, ProposalOutcome) else ()


def _selected(outcome: SelectionOutcome, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """Until it is run, what was chosen stands for what was done."""
    chosen = [named(each) for each in candidates if each.id in outcome.chosen]
    return {
        "impasse": outcome.impasse,
        "decided_by": outcome.decided_by.value if outcome.decided_by else "",
        "action": _joined(chosen),
    }


def _executed(outcome: ExecutionOutcome) -> dict[str, Any]:
    done = outcome.executed
    return {
        "action": _joined([call_in_a_line(each.action, each.arguments) for each in done]),
        "internal": bool(done) and all(each.internal for each in done),
        "status": outcome.status.value,
        "result": _joined([told_in_a_line(each.result) for each in done if each.result])
        or told_in_a_line(outcome.result),
    }


def _joined(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _DEEDS} more" if len(texts) > _DEEDS else ""
    return in_a_line("; ".join(texts[:_DEEDS]) + more, 2 * LINE)


def _of_turn(records: Sequence[TraceRecord]) -> dict[str, Any]:
    """A plain run's turn: what it called, and what came back or was answered; else its notes."""
    intents = [record for record in records if isinstance(record, Intent)]
    receipts = [record for record in records if isinstance(record, Receipt)]
    answers = [record.response for record in records if isinstance(record, TurnEnd)]
    calls = [record.usage for record in records if isinstance(record, ModelCall)]
    noted = [record.text for record in records if isinstance(record, Note)]
    results = [receipt.content for receipt in receipts] if intents else answers or noted
    statuses = [_PLAIN_STATUS.get(receipt.status, "failed") for receipt in receipts]
    reasons = [record.reason for record in records if isinstance(record, TurnEnd)]
    ended = _TURN_STATUS.get(reasons[-1], "done") if reasons else ""
    return {
        "usage": sum(calls, TokenUsage()),
        "action": _joined([call_in_a_line(each.action, each.arguments) for each in intents]),
        "status": ("failed" if "failed" in statuses else "done") if statuses else ended,
        "result": _joined([told_in_a_line(result) for result in results]),
    }


# ---- A message of a prompt, taken apart into what its pieces are ----
#
# Working memory renders data between delimiters that it cannot close itself, under a heading
# each; all else is instruction. Foreign logs may hold anything, so whatever is found, the pieces
# one after the other are the message.


_OPENED = re.compile(
    r"^(?:#{1,6} (?P<title>[^\n]{0,400})\n)?"
    r'<data source="(?P<source>[^"<>\n]{0,400})" trust="(?P<trust>developer|user|untrusted)">\n',
    re.MULTILINE,
)
_CLOSED = re.compile(r"\n</data>(?=\n|\Z)\n*")
_HEADING = re.compile(r"^#{1,2} (?P<title>[^\n]{1,400})$", re.MULTILINE)
_MOST = 400
"""Pieces of one message; what comes after them is one piece more."""
_EXTRAS = ("thought", "tool_calls")
"""What an answer may hold beside its text."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Where a piece of a message begins, and what it is."""

    begin: int
    kind: PartKind
    title: str = ""
    source: str = ""
    trust: Trust | None = None


def message_text(message: Mapping[str, Any]) -> str:
    """A recorded message as one text: its content, and what an answer holds beside it."""
    return "".join(text for _, text in _texts(message))


def parts_of(
    message: Mapping[str, Any], *, delimited: bool, same: int = 0
) -> tuple[PromptPart, ...]:
    """The pieces of a recorded message; one after the other they are its `message_text`.

    Args:
        message: As a model call has it.
        delimited: True if working memory rendered it, so that data stands between delimiters.
        same: Characters at its beginning that are part of the prefix which the request shares
            with the one before it.
    """
    parts: list[PromptPart] = []
    before = 0
    for title, text in _texts(message):
        for piece, end in _ends(_pieces(str(message.get("role")), title, text, delimited), text):
            whole = text[piece.begin : end]
            shared = min(max(same - before - piece.begin, 0), len(whole))
            parts.append(
                PromptPart(
                    kind=piece.kind,
                    title=piece.title,
                    text=whole,
                    source=piece.source,
                    trust=piece.trust,
                    tokens=estimate_tokens(whole),
                    same=shared,
                )
            )
        before += len(text)
    return tuple(parts)


def _texts(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts that a message holds, each under a name; none that is empty."""
    content = message.get("content")
    if content is not None and content != "":
        yield "", content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    for name in _EXTRAS:
        value = message.get(name)
        if value:
            yield name.replace("_", " "), json.dumps(value, ensure_ascii=False)


def _ends(pieces: Iterator[_Piece], text: str) -> Iterator[tuple[_Piece, int]]:
    """The pieces that hold something, each with where it ends."""
    found = list(pieces)
    ends = [*(piece.begin for piece in found[1:]), len(text)]
    for piece, end in zip(found, ends, strict=True):
        if end > piece.begin:
            yield piece, end


def _pieces(role: str, title: str, text: str, delimited: bool) -> Iterator[_Piece]:
    if role == "assistant":
        yield _Piece(0, PartKind.ANSWER, title)
    elif delimited and not title:
        yield from _bounded(_delimited(text), text)
    else:
        yield _Piece(0, PartKind.PLAIN, title)


def _bounded(pieces: Iterator[_Piece], text: str) -> Iterator[_Piece]:
    """So many of the pieces, and the rest as one of which nothing is said."""
    for number, piece in enumerate(pieces):
        if number == _MOST:
            yield _Piece(piece.begin, PartKind.PLAIN, "and more")
            return
        yield piece


def _delimited(text: str) -> Iterator[_Piece]:
    at = 0
    while opened := _OPENED.search(text, at):
        closed = _CLOSED.search(text, opened.end() - 1)
        if closed is None:
            break
        yield from _instructions(text, at, opened.start())
        yield _Piece(
            opened.start(),
            PartKind.DATA,
            opened["title"] or "",
            opened["source"],
            Trust(opened["trust"]),
        )
        at = closed.end()
    yield from _instructions(text, at, len(text))


def _instructions(text: str, begin: int, end: int) -> Iterator[_Piece]:
    """What is no data, at its headings."""
    title = ""
    at = begin
    for heading in _HEADING.finditer(text, begin, end):
        if heading.start() > at:
            yield _Piece(at, PartKind.INSTRUCTION, title)
        at, title = heading.start(), heading["title"]
    if end > at:
        yield _Piece(at, PartKind.INSTRUCTION, title)


def shared_prefix(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginnings."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


# ---- Requests to models, each beside the one that it repeats most of ----


def call_views(calls: Sequence[ModelCall], earlier: Sequence[ModelCall]) -> list[CallView]:
    """The requests of a cycle as they are shown.

    Each is compared with the request before it, and with the last one of its phase; what it
    shares most with is what a server's cache can have held.

    Args:
        calls: In order.
        earlier: Requests before the first of them, in order; as many as are at hand.
    """
    views: list[CallView] = []
    latest = {call.phase: call for call in earlier}
    before = None
    for call in calls:
        rivals = [each for each in (before, latest.get(call.phase)) if each is not None]
        shared = max((_shared(call, each) for each in rivals), key=sum, default=list[int]())
        views.append(_view(call, shared))
        latest[call.phase] = before = call
    return views


def _shared(call: ModelCall, other: ModelCall) -> list[int]:
    """Of each message how many characters are in the common prefix, as long as there are any."""
    found: list[int] = []
    for mine, theirs in zip(call.messages, other.messages, strict=False):
        if mine.get("role") != theirs.get("role"):
            break
        text = message_text(mine)
        found.append(shared_prefix(text, message_text(theirs)))
        if found[-1] < len(text):
            break
    return found


def _view(call: ModelCall, shared: Sequence[int]) -> CallView:
    lengths = [*shared, *[0] * (len(call.messages) - len(shared))]
    delimited = call.phase is not None
    return CallView(
        call=call,
        messages=tuple(
            _message(message, delimited=delimited, same=same)
            for message, same in zip(call.messages, lengths, strict=True)
        ),
        same_tokens=sum(
            estimate_tokens(message_text(message)[:same])
            for message, same in zip(call.messages, lengths, strict=True)
        ),
        answer=_answer(call.raw),
    )


def _message(message: Mapping[str, Any], *, delimited: bool, same: int) -> MessageView:
    role = message.get("role")
    return MessageView(
        role=role if isinstance(role, str) else "",
        parts=parts_of(message, delimited=delimited, same=same),
        tokens=estimate_tokens(message_text(message)),
    )


def _answer(raw: str) -> Any:
    """The answer where it is an object or a list; small ones of JSON are text as well."""
    if raw.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return from_json(raw)
    except ValueError:
        return None


# ---- What is different between two JSON values, field by field ----


_MOST_CHANGES = 200
"""Changes that are told."""
_DEEP = 20
"""Levels below which a field is told as a whole."""


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """The fields that were added, changed or removed, by dotted path; lists count as one.

    Of many only the first are told.
    """
    found = differences(before, after, in_lists=False, depth=_DEEP + 1, missing=None)
    return tuple(
        Change(path=one.path, before=one.before, after=one.after)
        for one in islice(found, _MOST_CHANGES)
    )
