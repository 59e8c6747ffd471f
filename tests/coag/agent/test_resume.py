"""Going on after a crash, from every place where a run can break off."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.crews import foreman
from kits.porters import ANSWER, NOTE, RULE, SECOND, TASK, porter, scholar
from kits.ringers import ringer

from coag.agent import CoagAgent
from coag.context import AssistantState, WorkingMemory, dump_state, rebuild
from coag.errors import ResumeError, TraceError
from coag.memory import RuleChange
from coag.schema import (
    PHASES,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    Receipt,
    RetrievalOutcome,
    TraceRecord,
    Verdict,
)
from coag.tracing import read_run, read_trace

SAID = (TASK, "Well done.")


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that went through, to be cut off anywhere."""

    folder: Path
    lines: tuple[bytes, ...]


async def say(agent: CoagAgent, *texts: str) -> str:
    messages = [TextMessage(content=text, source="user") for text in texts]
    response = await agent.on_messages(messages, CancellationToken())
    assert isinstance(response.chat_message, TextMessage)
    return response.chat_message.content


async def finished_run(where: Path, **options: Any) -> Finished:
    """Two turns, the second of which needs no stone any more."""
    log = where.parent / f"{where.name}-calls.txt"
    agent = porter(log=str(log), logs=str(where / "logs"), **options)
    for text in SAID:
        assert await say(agent, text) == ANSWER
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    return Finished(folder.path, tuple(folder.trace_path.read_bytes().splitlines(keepends=True)))


def broken_off(
    run: Finished, kept: int, torn: int, where: Path, *, log: bool = True
) -> tuple[Path, Path]:
    """A copy of the run's folder whose trace ends after `kept` lines and `torn` bytes more.

    Its recipe keeps its calls in a file of its own, which it returns too.
    """
    folder, calls = where / run.folder.name, where / "calls.txt"
    shutil.copytree(run.folder, folder, ignore=shutil.ignore_patterns("cycles"))
    tail = run.lines[kept][:torn] if torn else b""
    (folder / "trace.jsonl").write_bytes(b"".join(run.lines[:kept]) + tail)
    info = json.loads((folder / "run.json").read_text())
    if log:
        info["recipe"]["arguments"]["log"] = str(calls)
    (folder / "run.json").write_text(json.dumps(info))
    return folder, calls


async def go_on(folder: Path) -> CoagAgent:
    """Goes on with what is left of both turns."""
    agent = await CoagAgent.resume(folder)
    if agent.in_turn:
        assert await say(agent) == ANSWER
    for text in SAID[agent.turn :]:
        assert await say(agent, text) == ANSWER
    return agent


def check_trace(folder: Path, before: list[TraceRecord], calls: list[str]) -> None:
    entries = list(read_trace(folder / "trace.jsonl"))
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    records = [entry.body for entry in entries]
    check_cycles(records)
    check_ids(records)
    check_effects(records, before, calls)
    turns = [r.turn for r in records if r.record == "turn_start"]
    assert sorted(set(turns)) == [1, 2]
    start = WorkingMemory(activity="main", perceptual_state=dump_state(AssistantState()))
    memory = rebuild(start, records)
    assert not memory.queued
    assert not memory.in_cycle


def check_cycles(records: list[TraceRecord]) -> None:
    cycles: dict[int, list[Phase]] = {}
    for record in records:
        if record.record == "outcome":
            cycles.setdefault(record.cycle, []).append(record.phase)
    assert sorted(cycles) == list(range(1, len(cycles) + 1))
    assert all(tuple(phases) == PHASES for phases in cycles.values())


def check_ids(records: list[TraceRecord]) -> None:
    assert [name for name, count in Counter(ids_in(records)).items() if count > 1] == []


def ids_in(records: list[TraceRecord]) -> Iterator[str]:
    for record in records:
        match record:
            case Percept() | ModelCall() | Intent():
                yield record.id
            case ProposalOutcome():
                yield from (candidate.id for candidate in record.candidates)
            case _:
                pass


