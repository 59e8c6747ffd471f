"""Going on after a crash, from every place where a run can break off."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken
from kits.crews import foreman
from kits.porters import ANSWER, NOTE, RULE, SECOND, TASK, porter, scholar
from kits.ringers import ringer
from kits.turns import say

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


async def say_nothing(agent: CoagAgent) -> str:
    response = await agent.on_messages([], CancellationToken())
    return response.chat_message.to_text()


def records_of(folder: Path) -> list[TraceRecord]:
    entries = list(read_trace(folder / "trace.jsonl"))
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    return [entry.body for entry in entries]


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that went through, to be cut off anywhere."""

    folder: Path

    @property
    def lines(self) -> list[bytes]:
        return (self.folder / "trace.jsonl").read_bytes().splitlines(keepends=True)

    def cut_off(
        self, count: int, where: Path, *, torn: bool = False, log: bool = True
    ) -> tuple[Path, Path]:
        """A copy of the folder whose trace ends after `count` lines, and half of one more.

        Its recipe keeps its calls in a file of its own, which it returns too.
        """
        folder, calls = where / self.folder.name, where / "calls.txt"
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("cycles"))
        tail = self.lines[count][: len(self.lines[count]) // 2] if torn else b""
        (folder / "trace.jsonl").write_bytes(b"".join(self.lines[:count]) + tail)
        info = json.loads((folder / "run.json").read_text())
        if log:
            info["recipe"]["arguments"]["log"] = str(calls)
        (folder / "run.json").write_text(json.dumps(info))
        return folder, calls

    def before(self, word: bytes) -> int:
        """The number of lines before the first one with this word."""
        return next(n for n, line in enumerate(self.lines) if word in line)


async def finished(agent: CoagAgent, *texts: str, answer: str = ANSWER) -> Finished:
    for text in texts:
        assert await say(agent, text) == answer
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    return Finished(folder.path)


async def carried(where: Path, **options: Any) -> Finished:
    """Two turns, the second of which needs no stone any more."""
    calls = str(where.parent / f"{where.name}-calls.txt")
    return await finished(porter(log=calls, logs=str(where / "logs"), **options), *SAID)


async def go_on(folder: Path, texts: Sequence[str] = SAID, answer: str = ANSWER) -> CoagAgent:
    """Continues with the turns that are left."""
    agent = await CoagAgent.resume(folder)
    if agent.in_turn:
        assert await say_nothing(agent) == answer
    for text in texts[agent.turn :]:
        assert await say(agent, text) == answer
    return agent


async def remembered(agent: CoagAgent, query: str = "stones") -> list[str]:
    recall = await agent.long_term_memory.recall(query, min_score=0.0)
    return [hit.record.text for hit in recall.records]


def check_cycles(records: list[TraceRecord]) -> None:
    cycles: dict[int, list[Phase]] = {}
    for record in records:
        if record.record == "outcome":
            cycles.setdefault(record.cycle, []).append(record.phase)
    assert sorted(cycles) == list(range(1, len(cycles) + 1))
    assert all(tuple(phases) == PHASES for phases in cycles.values())


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
    """No action that was begun is begun again; the agent learns which have no receipt."""
    begun = {r.id for r in before if isinstance(r, Intent)}
    assert begun.isdisjoint(calls)
    assert len(set(calls)) == len(calls)
    answered = {r.intent_id for r in before if isinstance(r, Receipt)}
    outcomes = [r for r in before if isinstance(r, ExecutionOutcome)]
    settled = {done.intent_id for outcome in outcomes for done in outcome.executed}
    percepts = [r for r in records if isinstance(r, Percept) and r.caused_by is not None]
    unknown = [str(r.caused_by) for r in percepts if r.kind is PerceptKind.UNKNOWN_OUTCOME]
    assert sorted(unknown) == sorted(begun - answered - settled)
    known = [str(r.caused_by) for r in percepts if r.kind is not PerceptKind.SETTLED]
    assert sorted(known) == sorted({*begun, *calls})


def check_run(folder: Path, before: list[TraceRecord], log: Path) -> None:
    """What is left of a run that was gone on with."""
    records = records_of(folder)
    check_cycles(records)
    assert [name for name, count in Counter(ids_in(records)).items() if count > 1] == []
    check_effects(records, before, log.read_text().split() if log.exists() else [])


def check_turns(folder: Path) -> None:
    """Both turns were begun and ended."""
    records = records_of(folder)
    assert {r.turn for r in records if r.record == "turn_start"} == {1, 2}
    start = WorkingMemory(activity="main", perceptual_state=dump_state(AssistantState()))
    memory = rebuild(start, records)
    assert not memory.queued
    assert not memory.in_cycle


every_depth = pytest.mark.parametrize(
    ("depth", "torn"),
    [
        ("full", True),
        ("compact", False),
        pytest.param("full", False, marks=pytest.mark.long),
        pytest.param("compact", True, marks=pytest.mark.long),
    ],
)


@every_depth
async def test_a_run_can_be_resumed_from_every_record(
    depth: str, torn: bool, tmp_path: Path
) -> None:
    run = await carried(tmp_path / "whole", depth=depth)
    records = records_of(run.folder)
    for count in range(len(records) + (not torn)):
        folder, log = run.cut_off(count, tmp_path / str(count), torn=torn)
        agent = await go_on(folder)
        dialogue = [one.content for one in agent.context.working_memory.dialogue]
        assert dialogue == [SAID[0], ANSWER, SAID[1], ANSWER], f"cut off after {count} records"
        assert await remembered(agent) == [NOTE]
        await agent.close()
        check_run(folder, records[:count], log)
        check_turns(folder)


@every_depth
async def test_a_batch_can_be_resumed_from_every_record(
    depth: Any, torn: bool, tmp_path: Path
) -> None:
    calls = tmp_path / "whole.txt"
    agent = foreman(log=str(calls), logs=str(tmp_path / "logs"), depth=depth)
    run = await finished(agent, TASK)
    assert len(calls.read_text().split()) == 2
    records = records_of(run.folder)
    for count in range(len(records) + (not torn)):
        folder, log = run.cut_off(count, tmp_path / str(count), torn=torn)
        agent = await go_on(folder, [TASK])
        dialogue = [one.content for one in agent.context.working_memory.dialogue]
        assert dialogue == [TASK, ANSWER], f"cut off after {count} records"
        assert await remembered(agent) == [NOTE]
        await agent.close()
        check_run(folder, records[:count], log)


async def test_a_modules_action_that_was_begun_is_never_run_again(tmp_path: Path) -> None:
    log = tmp_path / "rings.txt"
    run = await finished(ringer(log=str(log), logs=str(tmp_path / "logs")), "Ring.", answer="Done.")
    assert len(log.read_text().split()) == 1
    begun, ended = run.before(b'"record":"intent"'), run.before(b'"record":"receipt"')
    for count in range(2, len(run.lines)):
        folder, again = run.cut_off(count, tmp_path / f"cut-{count}")
        agent = await go_on(folder, ["Ring."], "Done.")
        await agent.close()
        assert again.exists() is (count <= begun)
        seen = [record for record in agent.trace if isinstance(record, Percept)]
        unknown = [one for one in seen if one.kind is PerceptKind.UNKNOWN_OUTCOME]
        assert len(unknown) == (begun < count <= ended)
        assert not any(one.kind is PerceptKind.TOOL_RETURN for one in seen)
        done = [one for one in agent.trace if isinstance(one, ExecutionOutcome)]
        assert all(one.internal and one.intent_id is None for one in done)


async def test_memory_in_ram_is_restored_from_every_record(tmp_path: Path) -> None:
    run = await finished(scholar(logs=str(tmp_path / "logs")), TASK)
    for count in range(3, len(run.lines) + 1):
        folder, _ = run.cut_off(count, tmp_path / str(count), log=False)
        agent = await go_on(folder, [TASK])
        assert await remembered(agent, "granite") == [SECOND], f"after {count} records"
        assert agent.procedures.get("deliberation").version == 2
        assert RULE in agent.procedures.get("deliberation").text
        await agent.close()


async def test_memory_on_a_disk_is_as_it_was_left(tmp_path: Path) -> None:
    run = await carried(tmp_path / "whole", memory=str(tmp_path / "memory"))
    folder, _ = run.cut_off(run.before(b'"written"') + 1, tmp_path / "broken")
    agent = await go_on(folder)
    assert await remembered(agent) == [NOTE]
    await agent.close()


async def test_a_run_that_was_interrupted_twice_can_be_resumed(tmp_path: Path) -> None:
    run = await carried(tmp_path / "whole")
    folder, log = run.cut_off(run.before(b'"record":"intent"') + 1, tmp_path / "broken")
    before = records_of(folder)
    await (await CoagAgent.resume(folder)).close()
    await (await go_on(folder)).close()
    check_run(folder, before, log)


async def test_a_run_without_a_trace_yet_starts_from_the_beginning(tmp_path: Path) -> None:
    run = await carried(tmp_path / "whole")
    folder, log = run.cut_off(0, tmp_path / "broken")
    (folder / "trace.jsonl").unlink()
    await (await go_on(folder)).close()
    check_run(folder, [], log)


async def test_rules_that_were_in_ram_only_are_given_back(tmp_path: Path) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    await say(agent, TASK)
    change = RuleChange(operation="add", rule="Lift with your knees.")
    agent.procedures.change_rule("reasoning", change, author="test", reason="Backs.")
    run = await finished(agent, "Well done.")
    again = await CoagAgent.resume(run.folder)
    assert "Lift with your knees." in again.procedures.get("reasoning").text
    assert not again.in_turn
    await again.close()


async def test_a_loaded_state_is_part_of_the_run(tmp_path: Path) -> None:
    first = porter(log=str(tmp_path / "first.txt"))
    await say(first, TASK)
    second = porter(log=str(tmp_path / "second.txt"), logs=str(tmp_path / "logs"))
    await second.load_state(await first.save_state())
    run = await finished(second, "Well done.")
    (run.folder / "trace.jsonl").write_bytes(b"".join(run.lines[:3]))
    again = await CoagAgent.resume(run.folder)
    assert again.context.working_memory.dialogue[0].content == TASK
    await say_nothing(again)
    assert not (tmp_path / "second.txt").exists()
    await again.close()


async def test_a_reset_ends_the_run_and_the_next_turn_begins_another(tmp_path: Path) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    await say(agent, TASK)
    first = agent.run_folder
    await agent.on_reset(CancellationToken())
    second = await finished(agent, TASK)
    assert first is not None
    assert first.path != second.folder
    assert read_run(first.path).ended_at is not None
    cycles = [record.cycle for record in agent.trace if isinstance(record, RetrievalOutcome)]
    assert cycles[0] == 1


# ---- runs that cannot be gone on with ----


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (None, r"has no recipe.*Give recipe=Recipe\("),
        ({"factory": "kits.nowhere:porter"}, "'kits.nowhere:porter', which cannot be imported"),
        ({"factory": "kits.porters:nobody"}, "'kits.porters:nobody', which cannot be imported"),
        ({"factory": "os:system", "arguments": {"command": "false"}}, "Python's own"),
        (
            {"factory": "kits.porters:porter", "arguments": {"keys": ["[redacted]"]}},
            "held a secret in its argument 'keys'",
        ),
        ({"factory": "kits.porters:no_agent"}, "makes a str, not a CoagAgent"),
        ({"factory": "kits.porters:porter", "arguments": {"unheard": "of"}}, "does not fit"),
        ({"factory": "__main__:porter"}, "Name the factory by its script's file name"),
    ],
)
@pytest.mark.broken_trace("it edits run.json")
async def test_a_run_whose_recipe_makes_no_agent_says_why_and_lets_go_of_the_trace(
    tmp_path: Path, recipe: Any, message: str
) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    run = await finished(agent, TASK)
    info = json.loads((run.folder / "run.json").read_text())
    info["recipe"] = None if recipe is None else dict[str, Any]({"arguments": {}, **recipe})
    (run.folder / "run.json").write_text(json.dumps(info))
    for _ in range(2):
        with pytest.raises(ResumeError, match=message):
            await CoagAgent.resume(run.folder)


async def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"holds no run\.json"):
        await CoagAgent.resume(tmp_path)


def never_twice(candidate: Any, state: Any, projection: Any) -> Verdict:
    """A rule that the recipe does not make."""
    return Verdict.allow()


async def test_a_run_in_progress_is_not_taken_over_nor_one_whose_rules_are_missing(
    tmp_path: Path,
) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    agent.constraints.add(never_twice)
    await say(agent, TASK)
    assert agent.run_folder is not None
    with pytest.raises(TraceError, match="another writer holds it"):
        await CoagAgent.resume(agent.run_folder.path)
    run = await finished(agent)
    before = run.lines
    with pytest.raises(ResumeError, match="does not make 'never_twice'"):
        await CoagAgent.resume(run.folder)
    assert not any(isinstance(record, Intent) for record in records_of(run.folder)[len(before) :])
