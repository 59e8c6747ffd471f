"""`coag log`: a run line by line, also while it is written."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from coag._util.text import counted, one_line
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import (
    PHASES,
    ActionsListed,
    Candidate,
    Entry,
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
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Written,
)
from coag.tracing import (
    ProblemKind,
    RunFolder,
    RunInfo,
    TraceLine,
    TraceProblem,
    TraceTail,
    cycle_of,
    entry_of,
    known_cycles,
    phase_of,
    read_run,
    read_trace,
)

from .options import Logs, RunOrWatched
from .output import DIM, as_json, say, screen, write_json
from .runs import found_run, runs_below, show_runs

# ---- A run while it is written ----


_INTERVAL = 0.2
"""Seconds between two looks at the file."""


def followed(folder: RunFolder, entry_of: Callable[[TraceLine], Entry | None]) -> Iterator[Entry]:
    """The records that are there and then those that come, until the run ends or Ctrl-C.

    A run that was killed has not ended: it is waited for, and may be resumed.
    """
    tail = TraceTail(folder.trace_path)
    while True:
        # Looked at first: what was written before the end is then read before it is believed.
        ended = read_run(folder.path).ended_at is not None
        for line in tail.lines():
            entry = entry_of(line)
            if entry is not None:
                yield entry
        if ended:
            return
        try:
            time.sleep(_INTERVAL)
        except KeyboardInterrupt:
            return


# ---- A run's records as lines for a person ----


_BAD = "red"
_GOOD = "green"
_SHORT = 60
"""Characters up to which a result is shown each time that it is met."""
_RAW = 200
"""Characters shown of an unusable answer."""
_SEEN = "[the receipt's result]"
_STATES = {
    SnapshotReason.LOADED: "a saved state took the place of the one before",
    SnapshotReason.FORKED: "the run begins with the state of another one",
}
"""Snapshots of what no record before them led to."""


class RunLines:
    """Turns records into lines, in the order of the trace.

    It must see every record, also those that are not shown: a later one names the candidates
    of an earlier one by their ids, and what an action returned is shown once, in its receipt.
    """

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain
        self._actions: dict[str, str] = {}
        self._result = ""

    def of(self, record: TraceRecord) -> Iterator[Text]:
        """The record's lines; none for a turn's start, nor for a snapshot of what came before."""
        match record:
            case ModelCall():
                yield from _model_call(record)
            case Percept():
                refusal = self._plain and record.kind is PerceptKind.IMPASSE
                yield _percept(record, self._once(record.content), refusal=refusal)
            case Intent():
                text = f"{record.id} {record.action} {as_json(record.arguments)}"
                yield _line("intent", text, DIM)
            case Receipt():
                self._result = record.content
                style = DIM if record.status is ReceiptStatus.DONE else _BAD
                text = f"{record.intent_id} {record.status}: {record.content}"
                yield _line("receipt", text, style)
            case Note():
                yield _line("note", f"{record.about}: {record.text}", "yellow")
            case Written():
                content = {
                    name: self._once(value) if isinstance(value, str) else value
                    for name, value in record.content.items()
                }
                text = f"{record.what} {record.id} {as_json(content)}"
                yield _line("written", text, "cyan")
            case TurnEnd():
                response = self._once(record.response)
                text = f"{record.reason}: {response}" if response else record.reason
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
                if outcome.escalated:
                    yield _item(f"the model was asked again: {outcome.escalated}")
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
        fatal = evaluation.rejected_by
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
        if recalled.why is not None and (because := recalled.why.describe()):
            yield _item(f"  why: {because}", DIM)
    if outcome.left_out:
        names = ", ".join(name[:12] for name in outcome.left_out)
        yield _item(f"no room in the prompt for: {names}", DIM)
    if outcome.constraints:
        yield _item(f"constraints in force: {', '.join(outcome.constraints)}", DIM)


def _reasoning(outcome: ReasoningOutcome) -> Iterator[Text]:
    yield _line("reasoning", f"goal {outcome.goal_status}: {outcome.situation}", "bold")
    if outcome.depth is not None:
        yield _item(f"depth: {outcome.depth.line}")
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
    action = f"{outcome.action} {as_json(outcome.arguments or {})}"
    style = _GOOD if outcome.status is ExecutionStatus.DONE else _BAD
    yield _line("execution", f"{outcome.status} {action}", style)
    if outcome.response is not None:
        yield _item(f"response: {outcome.response}")
    elif result:
        yield _item(f"result: {result}")


def _model_call(call: ModelCall) -> Iterator[Text]:
    usage = call.usage
    again = "" if call.attempt == 1 else f", attempt {call.attempt}"
    repaired = ", repaired" if call.repaired else ""
    yield _line(
        "model",
        f"{call.model} by {call.rung}{again}{repaired}: {usage.prompt_tokens} prompt "
        f"({usage.cached_tokens} cached), {usage.completion_tokens} completion tokens, "
        f"{call.seconds:.1f} s",
        DIM,
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


def _call(candidate: Candidate) -> str:
    return f"{candidate.action} {candidate.raw_arguments}"


def _line(what: str, text: str, style: str = "") -> Text:
    return Text(f"  {what:<11}{one_line(text)}", style=style)


def _item(text: str, style: str = "") -> Text:
    return Text(f"             {one_line(text)}", style=style)


# ---- `coag log`: shows the runs, or one run ----


_LISTED = 5
"""How many problems are listed one by one."""
_MEANS = {ProblemKind.TRUNCATED: ": the run was killed, or is not finished"}
"""What a problem means for the run, where its sentence does not say."""


def _report(problems: Sequence[TraceProblem]) -> None:
    for problem in problems[:_LISTED]:
        say(f"{problem.text}{_MEANS.get(problem.kind, '')}.", "yellow")
    if len(problems) > _LISTED:
        say(f"… and {len(problems) - _LISTED} more lines like that.", "yellow")


def log(
    run: RunOrWatched = None,
    cycle: Annotated[int | None, typer.Option(min=0, metavar="N", help="Only this cycle.")] = None,
    phase: Annotated[str | None, typer.Option(help="Only this phase, e.g. `evaluation`.")] = None,
    json_lines: Annotated[
        bool, typer.Option("--json", help="The records as JSON, one a line, for programs.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Show what comes as well, until it ends or Ctrl-C."),
    ] = False,
    logs: Logs = Path("logs"),
) -> None:
    """Shows a run: what was recalled, proposed, rejected and why, chosen, done.

    Without RUN, lists the runs there are; with --cycle, --phase or --follow, shows the latest.
    """
    if run is None and cycle is None and phase is None and not follow:
        show_runs(logs, json_lines=json_lines)
    else:
        name = run or "latest"
        show_run(name, logs, cycle=cycle, phase=phase, json_lines=json_lines, follow=follow)


def show_run(
    name: str,
    logs: Path,
    *,
    cycle: int | None,
    phase: str | None,
    json_lines: bool,
    follow: bool = False,
) -> None:
    """Prints one run, or which runs a folder holds."""
    wanted = None if phase is None else _phase(phase)
    holder = runs_below(name, logs)
    if holder is not None:
        if cycle is not None or wanted is not None or follow:
            raise ConfigurationError(
                f"{str(holder)!r} holds runs and is none itself: name one of them with --cycle, "
                f"--phase and --follow. `coag log {holder}` lists them."
            )
        show_runs(holder, json_lines=json_lines)
        return
    folder = found_run(name, logs)
    if cycle is not None and not follow:
        _check_cycle(folder, cycle)
    problems = list[TraceProblem]()
    if follow:
        lines = followed(folder, lambda line: entry_of(line, problems.append))
    else:
        lines = read_trace(folder.trace_path, problems.append)
    entries = _select(lines, cycle, wanted)
    try:
        if json_lines:
            for entry, _, selected in entries:
                if selected:
                    write_json(entry.model_dump_json())
                    sys.stdout.flush()
        else:
            _print_run(folder, entries, partly=cycle is not None or wanted is not None)
    except KeyboardInterrupt:
        if not follow:
            raise
    _report(problems)


def _phase(text: str) -> Phase:
    if text.casefold() not in PHASES:
        raise UnknownNameError("phase", text, PHASES)
    return Phase(text.casefold())


def _check_cycle(folder: RunFolder, cycle: int) -> None:
    info = read_run(folder.path)
    entries = read_trace(folder.trace_path, lambda problem: None)
    last = max((cycle_of(entry.body) or 0 for entry in entries), default=0)
    first = 0 if info.parent is None else info.parent.cycle
    if not first <= cycle <= last:
        known = known_cycles(info, last)
        raise ConfigurationError(f"Run {info.id!r} has {known}: no cycle {cycle}.")


def _select(
    entries: Iterator[Entry], cycle: int | None, phase: Phase | None
) -> Iterator[tuple[Entry, int, bool]]:
    """Each record, its cycle, of a percept that of the record before, and whether it is wanted."""
    current = 0
    for entry in entries:
        named = cycle_of(entry.body)
        current = current if named is None else named
        selected = (cycle is None or current == cycle) and (
            phase is None or phase_of(entry.body) is phase
        )
        yield entry, current, selected


def _print_run(
    folder: RunFolder, entries: Iterator[tuple[Entry, int, bool]], *, partly: bool
) -> None:
    console = screen()
    info = read_run(folder.path)
    for line in _head(info):
        console.print(line, soft_wrap=True)
    plain = info.kind == "plain"
    lines = RunLines(plain=plain)
    counts, usage = Counter[str](), TokenUsage()
    last: int | None = None
    cycles: set[int] = set()
    for entry, cycle, selected in entries:
        texts = list(lines.of(entry.body))
        if not selected:
            continue
        counts[_kind(entry.body)] += 1
        usage += entry.body.usage if isinstance(entry.body, ModelCall) else TokenUsage()
        if texts and cycle > 0:
            cycles.add(cycle)
            if cycle != last:
                last = cycle
                console.print(Text(f"\ncycle {cycle}", style="bold"))
        for text in texts:
            console.print(text, soft_wrap=True)
    if partly or plain:  # a plain run leaves no record of a cycle's end
        counts[Phase.EXECUTION] = len(cycles)
    console.print(Text(f"\n{_sums(counts, usage, partly=partly)}", style="bold"), soft_wrap=True)


def _kind(record: TraceRecord) -> str:
    return record.phase if record.record == "outcome" else record.record


def _sums(counts: Counter[str], usage: TokenUsage, *, partly: bool) -> str:
    """What a run cost; of a part of it without what is 0."""
    parts = [counted(counts[Phase.EXECUTION], "cycle")]
    if counts["intent"] or not partly:
        parts.append(counted(counts["intent"], "external action"))
    if counts["model_call"] or not partly:
        parts += [
            counted(counts["model_call"], "model call"),
            f"{usage.prompt_tokens:,} prompt tokens ({usage.cached_tokens:,} cached)",
            f"{usage.completion_tokens:,} completion tokens",
        ]
    return f"{'shown' if partly else 'total'}: {', '.join(parts)}"


def _head(info: RunInfo) -> Iterator[Text]:
    ended = "not finished" if info.ended_at is None else f"ended {info.ended_at:%Y-%m-%d %H:%M:%S}"
    about = [f"model {info.model}"] if info.model else []
    about += [] if info.seed is None else [f"seed {info.seed}"]
    yield Text(one_line(f"{info.id}: {info.kind} agent {info.agent}"), style="bold")
    if about:
        yield Text(one_line(", ".join(about)))
    if (parent := info.parent) is not None:
        changes = "".join(f", {change}" for change in parent.changes)
        origin = f"forked from {parent.run} at {parent.cycle}.{parent.phase}{changes}"
        yield Text(one_line(origin))
    yield Text(f"started {info.started_at:%Y-%m-%d %H:%M:%S}, {ended}")
