"""An agent with awareness: its whole turn, its trace, and going on elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.archivists import ANSWER, TASK, archivist
from kits.brains import brain, respond
from kits.happenings import asked
from kits.shelves import FailingShelf, shelf

from coag import CoagAgent
from coag.awareness import (
    Awareness,
    AwarenessSettings,
    AwarenessState,
    DecaySettings,
    DynamicsSettings,
    EngineSettings,
    PerceptAdapter,
    Resource,
    RulePerception,
    SelfModel,
    ToolAdapter,
    heard_by,
)
from coag.awareness import Observation as Seen
from coag.awareness.module import fields_of
from coag.errors import ConfigurationError, ObservationError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.proof import replay, verify
from coag.schema import (
    EvaluationOutcome,
    ExecutionOutcome,
    Note,
    Percept,
    RetrievalOutcome,
    Snapshot,
    SnapshotReason,
    Verdict,
)
from coag.store import HashEmbedder
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


# ---- a whole turn ----


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


# ---- going on ----


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


async def test_an_agent_that_is_reset_stands_nowhere_and_serves_the_next_request_alone() -> None:
    agent = CoagAgent(
        "a",
        brain(("jam", "{}"), respond()),
        tools=[_jam],
        modules=[Awareness()],
        proposal="json",
        max_tool_iterations=1,
    )
    await ask(agent, "Open it.")
    await agent.on_reset(CancellationToken())
    assert module_of(agent).goal is None
    assert module_of(agent).state.step == 0
    await ask(agent, "Greet me.")
    goals = module_of(agent).state.goals.goals
    assert [one.description for one in goals] == ["Greet me."]


# ---- with an archive ----


async def test_an_archive_that_fails_is_noted_and_the_turn_goes_on() -> None:
    tight = AwarenessSettings(kept_goals=1)
    module = Awareness(settings=tight, archive=FailingShelf())
    agent = CoagAgent("a", brain(respond()), modules=[module], proposal="json")
    said = await agent.on_messages(
        [TextMessage(content="Greet me.", source="user")], CancellationToken()
    )
    assert said.chat_message.to_text() == "Done."
    assert said.chat_message.metadata["failed_modules"] == "awareness"
    (note, *_) = [one.text for one in agent.trace if isinstance(one, Note)]
    assert "the shelf is locked" in note
    assert [one.status.value for one in module.state.goals.goals] == ["completed"]


# ---- as a component ----


def again(agent: CoagAgent) -> CoagAgent:
    dumped = json.loads(agent.dump_component().model_dump_json())
    loaded = CoagAgent.load_component(dumped)
    assert loaded.dump_component() == agent.dump_component()
    return loaded


def silent(request: ScriptedRequest) -> ScriptedReply:
    raise AssertionError(f"Nobody asks: {request.text}")


def read(percept: Percept, state: AwarenessState) -> Mapping[str, object]:
    return fields_of(percept)


def with_module(module: Awareness) -> CoagAgent:
    return CoagAgent("a", ScriptedModel(silent), modules=[module])


async def test_an_agent_with_awareness_is_a_component_of_the_domain_and_not_the_state() -> None:
    module = Awareness(
        ToolAdapter(entities={"order_id": "order"}),
        budget=77,
        self_model=SelfModel(
            forbidden=("delete file",),
            resources=(Resource(name="battery", capacity=9, remaining=4),),
        ),
        settings=AwarenessSettings(engine=EngineSettings(loose_types=frozenset("abcdefgh"))),
        dynamics=DynamicsSettings(decay=DecaySettings()),
        reads=read,
        name="situation",
    )
    await module.observe(asked("Find it."))
    loaded = module_of(again(with_module(module)))
    assert loaded.to_arguments() == module.to_arguments()
    assert loaded.state.step == 0
    assert loaded.name == "situation"
    assert not loaded.can_i("delete_file").yes
    assert loaded.state.self_model.resources == module.state.self_model.resources


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"archive": shelf()}, "modules=: archive= of Awareness: A RecordArchive .* by a recipe"),
        ({"reads": heard_by(RulePerception())}, "modules=: reads= of Awareness: .*made within"),
        ({"embedder": HashEmbedder()}, "modules=: embedder= of Awareness: .* by a recipe"),
    ],
)
def test_what_cannot_be_had_again_is_refused_with_what_to_do(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        with_module(Awareness(**given)).dump_component()


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
