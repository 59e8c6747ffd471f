"""How fast memories take many records in, how fast they answer then, and what they need.

Every phase has a process of its own, so that memory and caches are its own too.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks._machine import apart

from ._phases import (
    AUTOGEN,
    BARE,
    BATCH,
    DENSE,
    OURS,
    Asked,
    Filled,
    Size,
    ask,
    fill,
    tenth_nearest,
    write_singly,
)
from ._printing import machine, percent, print_table, progress

CONTENDERS = (OURS, DENSE, BARE, AUTOGEN)


def measure_scale(
    names: Sequence[str],
    records: int,
    queries: int,
    seed: int,
    embedder: str | None,
    as_json: bool,
) -> None:
    """Measures and prints."""
    size = Size(records=records, queries=queries, seed=seed, embedder=embedder)
    progress("exact search ...")
    nearest = apart(tenth_nearest, size)
    filled: dict[str, Filled] = {}
    asked: dict[str, Asked] = {}
    singly: dict[str, float] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        for name in names:
            backend = OURS if name in (OURS, DENSE) else BARE
            folder = Path(place) / backend
            if backend not in filled:
                progress(f"{backend}: filling ...")
                folder.mkdir()
                filled[backend] = apart(fill, backend, folder, size)
            progress(f"{name}: asking ...")
            asked[name] = apart(ask, name, folder, size, nearest)
            if name == AUTOGEN:
                singly[name] = apart(write_singly, name, folder, size)
            elif name == backend:
                singly[name] = filled[backend].one_by_one
    if as_json:
        figures: dict[str, Any] = {"machine": machine(), "size": asdict(size), "singly": singly}
        figures |= {"filled": {name: asdict(one) for name, one in filled.items()}}
        figures |= {"asked": {name: asdict(one) for name, one in asked.items()}}
        print(json.dumps(figures, indent=2))
        return
    print(f"{records:,} records, {len(nearest):,} queries, batches of {BATCH:,}; {machine()}\n")
    _print(filled, asked, singly)


def _print(filled: dict[str, Filled], asked: dict[str, Asked], singly: dict[str, float]) -> None:
    heads = ("memory", "taken/s", "last tenth/s", "singly/s", "p50 ms", "p95 ms", "x Chroma")
    heads += ("found %", "nearest %", "opened s", "RSS MB", "peak filling MB", "disk MB")
    rows: list[tuple[str, ...]] = []
    for name, one in asked.items():
        wrote = filled.get(name)
        base = asked[BARE].p50 if BARE in asked else None
        rows.append(
            (
                name,
                f"{wrote.a_second:,.0f}" if wrote else "",
                f"{wrote.last_a_second:,.0f}" if wrote else "",
                f"{singly[name]:,.0f}" if name in singly else "",
                f"{one.p50 * 1e3:.2f}",
                f"{one.p95 * 1e3:.2f}",
                f"{one.p50 / base:.1f}" if base else "",
                percent(one.found),
                "" if name == OURS else percent(one.nearest),  # which ranks by more than that
                f"{one.opened:.1f}",
                f"{one.rss_mb:,.0f}",
                f"{wrote.peak_mb:,.0f}" if wrote else "",
                f"{wrote.disk_mb:,.0f}" if wrote else "",
            )
        )
    print_table(heads, rows)
