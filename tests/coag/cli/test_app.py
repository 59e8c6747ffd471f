"""The command line as a whole."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.processes import python
from typer.main import get_command

import coag
from coag.cli import app, coag_command
from coag.cli.commands import LazyGroup
from coag.cli.memory import app as memory_app
from coag.tracing import RunFolder

Say = Callable[..., Any]
ROOT = Path(coag.__file__).parents[1]


def test_help_names_the_commands(say: Say) -> None:
    result = say("--help")
    assert result.code == 0
    assert "log" in result.out


@pytest.mark.parametrize("group", [(), ("memory",)])
def test_the_help_of_a_group_has_the_first_line_of_each_command_s_own(
    say: Say, group: tuple[str, ...]
) -> None:
    listed = " ".join(re.sub("[│╭╰─╮╯]", " ", say(*group, "--help").out).split())
    commands = get_command(app)
    commands = commands if not group else get_command(memory_app)
    assert isinstance(commands, LazyGroup)
    for name, (_, line) in commands.lazy.items():
        own = " ".join(re.sub("[│╭╰─╮╯]", " ", say(*group, name, "--help").out).split())
        assert f"{name} {line}" in listed
        assert line in own


def test_version_is_printed(say: Say) -> None:
    assert say("--version").out == f"coag {coag.__version__}\n"


def test_the_command_for_a_person_is_the_name_or_the_script_beside_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / ".venv" / "bin" / "coag"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setenv("PATH", "")
    assert coag_command() == ".venv/bin/coag"
    monkeypatch.setenv("PATH", str(script.parent))
    assert coag_command() == "coag"
    script.unlink()
    assert coag_command() == "coag"


def test_declaring_the_commands_imports_nothing_heavy() -> None:
    code = "import sys, coag.cli; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = python("-c", code)
    heavy = {"pydantic", "autogen_core", "autogen_agentchat", "chromadb", "wordllama", "numpy"}
    assert not heavy & set(loaded.split())


def test_looking_at_records_or_a_run_imports_no_more_than_their_store_or_its_trace() -> None:
    code = "import sys, coag.cli.memory.search; print(*sys.modules); "
    code += "import coag.cli.log, coag.cli.activities, coag.cli.top; print(*sys.modules)"
    records, run = (set(line.split()) for line in python("-c", code).splitlines())
    assert not {"coag.memory", "coag.tracing", "autogen_core", "chromadb"} & records
    assert not {"coag.memory", "coag.proof", "autogen_core", "chromadb"} & run


def test_it_is_run_as_a_module_too() -> None:
    assert python("-m", "coag", "--version") == f"coag {coag.__version__}\n"


def piped(
    folder: Path, redirection: str, *words: str, unbuffered: str = ""
) -> subprocess.CompletedProcess[str]:
    """Lists the runs of a folder as JSON, or has other words obeyed, where nobody reads it."""
    words = words or ("log", "--json", "--logs", str(folder))
    line = f"{shlex.join([sys.executable, '-m', 'coag', *words])} {redirection}"
    own = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    shell = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(shell, check=False, cwd=ROOT, env=own, capture_output=True, text=True)


@pytest.mark.broken_trace("its run is made up")
def test_a_command_whose_output_nobody_reads_ends_quietly(coag_run: RunFolder) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = ["log", "--json", "--logs", str(coag_run.path.parent)]
    left = subprocess.run(
        [sys.executable, "-m", "coag", *words],
        check=False,
        cwd=ROOT,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (left.returncode, left.stderr) == (1, "")
    closed = piped(coag_run.path.parent, ">&-")
    assert (closed.returncode, closed.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [(), ("log",), ("--version",)])
@pytest.mark.broken_trace("its run is made up")
def test_a_full_standard_output_is_an_error_with_an_exit_code(
    coag_run: RunFolder, words: tuple[str, ...], unbuffered: str
) -> None:
    logs = coag_run.path.parent
    words = (*words, "--logs", str(logs)) if words == ("log",) else words
    full = piped(logs, "> /dev/full", *words, unbuffered=unbuffered)
    assert full.returncode == 2
    assert full.stderr.startswith("Standard output could not be written: No space left on device.")
    assert len(full.stderr.splitlines()) == 1


def test_what_fails_elsewhere_is_not_taken_for_a_full_output() -> None:
    code = (
        "from coag.cli.terminal import unread_output\n"
        "with unread_output(): raise OSError(28, 'No space left on device')"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("OSError: [Errno 28] No space left on device\n")


def test_an_unknown_option_is_a_users_error(say: Say) -> None:
    result = say("log", "--nonsense")
    assert result.code == 2
    assert "--nonsense" in result.err


def test_leaving_does_not_look_through_all_that_was_imported() -> None:
    code = (
        "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0)); "
        "from coag.cli import main; main(['--version'])"
    )
    assert python("-c", code).splitlines()[-1] == "True"
