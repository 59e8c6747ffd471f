"""`coag why`: what a decision depended on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from coag._util.json_diff import diff_patch
from coag._util.text import one_line
from coag.agent import load_factory
from coag.errors import ConfigurationError
from coag.proof import (
    Considered,
    Counterfactual,
    CycleResult,
    Explanation,
    counterfactuals,
    cycle_results,
    refusals,
)
from coag.proof import why as explained
from coag.schema import Intent, Note, Percept, RecalledRecord, TraceRecord
from coag.tracing import RunFolder, cycle_of, read_run, read_trace

from .options import AsJson, Logs, Run, Trust
from .output import DIM, head, part, show, write_json
from .output import as_json as _json
from .runs import found_run, warn_if_changed
from .terminal import coag_command

# ---- What was decided in each cycle of a run, a line each ----


_LINE = 160
"""Characters of a decision that are printed."""


def show_decisions(folder: RunFolder) -> None:
    """Prints the cycles of a run, or the turns of a plain one, with what was decided."""
    info = read_run(folder.path)
    records = (entry.body for entry in read_trace(folder.trace_path, lambda problem: None))
    if info.kind == "coag":
        decisions = (f"{one.cycle}  {_decided(one)}" for one in cycle_results(records))
    else:
        decisions = _of_turns(records)
    lines = [one_line(line, _LINE) for line in decisions]
    what = "cycle" if info.kind == "coag" else "turn"
    show([Text(f"{one_line(info.id)}: which {what}?", style="bold")])
    show(f"  {line}" for line in lines or [f"There is no {what} in it yet."])


def _decided(one: CycleResult) -> str:
    if one.chosen is None:
        return "nothing chosen yet"
    return "; ".join(str(choice) for choice in one.chosen) or "an impasse"


def _of_turns(records: Iterator[TraceRecord]) -> Iterator[str]:
    turns: dict[int, list[TraceRecord]] = {}
    own = list[TraceRecord]()
    for record in records:
        if turn := cycle_of(record):
            own = turns.setdefault(turn, [])
        own += [record] if isinstance(record, Intent | Note | Percept) else []
    for turn, own in turns.items():
        begun = [record.action for record in own if isinstance(record, Intent)]
        begun += map(_refused, refusals(own))
        yield f"{turn}  {', '.join(begun) or 'no action'}"


def _refused(one: Considered) -> str:
    by = one.rejected_by
    return f"refused {one.choice}" + (f": {by.constraint}: {by.reason}" if by else "")


# ---- `coag why`: what a decision depended on ----


def why(
    run: Run,
    cycle: Annotated[
        int | None,
        typer.Argument(min=1, help="The cycle; of a plain run the turn. Without one, lists them."),
    ] = None,
    counterfactual: Annotated[
        bool,
        typer.Option(
            "--counterfactual",
            help="Take the decision again without each recalled record in turn; nothing is run.",
        ),
    ] = False,
    model: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Take it again with this model.")
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="How often; models may answer differently.")
    ] = 1,
    trust: Trust = None,
    as_json: AsJson = False,
    logs: Logs = Path("logs"),
) -> None:
    """Shows what a decision depended on: percepts, memory, procedures, constraints.

    Also its candidates, and what became of them. Without CYCLE, lists what was decided in each.
    """
    if not counterfactual and (model is not None or repeats != 1):
        raise ConfigurationError("--model and --repeats belong to --counterfactual: add it.")
    folder = found_run(run, logs)
    if cycle is None:
        if counterfactual or as_json:
            raise ConfigurationError(f"Which cycle? {coag_command()} why {run} lists them.")
        show_decisions(folder)
        return
    explanation = explained(folder, cycle)
    warn_if_changed(folder)
    if counterfactual:
        load_factory(folder, trust or ())

    def again(on_result: Callable[[Counterfactual], None]) -> tuple[Counterfactual, ...]:
        if not counterfactual:
            return ()
        taken = counterfactuals(
            folder, cycle, model=model, repeats=repeats, trust=trust or (), on_result=on_result
        )
        return asyncio.run(taken)

    if as_json:
        results = [each.model_dump(mode="json") for each in again(lambda _: None)]
        shown = explanation.model_dump(mode="json")
        write_json({"explanation": shown, "counterfactuals": results})
        return
    show(_lines(explanation))
    if counterfactual:
        show([head("taken again")])
        again(lambda result: show([_again(result)]))


def _lines(reasons: Explanation) -> Iterator[Text]:
    what = "cycle" if reasons.kind == "coag" else "turn"
    yield Text(
        f"{one_line(reasons.run)}, {what} {reasons.cycle}: {_decision(reasons)}", style="bold"
    )
    if reasons.goal:
        yield _item(f"goal: {reasons.goal}")
    if reasons.depth:
        yield _item(f"depth: {reasons.depth}")
    yield from part("percepts since the last action", map(_percept, reasons.percepts))
    yield from part(f"recalled for {one_line(reasons.query, 120)!r}", _recalled(reasons))
    yield from part("procedures", _procedures(reasons))
    if reasons.constraints:
        yield head("constraints in force")
        yield _item(", ".join(reasons.constraints))
    if reasons.situation:
        yield head("situation" if reasons.kind == "coag" else "what the model said")
        yield _item(reasons.situation)
        for risk in reasons.risks:
            yield _item(f"risk: {risk}")
    if reasons.state:
        yield head("state that the rules read")
        yield _item(_json(reasons.state))
    if reasons.considered:
        yield head("candidates" if reasons.kind == "coag" else "actions")
        for one in reasons.considered:
            yield from _considered(one, reasons.state)
    if reasons.result:
        yield head("what came of it")
        yield _item(f"{reasons.status}: {reasons.result}" if reasons.status else reasons.result)
    yield from part("notes", (_item(note, "yellow") for note in reasons.notes))


def _decision(reasons: Explanation) -> str:
    chosen = "; ".join(str(choice) for choice in reasons.chosen)
    if not chosen:
        return "an impasse" if reasons.status == "none" else "nothing was done"
    by = f", decided by {reasons.decided_by}" if reasons.decided_by else ""
    reason = f": {reasons.reason}" if reasons.reason else ""
    return one_line(f"{chosen}{by}{reason}")


def _percept(percept: Percept) -> Text:
    failed = "failed " if percept.is_error else ""
    about = f"{failed}{percept.kind} from {percept.source} ({percept.trust})"
    return _item(f"{about}: {percept.content}", "magenta")


def _recalled(reasons: Explanation) -> Iterator[Text]:
    for hit in reasons.recalled:
        yield from _record(hit)
    if reasons.left_out:
        names = ", ".join(name[:12] for name in reasons.left_out)
        yield _item(f"no room in the prompt for: {names}", DIM)


def _record(hit: RecalledRecord) -> Iterator[Text]:
    record, origin = hit.record, hit.record.provenance
    source = f"{origin.source}, {origin.trust}, cycle {origin.cycle} of {origin.run}"
    yield _item(f"{hit.score:.2f} {record.kind} {record.id[:12]} {record.text} ({source})", "cyan")
    if hit.why is not None and (because := hit.why.describe()):
        yield _item(f"why: {because}", DIM, depth=2)


def _procedures(reasons: Explanation) -> Iterator[Text]:
    for used in reasons.procedures:
        by = f" by {used.author}: {used.reason}" if used.version > 1 else ""
        yield _item(f"{used.name}@{used.version}{by}")


def _considered(one: Considered, state: Mapping[str, Any]) -> Iterator[Text]:
    score = "" if one.score is None else f" scored {one.score:.2f}"
    if one.rejected_by is not None:
        fatal = one.rejected_by
        yield _item(f"rejected {one.choice}: {fatal.constraint}: {fatal.reason}", "red")
    else:
        mark, style = ("chosen", "green") if one.chosen else ("passed over", "")
        reason = f": {one.judged}" if one.judged else ""
        yield _item(f"{mark} {one.choice}{score}{reason}", style)
    if one.because:
        yield _item(f"proposed because: {one.because}", DIM, depth=2)
    if one.projection is not None:
        change = diff_patch(state, one.projection)
        yield _item(f"predicted to change: {_json(change) if change else 'nothing'}", DIM, depth=2)
    passed = [verdict for verdict in one.verdicts if verdict.allowed]
    if passed:
        verdicts = (f"{v.constraint} ({v.reason})" if v.reason else v.constraint for v in passed)
        yield _item(f"allowed by: {', '.join(verdicts)}", DIM, depth=2)


def _again(result: Counterfactual) -> Text:
    if result.record is None:
        without = "with everything as it was"
    else:
        record = result.record.record
        without = f"without {record.id[:12]} {one_line(record.text, 100)}"
    if not result.changed:
        return _item(f"{without}: the same choice{_times(result)}")
    others = " or ".join(
        "; ".join(str(choice) for choice in other) or "an impasse" for other in result.others
    )
    return _item(f"{without}: {others}{_times(result)}", "yellow")


def _times(result: Counterfactual) -> str:
    if result.times == 1:
        return ""
    return f" ({result.changed} of {result.times} times another one)"


def _item(text: str, style: str = "", depth: int = 1) -> Text:
    return Text(f"{'  ' * depth}{one_line(text)}", style=style)
