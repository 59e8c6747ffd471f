"""Spans and metrics of a live agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode

from coag import CoagAgent
from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import Verdict
from coag.telemetry import watch
from coag.tracing import RunFolder

MakeButler = Callable[..., CoagAgent]
CUP = "the golden cup of aunt Agatha"


async def _ask(agent: CoagAgent) -> str:
    message = TextMessage(content=f"Bring {CUP}!", source="user")
    response = await agent.on_messages([message], CancellationToken())
    assert isinstance(response.chat_message, TextMessage)
    return response.chat_message.content


def _attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_turn_is_a_span_with_its_cycles_phases_calls_and_tools(
    backend: Any, make_butler: MakeButler
) -> None:
    agent = make_butler()
    with watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters):
        await _ask(agent)
    phases = ["retrieval", "reasoning", "proposal", "evaluation", "selection", "execution"]
    tree = backend.tree()
    assert tree[0] == "run butler"
    assert tree[1] == "run butler > invoke_agent butler"
    for cycle in ("cycle 1", "cycle 2"):
        assert f"invoke_agent butler > {cycle}" in tree
        assert [line for line in tree if line.startswith(f"{cycle} > ")] == [
            f"{cycle} > {phase}" for phase in phases
        ]
    assert tree.count("reasoning > chat scripted") == 2
    assert tree.count("execution > execute_tool fetch") == 1
    assert len(tree) == 2 + 2 * 7 + 2 + 1


async def test_names_follow_the_conventions_for_generative_ai(
    backend: Any, make_butler: MakeButler
) -> None:
    agent = make_butler()
    with watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters):
        await _ask(agent)
        run = agent.mind.deps.run()
    (turn,) = backend.named("invoke_agent butler")
    assert _attributes(turn) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.agent.name": "butler",
        "gen_ai.conversation.id": run,
        "coag.run.id": run,
        "coag.turn": 1,
        "coag.turn.reason": "respond",
    }
    call = backend.named("chat scripted")[0]
    attributes = _attributes(call)
    assert call.kind.name == "CLIENT"
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"] == "scripted"
    assert attributes["gen_ai.usage.input_tokens"] > 0
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    (tool,) = backend.named("execute_tool fetch")
    assert _attributes(tool)["gen_ai.tool.name"] == "fetch"
    assert _attributes(tool)["coag.action.status"] == "done"


async def test_decisions_are_events_on_the_spans_of_phases(
    backend: Any, make_butler: MakeButler
) -> None:
    agent = make_butler()
    with watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters):
        await _ask(agent)
    (rejected,) = backend.named("evaluation")[0].events
    assert rejected.name == "coag.candidate.rejected"
    assert rejected.attributes["coag.constraint"] == "action_exists"
    assert "coag.action" not in rejected.attributes, "a made-up action is a model's text"
    (selected,) = backend.named("selection")[0].events
    assert selected.name == "coag.candidate.selected"
    assert selected.attributes["coag.action"] == "fetch"
    assert selected.attributes["coag.decided_by"] == "only_survivor"


async def test_a_secret_that_a_model_calls_as_an_action_is_not_sent(
    backend: Any, make_butler: MakeButler
) -> None:
    wishes = [
        {"action": name, "arguments": {"text": "Done."}}
        for name in ("sk-proj-" + "a1B2" * 8, "respond")
    ]

    def think(request: ScriptedRequest) -> ScriptedReply:
        return {"situation": "Calm.", "candidates": wishes}

    agent = make_butler(think=think)
    with watch(agent, tracer_provider=backend.tracers, record_content=True):
        await _ask(agent)
    assert "[redacted]" in backend.everything()
    assert "a1B2a1B2" not in backend.everything()


async def test_content_is_sent_where_it_is_asked_for_and_secrets_are_not(
    backend: Any, make_butler: MakeButler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUTLER_TOKEN", "opensesame-1234")
    agent = make_butler(system_message="The key is opensesame-1234.")
    with watch(
        agent, tracer_provider=backend.tracers, meter_provider=backend.meters, record_content=True
    ):
        await _ask(agent)
    (tool,) = backend.named("execute_tool fetch")
    assert _attributes(tool)["gen_ai.tool.call.arguments"] == '{"thing": "cup"}'
    assert CUP in str(_attributes(tool)["gen_ai.tool.call.result"])
    call = _attributes(backend.named("chat scripted")[0])
    assert CUP in str(call["gen_ai.input.messages"])
    assert CUP in str(call["gen_ai.output.messages"])
    assert "The key is [redacted]" in backend.everything()
    assert "opensesame" not in backend.everything()


async def test_metrics_count_durations_vetoes_and_tokens(
    backend: Any, make_butler: MakeButler
) -> None:
    agent = make_butler()
    with watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters):
        await _ask(agent)
    points = backend.points()
    assert "Agatha" not in f"{points}{backend.everything()}", "contents are not sent by default"
    ((labels, calls),) = points["gen_ai.client.operation.duration"]
    assert (labels["gen_ai.operation.name"], calls) == ("chat", 2)
    tokens = {labels["gen_ai.token.type"] for labels, _ in points["gen_ai.client.token.usage"]}
    assert tokens == {"input", "output"}
    ((labels, vetoes),) = points["coag.vetoes"]
    assert labels == {"gen_ai.agent.name": "butler", "coag.constraint": "action_exists"}
    assert vetoes == 2
    assert points["coag.cycle.duration"] == [({"gen_ai.agent.name": "butler"}, 2)]
    assert sum(number for _, number in points["coag.phase.duration"]) == 12
    assert points["coag.turn.duration"][0][0]["coag.turn.reason"] == "respond"
    assert points["coag.action.duration"][0][1] == 1


async def test_impasses_are_events_and_are_counted(backend: Any, make_butler: MakeButler) -> None:
    def never(candidate: object, state: object, projection: object) -> Verdict:
        del candidate, state, projection
        return Verdict.forbid("Never.")

    agent = make_butler(constraints=[never])
    with watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters):
        await _ask(agent)
    selections = backend.named("selection")
    assert [event.name for span in selections for event in span.events] == ["coag.impasse"] * 3
    assert backend.points()["coag.impasses"][0][1] == 3
    assert {labels["coag.constraint"] for labels, _ in backend.points()["coag.vetoes"]} == {
        "never",
        "action_exists",
    }


async def test_a_turn_within_a_span_of_its_caller_belongs_to_it(
    backend: Any, make_butler: MakeButler
) -> None:
    agent = make_butler()
    tracer = backend.tracers.get_tracer("caller")
    with (
        watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters),
        tracer.start_as_current_span("request"),
    ):
        await _ask(agent)
    assert "request > invoke_agent butler" in backend.tree()
    assert backend.named("run butler") == []


async def test_each_run_has_a_span_of_its_own(
    backend: Any, make_butler: MakeButler, tmp_path: Path
) -> None:
    agent = make_butler(tmp_path / "logs")
    with watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters):
        await _ask(agent)
        await agent.on_reset(CancellationToken())
        await _ask(agent)
        await agent.close()
    ids = {_attributes(span)["coag.run.id"] for span in backend.named("run butler")}
    assert ids == {path.name for path in (tmp_path / "logs").iterdir()}
    assert len(ids) == 2


async def test_a_turn_that_is_interrupted_is_an_error_without_its_words(
    backend: Any, make_butler: MakeButler
) -> None:
    def raise_it(request: object) -> None:
        raise RuntimeError(CUP)

    agent = make_butler(think=raise_it)
    with (
        watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters),
        pytest.raises(RuntimeError),
    ):
        await _ask(agent)
    (turn,) = backend.named("invoke_agent butler")
    assert turn.status.status_code is StatusCode.ERROR
    assert _attributes(turn)["coag.turn.reason"] == "error"
    calls = backend.named("chat scripted")
    assert calls
    errors = {_attributes(span)["error.type"] for span in (turn, *calls)}
    assert errors == {"RuntimeError"}
    assert CUP not in backend.everything()


class _BadProcessor(SpanProcessor):
    """Raises whenever a span ends."""

    def on_end(self, span: ReadableSpan) -> None:
        raise ValueError("no span for you")


async def test_a_span_processor_that_raises_breaks_no_turn(
    backend: Any, make_butler: MakeButler, caplog: pytest.LogCaptureFixture
) -> None:
    backend.tracers.add_span_processor(_BadProcessor())
    agent = make_butler()
    with watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters):
        assert CUP in await _ask(agent)
    warnings = [record.message for record in caplog.records if "No more spans" in record.message]
    assert len(warnings) == 1


async def test_watching_changes_nothing_in_the_trace(
    backend: Any, make_butler: MakeButler, tmp_path: Path
) -> None:
    agents = [make_butler(tmp_path / "plain"), make_butler(tmp_path / "watched")]
    sink = watch(agents[1], tracer_provider=backend.tracers, meter_provider=backend.meters)
    for agent in agents:
        await _ask(agent)
        await agent.close()
    sink.close()
    plain, watched = ([one.record for one in agent.trace] for agent in agents)
    assert plain == watched
    assert isinstance(agents[1].run_folder, RunFolder)