def check_effects(records: list[TraceRecord], before: list[TraceRecord], calls: list[str]) -> None:
    """No action that was begun is begun again; the agent is told of those without a receipt."""
    begun = {r.id for r in before if r.record == "intent"}
    assert begun.isdisjoint(calls)
    assert len(set(calls)) == len(calls)
    answered = {r.intent_id for r in before if r.record == "receipt"}
    settled = {
        r.intent_id for r in before if isinstance(r, ExecutionOutcome) and r.intent_id is not None
    }
    unknown = [
        r.caused_by
        for r in records
        if isinstance(r, Percept) and r.kind is PerceptKind.UNKNOWN_OUTCOME
    ]
    assert unknown == sorted(begun - answered - settled)


async def check_every_break(run: Finished, where: Path, *, torn: bool) -> None:
    whole = [entry.body for entry in read_trace(run.folder / "trace.jsonl")]
    for kept in range(len(run.lines) + (0 if torn else 1)):
        half = len(run.lines[kept]) // 2 if torn else 0
        folder, log = broken_off(run, kept, half, where / str(kept))
        agent = await go_on(folder)
        heard = [said.content for said in agent.context.working_memory.dialogue]
        assert heard == [SAID[0], ANSWER, SAID[1], ANSWER], f"broken off after {kept} records"
        assert await remembered(agent) == [NOTE]
        await agent.close()
        calls = log.read_text().split() if log.exists() else []
        check_trace(folder, whole[:kept], calls)


async def remembered(agent: CoagAgent) -> list[str]:
    memory = agent.long_term_memory
    return [hit.record.text for hit in (await memory.recall("stones", min_score=0.0)).records]


@pytest.mark.parametrize(
    ("depth", "torn"),
    [
        ("full", True),
        ("compact", False),
        pytest.param("full", False, marks=pytest.mark.long),
        pytest.param("compact", True, marks=pytest.mark.long),
    ],
)
async def test_a_run_can_be_gone_on_with_from_every_record(
    depth: str, torn: bool, tmp_path: Path
) -> None:
    run = await finished_run(tmp_path / "whole", depth=depth)
    await check_every_break(run, tmp_path / "broken", torn=torn)


async def test_memory_on_a_disk_is_as_it_was_left(tmp_path: Path) -> None:
    run = await finished_run(tmp_path / "whole", memory=str(tmp_path / "memory"))
    kept = next(n for n, line in enumerate(run.lines) if b'"written"' in line) + 1
    folder, _ = broken_off(run, kept, 0, tmp_path / "broken")
    agent = await go_on(folder)
    assert await remembered(agent) == [NOTE]
    await agent.close()


async def test_a_run_that_breaks_off_twice_can_be_gone_on_with(tmp_path: Path) -> None:
    run = await finished_run(tmp_path / "whole")
    intents = [n for n, line in enumerate(run.lines) if b'"record":"intent"' in line]
    folder, log = broken_off(run, intents[0] + 1, 0, tmp_path / "broken")
    before = [entry.body for entry in read_trace(folder / "trace.jsonl")]
    await (await CoagAgent.resume(folder)).close()
    agent = await go_on(folder)
    await agent.close()
    check_trace(folder, before, log.read_text().split())


async def test_a_run_without_a_trace_yet_starts_anew(tmp_path: Path) -> None:
    run = await finished_run(tmp_path / "whole")
    folder, log = broken_off(run, 0, 0, tmp_path / "broken")
    (folder / "trace.jsonl").unlink()
    agent = await go_on(folder)
    await agent.close()
    check_trace(folder, [], log.read_text().split())


async def test_rules_that_were_in_ram_only_are_given_back(tmp_path: Path) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    await say(agent, TASK)
    change = RuleChange(operation="add", rule="Lift with your knees.")
    agent.procedures.change_rule("reasoning", change, author="test", reason="Backs.")
    await say(agent, "Well done.")
    assert agent.run_folder is not None
    await agent.close()
    again = await CoagAgent.resume(agent.run_folder.path)
    assert "Lift with your knees." in again.procedures.get("reasoning").text
    assert not again.in_turn
    await again.close()


