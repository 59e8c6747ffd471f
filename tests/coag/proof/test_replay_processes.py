"""Runs that broke off, and runs that several processes took part in, are replayed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.porters import TASK, porter

from coag.agent import CoagAgent
from coag.proof import replay
from coag.tracing import RunFolder, read_trace

SAID = (TASK, "Well done.")


async def say(agent: CoagAgent, *texts: str) -> None:
    for text in texts or (None,):
        said = [] if text is None else [TextMessage(content=text, source="user")]
        await agent.on_messages(said, CancellationToken())


async def whole_run(where: Path, depth: str) -> RunFolder:
    agent = porter(log=str(where / "calls.txt"), logs=str(where / "logs"), depth=depth)  # pyright: ignore[reportArgumentType]
    await say(agent, *SAID)
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    return folder


def broken_off(run: RunFolder, kept: int, torn: bool, where: Path) -> RunFolder:
    """A copy whose trace ends after `kept` lines, and half a line where it is torn."""
    folder = where / run.path.name
    shutil.copytree(run.path, folder, ignore=shutil.ignore_patterns("cycles"))
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    half = lines[kept][: len(lines[kept]) // 2] if torn else b""
    (folder / "trace.jsonl").write_bytes(b"".join(lines[:kept]) + half)
    info = json.loads((folder / "run.json").read_text())
    info["recipe"]["arguments"]["log"] = str(where / "calls.txt")
    (folder / "run.json").write_text(json.dumps({**info, "ended_at": None, "seal": None}))
    return RunFolder(folder)


async def gone_on(run: RunFolder) -> RunFolder:
    agent = await CoagAgent.resume(run.path)
    if agent.in_turn:
        await say(agent)
    if left := SAID[agent.turn :]:
        await say(agent, *left)
    await agent.close()
    return run


def length(run: RunFolder) -> int:
    return sum(1 for _ in read_trace(run.trace_path, lambda problem: None))


async def check_breaks(run: RunFolder, places: Sequence[int], torn: bool, where: Path) -> None:
    for kept in places:
        broken = broken_off(run, kept, torn, where / str(kept))
        report = await replay(broken)
        assert report.divergence is None, f"broken off after {kept}: {report.divergence}"
        assert report.records == kept
        report = await replay(await gone_on(broken))
        assert report.divergence is None, f"gone on with after {kept}: {report.divergence}"
        assert report.records >= length(broken) - 2  # notes of the repair and of the resumption


@pytest.mark.broken_trace("it breaks runs off")
@pytest.mark.parametrize("torn", [False, True])
async def test_a_run_is_replayed_wherever_it_broke_off_and_was_gone_on_with(
    torn: bool, tmp_path: Path
) -> None:
    run = await whole_run(tmp_path / "whole", "compact")
    await check_breaks(run, range(2, length(run), 9), torn, tmp_path / "broken")


@pytest.mark.long
@pytest.mark.broken_trace("it breaks runs off")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("depth", ["full", "compact"])
async def test_a_run_is_replayed_from_every_break(depth: str, torn: bool, tmp_path: Path) -> None:
    run = await whole_run(tmp_path / "whole", depth)
    await check_breaks(run, range(length(run)), torn, tmp_path / "broken")


@pytest.mark.broken_trace("it breaks runs off")
async def test_the_report_tells_where_another_process_went_on(tmp_path: Path) -> None:
    run = await whole_run(tmp_path / "whole", "full")
    lines = run.trace_path.read_bytes().splitlines()
    kept = next(n for n, line in enumerate(lines) if b'"record":"intent"' in line) + 1
    report = await replay(await gone_on(broken_off(run, kept, False, tmp_path / "broken")))
    assert report.same
    assert f"Another process went on with the run at record {kept}." in report.remarks


async def resumed_once(run: RunFolder, *, goes_on: bool) -> None:
    agent = await CoagAgent.resume(run.path)
    if goes_on and agent.in_turn:
        await say(agent)
    elif goes_on:
        await say(agent, *SAID[agent.turn : agent.turn + 1])
    await agent.close()
    info = json.loads(run.info_path.read_text())
    run.info_path.write_text(json.dumps({**info, "ended_at": None, "seal": None}))


def cut(run: RunFolder, kept: int, *, torn: bool) -> None:
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    half = lines[kept][: len(lines[kept]) // 2] if torn else b""
    run.trace_path.write_bytes(b"".join(lines[:kept]) + half)


@pytest.mark.broken_trace("it breaks runs off")
async def test_a_run_is_replayed_that_was_resumed_again_and_again(tmp_path: Path) -> None:
    whole = await whole_run(tmp_path / "whole", "compact")
    for kept, torn in ((0, True), (1, False), (9, True), (17, False), (length(whole), False)):
        run = broken_off(whole, kept, torn and kept < length(whole), tmp_path / str(kept))
        await resumed_once(run, goes_on=False)
        await resumed_once(run, goes_on=False)  # right after a resume
        await resumed_once(run, goes_on=True)
        cut(run, length(run) - 2, torn=True)
        await resumed_once(run, goes_on=True)
        report = await replay(run)
        assert report.divergence is None, f"broken off after {kept}: {report.divergence}"


@pytest.mark.broken_trace("it breaks a run off and changes what came after")
async def test_a_difference_after_a_break_is_found(tmp_path: Path) -> None:
    run = await whole_run(tmp_path / "whole", "compact")
    broken = await gone_on(broken_off(run, 20, False, tmp_path / "broken"))
    lines = [json.loads(line) for line in broken.trace_path.read_text().splitlines()]
    place = max(n for n, line in enumerate(lines) if line["body"].get("phase") == "selection")
    lines[place]["body"]["reason"] = "Because."
    broken.trace_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = await replay(broken)
    assert report.divergence is not None
    assert (report.divergence.seq, report.divergence.field) == (place, "reason")
