"""`PhaseConsole`: a stream, phase by phase."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.messages import (
    MemoryQueryEvent,
    SelectSpeakerEvent,
    TextMessage,
    ThoughtEvent,
)
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.ui import UserInputManager
from autogen_core import CancellationToken
from autogen_core.memory import MemoryContent, MemoryMimeType
from kits.brains import brain, respond
from kits.drop_in import PlannedModel
from kits.hostile import FORBIDDEN, HARM

from coag import CoagAgent, Verdict
from coag._util.text import cleaned
from coag.schema import Candidate
from coag.ui import PhaseConsole

Make = Callable[..., CoagAgent]


async def shown(agent: Any, task: str = "Look around.", **options: Any) -> str:
    output = io.StringIO()
    await PhaseConsole(agent.run_stream(task=task), output=output, **options)
    return output.getvalue()


async def of(*items: Any) -> AsyncGenerator[Any]:
    for item in items:
        yield item


async def test_each_cycle_is_shown_with_its_verdicts_and_the_action_with_its_result(
    scout: Make,
) -> None:
    output = io.StringIO()
    result = await PhaseConsole(scout().run_stream(task="Look around."), output=output)
    assert isinstance(result, TaskResult)
    assert result.messages[-1].to_text() == "All is seen."
    text = output.getvalue()
    assert not {"\x1b", "\r"} & set(text)
    assert text.count("All is seen.") >= 2  # as what was done, and as what is said
    assert "  result      failed: " in text
    assert "a wall is in the way" in text
    assert "  selection   an impasse, no candidate survived." in text
    assert " tokens\n" in text
    lines = text.splitlines()
    assert re.match("  total       .* tokens, ", lines[-1])
    first = lines[lines.index("scout, cycle 1") + 1 : lines.index("scout, cycle 2") - 1]
    shown_lines = [line.strip() for line in first]
    assert shown_lines[0].startswith("retrieval")
    assert 'survived: see {"at": "cup"}' in shown_lines
    assert 'rejected: see {"at": "fire"}' in shown_lines
    assert "by keeps_away: fire burns" in shown_lines
    assert 'action      see {"at": "cup"}' in shown_lines
    assert shown_lines[-1] == "result      returned: cup is here"


async def test_a_response_is_shown_and_given_back(scout: Make) -> None:
    message = TextMessage(content="Look.", source="user")
    stream = scout().on_messages_stream([message], CancellationToken())
    output = io.StringIO()
    response: Any = await PhaseConsole(stream, output=output)
    assert isinstance(response, Response)
    assert "\nscout\nAll is seen.\n" in output.getvalue()


async def test_a_stream_without_a_result_is_an_error() -> None:
    with pytest.raises(ValueError, match="gave no TaskResult"):
        await PhaseConsole(of(), output=io.StringIO())


async def test_only_the_deliberation_is_shown_where_messages_are_not_wanted(scout: Make) -> None:
    text = await shown(scout(), messages=False, output_stats=False)
    assert "user" not in text
    assert "total" not in text
    assert "scout, cycle 1" in text


# ---- other agents ----


async def test_stock_agents_of_the_same_team_are_shown_too() -> None:
    async def add(a: int, b: int) -> str:
        """Adds."""
        return str(a + b)

    stock = AssistantAgent("clerk", PlannedModel("Three.", ("add", {"a": 1, "b": 2})), tools=[add])
    ours = CoagAgent("thinker", brain(respond("Indeed.")), proposal="json")
    text = await shown(RoundRobinGroupChat([stock, ours], max_turns=2))
    assert '  action      add {"a": 1, "b": 2}' in text.replace('{"a":1,"b":2}', '{"a": 1, "b": 2}')
    assert "  result      returned: 3" in text
    assert "\nthinker, cycle 1\n" in text
    assert "\nthinker\nIndeed.\n" in text
    assert "ended: " in text.splitlines()[-1]


async def test_a_streamed_answer_is_written_once() -> None:
    stock = AssistantAgent("clerk", PlannedModel("one two three"), model_client_stream=True)
    text = await shown(stock, messages=True)
    assert text.count("one two three") == 1
    assert "\nclerk\none two three\n" in text


async def test_a_person_who_is_asked_is_let_type(terminal: Any) -> None:
    def answer(prompt: str) -> str:
        terminal.write("<asked>")
        return "Blue."

    manager = UserInputManager(callback=answer)
    person = UserProxyAgent("person", input_func=manager.get_wrapped_callback())
    result = await PhaseConsole(
        person.run_stream(task="Which colour?"), output=terminal, user_input_manager=manager
    )
    assert isinstance(result, TaskResult)
    assert result.messages[-1].to_text() == "Blue."
    asked = terminal.getvalue().split("<asked>")[0]
    assert asked.endswith("\x1b[2K") or "\x1b[?25h" in asked  # the progress line is gone


# ---- hostile text ----


@pytest.mark.parametrize("depth", ["full", "compact"])
async def test_hostile_text_is_shown_harmless_and_short(mallory: Make, depth: str) -> None:
    text = await shown(mallory(HARM + "A" * 1_000_000, depth=depth), HARM)
    assert not set(text) & FORBIDDEN
    assert "[/done]" in text
    assert "[bold]bold[/bold]" in text
    assert "click me" in text
    assert "more]" in text
    assert len(text) < 60_000


async def test_half_characters_and_narrow_encodings_do_not_stop_the_show() -> None:
    raw = io.BytesIO()
    output = io.TextIOWrapper(raw, encoding="ascii")
    items = (
        TextMessage(content="half \ud800 and é \x9b31m", source="user"),
        TaskResult(messages=[], stop_reason="done \ud800"),
    )
    await PhaseConsole(of(*items), output=output)
    output.flush()
    assert b"half ? and ?" in raw.getvalue()


def thought(detail: str, phase: str = "evaluation") -> ThoughtEvent:
    metadata = {"phase": phase, "cycle": "1", "detail": detail}
    return ThoughtEvent(content=f"{phase.capitalize()}: so.", source="x", metadata=metadata)


@pytest.mark.parametrize(
    "detail",
    ["", "[", "[" * 4_000, "null", "{}", "[1, null, {}]", '[{"verdicts": 3}]', '[{"score": "a"}]'],
)
async def test_details_that_are_no_verdicts_are_passed_over(detail: str) -> None:
    output = io.StringIO()
    events = (thought(detail, "proposal"), thought(detail), TaskResult(messages=[]))
    await PhaseConsole(of(*events), output=output)
    assert "evaluation" in output.getvalue()


async def test_a_verdict_that_was_cut_is_not_taken_for_a_survivor() -> None:
    one = '{"candidate_id": "c1", "verdicts": [{"allowed": false, "reason": "no"}]}'
    cut = f'[{one}, {{"candidate_id": "c2", "verdicts": [{{"allowed": true}}'
    output = io.StringIO()
    await PhaseConsole(of(thought(cut), TaskResult(messages=[])), output=output)
    assert "rejected: c1" in output.getvalue()
    assert "survived" not in output.getvalue()
    assert "and more than fits here" in output.getvalue()


async def test_thoughts_memories_and_other_events_are_shown_too() -> None:
    events = (
        ThoughtEvent(content="Hm \x1b[31m[/done].", source="x"),
        MemoryQueryEvent(
            content=[MemoryContent(content=HARM, mime_type=MemoryMimeType.TEXT)], source="x"
        ),
        SelectSpeakerEvent(content=["y"], source="x"),
        TaskResult(messages=[]),
    )
    output = io.StringIO()
    await PhaseConsole(of(*events), output=output)
    text = output.getvalue()
    assert "  thought     Hm [/done]." in text
    assert "remembered: [/x]<b onclick=x>" in text
    assert "  event       x: " in text
    assert not FORBIDDEN & set(text)


async def test_a_tool_call_that_was_rejected_is_shown_once() -> None:
    async def burn() -> str:
        """Burns."""
        return "ashes"

    def no_fire(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        return Verdict.forbid("it spreads") if candidate.action == "burn" else Verdict.allow()

    model = PlannedModel("Fine.", ("burn", {}))
    agent = CoagAgent("scout", model, tools=[burn], constraints=[no_fire], proposal="native")
    text = await shown(agent)
    assert text.count("rejected: burn") == 1
    assert "Rejected by" not in text
    assert "  action" not in text


# ---- terminals ----


@pytest.mark.parametrize(
    ("setting", "value", "moves", "coloured"),
    [("LANG", "C", True, True), ("NO_COLOR", "1", True, False), ("TERM", "dumb", False, False)],
)
async def test_a_terminal_shows_the_running_phase_as_far_as_is_wanted(
    terminal: Any,
    scout: Make,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    value: str,
    moves: bool,
    coloured: bool,
) -> None:
    monkeypatch.setenv(setting, value)
    await PhaseConsole(scout().run_stream(task="Look."), output=terminal)
    text = terminal.getvalue()
    assert all((sign in text) == moves for sign in ("scout: reasoning", "0:00:00", "\x1b[2K"))
    assert bool({"\x1b[31m", "\x1b[32m"} & set(re.findall(r"\x1b\[\d+m", text))) == coloured


@pytest.mark.parametrize("width", [20, 40, 80])
async def test_no_line_is_wider_than_a_narrow_terminal(
    terminal: Any, scout: Make, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    await PhaseConsole(scout().run_stream(task="Look."), output=terminal)
    lines = cleaned(terminal.getvalue().replace("\r", "\n")).splitlines()
    assert max(map(len, lines)) <= width
