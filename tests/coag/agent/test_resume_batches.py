"""Going on after a crash in the middle of several tool calls at once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.crews import foreman
from kits.porters import ANSWER, NOTE, TASK

from coag.agent import CoagAgent
from coag.schema import PHASES, ExecutionOutcome, Percept, PerceptKind, Phase, TraceRecord
from coag.tracing import read_trace


async def hear(agent: CoagAgent, *texts: str) -> str:
    messages = [TextMessage(content=text, source="user") for text in texts]
    response = await agent.on_messages(messages, CancellationToken())
    return response.chat_message.to_text()


async def whole_run(where: Path, depth: str) -> Path:
    log = where / "whole.txt"
    agent = foreman(log=str(log), logs=str(where / "logs"), depth=depth)  # pyright: ignore[reportArgumentType] - one of the two
    assert await hear(agent, TASK) == ANSWER
    assert agent.run_folder is not None
    await agent.close()
    assert len(log.read_text().split()) == 2
    return agent.run_folder.path


def cut(whole: Path, lines: list[bytes], kept: int, torn: bool, where: Path) -> tuple[Path, Path]:
    folder, log = where / whole.name, where / "calls.txt"
    shutil.copytree(whole, folder, ignore=shutil.ignore_patterns("cycles"))
    tail = lines[kept][: len(lines[kept]) // 2] if torn else b""
    (folder / "trace.jsonl").write_bytes(b"".join(lines[:kept]) + tail)
    info = json.loads((folder / "run.json").read_text())
    info["recipe"]["arguments"]["log"] = str(log)
    (folder / "run.json").write_text(json.dumps(info))
    return folder, log


def check_cycles_are_whole(records: list[TraceRecord]) -> None:
    cycles: dict[int, list[Phase]] = {}
    for record in records:
        if record.record == "outcome":
            cycles.setdefault(record.cycle, []).append(record.phase)
    assert all(tuple(phases) == PHASES for phases in cycles.values())


def check_nothing_is_done_twice(
    records: list[TraceRecord], before: list[TraceRecord], calls: list[str]
) -> None:
    begun = {r.id for r in before if r.record == "intent"}
    answered = {r.intent_id for r in before if r.record == "receipt"}
    outcomes = [r for r in before if isinstance(r, ExecutionOutcome)]
    settled = {done.intent_id for outcome in outcomes for done in outcome.executed}
    assert begun.isdisjoint(calls)
    assert len(set(calls)) == len(calls)
    unknown = [
        r.caused_by
        for r in records
        if isinstance(r, Percept) and r.kind is PerceptKind.UNKNOWN_OUTCOME
    ]
    assert sorted(map(str, unknown)) == sorted(map(str, begun - answered - settled))
    told = [
        r.caused_by
        for r in records
        if isinstance(r, Percept) and r.caused_by is not None and r.kind is not PerceptKind.SETTLED
    ]
    assert sorted(told) == sorted({*begun, *calls})


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("depth", ["full", "compact"])
async def test_a_batch_can_be_gone_on_with_from_every_record(
    depth: str, torn: bool, tmp_path: Path
) -> None:
    whole = await whole_run(tmp_path, depth)
    lines = (whole / "trace.jsonl").read_bytes().splitlines(keepends=True)
    before = [entry.body for entry in read_trace(whole / "trace.jsonl")]
    for kept in range(len(lines) + (0 if torn else 1)):
        folder, log = cut(whole, lines, kept, torn, tmp_path / str(kept))
        agent = await CoagAgent.resume(folder)
        if agent.in_turn:
            assert await hear(agent) == ANSWER, f"broken off after {kept} records"
        elif agent.turn == 0:
            assert await hear(agent, TASK) == ANSWER
        said = [one.content for one in agent.context.working_memory.dialogue]
        assert said == [TASK, ANSWER]
        found = await agent.long_term_memory.recall("stones", min_score=0.0)
        assert [hit.record.text for hit in found.records] == [NOTE]
        await agent.close()
        records = [entry.body for entry in read_trace(folder / "trace.jsonl")]
        check_cycles_are_whole(records)
        calls = log.read_text().split() if log.exists() else []
        check_nothing_is_done_twice(records, before[:kept], calls)


async def test_a_run_that_was_resumed_twice_in_a_batch_is_whole(tmp_path: Path) -> None:
    whole = await whole_run(tmp_path, "compact")
    lines = (whole / "trace.jsonl").read_bytes().splitlines(keepends=True)
    intents = [n for n, line in enumerate(lines) if b'"record":"intent"' in line]
    for kept in (intents[0] + 1, intents[1] + 1):
        folder, _ = cut(whole, lines, kept, False, tmp_path / str(kept))
        await (await CoagAgent.resume(folder)).close()
        agent = await CoagAgent.resume(folder)
        assert await hear(agent) == ANSWER
        await agent.close()
        check_cycles_are_whole([entry.body for entry in read_trace(folder / "trace.jsonl")])
