"""Runs the fast tests against the lowest and the newest dependencies: `matrix.py [SET...]`.

Each set gets an environment of its own below `build/matrix`, made anew from the hashed file of its
name, and a log of its run. One table tells what was installed and how it went; the program ends
with 1 where a set failed.
"""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETS = ("lowest", "newest")
SHOWN = (
    "autogen-core", "chromadb", "pydantic", "numpy", "starlette", "typer",
    "openai", "ollama", "anthropic", "mcp", "grpcio", "protobuf",
)  # fmt: skip
"""The packages whose versions the table names, in its order."""

BEHIND_EXTRAS = (
    "autogen_ext.models.openai", "autogen_ext.models.ollama", "autogen_ext.models.anthropic",
    "coag.compat.mcp", "autogen_ext.runtimes.grpc",
)  # fmt: skip
"""What can only be imported where our extras brought versions that suit it."""

# What only the checks of the source need (the layers' linter) is not a matter of versions. Old
# releases use what their newer neighbours deprecate, which is no fault of ours; every other
# warning stays an error. The plug-in of anyio is not used, and some versions of it warn at import.
TESTS = (
    "-m", "not slow and not model and not browser", "--ignore=tests/architecture",
    "--ignore=tests/browser",
    "-p", "no:cacheprovider", "-p", "no:anyio",
    "-W", "default::DeprecationWarning", "-W", "default::PendingDeprecationWarning",
    # The first mcp does not close all its streams, and its settings are not complete.
    "-W", "ignore:Field 'lifespan' has an incomplete", "-W", "default::ResourceWarning",
    "-W", "default::pytest.PytestUnraisableExceptionWarning",
    "--disable-warnings",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How one set of dependencies fared."""

    name: str
    """The set: `lowest` or `newest`."""
    versions: dict[str, str]
    """Version by package, as the hashed file pins them."""
    ended: str
    """The closing words of pytest, or what went wrong before it."""
    seconds: float
    """How long making the environment and the tests took together."""
    passed: bool
    """Whether everything was installed and every test passed."""


def tell(line: str) -> None:
    """Writes a line that is seen at once, also where output goes into a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def pinned(name: str) -> dict[str, str]:
    """The version of every package in the hashed file of a set."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.M))


def install(name: str, home: Path) -> int:
    """Makes the environment of a set anew and tries the extras; 0, or the exit code of a step."""
    python, pip = home / "bin" / "python", ("-m", "pip", "install", "--quiet")
    # Given as constraints too, the pins also hold where a package is asked for with extras: pips
    # before 23.3 look for `uvicorn[standard]` apart from `uvicorn`, and would want the newest.
    pins = f"requirements/{name}.txt"
    steps = (
        (sys.executable, "-m", "venv", "--clear", str(home)),
        (str(python), *pip, "--require-hashes", "-r", pins, "-c", pins),
        (str(python), *pip, "--no-deps", "--no-build-isolation", "-e", "."),
        (str(python), "-m", "pip", "check"),
        (str(python), "-c", f"import {', '.join(BEHIND_EXTRAS)}"),
    )
    for step in steps:
        code = subprocess.run(step, cwd=ROOT, check=False, stdout=subprocess.DEVNULL).returncode
        if code != 0:
            return code
    return 0


def run(name: str) -> Run:
    """Installs a set and runs the fast tests against it."""
    home, started = ROOT / "build" / "matrix" / name, time.monotonic()
    tell(f"{name}: making build/matrix/{name}...")
    code, ended = install(name, home), "none ran: the set cannot be installed"
    if code == 0:
        log = home / "tests.log"
        tell(f"{name}: testing; build/matrix/{name}/tests.log has it all...")
        with log.open("w", encoding="utf-8") as sink:
            command = (str(home / "bin" / "python"), "-m", "pytest", *TESTS)
            code = subprocess.run(
                command, cwd=ROOT, check=False, stdout=sink, stderr=subprocess.STDOUT
            ).returncode
        ended = closing(log.read_text(encoding="utf-8"), code)
    return Run(
        name=name,
        versions=pinned(name),
        ended=ended,
        seconds=time.monotonic() - started,
        passed=code == 0,
    )


def closing(log: str, code: int) -> str:
    """What pytest counted, such as `3 failed, 1200 passed`, from the end of its log."""
    counted = re.findall(r"^=*\s*(\d+ (?:passed|failed|error).*?) in [\d.]+s", log, re.M)
    return counted[-1] if counted else f"pytest ended with {code} before it counted"


def table(runs: list[Run]) -> str:
    """One column for each set: versions, then how it went."""
    rows = [("set", *(run.name for run in runs))]
    rows += [(package, *(run.versions.get(package, "-") for run in runs)) for package in SHOWN]
    rows += [
        ("tests", *(run.ended for run in runs)),
        ("seconds", *(f"{run.seconds:.0f}" for run in runs)),
        ("result", *("passed" if run.passed else "FAILED" for run in runs)),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([f"Python {sys.version.split()[0]} on {sys.platform}", *lines])


def main(names: list[str]) -> int:
    """Runs the sets that are named, or all; gives the exit code."""
    unknown = [name for name in names if name not in SETS]
    if unknown:
        sys.exit(f"There is no set {unknown[0]!r}; the sets are {', '.join(SETS)}.")
    os.environ |= {"ANONYMIZED_TELEMETRY": "False", "PYTHONUTF8": "1"}
    runs = [run(name) for name in names or SETS]
    tell(f"\n{table(runs)}")
    return 0 if all(run.passed for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
