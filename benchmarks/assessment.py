"""How long the full table of scripted models takes, and whether memory stays flat over a sweep.

Plays all contenders over the scenarios A to J for a few seeds, in worker processes, with world and
records in them, as `case-study assess` does. No worker is replaced, so that what leaks shows; what
one has when it is usually replaced is extrapolated. Times are of the sweep alone: processes start
and import within them. The table of 50 seeds is not played: its time is extrapolated from the seeds
that were, start-up and imports counted once.

    python benchmarks/assessment.py [--seeds 2] [--processes 2] [--model scripted:fallible] [--json]

The exit code is 0 whether the targets are met or not, because a loaded machine proves nothing.
"""

import argparse
import json
import os
import platform
import resource
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from case_study.trials import domain_named
from coag.evals import JOBS_A_WORKER, ProgressListener, RunSettings, Trial, plan_of, run_evaluation

TABLE_SEEDS = 50
TARGET_MINUTES = 15.0
TARGET_MB = 400.0
"""What a worker may take when it is replaced."""


@dataclass
class Watching(ProgressListener):
    """Notes the memory of the workers after each trial, and when the first one came."""

    processes: int
    began: float = field(default_factory=time.monotonic)
    first: float | None = None
    """Seconds until as many trials were over as there are workers: start-up and imports."""
    memory: list[float] = field(default_factory=list[float])
    """Megabytes of the largest worker, trial by trial."""
    total: int = 0
    broken: int = 0

    def begin(self, total: int, done: int) -> None:
        """It begins."""
        self.total = total

    def played(self, trial: Trial, seconds_left: float | None) -> None:
        """A job is over."""
        self.memory.append(_largest_worker())
        self.broken += not trial.counts
        if self.first is None and len(self.memory) >= self.processes:
            self.first = time.monotonic() - self.began

    def stopping(self) -> None:
        """It was interrupted."""


def _largest_worker() -> float:
    workers = psutil.Process().children()
    return max((worker.memory_info().rss for worker in workers), default=0) / 2**20


def measured(seeds: int, processes: int, model: str) -> dict[str, object]:
    """Plays a sweep; gives its times and memory."""
    vacuum = domain_named("vacuum")
    plan = plan_of(
        vacuum,
        seeds=seeds,
        models=(model,),
        name="vacuum",
        scenarios=vacuum.scenarios[:10],
        conditions={"place": "local"},
    )
    settings = RunSettings(keep="none", processes=processes, jobs_a_worker=10**9)
    with tempfile.TemporaryDirectory() as name:
        watching = Watching(processes)
        run_evaluation(vacuum, Path(name) / "a", plan=plan, settings=settings, progress=watching)
        wall = time.monotonic() - watching.began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start_up = watching.first or 0.0
    jobs, memory = len(watching.memory), watching.memory
    return {
        "jobs": jobs,
        "broken": watching.broken,
        "seeds": seeds,
        "processes": processes,
        "model": model,
        "wall_seconds": round(wall, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "start_up_seconds": round(start_up, 1),
        "ms_a_job": round((wall - start_up) / jobs * processes * 1000),
        "table_minutes": round((start_up + (wall - start_up) * TABLE_SEEDS / seeds) / 60, 1),
        "memory_mb": [round(memory[jobs * part // 4 - 1]) for part in (1, 2, 3, 4)],
        "replaced_at_mb": round(_when_replaced(memory, processes)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def _when_replaced(memory: list[float], processes: int) -> float:
    """Megabytes of a worker when it is replaced, if it keeps growing as after the first quarter."""
    quarter = memory[len(memory) // 4 - 1 :]
    growth = (quarter[-1] - quarter[0]) / max(1, len(quarter) - 1) * processes
    return quarter[0] + growth * (JOBS_A_WORKER - len(memory) / 4 / processes)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the full table, and watch the memory.")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--model", default="scripted:fallible")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measured(options.seeds, options.processes, options.model)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"{'what':42} {'measured':>20}  target")
    print(
        f"{'jobs, of which broken':42} {figures['jobs']!s:>14}, {figures['broken']!s:>4}  0 broken"
    )
    print(f"{'wall time of the sweep':42} {figures['wall_seconds']!s:>18} s")
    print(f"{'CPU time of the workers':42} {figures['cpu_seconds']!s:>18} s")
    print(f"{'of that, until the first trials':42} {figures['start_up_seconds']!s:>18} s")
    print(f"{'a job, in one worker':42} {figures['ms_a_job']!s:>17} ms")
    label = f"table of {TABLE_SEEDS} seeds, extrapolated from {options.seeds}"
    print(f"{label:42} {figures['table_minutes']!s:>16} min  under {TARGET_MINUTES:g} min")
    megabytes = str(figures["memory_mb"]).strip("[]")
    print(f"{'largest worker at each quarter':42} {megabytes:>17} MB")
    label = f"a worker when it is replaced, after {JOBS_A_WORKER} jobs"
    print(f"{label:42} {figures['replaced_at_mb']!s:>17} MB  under {TARGET_MB:g} MB")
    print(f"load {figures['load']:.1f}, {figures['cores']} cores, Python {figures['python']}")


if __name__ == "__main__":
    main()
