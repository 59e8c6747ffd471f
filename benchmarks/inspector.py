"""How long people wait for the inspector, beside reading the log by hand.

A run of so many cycles is made on disk. `coag inspect` is started over it as a process of its own;
pages are asked for over HTTP and timed whole. Beside it is what one would write without it: a
program that reads `trace.jsonl` by `json.loads`, line by line, and shows the records of a cycle.

Live: another run is written, cycle by cycle, while a page follows it; the time from a cycle's
flush to its arrival as HTML is taken, and the memory of the inspector from first to last. Report:
100 cycles into one file, in this process, after one that is not counted.

    python benchmarks/inspector.py [--cycles 10000] [--followed 3600] [--json]

The exit code is 0 whether the targets are met or not, because a loaded machine proves nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

import httpx

from case_study.runner import CaseFolder, CaseRequest, run_case
from coag.inspector import write_report
from coag.schema import SystemClock
from coag.tracing import (
    RecordKind,
    RunFolder,
    RunInfo,
    TraceIndex,
    line_hash,
    list_runs,
    read_run,
)

_BODY = re.compile(rb'^\{"v":2,"seq":\d+,"hash":"\w*","body":(.*)\}\n$', re.DOTALL)
_IDS = re.compile(rb'"ids":\{[^{}]*\}')
_COUNT = re.compile(rb":(\d+)")
_NUMBERED = re.compile(rb'("(?:cycle|turn)":|(?:percept|intent|call|candidate)-)(\d+)')
_STARTED = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def long_run(folder: Path, cycles: int) -> RunFolder:
    """Leaves a run of so many cycles in a folder of logs; about 40 KB a cycle.

    The trace of a scripted robot is taken apart into its cycles, and those in which it acts in
    the world are repeated. Numbers of cycles, turns and ids continue; texts and times are those of
    the original.
    """
    with tempfile.TemporaryDirectory() as place:
        original = asyncio.run(_played(Path(place)))
        info = read_run(original.path)
        head, bodies = _cut(original)
    run = RunFolder.create(folder, _named(info, cycles))
    _write(run.trace_path, head, bodies, cycles)
    run.finish(at=SystemClock().now(), result={"success": True, "summary": "made for measuring"})
    return run


async def _played(place: Path) -> RunFolder:
    request = CaseRequest.model_validate(
        {"scenario": "energy-dilemma", "agent": "coag", "model": "scripted:impulsive"}
    )
    case = CaseFolder.create(place, request)
    await run_case(case)
    return next(iter(list_runs(case.path)))


def _named(info: RunInfo, cycles: int) -> RunInfo:
    changes = {"id": f"20261122-120000-long-{cycles:06}", "started_at": _STARTED, "recipe": None}
    return info.model_copy(update={**changes, "ended_at": None, "seal": None, "result": None})


def _cut(run: RunFolder) -> tuple[list[bytes], list[list[bytes]]]:
    """The bodies before the first cycle, and those of each cycle of six phases."""
    index = TraceIndex(run.trace_path)
    while index.extend():
        pass
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    stretches = [index.stretch(number) for number in range(index.stretches)]
    parts = [_bodies(lines[each.first : each.first + each.count]) for each in stretches]
    whole = [
        bodies
        for each, bodies in zip(stretches, parts, strict=True)
        if each.cycle
        and _outcomes(index, each.first, each.count) == 6
        and not any(b'"internal":true' in body for body in bodies)
    ]
    return parts[0], whole


def _outcomes(index: TraceIndex, first: int, count: int) -> int:
    return sum(index.kind(at) is RecordKind.OUTCOME for at in range(first, first + count))


def _bodies(lines: Sequence[bytes]) -> list[bytes]:
    found = [_BODY.match(line) for line in lines]
    return [match[1] for match in found if match is not None]


def _write(
    path: Path, head: Sequence[bytes], cycles: Sequence[Sequence[bytes]], count: int
) -> None:
    shift = len(cycles)
    seq, before = 0, ""
    with path.open("wb") as file:
        for body in _repeated(head, cycles, count, shift):
            before = line_hash(before, seq, body)
            file.write(b'{"v":2,"seq":%d,"hash":"%s","body":%s}\n' % (seq, before.encode(), body))
            seq += 1


def _repeated(
    head: Sequence[bytes], cycles: Sequence[Sequence[bytes]], count: int, shift: int
) -> Iterator[bytes]:
    yield from head
    for number in range(count):
        rounds, at = divmod(number, shift)
        for body in cycles[at]:
            yield _renumbered(body, rounds * shift) if rounds else body


def _renumbered(body: bytes, by: int) -> bytes:
    """Cycles and turns are so many later; ids so many times ten, that none comes twice."""

    def later(found: re.Match[bytes]) -> bytes:
        name, number = found[1], found[2]
        if name.startswith(b'"'):
            return b"%s%d" % (name, int(number) + by)
        return b"%s%0*d" % (name, len(number), int(number) + 10 * by)

    def more(found: re.Match[bytes]) -> bytes:
        return _COUNT.sub(lambda count: b":%d" % (int(count[1]) + 10 * by), found[0])

    return _IDS.sub(more, _NUMBERED.sub(later, body))


FIRST_MS, CYCLE_MS, BEHIND_MS, REPORT_S = 300, 100, 200, 2.0
REPORT_MB = 3.0
REPORTED = 100
ASKED = 30
"""Cycles that are asked for, drawn by chance."""
PACE = 0.02
"""Seconds between two cycles that are written while a page follows."""
MB = 1e6


def row(what: str, found: float, unit: str, target: float | None = None) -> str:
    """A line of the table."""
    verdict = (
        "" if target is None else f" target {target:g} {'met' if found <= target else 'MISSED'}"
    )
    return f"{what:<64}{found:>10.1f} {unit}{verdict}"


@contextmanager
def inspector(logs: Path) -> Generator[tuple[str, int]]:
    """Address and process id of an inspector over a folder of logs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "coag", "inspect", str(logs), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "400", "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://[\d.:]+", line)
        assert found is not None, line
        for _ in range(200):
            try:
                httpx.get(f"{found[0]}/static/inspector.css")
                break
            except httpx.ConnectError:
                time.sleep(0.05)
        yield found[0], process.pid
    finally:
        process.terminate()
        process.wait(20)


