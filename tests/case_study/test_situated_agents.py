"""Water Hammer and Even/Odd, played by agents that poll, wait, or have activities."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from case_study.situated import (
    DemonstratorTable,
    compare_agents,
    make_water_hammer,
    run_demonstrator,
    water_hammer_truth,
)
from case_study.situated.agents import Player, play
from case_study.situated.minds import operate_plant, scripted_mind
from case_study.situated.water_hammer import WATER_HAMMER_GOAL
from coag.errors import ConfigurationError
from coag.proof import Violation, verify
from coag.schema import ExecutionOutcome
from coag.situated import VirtualClock, serve_http
from coag.tracing import RunFolder, read_trace

pytestmark = pytest.mark.filterwarnings("ignore:Use `streamable_http_client`:DeprecationWarning")
"""AutoGen's McpWorkbench calls what mcp has deprecated."""
CAREFUL, HASTY = "scripted:careful", "scripted:hasty"
FAST = 200.0


@pytest.mark.parametrize("demonstrator", ["water-hammer", "even-odd"])
async def test_a_careful_mind_succeeds_whatever_its_agent_can_do(demonstrator: str) -> None:
    pytest.importorskip("autogen_ext.tools.mcp", exc_type=ImportError)  # the polling agent
    agents = ("situated", "waiting", "polling")
    tables = await compare_agents(CAREFUL, [1], demonstrators=[demonstrator], speed=FAST)

    (table,) = tables
    by_agent = {one.agent: one for one in table.results}
    assert tuple(by_agent) == agents
    assert all(one.success for one in table.results), table.results
    assert by_agent["situated"].calls_while_blocked == 0
    if demonstrator == "water-hammer":  # the others' turns in Even/Odd may be too short to be seen
        # On a slow machine the plant is done before a second poll: then both ask as often.
        assert by_agent["situated"].model_calls <= by_agent["polling"].model_calls


async def test_a_mind_that_does_not_wait_locks_the_plant() -> None:
    plant = make_water_hammer(clock=VirtualClock())  # in which no pressure is built up meanwhile
    mind = scripted_mind(partial(operate_plant, hasty=True))
    async with serve_http(plant) as address:
        goal = WATER_HAMMER_GOAL
        player = Player(name="operator", goal=goal, model=mind, address=address, steps=50)
        assert (
            await play("situated", player) == "The system is locked out; the core cannot be saved."
        )

    result = water_hammer_truth(plant)
    await plant.close()
    assert not result.success
    assert result.lockouts == 1
    assert "Water hammer" in result.reason


async def test_the_hasty_mind_plays_where_its_name_is_given(tmp_path: Path) -> None:
    await run_demonstrator("water-hammer", "situated", HASTY, speed=FAST, folder=tmp_path)

    done = actions_of_runs(tmp_path)
    assert any(one.action == "hydraulic_control__open_valve" for one in done)
    # On a slow machine the careful one may not have to wait for it either.
    assert "pump.pressure_nominal" not in [(one.arguments or {}).get("signal") for one in done]


async def test_the_runs_of_a_situated_agent_are_kept_and_verified(tmp_path: Path) -> None:
    result = await run_demonstrator("even-odd", "situated", CAREFUL, speed=FAST, folder=tmp_path)

    assert result.success
    assert problems_of_runs(tmp_path) == [[], []]


async def test_what_does_not_exist_is_refused_with_what_there_is() -> None:
    with pytest.raises(ConfigurationError, match="There are: water-hammer, even-odd"):
        await run_demonstrator("fire", "situated", CAREFUL)
    with pytest.raises(ConfigurationError, match="There are: careful, hasty"):
        await run_demonstrator("even-odd", "situated", "scripted:brave")
    with pytest.raises(ConfigurationError, match="There are: situated, waiting, polling"):
        await run_demonstrator("even-odd", "asking", CAREFUL)


async def test_a_run_that_takes_too_long_ends_and_says_so() -> None:
    pytest.importorskip("autogen_ext.tools.mcp", exc_type=ImportError)  # the polling agent
    result = await run_demonstrator("water-hammer", "polling", CAREFUL, speed=0.01, seconds=0.2)

    assert not result.success
    assert result.answers == ("It did not end within 0.2 s.",)


def test_the_command_prints_one_json_object(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("run", "even-odd", "--agent", "waiting", "--seed", "1", "--json")

    assert command(*words, "--logs", str(tmp_path)) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed["success"] is True
    assert {"lockouts", "wrong_increments", "model_calls", "calls_while_blocked"} <= set(printed)
    assert command("run", "even-odd", "--depth", "full") == 2
    assert "--depth: not for even-odd" in capsys.readouterr().err


def actions_of_runs(folder: Path) -> list[ExecutionOutcome]:
    """What the agents in a folder did."""
    runs = [read_trace(RunFolder(run).trace_path) for run in folder.glob("*/runs/*")]
    return [one.body for run in runs for one in run if isinstance(one.body, ExecutionOutcome)]


def problems_of_runs(folder: Path) -> list[list[Violation]]:
    """What is wrong with each run of the agents in a folder."""
    return [verify(run) for run in sorted(folder.glob("*/runs/*"))]


def table_of(*lines: tuple[str, int, int]) -> DemonstratorTable:
    """A table of runs: agent, seed, model calls."""
    body = {
        "demonstrator": "even-odd",
        "model": CAREFUL,
        "scripted": True,
        "success": True,
        "lockouts": 0,
        "wrong_increments": 0,
        "calls_while_blocked": 0,
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "seconds": 1.0,
    }
    results = [
        {**body, "agent": agent, "seed": seed, "model_calls": calls} for agent, seed, calls in lines
    ]
    fields = {"demonstrator": "even-odd", "model": CAREFUL, "scripted": True, "results": results}
    return DemonstratorTable.model_validate(fields)


def test_the_table_compares_pair_by_pair_with_intervals() -> None:
    lines = [("polling", n, 10 + n) for n in range(6)] + [("situated", n, 5 + n) for n in range(6)]
    table = table_of(*lines)

    compared = table.against_polling("situated", "model_calls")

    assert (compared.difference, compared.pairs) == (-5.0, 6)
    assert "| model calls | 7.50 (-5.00 to -5.00) | 12.50 |" in table.markdown()
    assert "a scripted mind" in table.markdown()
