"""An agent with awareness: its whole turn, its trace, and going on elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.archivists import ANSWER, TASK, archivist
from kits.brains import brain, respond

from coag import CoagAgent
from coag.awareness import Awareness, AwarenessState, PerceptAdapter, ToolAdapter
from coag.awareness import Observation as Seen
from coag.errors import ObservationError
from coag.proof import replay, verify
from coag.schema import (
    EvaluationOutcome,
    ExecutionOutcome,
    ModelCall,
    Note,
    Percept,
    Phase,
    RetrievalOutcome,
    Snapshot,
    SnapshotReason,
    Verdict,
)
from coag.tracing import RunFolder, read_trace


async def ask(agent: CoagAgent, *texts: str) -> str:
    messages = [TextMessage(content=text, source="user") for text in texts]
    said = await agent.on_messages(messages, CancellationToken())
    return said.chat_message.to_text()


def module_of(agent: CoagAgent) -> Awareness:
    (module,) = agent.arguments.modules
    assert isinstance(module, Awareness)
    return module


async def finished(logs: Path) -> tuple[CoagAgent, RunFolder]:
    agent = archivist(logs=str(logs))
    assert await ask(agent, TASK) == ANSWER
    run = agent.run_folder
    assert run is not None
    await agent.close()
    return agent, run


def calls(agent: CoagAgent, phase: Phase) -> list[str]:
    made = [one for one in agent.trace if isinstance(one, ModelCall) and one.phase is phase]
    return ["\n".join(str(message["content"]) for message in one.messages) for one in made]


# ---- a whole turn ----


async def test_the_situation_stands_in_the_prompts_that_deliberate_as_data() -> None:
    agent = archivist()
    await ask(agent, TASK)
    assert calls(agent, Phase.PROPOSAL)
    for phase in (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION):
        for prompt in calls(agent, phase):
            assert prompt.count('<data source="awareness" trust="') == 1
            assert "[explicit] Where is order 17? (p=0.8)" in prompt
    assert "order:17 (status=shipped)" in calls(agent, Phase.PROPOSAL)[-1]
    assert "jam: jam raised OSError: jammed" in calls(agent, Phase.REASONING)[-1]


async def test_what_is_forbidden_dies_of_the_constraint_and_is_never_run() -> None:
    agent = archivist()
    assert await ask(agent, TASK) == ANSWER
    pinned = [one.constraints for one in agent.trace if isinstance(one, RetrievalOutcome)]
    assert set(pinned) == {("awareness_can_i",)}
    judged = [one for one in agent.trace if isinstance(one, EvaluationOutcome)]
    died = judged[0].evaluations[0].died_of
    assert died == Verdict(
        allowed=False, constraint="awareness_can_i", reason="'delete file' is forbidden."
    )
    ran = [
        done.action
        for one in agent.trace
        if isinstance(one, ExecutionOutcome)
        for done in one.executed
    ]
    assert ran == ["jam", "look", "respond"]


async def test_the_answer_completes_the_goal_and_the_failure_stays_a_lesson() -> None:
    agent = archivist()
    await ask(agent, TASK)
    state = module_of(agent).state
    assert [(one.description, one.status.value) for one in state.goals.goals] == [
        (TASK, "completed")
    ]
    assert [one.action for one in state.self_model.failures] == ["jam"]
    assert [one.name for one in state.world.of_type("order")] == ["order:17"]


async def test_with_one_call_a_cycle_the_situation_stands_in_it() -> None:
    model = brain(respond())
    agent = CoagAgent("a", model, modules=[Awareness()], depth="compact", proposal="json")
    await ask(agent, "Greet me.")
    assert "[explicit] Greet me." in model.requests[0].text
    assert 'source="awareness" trust="user"' in model.requests[0].text


async def test_a_turn_that_ends_at_a_bound_leaves_the_goal_active() -> None:
    model = brain(("jam", "{}"))
    agent = CoagAgent(
        "a", model, tools=[_jam], modules=[Awareness()], proposal="json", max_tool_iterations=1
    )
    await ask(agent, "Open it.")
    goal = module_of(agent).goal
    assert goal is not None
    assert goal.description == "Open it."


async def _jam() -> str:
    """Fails."""
    raise OSError("jammed")


# ---- the trace ----


async def test_the_run_obeys_its_cycle_and_comes_out_the_same_without_its_world(
    tmp_path: Path,
) -> None:
    _, run = await finished(tmp_path)
    assert verify(run) == []
    report = await replay(run, agent=archivist)
    assert report.divergence is None, ascii(report.divergence)


async def test_every_snapshot_tells_the_state_at_its_cycles_start(tmp_path: Path) -> None:
    _, run = await finished(tmp_path)
    states = [state for _, state in _kept_states(run)]
    steps = [AwarenessState.model_validate(one["state"]).step for one in states]
    assert steps == sorted(steps)
    assert len(states) == 4


# ---- going on ----


async def test_a_saved_agent_goes_on_elsewhere_with_the_same_state_and_injection() -> None:
    first, second = archivist(), archivist()
    await ask(first, TASK)
    saved = json.loads(json.dumps(await first.save_state()))
    await second.load_state(saved)
    one, other = module_of(first), module_of(second)
    assert other.state == one.state
    assert json.loads(json.dumps(await second.save_state())) == saved
    await ask(first, TASK)
    await ask(second, TASK)
    assert _told(calls(second, Phase.REASONING)[0]) == _told(calls(first, Phase.REASONING)[-1])


async def test_a_resumed_agent_stands_where_the_run_stood_whatever_was_cut_off(
    tmp_path: Path,
) -> None:
    agent, run = await finished(tmp_path / "whole")
    for kept, state in [*_kept_states(run), (None, module_of(agent).save_state())]:
        folder = tmp_path / f"cut-{kept}" / run.path.name
        shutil.copytree(run.path, folder, ignore=shutil.ignore_patterns("cycles"))
        lines = run.trace_path.read_bytes().splitlines(keepends=True)
        (folder / "trace.jsonl").write_bytes(b"".join(lines[:kept]))
        resumed = await CoagAgent.resume(folder)
        assert json.loads(json.dumps(module_of(resumed).save_state())) == state
        assert await ask(resumed, *(() if resumed.in_turn else (TASK,))) == ANSWER
        assert verify(resumed.run_folder or run) == []
        await resumed.close()


def _kept_states(run: RunFolder) -> list[tuple[int, dict[str, Any]]]:
    """The module's state at the start of each cycle, and the lines of the trace before it."""
    return [
        (line, entry.body.modules["awareness"])
        for line, entry in enumerate(read_trace(run.trace_path))
        if isinstance(entry.body, Snapshot) and entry.body.reason is SnapshotReason.CYCLE
    ]