def fetched(url: str) -> float:
    """Milliseconds until a page is there, whole."""
    began = time.perf_counter()
    answer = httpx.get(url, timeout=120)
    assert answer.status_code == 200, (url, answer.text[:300])
    return (time.perf_counter() - began) * 1_000


def by_hand(trace: Path, cycle: int) -> float:
    """Milliseconds for reading a whole trace and keeping the records of a cycle."""
    began = time.perf_counter()
    kept: list[object] = []
    with trace.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)["body"]
            if record.get("cycle") == cycle:
                kept.append(record)
    assert kept
    return (time.perf_counter() - began) * 1_000


def resident(pid: int) -> float:
    """Megabytes of a process that are in RAM."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1_000


def pages(logs: Path, run: RunFolder, cycles: int) -> list[str]:
    """Times of the pages of a long run."""
    draw = random.Random(2026)
    numbers = [draw.randrange(1, cycles + 1) for _ in range(ASKED)]
    with inspector(logs) as (url, pid):
        page = f"{url}/runs/{run.path.name}"
        fetched(f"{url}/")
        first, again = fetched(page), fetched(page)
        times = [fetched(f"{page}/cycles/{cycle}") for cycle in numbers]
        last = fetched(f"{page}?from={cycles}")
        memory = resident(pid)
    hand = median(by_hand(run.trace_path, cycle) for cycle in numbers[:3])
    return [
        row("first page of the run, nothing read before", first, "ms", FIRST_MS),
        row("the same page again", again, "ms"),
        row(f"one of {ASKED} cycles, median", median(times), "ms", CYCLE_MS),
        row("slowest of them (the first ones wait for the index)", max(times), "ms"),
        row("last page of the timeline", last, "ms"),
        row("memory of the inspector then", memory, "MB"),
        row("by hand: json.loads of every line, one cycle kept", hand, "ms"),
        row("by hand / a cycle's page", hand / median(times), "x"),
    ]


class Followed:
    """Takes the time at which each cycle arrives on a page that follows a run."""

    def __init__(self, url: str) -> None:
        self.arrived: dict[int, float] = {}
        self._url = url
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.begun = threading.Event()

    def __enter__(self) -> Followed:
        self._thread.start()
        self.begun.wait(20)
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.join(60)

    def _follow(self) -> None:
        with httpx.stream("GET", self._url, timeout=60) as answer:
            for line in answer.iter_lines():
                self.begun.set()
                now = time.perf_counter()
                for cycle in re.findall(r"/cycles/(\d+)", line):
                    self.arrived.setdefault(int(cycle), now)
                if line == "event: end":
                    return


def live(place: Path, original: RunFolder, cycles: int) -> list[str]:
    """How far behind a page is that follows a run, and what following costs in memory."""
    logs = place / "live"
    folder = RunFolder(logs / original.path.name)
    folder.path.mkdir(parents=True)
    info = json.loads(original.info_path.read_text(encoding="utf-8"))
    ended = {name: info.pop(name, None) for name in ("ended_at", "seal", "result")}
    folder.info_path.write_text(json.dumps(info), encoding="utf-8")
    index = TraceIndex(original.trace_path)
    while index.extend():
        pass
    written: dict[int, float] = {}
    with inspector(logs) as (url, pid), folder.trace_path.open("ab", buffering=0) as to:
        sizes: list[float] = []
        with (
            Followed(f"{url}/runs/{folder.path.name}/events?rows=0") as page,
            original.trace_path.open("rb") as source,
        ):
            for number in range(min(cycles + 1, index.stretches)):
                stretch = index.stretch(number)
                size = sum(index.length(stretch.first + at) for at in range(stretch.count))
                to.write(source.read(size))
                written[stretch.cycle] = time.perf_counter()
                time.sleep(PACE)
                if number % max(cycles // 20, 1) == 0:
                    sizes.append(resident(pid))
            folder.info_path.write_text(json.dumps({**info, **ended}), encoding="utf-8")
            time.sleep(1)
    behind = [
        (page.arrived[cycle] - at) * 1_000 for cycle, at in written.items() if cycle in page.arrived
    ]
    half = len(sizes) // 2
    return [
        row(f"a cycle's arrival on a page, {len(behind):,} cycles, median", median(behind), "ms"),
        row("the slowest but 1 %", quantiles(behind, n=100)[98], "ms", BEHIND_MS),
        row(f"memory when half of {cycles:,} cycles were followed", sizes[half], "MB"),
        row("memory at the end", sizes[-1], "MB"),
    ]


def report(place: Path, run: RunFolder) -> list[str]:
    """What a report takes, and how large it is."""
    write_report([run], place / "warm.html")
    began = time.perf_counter()
    written = write_report([run], place / "run.html")
    seconds = time.perf_counter() - began
    return [
        row(f"report of {written.cycles} cycles", seconds, "s", REPORT_S),
        row("its size", written.bytes / MB, "MB", REPORT_MB),
    ]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cycles", type=int, default=10_000, help="of the long run")
    parser.add_argument("--followed", type=int, default=3_600, help="that are written live")
    parser.add_argument("--logs", type=Path, help="a folder to keep the runs in, and to find them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        kept: Path = options.logs or place
        runs: dict[int, RunFolder] = {}
        for cycles in (REPORTED, options.cycles):
            logs = kept / str(cycles)
            found = list(list_runs(logs)) if logs.is_dir() else []
            runs[cycles] = found[0] if found else long_run(logs, cycles)
        size = runs[options.cycles].trace_path.stat().st_size / MB
        load = os.getloadavg()[0]
        sys.stdout.write(
            f"{options.cycles:,} cycles, {size:,.0f} MB; {os.cpu_count()} cores, load {load:.1f}, "
            f"Python {platform.python_version()}\n"
        )
        for lines in (
            report(place, runs[REPORTED]),
            pages(kept / str(options.cycles), runs[options.cycles], options.cycles),
            live(place, runs[options.cycles], options.followed),
        ):
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