async def test_what_was_learned_in_ram_is_given_back_from_every_record(tmp_path: Path) -> None:
    agent = scholar(logs=str(tmp_path / "logs"))
    assert await say(agent, TASK) == ANSWER
    assert agent.run_folder is not None
    await agent.close()
    lines = tuple(agent.run_folder.trace_path.read_bytes().splitlines(keepends=True))
    run = Finished(agent.run_folder.path, lines)
    for kept in range(3, len(lines) + 1):
        folder, _ = broken_off(run, kept, 0, tmp_path / str(kept), log=False)
        again = await CoagAgent.resume(folder)
        if again.in_turn:
            assert await say(again) == ANSWER
        recall = await again.long_term_memory.recall("granite", min_score=0.0)
        assert [hit.record.text for hit in recall.records] == [SECOND], f"after {kept} records"
        assert again.procedures.get("deliberation").version == 2
        assert RULE in again.procedures.get("deliberation").text
        await again.close()


async def test_a_loaded_state_is_part_of_the_run(tmp_path: Path) -> None:
    first = porter(log=str(tmp_path / "first.txt"))
    await say(first, TASK)
    second = porter(log=str(tmp_path / "second.txt"), logs=str(tmp_path / "logs"))
    await second.load_state(await first.save_state())
    await say(second, "Well done.")
    assert second.run_folder is not None
    lines = second.run_folder.trace_path.read_bytes().splitlines(keepends=True)
    await second.close()
    second.run_folder.trace_path.write_bytes(b"".join(lines[:3]))
    again = await CoagAgent.resume(second.run_folder.path)
    assert again.context.working_memory.dialogue[0].content == TASK
    await say(again)
    assert not (tmp_path / "second.txt").exists()
    await again.close()


async def test_a_reset_ends_the_run_and_the_next_turn_begins_another(tmp_path: Path) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    await say(agent, TASK)
    first = agent.run_folder
    await agent.on_reset(CancellationToken())
    await say(agent, TASK)
    second = agent.run_folder
    await agent.close()
    assert first is not None
    assert second is not None
    assert first.path != second.path
    assert read_run(first.path).ended_at is not None
    cycles = [record.cycle for record in agent.trace if isinstance(record, RetrievalOutcome)]
    assert cycles[0] == 1


# ---- runs that cannot be gone on with ----


async def run_with(tmp_path: Path, recipe: Mapping[str, Any] | None) -> Path:
    run = await finished_run(tmp_path / "whole")
    info = json.loads((run.folder / "run.json").read_text())
    (run.folder / "run.json").write_text(json.dumps({**info, "recipe": recipe}))
    return run.folder


@pytest.mark.broken_trace("it edits run.json")
async def test_a_run_without_a_recipe_says_how_to_give_one(tmp_path: Path) -> None:
    folder = await run_with(tmp_path, None)
    with pytest.raises(ResumeError, match=r"has no recipe.*Give recipe=Recipe\("):
        await CoagAgent.resume(folder)


@pytest.mark.parametrize("factory", ["kits.nowhere:porter", "kits.porters:nobody"])
@pytest.mark.broken_trace("it edits run.json")
async def test_a_factory_that_is_gone_is_named(factory: str, tmp_path: Path) -> None:
    folder = await run_with(tmp_path, {"factory": factory, "arguments": {}})
    with pytest.raises(ResumeError, match=f"'{factory}', which cannot be imported"):
        await CoagAgent.resume(folder)


@pytest.mark.broken_trace("it edits run.json")
async def test_a_factory_of_pythons_own_is_refused(tmp_path: Path) -> None:
    folder = await run_with(tmp_path, {"factory": "os:system", "arguments": {"command": "false"}})
    with pytest.raises(ResumeError, match="Python's own"):
        await CoagAgent.resume(folder)


