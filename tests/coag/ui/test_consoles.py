"""AutoGen's own consoles on an agent that deliberates, all of it hostile."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import ThoughtEvent
from autogen_agentchat.ui import Console
from autogen_ext.ui import RichConsole
from kits.hostile import HARM
from rich.errors import MarkupError

from coag import CoagAgent

Make = Callable[..., CoagAgent]


async def only_phases(stream: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    """The events that are the agent's own sentences, and the result."""
    async for item in stream:
        if isinstance(item, TaskResult) or (
            isinstance(item, ThoughtEvent) and "phase" in item.metadata
        ):
            yield item


async def test_console_shows_the_outcome_of_every_phase(
    scout: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    await Console(scout(events="phases").run_stream(task="Look around."))
    out = capsys.readouterr().out
    for phase in ("Retrieval", "Reasoning", "Proposal", "Evaluation", "Selection"):
        assert f"---------- ThoughtEvent (scout) ----------\n{phase}: " in out
    assert "survived; see rejected by keeps_away." in out
    assert "Selection: an impasse, no candidate survived." in out


async def test_rich_console_shows_the_outcome_of_every_phase(
    scout: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    await RichConsole(scout(events="phases").run_stream(task="Look around."))
    out = capsys.readouterr().out
    assert "│ Proposal: 2 candidate(s): see, see." in out
    assert "see rejected by keeps_away." in out


@pytest.mark.parametrize("depth", ["full", "compact"])
async def test_no_phase_of_a_hostile_agent_trips_a_console_or_steers_the_terminal(
    mallory: Make, capsys: pytest.CaptureFixture[str], depth: str
) -> None:
    for show in (Console, RichConsole):
        await show(only_phases(mallory(depth=depth, events="phases").run_stream(task=HARM)))
        out = capsys.readouterr().out
        assert not set(out) & set("\x00\x07\x1b\x9b\u202e")
        assert "(/done)" in out
        assert "rejected by (/done)(bold)" in out
        assert len(out) < 20_000


async def test_what_others_wrote_still_trips_rich_console_as_the_docs_say(mallory: Make) -> None:
    stream = mallory(events="phases").run_stream(task=HARM)
    with pytest.raises(MarkupError):
        await RichConsole(stream)
    await stream.aclose()
