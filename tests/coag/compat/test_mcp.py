from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest
from autogen_core import CancellationToken
from autogen_core.tools import ImageResultContent, ToolOverride
from kits.held_steps import settled
from kits.mcp_client import QUICK, on_stdio, until_running

from coag.compat.mcp import (
    McpLimits,
    McpServerError,
    PinnedMcpWorkbench,
    StdioServerParams,
)
from coag.errors import ConfigurationError


@pytest.fixture
async def bench(in_process: None) -> AsyncGenerator[PinnedMcpWorkbench]:
    """With a server within this process."""
    workbench = PinnedMcpWorkbench(on_stdio(), limits=QUICK)
    yield workbench
    await workbench.stop()


@pytest.fixture
async def far_bench() -> AsyncGenerator[PinnedMcpWorkbench]:
    """With a server as a process of its own."""
    workbench = PinnedMcpWorkbench(on_stdio(), limits=QUICK)
    yield workbench
    await workbench.stop()


async def adds(workbench: PinnedMcpWorkbench) -> bool:
    result = await workbench.call_tool("add", {"a": 1, "b": 2})
    return (result.to_text(), result.is_error) == ("3", False)


@pytest.mark.slow
def test_a_server_that_nobody_stopped_ends_with_its_event_loop_and_serves_the_next() -> None:
    workbench = PinnedMcpWorkbench(on_stdio())
    assert asyncio.run(adds(workbench))
    assert asyncio.run(adds(workbench))
    del workbench
    gc.collect()  # what was left open would warn now


async def test_tools_that_fail_or_do_not_exist_are_errors_that_leave_nothing_open(
    bench: PinnedMcpWorkbench,
) -> None:
    failing = await bench.call_tool("fail")
    absent = await bench.call_tool("fly")
    wrong = await bench.call_tool("add", {"a": "x"})
    assert "Error executing tool fail" in failing.to_text()
    assert "There is no tool 'fly'" in absent.to_text()
    assert [r.is_error for r in (failing, absent, wrong)] == [True] * 3
    assert [r.may_have_happened for r in (failing, absent, wrong)] == [False] * 3


async def test_what_is_no_text_is_described_and_images_are_kept(
    bench: PinnedMcpWorkbench,
) -> None:
    result = await bench.call_tool("mixed")
    assert result.to_text().splitlines() == [
        "look:",
        "[image, image/png, 70 bytes, 1 x 1 pixels]",
        "[image]",
        "[image, image/png, 3,000 bytes: cannot be read]",
        "[audio, audio/wav, 3,000 bytes]",
        "[resource file:///report.bin, application/pdf, 3,000 bytes]",
        "[resource file:///report.bin, text/plain]",
        "words",
        "[link to resource file:///report.bin, application/pdf]",
    ]
    (image,) = [part for part in result.result if isinstance(part, ImageResultContent)]
    assert image.content.image.size == (1, 1)


@pytest.mark.slow
async def test_a_server_that_was_given_up_is_tried_again_after_a_pause(tmp_path: Path) -> None:
    limits = McpLimits(restarts=0, pause_seconds=0)
    async with PinnedMcpWorkbench(on_stdio(), limits=limits) as workbench:
        arguments = {"path": str(tmp_path / "notes"), "text": "a", "die": True}
        await workbench.call_tool("note", arguments)
        assert await adds(workbench)


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        (StdioServerParams(command="no-such-command"), "'no-such-command' was not found"),
        (StdioServerParams(command=sys.executable, cwd="/no/folder"), "'/no/folder' was not found"),
        (
            StdioServerParams(command=sys.executable, args=["-c", "import sys; sys.exit('bad')"]),
            "Connection closed. It said: bad",
        ),
        (on_stdio("${NO_SUCH_VARIABLE}"), "environment variable 'NO_SUCH_VARIABLE'"),
    ],
)
async def test_a_server_that_cannot_be_started_says_why(
    params: StdioServerParams, problem: str
) -> None:
    workbench = PinnedMcpWorkbench(params)
    with pytest.raises((McpServerError, ConfigurationError), match=problem.replace(".", r"\.")):
        await workbench.list_tools()
    result = await workbench.call_tool("add")
    assert problem in result.to_text()
    assert (result.is_error, result.may_have_happened) == (True, False)
    await workbench.stop()


async def test_a_server_that_says_nothing_is_not_waited_for_without_end() -> None:
    silent = StdioServerParams(command=sys.executable, args=["-c", "input(); input()"])
    workbench = PinnedMcpWorkbench(silent, limits=McpLimits(start_seconds=0.3))
    with pytest.raises(McpServerError, match=r"did not start within 0\.3 s"):
        await workbench.start()
    await workbench.stop()


async def test_prompts_and_resources_are_asked_for_as_of_autogens_workbench(
    bench: PinnedMcpWorkbench,
) -> None:
    assert [prompt.name for prompt in (await bench.list_prompts()).prompts] == ["greet"]
    assert "Greet Ann." in (await bench.get_prompt("greet", {"name": "Ann"})).model_dump_json()
    assert len((await bench.list_resources()).resources) == 1
    assert "'greet'" not in str(await bench.list_resource_templates())
    assert "buy milk" in (await bench.read_resource("memo://today")).model_dump_json()


