"""What was decided in each cycle of a run, a line each."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from coag.proof.forking import CycleStory, Stories
from coag.schema import Intent, TraceRecord, one_line
from coag.tracing import RunFolder, cycle_of, read_run, read_trace

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
    stories = Stories()
    for record in records:
        stories.take(record)
    for story in stories.told():
        yield f"{story.cycle}  {_decided(story)}"


def _decided(story: CycleStory) -> str:
    if story.chosen is None:
        return "nothing chosen yet"
    return "; ".join(str(choice) for choice in story.chosen) or "an impasse"


def _of_turns(records: Iterator[TraceRecord]) -> Iterator[str]:
    turns: dict[int, list[str]] = {}
    for record in records:
        turn = cycle_of(record)
        if turn:
            begun = turns.setdefault(turn, [])
            begun += [record.action] if isinstance(record, Intent) else []
    for turn, begun in turns.items():
        yield f"{turn}  {', '.join(begun) or 'no action'}"
