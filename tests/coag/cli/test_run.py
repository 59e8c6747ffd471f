"""`coag run`: an agent in a process of its own, beside a server of tools."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kits.kettles import GOAL, Kettle, cook, kitchen, think_carefully

import coag
from coag.agent import SignalGoal, SituatedAgent
from coag.errors import ConfigurationError
from coag.mcp import StreamableHttpServerParams
from coag.models import ScriptedModel
from coag.situated import (
    ActivityState,
    ActivityStore,
    InProcessConnection,
    McpToolConnection,
    OnSignal,
    Workspace,
    serve_http,
)

from .conftest import Result

pytestmark = pytest.mark.timeout(60)
ROOT = Path(coag.__file__).parents[1]


async def written_down(folder: Path, address: str) -> Path:
    """An agent for this kitchen as a component in a file."""
    server = McpToolConnection(StreamableHttpServerParams(url=address), "kitchen")
    on = OnSignal(tool="kettle", name="kettle.ordered")
    goals = [SignalGoal(name="tea", on=on, goal="Serve tea.")]
    agent = cook(ScriptedModel(think_carefully), server, goals=goals)
    dumped = agent.dump_component()
    await agent.close()
    dumped.config["folder"] = str(folder / "agent")
    (folder / "agent.json").write_text(dumped.model_dump_json(exclude_none=True))
    return folder / "agent.json"


@asynccontextmanager
async def running(*words: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """`coag run` as a process, gone at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from coag.cli import main; main()", "run", *words),
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def said(process: asyncio.subprocess.Process, text: str) -> None:
    """Reads what a process says up to a line with a text."""
    assert process.stderr is not None
    while text not in (line := (await process.stderr.readline()).decode()):
        assert line, f"the process ended before it said {text!r}"


async def test_it_runs_until_done_is_stopped_by_sigterm_and_continues(tmp_path: Path) -> None:
    async with kitchen() as (workspace, kettle), serve_http(workspace) as address:
        path = await written_down(tmp_path, address)
        async with running(str(path), "--goal", GOAL) as process:
            await said(process, "blocked for signal 'kettle.boiled'")
            process.send_signal(signal.SIGTERM)
            _, err = await process.communicate()
            assert process.returncode == 0, err.decode()
            assert b"Stopping" in err
        store = ActivityStore(tmp_path / "agent" / "activities.sqlite", owner=False)
        (waiting,) = store.find(ActivityState.BLOCKED)
        store.close()
        kettle.boil()
        async with running(str(path), "--until-done") as process:
            out, err = await process.communicate()
            assert process.returncode == 0, err.decode()
        (over,) = (json.loads(line) for line in out.splitlines())
        assert (over["id"], over["end"]) == (waiting.id, "done")
        assert over["result"] == "The water has boiled."
        assert kettle.starts == 1


async def test_the_component_holds_servers_goals_and_settings(tmp_path: Path) -> None:
    path = await written_down(tmp_path, "http://127.0.0.1:9/mcp")
    dumped = json.loads(path.read_text())
    agent = SituatedAgent.load_component(dumped)
    again = agent.dump_component()
    await agent.close()
    assert again.config == {**again.config, **dumped["config"]}
    assert again.config["servers"][0]["name"] == "kitchen"
    assert again.config["goals"][0]["on"]["name"] == "kettle.ordered"
    assert again.provider == "coag.SituatedAgent"


async def test_a_server_in_this_process_cannot_be_written_down() -> None:
    workspace = Workspace()
    workspace.add(Kettle("kettle"))
    agent = cook(ScriptedModel(think_carefully), InProcessConnection(workspace))
    with pytest.raises(ConfigurationError, match="Serve it by MCP"):
        agent.dump_component()
    await agent.close()


@pytest.mark.parametrize(
    ("text", "problem"),
    [(None, "cannot be read"), ("{", "no JSON"), ("[]", "component"), ("{}", "provider")],
)
def test_a_file_that_holds_no_agent_is_an_error(
    tmp_path: Path, say: Callable[..., Result], text: str | None, problem: str
) -> None:
    path = tmp_path / "agent.json"
    if text is not None:
        path.write_text(text)
    result = say("run", str(path))
    assert result.code != 0
    assert problem in result.err


def test_modules_that_an_agent_needs_may_run_a_loop_of_their_own_when_they_are_imported(
    tmp_path: Path, say: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = "import asyncio\nasyncio.run(asyncio.sleep(0))\nraise ImportError('It ran its loop.')\n"
    (tmp_path / "looping.py").write_text(done)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    path = tmp_path / "agent.json"
    path.write_text('{"provider": "looping.Agent", "config": {}}')
    with pytest.raises(ImportError, match="It ran its loop"):
        say("run", str(path))
