"""`coag why`: what a decision rested on."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from coag.agent import load_factory
from coag.errors import ConfigurationError
from coag.proof import (
    Considered,
    Counterfactual,
    CycleResult,
    Explanation,
    counterfactuals,
    cycle_results,
    why,
)
from coag.schema import (
    Intent,
    Percept,
    RecalledRecord,
    TraceRecord,
    diff_patch,
    escaped_json,
    one_line,
)
from coag.tracing import RunFolder, cycle_of, read_run, read_trace

from .command import coag_command
from .runs import found_run, warn_if_changed

# ---- What was decided in each cycle of a run, a line each ----


_LINE = 160
"""Characters of a decision that are printed."""


def show_decisions(folder: RunFolder) -> None:
    """Prints the cycles of a run, or the turns of a plain one, with what was decided.

    Raises:
        TraceError: The run cannot be read.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    info = read_run(folder.path)
    records = (entry.body for entry in read_trace(folder.trace_path, lambda problem: None))
    told = _of_cycles(records) if info.kind == "coag" else _of_turns(records)
    lines = [one_line(line, _LINE) for line in told]
    what = "cycle" if info.kind == "coag" else "turn"
    console.print(Text(f"{one_line(info.id)}: which {what}?", style="bold"), soft_wrap=True)
    for line in lines or [f"There is no {what} in it yet."]:
        console.print(Text(f"  {line}"), soft_wrap=True)


def _of_cycles(records: Iterator[TraceRecord]) -> Iterator[str]:
    for one in cycle_results(records):
        yield f"{one.cycle}  {_decided(one)}"


def _decided(one: CycleResult) -> str:
    if one.chosen is None:
        return "nothing chosen yet"
    return "; ".join(str(choice) for choice in one.chosen) or "an impasse"


def _of_turns(records: Iterator[TraceRecord]) -> Iterator[str]:
    turns: dict[int, list[str]] = {}
    for record in records:
        turn = cycle_of(record)
        if turn:
            begun = turns.setdefault(turn, [])
            begun += [record.action] if isinstance(record, Intent) else []
    for turn, begun in turns.items():
        yield f"{turn}  {', '.join(begun) or 'no action'}"


# ---- `coag why`: what a decision rested on ----


_DIM = "bright_black"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyOptions:
    """What `coag why` was given; see there."""

    run: str
    cycle: int | None
    """None to list what was decided in each."""
    counterfactual: bool
    model: str | None
    repeats: int
    trust: Sequence[str]
    as_json: bool
    logs: Path


def explain(options: WhyOptions) -> None:
    """Prints what a decision rested on and, if asked for, which records it hung on.

    Raises:
        CoagError: There is no such run or cycle, or its agent cannot be built again.
    """
    if not options.counterfactual and (options.model is not None or options.repeats != 1):
        raise ConfigurationError("--model and --repeats belong to --counterfactual: add it.")
    folder = found_run(options.run, options.logs)
    if options.cycle is None:
        if options.counterfactual or options.as_json:
            raise ConfigurationError(f"Which cycle? {coag_command()} why {options.run} lists them.")
        show_decisions(folder)
        return
    explanation = why(folder, options.cycle)
    warn_if_changed(folder)
    _show(folder, options, options.cycle, explanation)


def _show(folder: RunFolder, options: WhyOptions, cycle: int, explanation: Explanation) -> None:
    if options.counterfactual:
        load_factory(folder, options.trust)
    if options.as_json:
        told = _all(folder, options, cycle) if options.counterfactual else ()
        whole = {
            "explanation": explanation.model_dump(mode="json"),
            "counterfactuals": [each.model_dump(mode="json") for each in told],
        }
        sys.stdout.write(escaped_json(json.dumps(whole, ensure_ascii=False)) + "\n")
        return
    console = Console(highlight=False, markup=False, emoji=False)
    for line in _lines(explanation):
        console.print(line, soft_wrap=True)
    if options.counterfactual:
        console.print(_head("taken again"), soft_wrap=True)
        _all(folder, options, cycle, console)


def _all(
    folder: RunFolder, options: WhyOptions, cycle: int, console: Console | None = None
) -> tuple[Counterfactual, ...]:
    """Takes the decision again; each result is printed as soon as it is known."""

    def tell(told: Counterfactual) -> None:
        if console is not None:
            console.print(_again(told), soft_wrap=True)

    return asyncio.run(
        counterfactuals(
            folder,
            cycle,
            model=options.model,
            repeats=options.repeats,
            trust=options.trust,
            on_told=tell,
        )
    )


