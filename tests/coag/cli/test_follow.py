"""`coag log --follow`."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

import coag
from coag.cli import log as _follow
from coag.schema import Note, Redactor, SteppingClock
from coag.tracing import RunFolder, open_trace

pytestmark = pytest.mark.broken_trace("its records are made up")
ROOT = Path(coag.__file__).parents[1]
NOW = SteppingClock().now()

WRITER = """
import sys
from pathlib import Path
from coag.schema import Note, Redactor, SteppingClock
from coag.tracing import RunFolder, open_trace
folder = RunFolder(Path(sys.argv[1]))
now = SteppingClock().now()
trace = open_trace(folder, redactor=Redactor())
for said in sys.stdin:
    if said.strip() == "end":
        trace.close()
        folder.finish(at=now, redactor=Redactor())
        break
    trace.write(Note(at=now, cycle=1, about="said", text=said.strip()))
    trace.flush()
"""

Say = Callable[..., Any]


def note(text: str) -> Note:
    return Note(at=NOW, cycle=1, about="said", text=text)


@contextmanager
def process(*words: str) -> Generator[subprocess.Popen[str]]:
    """A Python process with pipes, gone at the end."""
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        text=True,
        bufsize=1,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as it:
        try:
            yield it
        finally:
            it.kill()


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def until(stream: IO[str] | None, wanted: str) -> list[str]:
    """The lines up to the one that holds a text."""
    lines: list[str] = []
    for line in pipe(stream):
        lines.append(line)
        if wanted in line:
            return lines
    raise AssertionError(f"{wanted!r} never came; instead: {lines}")


def following(run: RunFolder) -> tuple[str, ...]:
    """The command with Ctrl-C enabled: the shell that runs the tests may ignore it."""
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    return ("-c", f"{heard}; from coag.cli import main; main()", "log", str(run.path), "--follow")


@pytest.mark.slow
def test_what_another_process_writes_is_shown_as_it_comes_through_a_crash_to_the_end(
    leave_run: Callable[..., RunFolder],
) -> None:
    run = leave_run([])
    with process(*following(run)) as follower:
        with process("-c", WRITER, str(run.path)) as first:
            print("good morning", file=first.stdin)
            until(follower.stdout, "said: good morning")
            print("still here", file=first.stdin)
            until(follower.stdout, "said: still here")
            first.kill()
            first.wait()
        with process("-c", WRITER, str(run.path)) as second:
            print("back again\nend", file=second.stdin)
            until(follower.stdout, "said: back again")
            rest = pipe(follower.stdout).read()
        assert rest.splitlines()[-1].startswith("total: ")
        assert follower.wait() == 0
        assert pipe(follower.stderr).read() == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_ctrl_c_ends_it_quietly(leave_run: Callable[..., RunFolder]) -> None:
    run = leave_run([note("good morning")])
    with process(*following(run)) as follower:
        until(follower.stdout, "said: good morning")
        follower.send_signal(signal.SIGINT)
        _, err = follower.communicate()
    assert (follower.returncode, err) == (0, "")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What happens to the run each time that the follower waits; at last Ctrl-C."""

    def act(*steps: Callable[[], object]) -> None:
        remaining = list(steps)

        def wait(seconds: float) -> None:
            assert 0 < seconds < 1
            if not remaining:
                raise KeyboardInterrupt
            remaining.pop(0)()

        monkeypatch.setattr(_follow, "time", SimpleNamespace(sleep=wait))

    return act


def test_a_run_that_has_not_begun_its_trace_is_waited_for(
    leave_run: Callable[..., RunFolder], say: Say, script: Callable[..., None]
) -> None:
    run = leave_run([])
    run.trace_path.unlink()

    def begin() -> None:
        with open_trace(run, redactor=Redactor()) as trace:
            trace.write(note("at last"))
        run.finish(at=NOW)

    script(lambda: None, begin)
    result = say("log", "run-1", "-f")
    assert (result.code, result.err) == (0, "")
    assert "said: at last" in result.out


def test_a_half_written_line_is_shown_when_it_is_whole(
    leave_run: Callable[..., RunFolder], say: Say, script: Callable[..., None]
) -> None:
    run = leave_run([note("one"), note("two")])
    whole = run.trace_path.read_bytes()
    run.trace_path.write_bytes(whole[:-30])
    script(lambda: None, lambda: run.trace_path.write_bytes(whole))
    result = say("log", "run-1", "--follow", "--json")
    assert (result.code, result.err) == (0, "")
    assert [line.count('"record":"note"') for line in result.out.splitlines()] == [1, 1]


def test_what_the_options_do_not_ask_for_is_not_shown(
    leave_run: Callable[..., RunFolder], say: Say, script: Callable[..., None]
) -> None:
    run = leave_run([note("one")])

    def go_on() -> None:
        with open_trace(run, redactor=Redactor()) as trace:
            trace.write(note("two").model_copy(update={"cycle": 2}))

    script(go_on)
    out = say("log", "run-1", "--follow", "--cycle", "2").out
    assert "said: two" in out
    assert "said: one" not in out


def test_ctrl_c_while_it_waits_still_shows_the_total(
    leave_run: Callable[..., RunFolder], say: Say, script: Callable[..., None]
) -> None:
    leave_run([note("one")])
    script()
    result = say("log", "run-1", "--follow")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1].startswith("total: ")


def test_damage_is_one_sentence(
    leave_run: Callable[..., RunFolder], say: Say, script: Callable[..., None]
) -> None:
    run = leave_run([note("one")])
    script(lambda: run.trace_path.write_bytes(b""))
    result = say("log", "run-1", "--follow")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "was cut" in result.err