@pytest.mark.broken_trace("it edits run.json")
async def test_a_recipe_that_lost_a_secret_is_not_built(tmp_path: Path) -> None:
    arguments = {"log": "x", "keys": ["[redacted]"]}
    folder = await run_with(tmp_path, {"factory": "kits.porters:porter", "arguments": arguments})
    with pytest.raises(ResumeError, match="held a secret in its argument 'keys'"):
        await CoagAgent.resume(folder)


@pytest.mark.broken_trace("it edits run.json")
async def test_a_factory_that_makes_something_else_is_refused(tmp_path: Path) -> None:
    folder = await run_with(tmp_path, {"factory": "kits.porters:no_agent", "arguments": {}})
    with pytest.raises(ResumeError, match="makes a str, not a CoagAgent"):
        await CoagAgent.resume(folder)


async def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"holds no run\.json"):
        await CoagAgent.resume(tmp_path)


async def test_a_run_that_still_goes_on_is_not_taken_over(tmp_path: Path) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    await say(agent, TASK)
    assert agent.run_folder is not None
    with pytest.raises(TraceError, match="another writer holds it"):
        await CoagAgent.resume(agent.run_folder.path)
    await agent.close()


def never_twice(candidate: Any, state: Any, projection: Any) -> Verdict:
    """A rule that the recipe does not make."""
    return Verdict.allow()


async def test_an_agent_without_a_rule_of_the_run_is_refused_and_the_rule_named(
    tmp_path: Path,
) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    agent.constraints.add(never_twice)
    await say(agent, TASK)
    await agent.close()
    folder = agent.run_folder
    assert folder is not None
    with pytest.raises(ResumeError, match="does not make 'never_twice'"):
        await CoagAgent.resume(folder)


# ---- Going on after a crash in the middle of several tool calls at once ----


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


# ---- Going on after a crash around an action of a module ----


async def ask(agent: CoagAgent, *texts: str) -> str:
    messages = [TextMessage(content=text, source="user") for text in texts]
    response = await agent.on_messages(messages, CancellationToken())
    return response.chat_message.to_text()


async def gone_on(whole: Path, kept: int, where: Path) -> tuple[CoagAgent, Path]:
    """The agent of a run that broke off after `kept` lines, and the file of its new rings."""
    folder, log = where / whole.name, where / "again.txt"
    shutil.copytree(whole, folder, ignore=shutil.ignore_patterns("cycles"))
    lines = (whole / "trace.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "trace.jsonl").write_bytes(b"".join(lines[:kept]))
    info = json.loads((folder / "run.json").read_text())
    info["recipe"]["arguments"]["log"] = str(log)
    (folder / "run.json").write_text(json.dumps(info))
    agent = await CoagAgent.resume(folder)
    assert await ask(agent, *(() if agent.in_turn else ("Ring.",))) == "Done."
    await agent.close()
    return agent, log


async def test_a_modules_action_that_was_begun_is_never_run_again(tmp_path: Path) -> None:
    log = tmp_path / "rings.txt"
    agent = ringer(log=str(log), logs=str(tmp_path / "logs"))
    assert await ask(agent, "Ring.") == "Done."
    assert agent.run_folder is not None
    whole = agent.run_folder.path
    await agent.close()
    records = [entry.body for entry in read_trace(whole / "trace.jsonl")]
    begun = next(n for n, record in enumerate(records) if isinstance(record, Intent))
    ended = next(n for n, record in enumerate(records) if isinstance(record, Receipt))
    assert len(log.read_text().split()) == 1
    for kept in range(2, len(records)):
        resumed, again = await gone_on(whole, kept, tmp_path / f"cut-{kept}")
        assert again.exists() is (kept <= begun)
        seen = [record for record in resumed.trace if isinstance(record, Percept)]
        unknown = [one for one in seen if one.kind is PerceptKind.UNKNOWN_OUTCOME]
        assert len(unknown) == (begun < kept <= ended)
        assert not any(one.kind is PerceptKind.TOOL_RETURN for one in seen)
        done = [one for one in resumed.trace if isinstance(one, ExecutionOutcome)]
        assert all(one.internal and one.intent_id is None for one in done)