async def test_settings_of_a_given_workbench_are_taken_over(in_process: None) -> None:
    autogen_mcp = pytest.importorskip("autogen_ext.tools.mcp", exc_type=ImportError)
    overrides = {"add": ToolOverride(name="sum", description="Sums.")}
    params = autogen_mcp.StdioServerParams.model_validate(on_stdio().model_dump())
    async with PinnedMcpWorkbench(autogen_mcp.McpWorkbench(params, overrides)) as workbench:
        described = {s["name"]: s.get("description") for s in await workbench.list_tools()}
        assert described["sum"] == "Sums."
        assert "add" not in described
        assert (await workbench.call_tool("sum", {"a": 1, "b": 2})).to_text() == "3"
        assert (await workbench.call_tool("add", {"a": 1, "b": 2})).is_error


async def test_tools_beyond_the_bounds_are_left_out_and_named(in_process: None) -> None:
    limits = McpLimits(tools=2, definition_characters=300, description_characters=4)
    overrides = {"note": ToolOverride(name="add")}
    async with PinnedMcpWorkbench(on_stdio(), limits=limits, tool_overrides=overrides) as workbench:
        described = {s["name"]: s.get("description") for s in await workbench.list_tools()}
        assert described == {"add": "Adds [cut]", "wait": "Says [cut]"}
        assert "the definition of 'locate' has" in " ".join(workbench.left_out)
        assert "tools beyond the first 2" in " ".join(workbench.left_out)


async def test_the_server_starts_at_the_first_listing_and_ends_with_the_block(
    in_process: None,
) -> None:
    async with PinnedMcpWorkbench(on_stdio()) as workbench:
        schemas = {schema["name"]: schema for schema in await workbench.list_tools()}
    assert schemas["add"].get("description") == "Adds two numbers."
    parameters = cast("dict[str, Any]", schemas["locate"].get("parameters"))
    assert parameters["$defs"]["Place"]["required"] == ["city"]  # which AutoGen's would lose
    assert await adds(workbench)
    await workbench.reset()
    assert await adds(workbench)
    await workbench.stop()
    await workbench.stop()  # a second time is no fault


async def test_a_cancelled_call_says_whether_it_was_made(
    bench: PinnedMcpWorkbench, tmp_path: Path
) -> None:
    token = CancellationToken()
    running = await until_running(bench, "wait", tmp_path, cancellation_token=token)
    token.cancel()
    result = await running.result
    assert (result.is_error, result.may_have_happened) == (True, True)
    arguments = {"path": str(tmp_path / "notes"), "text": "a"}
    result = await bench.call_tool("note", arguments, cancellation_token=token)
    assert (result.is_error, result.may_have_happened) == (True, False)
    assert not (tmp_path / "notes").exists()
    running = await until_running(bench, "wait", tmp_path)
    running.result.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.result
    assert await adds(bench)


@pytest.mark.slow
async def test_a_frozen_server_holds_up_neither_a_cancellation_nor_a_listing(
    far_bench: PinnedMcpWorkbench, tmp_path: Path
) -> None:
    names = [schema["name"] for schema in await far_bench.list_tools()]
    token = CancellationToken()
    running = await until_running(far_bench, "freeze", tmp_path, cancellation_token=token)
    listing = asyncio.create_task(far_bench.list_tools())
    token.cancel()
    await settled()  # nothing is waited for
    assert [schema["name"] for schema in listing.result()] == names
    result = running.result.result()
    assert (result.is_error, result.may_have_happened) == (True, True)
    assert await adds(far_bench)  # by a new server, since the old one stays frozen


async def test_a_late_call_is_given_up_and_may_have_happened(in_process: None) -> None:
    limits = McpLimits(call_seconds=0.5, check_seconds=0.5)
    async with PinnedMcpWorkbench(on_stdio(), limits=limits) as workbench:
        assert await adds(workbench)
        result = await workbench.call_tool("wait", {"path": "/dev/null"})
        assert "gave no answer within 0.5 s" in result.to_text()
        assert result.may_have_happened
        assert await adds(workbench)


@pytest.mark.slow
async def test_a_server_that_is_killed_leaves_the_call_open_and_is_started_again_within_bounds(
    tmp_path: Path,
) -> None:
    notes = tmp_path / "notes"
    arguments = {"path": str(notes), "text": "a", "die": True}
    async with PinnedMcpWorkbench(on_stdio(), limits=McpLimits(restarts=1)) as workbench:
        names = [schema["name"] for schema in await workbench.list_tools()]
        dying = [await workbench.call_tool("note", arguments) for _ in range(3)]
        assert [result.may_have_happened for result in dying] == [True, True, False]
        assert "ended before it answered; what was asked for may have" in dying[0].to_text()
        assert "was started 2 times in a row without a call that succeeded" in dying[2].to_text()
        assert "password=[redacted]" in dying[2].to_text()  # its last words, without secrets
        assert notes.read_text() == "a\n" * 2  # none was tried twice
        assert [schema["name"] for schema in await workbench.list_tools()] == names
        await workbench.reset()
        assert await adds(workbench)
