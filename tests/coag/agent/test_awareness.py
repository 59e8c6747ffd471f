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
    Note,
    Percept,
    Snapshot,
    SnapshotReason,
)
from coag.store import HashEmbedder
from coag.tracing import RunFolder, read_trace


async def ask(agent: CoagAgent, *texts: str) -> str:
    messages = [TextMessage(content=text, source="user") for text in texts]
    response = await agent.on_messages(messages, CancellationToken())
    return response.chat_message.to_text()


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


# ---- going on ----


async def test_a_resumed_or_replayed_agent_has_the_state_of_the_run_wherever_it_was_cut_off(
    tmp_path: Path,
) -> None:
    agent, run = await finished(tmp_path / "whole")
    assert verify(run) == []
    report = await replay(run, agent=archivist)
    assert report.divergence is None, ascii(report.divergence)
    for count, state in [*_kept_states(run), (None, module_of(agent).save_state())]:
        folder = tmp_path / f"cut-{count}" / run.path.name
        shutil.copytree(run.path, folder, ignore=shutil.ignore_patterns("cycles"))
        lines = run.trace_path.read_bytes().splitlines(keepends=True)
        (folder / "trace.jsonl").write_bytes(b"".join(lines[:count]))
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


# ---- what goes wrong ----


class Illegible(PerceptAdapter):
    """A domain that can read nothing."""

    name = "illegible"

    def parse_percept(self, percept: Percept, state: AwarenessState) -> Seen:
        raise ObservationError("content", f"{percept.content!r} is illegible")


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (
            Awareness(settings=AwarenessSettings(kept_goals=1), archive=FailingShelf()),
            "the shelf is locked",
        ),
        (Awareness(Illegible()), "'Greet me.' is illegible"),
    ],
)
async def test_an_archive_or_a_domain_that_fails_is_noted_and_the_turn_continues(
    module: Awareness, problem: str
) -> None:
    agent = CoagAgent("a", brain(respond()), modules=[module], proposal="json")
    response = await agent.on_messages(
        [TextMessage(content="Greet me.", source="user")], CancellationToken()
    )
    assert response.chat_message.to_text() == "Done."
    assert response.chat_message.metadata["failed_modules"] == "awareness"
    (note, *_) = [one.text for one in agent.trace if isinstance(one, Note)]
    assert problem in note
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
    ("given", "message"),
    [
        ({"archive": shelf()}, "modules=: archive= of Awareness: A RecordArchive .* by a recipe"),
        ({"reads": heard_by(RulePerception())}, "modules=: reads= of Awareness: .*made within"),
        ({"embedder": HashEmbedder()}, "modules=: embedder= of Awareness: .* by a recipe"),
    ],
)
def test_what_cannot_be_had_again_is_refused_with_what_to_do(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        with_module(Awareness(**given)).dump_component()
