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

import argparse
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
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import httpx
from _inspector_run import long_run

from coag.inspector import write_report
from coag.tracing import RunFolder, TraceIndex, list_runs

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

    def __enter__(self) -> "Followed":
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
