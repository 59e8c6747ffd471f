"""A run whose every text is hostile.

For everything that shows runs: a page, a report, a terminal. It is made with the real writer, so
that its chain holds and its records are valid; only its texts are harmful. Code that shows it must
let nothing of it act: no script run, no attribute closed, no cursor moved, no link made, no
direction of writing turned, no markup read, and no screen filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from coag.schema import (
    ActionsListed,
    ActionSpec,
    Candidate,
    DecidedBy,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    MemoryKind,
    ModelCall,
    Note,
    OutputMode,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    Provenance,
    ReasoningOutcome,
    RecalledRecord,
    Receipt,
    ReceiptStatus,
    Record,
    Redactor,
    RetrievalOutcome,
    ScoreParts,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    TokenUsage,
    TraceRecord,
    Trust,
    TurnEnd,
    TurnStart,
    Verdict,
    Written,
)
from coag.tracing import Recipe, RunFolder, RunInfo, open_trace

SCRIPT = (
    "<script>window.harmed=1</script><img src=x onerror=window.harmed=1>"
    "\"><svg onload='window.harmed=1'></script></style></textarea></title>--><!-- &lt;b&gt; "
    "javascript:window.harmed=1 {{ 7*7 }} {% raw %} </pre>"
)
"""Breaks out of elements, attributes, comments and templates, where nothing is escaped."""
ESCAPES = "\x1b[2J\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b31m\x1bPq\x1b\\\x1b_x\x1b\\\x1b[?1049h\x1bc"
"""Clears the screen, colours, sets the title, opens another screen, resets the terminal."""
LINK = "\x1b]8;;https://example.org/harm\x1b\\click me\x1b]8;;\x1b\\"
"""A link as terminals know it (OSC 8)."""
BIDI = "\u202egnp.exe\u202c \u2066isolate\u2069 \u200f \u061c"
"""Turns the direction of writing."""
CONTROLS = "\x00\x07\x08\r\x0b\x7f\x85\u2028\u2029"
"""NUL, bell, backspace, carriage return, and line breaks that are none to most programs."""
MARKUP = "[/done] [bold]bold[/bold] [link=x]l[/link] [@click=app.quit]q[/] [red :smile: \\[/x]"
"""Rich and Textual markup, some of which raises where it is parsed."""
SHORT = "[/x]\x1b[2J\u202e\x00<b onclick=x>"
"""A little of each, for places that show only the beginning of a text."""
HARM = f"{SHORT} {SCRIPT} {ESCAPES} {LINK} {BIDI} {CONTROLS} {MARKUP}"
"""All of it in one text."""
FORBIDDEN = frozenset("\x00\x07\x08\x0b\x1b\x7f\x85\x9b\u061c\u200f\u202c\u202e\u2066\u2069")
"""Characters of `HARM` that may reach no page and no terminal as they are."""
DEPTH = 60
"""Levels of lists in what is nested."""

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
_USAGE = TokenUsage(prompt_tokens=812, completion_tokens=93, cached_tokens=640, calls=1, cost=0.01)


def hostile_run(
    logs: Path,
    *,
    name: str = "hostile-run",
    cycles: int = 2,
    size: int = 0,
    ended: bool = True,
    text: str = HARM,
) -> RunFolder:
    """Leaves a run in a folder of logs whose every free text is `HARM`.

    The last cycle is an impasse. The trace's chain holds, and its cycles are well formed: it is
    a valid run, read by every reader without a problem.

    Args:
        logs: The folder of all runs; made if it is not there.
        name: The run's id; the only text that is not hostile.
        cycles: How many cycles it has, at least 1.
        size: Characters that one text (the result of the first action) is longer for.
        ended: Whether the run is over; else it looks like one under way.
        text: What every text is instead.
    """
    info = RunInfo(
        id=name,
        kind="coag",
        agent=HARM,
        model=HARM,
        recipe=Recipe(factory="nowhere:nothing", arguments={HARM: HARM}),
        versions={HARM: HARM},
        configuration={HARM: nested(HARM)},
        started_at=AT,
    )
    folder = RunFolder.create(logs, respelled(info, HARM, text), redactor=Redactor())
    with open_trace(folder, redactor=Redactor()) as trace:
        for record in hostile_records(cycles=cycles, size=size):
            trace.write(respelled(record, HARM, text))
    if ended:
        at = AT + timedelta(minutes=1)
        folder.finish(at=at, result={text: text, "success": text}, redactor=Redactor())
    return folder


def respelled(value: Any, text: str, other: str) -> Any:
    """The value (records or views) with one text replaced by another everywhere."""

    def again(one: Any) -> Any:
        return respelled(one, text, other)

    if isinstance(value, str):
        return value if isinstance(value, Enum) else value.replace(text, other)
    if isinstance(value, BaseModel):
        names = type(value).model_fields
        return value.model_copy(update={name: again(getattr(value, name)) for name in names})
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {again(name): again(one) for name, one in items}
    if isinstance(value, list):
        return [again(one) for one in cast("list[Any]", value)]
    if isinstance(value, tuple):
        return tuple(again(one) for one in cast("tuple[Any, ...]", value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{one.name: again(getattr(value, one.name)) for one in fields(value)}
        )
    return value


def hostile_records(*, cycles: int = 2, size: int = 0) -> list[TraceRecord]:
    """The records of such a run, one of each sort at least; see `hostile_run`."""
    records = _beginning()
    for cycle in range(1, cycles):
        records += hostile_cycle(cycle, size=size if cycle == 1 else 0)
    return [*records, *_impasse(cycles), *_end(cycles)]


def nested(text: str, depth: int = DEPTH) -> Any:
    """A text within lists and objects within one another."""
    value: Any = text
    for level in range(depth):
        value = [value] if level % 2 else {text: value}
    return value


def hostile_cycle(cycle: int, *, size: int = 0) -> list[TraceRecord]:
    """One cycle that runs an action; a constraint rejects another candidate."""
    result = HARM + "A" * size
    intent = f"intent-{cycle:06}"
    return [
        *_thinking(cycle),
        Intent(
            id=intent, at=AT, cycle=cycle, candidate_id="c1", action=HARM, arguments={HARM: HARM}
        ),
        Receipt(
            intent_id=intent,
            at=AT,
            cycle=cycle,
            status=ReceiptStatus.DONE,
            content=result,
            seconds=0.5,
        ),
        Written(at=AT, cycle=cycle, what="record", id=HARM, content={HARM: nested(HARM)}),
        Written(at=AT, cycle=cycle, what="procedure", id=f"{HARM}@2", content={"text": HARM}),
        ExecutionOutcome(
            cycle=cycle,
            at=AT,
            status=ExecutionStatus.DONE,
            candidate_id="c1",
            action=HARM,
            arguments={HARM: HARM},
            intent_id=intent,
            result=result,
        ),
        hostile_percept(f"percept-{cycle:06}", caused_by=intent),
        Note(at=AT, cycle=cycle, about=HARM, text=HARM, details={HARM: nested(HARM)}),
    ]


def hostile_percept(identity: str, **changes: Any) -> Percept:
    """What an evil tool returned."""
    percept = Percept(
        id=identity,
        at=AT,
        kind=PerceptKind.TOOL_RETURN,
        source=HARM,
        trust=Trust.UNTRUSTED,
        content=HARM,
        data=nested(HARM),
        arguments={HARM: HARM},
        state_patch={HARM: HARM, "position": HARM, "battery": HARM},
    )
    return percept.model_copy(update=changes)


def _beginning() -> list[TraceRecord]:
    spec = ActionSpec(name=HARM, description=HARM)
    goal = hostile_percept(
        "percept-000000",
        kind=PerceptKind.MESSAGE,
        trust=Trust.USER,
        arguments=None,
        sets_goal=True,
    )
    return [
        Snapshot(
            at=AT,
            cycle=1,
            reason=SnapshotReason.OPENED,
            working_memory={HARM: nested(HARM)},
            environment={HARM: HARM},
        ),
        ActionsListed(at=AT, cycle=1, specs=(spec,)),
        TurnStart(at=AT, turn=1, cycle=0),
        goal,
    ]


def _thinking(cycle: int) -> list[TraceRecord]:
    rejected = Verdict(allowed=False, reason=HARM, constraint=HARM)
    allowed = Verdict(allowed=True, reason=HARM, constraint=HARM)
    return [
        _retrieval(cycle),
        *_reasoning(cycle),
        ProposalOutcome(
            cycle=cycle, at=AT, candidates=(_candidate("c1"), _candidate("c2")), thought=HARM
        ),
        EvaluationOutcome(
            cycle=cycle,
            at=AT,
            evaluations=(
                Evaluation(
                    candidate_id="c1",
                    arguments={HARM: HARM},
                    verdicts=(allowed,),
                    projection={HARM: nested(HARM)},
                    score=0.9,
                    reason=HARM,
                ),
                Evaluation(candidate_id="c2", verdicts=(rejected,), reason=HARM),
            ),
        ),
        SelectionOutcome(
            cycle=cycle, at=AT, candidate_id="c1", decided_by=DecidedBy.RANK, reason=HARM
        ),
    ]


def _reasoning(cycle: int) -> list[TraceRecord]:
    call = ModelCall(
        id=f"call-{cycle:06}",
        at=AT,
        cycle=cycle,
        phase=Phase.REASONING,
        model=HARM,
        expected=HARM,
        rung=OutputMode.JSON_SCHEMA,
        attempt=1,
        messages=({"role": "system", "content": HARM}, {"role": "user", "content": HARM}),
        raw=HARM,
        tools=(HARM,),
        tool_calls=({"id": HARM, "name": HARM, "arguments": HARM},),
        usage=_USAGE,
        finish_reason=HARM,
        error=HARM,
        seconds=1.5,
    )
    repaired = call.model_copy(update={"attempt": 2, "error": None, "id": f"call-{cycle:06}-2"})
    outcome = ReasoningOutcome(
        cycle=cycle,
        at=AT,
        situation=HARM,
        risks=(HARM, HARM),
        thought=HARM,
        usage=_USAGE + _USAGE,
    )
    return [call, repaired, outcome]


def _retrieval(cycle: int) -> RetrievalOutcome:
    provenance = Provenance(
        run=HARM,
        activity=HARM,
        cycle=1,
        source=HARM,
        source_kind=HARM,
        trust=Trust.UNTRUSTED,
    )
    record = Record(
        id="0123456789abcdef",
        kind=MemoryKind.EPISODIC,
        text=HARM,
        scope=HARM,
        created_at=AT,
        provenance=provenance,
        type=HARM,
        metadata={HARM: HARM},
    )
    return RetrievalOutcome(
        cycle=cycle,
        at=AT,
        query=HARM,
        filter={HARM: nested(HARM)},
        records=(
            RecalledRecord(record=record, score=0.87, why=ScoreParts(lexical=1e300, dense=-1e300)),
        ),
        left_out=(HARM,) * 50,
        procedures={HARM: 2},
        constraints=(HARM,),
    )


def _candidate(identity: str) -> Candidate:
    deep = "[" * 100_000
    return Candidate(
        id=identity,
        action=HARM,
        raw_arguments=HARM if identity == "c1" else deep,
        reason=HARM,
        expected_effect=HARM,
    )


def _impasse(cycle: int) -> list[TraceRecord]:
    rejected = Verdict(allowed=False, reason=HARM, constraint=HARM)
    return [
        _retrieval(cycle),
        *_reasoning(cycle),
        ProposalOutcome(cycle=cycle, at=AT, candidates=(_candidate("c1"),)),
        EvaluationOutcome(
            cycle=cycle, at=AT, evaluations=(Evaluation(candidate_id="c1", verdicts=(rejected,)),)
        ),
        SelectionOutcome(cycle=cycle, at=AT, reason=HARM),
        ExecutionOutcome(cycle=cycle, at=AT, status=ExecutionStatus.NONE, result=HARM),
        hostile_percept(
            f"percept-impasse-{cycle}", kind=PerceptKind.IMPASSE, is_error=True, arguments=None
        ),
    ]


def _end(cycle: int) -> list[TraceRecord]:
    return [TurnEnd(at=AT, turn=1, cycle=cycle, reason=HARM, response=HARM)]
