"""`coag report` writes runs into one file; `coag inspect` says what it cannot show or serve."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coag.tracing import RunFolder

from .conftest import Result

Say = Callable[..., Result]


@pytest.mark.broken_trace("its run is made up")
def test_a_report_is_one_file_and_says_how_much_is_in_it(
    say: Say, coag_run: RunFolder, tmp_path: Path
) -> None:
    file = tmp_path / "run.html"
    done = say("report", str(coag_run.path), "-o", str(file))
    assert done.code == 0
    assert "cycles of 1 runs" in done.err
    assert "<html" in file.read_text(encoding="utf-8")


@pytest.mark.broken_trace("its run is made up")
def test_a_report_that_cannot_be_written_is_an_error(say: Say, coag_run: RunFolder) -> None:
    done = say("report", str(coag_run.path), "-o", "/no/such/folder/run.html")
    assert done.code == 2
    assert "'/no/such/folder/run.html' cannot be written" in done.err


@pytest.mark.broken_trace("its run is made up")
def test_a_name_that_no_file_can_have_is_no_run(say: Say, coag_run: RunFolder) -> None:
    del coag_run
    assert "There is no run or folder named" in say("inspect", "x" * 5_000).err


@pytest.mark.broken_trace("its run is made up")
def test_a_report_never_replaces_a_runs_own_files(say: Say, coag_run: RunFolder) -> None:
    before = coag_run.trace_path.read_bytes()
    done = say("report", str(coag_run.path), "-o", str(coag_run.trace_path))
    assert done.code == 2
    assert "the run's own files" in done.err
    assert coag_run.trace_path.read_bytes() == before


@pytest.mark.broken_trace("its run is made up")
def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(
    say: Say, coag_run: RunFolder
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for place in ([], [str(coag_run.path)], [str(coag_run.path.parent)]):
            done = say("inspect", *place, "--port", port)
            assert done.code == 2, done.err
            assert "cannot be served" in done.err


@pytest.mark.broken_trace("its run is made up")
def test_an_empty_address_is_refused_since_it_would_be_every_address(
    say: Say, coag_run: RunFolder
) -> None:
    done = say("inspect", str(coag_run.path), "--host", "", "--port", "0")
    assert (done.code, "an address is missing" in done.err) == (2, True)


@pytest.mark.broken_trace("its run is made up")
def test_it_says_where_it_serves_until_it_is_stopped(coag_run: RunFolder) -> None:
    command = [sys.executable, "-m", "coag", "inspect", str(coag_run.path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        lines = [served.stdout.readline(), served.stdout.readline()]
        served.terminate()  # a shell may have its background jobs ignore interrupts
        rest = served.stdout.read()
    assert f"/runs/{coag_run.path.name}" in lines[0]
    assert lines[1] == "Ctrl-C ends it.\n"
    assert rest == ""


def test_what_is_no_run_and_no_folder_is_an_error(say: Say) -> None:
    done = say("inspect", "no/such/run")
    assert done.code == 2
    assert "neither a folder of logs nor a run at 'no/such/run'" in done.err