def _lines(told: Explanation) -> Iterator[Text]:
    what = "cycle" if told.kind == "coag" else "turn"
    yield Text(f"{one_line(told.run)}, {what} {told.cycle}: {_decision(told)}", style="bold")
    if told.goal:
        yield _item(f"goal: {told.goal}")
    yield from _part("percepts since the last action", map(_percept, told.percepts))
    yield from _part(f"recalled for {one_line(told.query, 120)!r}", _recalled(told))
    yield from _part("procedures", _procedures(told))
    if told.constraints:
        yield _head("constraints in force")
        yield _item(", ".join(told.constraints))
    if told.situation:
        yield _head("situation" if told.kind == "coag" else "what the model said")
        yield _item(told.situation)
        for risk in told.risks:
            yield _item(f"risk: {risk}")
    if told.state:
        yield _head("state that the rules read")
        yield _item(_json(told.state))
    if told.considered:
        yield _head("candidates" if told.kind == "coag" else "actions")
        for one in told.considered:
            yield from _considered(one, told.state)
    if told.result:
        yield _head("what came of it")
        yield _item(f"{told.status}: {told.result}" if told.status else told.result)
    yield from _part("notes", (_item(note, "yellow") for note in told.notes))


def _decision(told: Explanation) -> str:
    chosen = "; ".join(str(choice) for choice in told.chosen)
    if not chosen:
        return "an impasse" if told.status == "none" else "nothing was done"
    by = f", decided by {told.decided_by}" if told.decided_by else ""
    reason = f": {told.reason}" if told.reason else ""
    return one_line(f"{chosen}{by}{reason}")


def _part(title: str, lines: Iterator[Text]) -> Iterator[Text]:
    """A part with its lines, if it has any."""
    first = next(lines, None)
    if first is not None:
        yield _head(title)
        yield first
        yield from lines


def _percept(percept: Percept) -> Text:
    failed = "failed " if percept.is_error else ""
    about = f"{failed}{percept.kind} from {percept.source} ({percept.trust})"
    return _item(f"{about}: {percept.content}", "magenta")


def _recalled(told: Explanation) -> Iterator[Text]:
    for hit in told.recalled:
        yield from _record(hit)
    if told.left_out:
        names = ", ".join(name[:12] for name in told.left_out)
        yield _item(f"no room in the prompt for: {names}", _DIM)


def _record(hit: RecalledRecord) -> Iterator[Text]:
    record, origin = hit.record, hit.record.provenance
    source = f"{origin.source}, {origin.trust}, cycle {origin.cycle} of {origin.run}"
    yield _item(f"{hit.score:.2f} {record.kind} {record.id[:12]} {record.text} ({source})", "cyan")
    if hit.why is not None and (because := hit.why.told()):
        yield _item(f"why: {because}", _DIM, depth=2)


def _procedures(told: Explanation) -> Iterator[Text]:
    for used in told.procedures:
        by = f" by {used.author}: {used.reason}" if used.version > 1 else ""
        yield _item(f"{used.name}@{used.version}{by}")


def _considered(one: Considered, state: Mapping[str, Any]) -> Iterator[Text]:
    score = "" if one.score is None else f" scored {one.score:.2f}"
    if one.died_of is not None:
        fatal = one.died_of
        yield _item(f"rejected {one.choice}: {fatal.constraint}: {fatal.reason}", "red")
    else:
        mark, style = ("chosen", "green") if one.chosen else ("passed over", "")
        reason = f": {one.judged}" if one.judged else ""
        yield _item(f"{mark} {one.choice}{score}{reason}", style)
    if one.because:
        yield _item(f"proposed because: {one.because}", _DIM, depth=2)
    if one.projection is not None:
        change = diff_patch(state, one.projection)
        yield _item(f"predicted to change: {_json(change) if change else 'nothing'}", _DIM, depth=2)
    passed = [verdict for verdict in one.verdicts if verdict.allowed]
    if passed:
        said = (f"{v.constraint} ({v.reason})" if v.reason else v.constraint for v in passed)
        yield _item(f"allowed by: {', '.join(said)}", _DIM, depth=2)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _again(told: Counterfactual) -> Text:
    if told.record is None:
        without = "with everything as it was"
    else:
        record = told.record.record
        without = f"without {record.id[:12]} {one_line(record.text, 100)}"
    if not told.changed:
        return _item(f"{without}: the same choice{_times(told)}")
    others = " or ".join(
        "; ".join(str(choice) for choice in other) or "an impasse" for other in told.others
    )
    return _item(f"{without}: {others}{_times(told)}", "yellow")


def _times(told: Counterfactual) -> str:
    if told.times == 1:
        return ""
    return f" ({told.changed} of {told.times} times another one)"


def _head(title: str) -> Text:
    return Text(title, style="bold")


def _item(text: str, style: str = "", depth: int = 1) -> Text:
    return Text(f"{'  ' * depth}{one_line(text)}", style=style)