def _told(prompt: str) -> str:
    return prompt[prompt.index("<sagen>") : prompt.index("</sagen>")]


# ---- what goes wrong ----


class Illegible(PerceptAdapter):
    """A domain that can read nothing."""

    @property
    def domain_name(self) -> str:
        return "illegible"

    def define_entity_types(self) -> tuple[str, ...]:
        return ()

    def define_relationship_types(self) -> tuple[str, ...]:
        return ()

    def define_scan_patterns(self) -> tuple[()]:
        return ()

    def parse_percept(self, percept: Percept, state: AwarenessState) -> Seen:
        raise ObservationError("content", f"{percept.content!r} is illegible")


async def test_what_a_domain_cannot_read_is_noted_and_the_turn_goes_on() -> None:
    agent = CoagAgent("a", brain(respond()), modules=[Awareness(Illegible())], proposal="json")
    said = await agent.on_messages(
        [TextMessage(content="Greet me.", source="user")], CancellationToken()
    )
    assert said.chat_message.to_text() == "Done."
    assert said.chat_message.metadata["failed_modules"] == "awareness"
    notes = [one.text for one in agent.trace if isinstance(one, Note) and one.about == "module"]
    assert len(notes) == 1
    assert "'Greet me.' is illegible" in notes[0]
    goals = module_of(agent).state.goals.goals
    assert [one.status.value for one in goals] == ["completed"]


async def test_a_state_of_another_domain_is_refused_and_the_agent_stays_as_it_was() -> None:
    first = CoagAgent("a", brain(respond()), modules=[Awareness(Illegible())], proposal="json")
    second = CoagAgent("a", brain(respond()), modules=[Awareness(ToolAdapter())], proposal="json")
    await ask(second, "Greet me.")
    before = module_of(second).state
    with pytest.raises(Exception, match="domain 'illegible'"):
        await second.load_state(await first.save_state())
    assert module_of(second).state == before
