"""`coag memory stats`: how a memory is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from coag.memory.transfer import Health, examine_memory, mend_chains
from coag.schema import MemoryKind
from coag.store import DEFAULT_RANKING, ReembedUnfinished, Search, unfinished_reembedding
from coag.store.lexicon import throw_away

from ._asking import tell
from ._log import note
from ._looking import write_json
from ._place import Place, opened, run
from ._text import DIM, line, minute, screen

_SOUND, _UNSOUND = 0, 1
_MOST_ROWS = 10


def show_stats(place: Place, *, mend: bool, as_json: bool) -> int:
    """Prints a table of how a memory is, and a verdict; gives the exit code.

    Raises:
        CoagError: The memory cannot be read.
    """
    health = run(_examined(place))
    if mend and health.index is not None and not health.index.sound:
        throw_away(Path(health.index.file))
        run(_recalled_once(place))
        tell("The index of words was made anew.", DIM)
        health = run(_examined(place))
    if mend and not health.healthy:
        restored = run(_chains_mended(place))
        if restored:
            note(place, "mended", by="person", records=restored)
            tell(f"{len(restored)} record(s) hold again.", DIM)
            health = run(_examined(place))
    begun = run(unfinished_reembedding(place.store))
    if as_json:
        told = {
            "healthy": health.healthy,
            "verdict": health.verdict,
            "reembedding": None if begun is None else {**asdict(begun), "notice": _notice(begun)},
        }
        write_json([json.dumps({**health.model_dump(mode="json"), **told}, ensure_ascii=False)])
    else:
        _print(health)
        if begun is not None:
            tell(_notice(begun), "yellow")
    return _SOUND if health.healthy else _UNSOUND


async def _examined(place: Place) -> Health:
    async with opened(place) as store:
        return await examine_memory(store)


def _notice(begun: ReembedUnfinished) -> str:
    """What to say of a re-embedding that was begun and is not done."""
    name = line(begun.embedder, 100)
    return (
        f"A re-embedding is half way: {begun.done:,} of {begun.records:,} record(s) have vectors "
        f"of {name}. `coag memory reembed --to {name}` goes on, `coag memory reembed --abandon` "
        "gives it up."
    )


async def _chains_mended(place: Place) -> tuple[str, ...]:
    async with opened(place) as store:
        return await mend_chains(store)


async def _recalled_once(place: Place) -> None:
    """The first recall makes an index that is missing."""
    async with opened(place) as store:
        search = Search(text="anything", kind=MemoryKind.EPISODIC, ranking=DEFAULT_RANKING)
        await store.search(search)


def _print(health: Health) -> None:
    console = screen()
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style=DIM, no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(health):
        table.add_row(name, Text(value))
    console.print(table)
    for finding in health.findings:
        mark, style = ("BAD  ", "bold red") if finding.level == "bad" else ("look ", "yellow")
        text = Text(mark, style=style).append(line(finding.text, 600), "default")
        console.print(text, soft_wrap=True)
    console.print(Text(health.verdict, style="green" if health.healthy else "bold red"))


def _rows(health: Health) -> Iterator[tuple[str, str]]:
    yield "records", f"{health.episodic + health.semantic:,}"
    yield "  episodic", f"{health.episodic:,}"
    yield "  semantic", f"{health.semantic:,}"
    yield "superseded", f"{health.superseded:,}"
    for title, counts in (
        ("scopes", {name: sum(kinds.values()) for name, kinds in health.scopes.items()}),
        ("types", health.types),
        ("trust", health.trust),
    ):
        yield title, _counted(counts)
    yield "contradictions", f"{health.contradictions:,} open"
    yield "duplicates", f"{health.duplicates:,}"
    if health.oldest is not None and health.newest is not None:
        yield "oldest, newest", f"{minute(health.oldest)}, {minute(health.newest)}"
    if health.embedder is not None:
        yield "embedder", f"{health.embedder}, {health.dimension} numbers"
    if health.size is not None:
        yield "on disk", f"{health.size / 1_000_000:,.1f} MB"
    index = health.index
    if index is not None:
        state = "in line" if index.sound else "NOT in line"
        yield "index of words", f"{state}: {index.records:,} records, {index.pending} pending"


def _counted(counts: dict[str, int]) -> str:
    found = [(name, count) for name, count in counts.items() if count]
    shown = [f"{line(name, 40)} {count:,}" for name, count in found[:_MOST_ROWS]]
    if len(found) > _MOST_ROWS:
        shown.append(f"… and {len(found) - _MOST_ROWS} more")
    return ", ".join(shown) or "none"
