from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from vacuum_world.__main__ import app

TOKEN = "experimenter-token"
CONTROL = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def serving(
    *options: str, token: str | None = TOKEN, errors: bool = False
) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """A world in a process of its own; it is killed at the end if it still runs."""
    environment = {k: v for k, v in os.environ.items() if k != "VACUUM_WORLD_CONTROL_TOKEN"}
    if token:
        environment["VACUUM_WORLD_CONTROL_TOKEN"] = token
    command = [sys.executable, "-m", "vacuum_world", "serve", "--port", "0", *options]
    stderr = subprocess.PIPE if errors else None
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline().strip()
            assert line.startswith("serving http://127.0.0.1:")
            yield line.removeprefix("serving "), process
        finally:
            process.kill()


def call(url: str, method: str, path: str, headers: dict[str, str], **more: object) -> bytes:
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        response = client.request(method, path, headers=headers, json=more or None)
        assert response.is_success, response.text
        return response.content


@pytest.mark.slow
def test_a_killed_world_comes_back_as_it_was(tmp_path: Path) -> None:
    options = ("--state", str(tmp_path / "world.json"), "--seed", "3")
    with serving(*options) as (url, process):
        with httpx.Client(base_url=url, trust_env=False) as client:
            token = client.post("/api/agents", json={"name": "ann"}).json()["token"]
        robot = {"Authorization": f"Bearer {token}"}
        for number, direction in enumerate(("south", "east", "south")):
            action = robot | {"X-Action-Id": f"a-{number}"}
            call(url, "POST", "/api/agent/move", action, direction=direction)
        before = call(url, "GET", "/api/world", CONTROL)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    with serving(*options, "--scenario", "evolution") as (url, _):
        assert call(url, "GET", "/api/world", CONTROL) == before
        call(url, "POST", "/api/env/clean", robot | {"X-Action-Id": "a-2"})
        after = call(url, "GET", "/api/world", CONTROL)
    assert b'"action_id":"a-2","repeated":true' in after


@pytest.mark.slow
def test_the_token_printed_at_the_first_start_stays_in_force(tmp_path: Path) -> None:
    options = ("--state", str(tmp_path / "world.json"))
    with serving(*options, token=None) as (_, process):
        assert process.stdout is not None
        printed = process.stdout.read(0) + process.stdout.readline() + process.stdout.readline()
    token = printed.split("control token: ")[1].strip()
    with serving(*options, token=None) as (url, process):
        assert process.stdout is not None
        process.stdout.readline()
        assert "when this world was first served" in process.stdout.readline()
        call(url, "GET", "/api/world", {"Authorization": f"Bearer {token}"})


@pytest.mark.slow
def test_an_interrupt_ends_it_at_once_even_while_somebody_watches() -> None:
    with (
        serving("--scenario", "sudden-wall", "--seed", "4") as (url, process),
        httpx.stream("GET", f"{url}/api/events", trust_env=False, timeout=30) as response,
    ):
        lines = response.iter_lines()
        assert next(lines).startswith("id:")
        process.send_signal(signal.SIGINT)
        with suppress(httpx.RemoteProtocolError):  # it may end in mid-stream
            assert all("Traceback" not in line for line in lines)
        process.wait(30)


def test_an_unknown_scenario_is_answered_with_those_that_exist() -> None:
    result = CliRunner().invoke(app, ["serve", "--scenario", "flood"])
    assert result.exit_code == 2
    assert "unknown scenario 'flood'; there are: sudden-wall, energy-dilemma" in result.stderr


def test_a_size_for_a_scenario_is_refused() -> None:
    result = CliRunner().invoke(app, ["serve", "--scenario", "evolution", "--size", "7"])
    assert result.exit_code == 2
    assert "leave out --size" in result.stderr


def test_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("vacuum-world (coag ")


def test_serving_a_saved_world_says_which_options_have_no_effect(tmp_path: Path) -> None:
    saved = ("--state", str(tmp_path / "world.json"))
    with serving(*saved, "--seed", "3"):
        pass
    with serving(*saved, "--scenario", "evolution", "--seed", "4", errors=True) as (_, process):
        assert process.stderr is not None
        line = process.stderr.readline()
    assert f"continuing the world saved in {saved[1]}" in line
    assert line.endswith("without effect on it: --scenario, --seed\n")


def test_a_state_file_that_holds_no_world_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    result = CliRunner().invoke(app, ["serve", "--state", str(path)])
    assert result.exit_code == 2
    assert "does not hold a world" in result.stderr


def test_help_lists_every_option() -> None:
    text = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "120"}).stdout
    for option in ("--port", "--host", "--seed", "--scenario", "--ticks", "--state", "--size"):
        assert option in text
