"""A plain agent of few lines whose routines a test writes, for what no real agent does often."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from autogen_core.models import ChatCompletionClient, CreateResult, UserMessage
from autogen_core.tools import Workbench

from coag.compat import Recorder, RecordingClient, RecordingWorkbench, Tool
from coag.models import ScriptedModel, ScriptedReply, scripted_answers
from coag.tracing import Recipe, RunFolder

Routine = Callable[["Hand", str], Awaitable[str]]
"""What a hand does in a turn after a message; gives its answer."""
ROUTINES: dict[str, Routine] = {}
"""What the recipe of a run may name, by name."""


def routine(do: Routine) -> Routine:
    """Lets recipes name a routine."""
    ROUTINES[getattr(do, "__name__", "")] = do
    return do


class Hand:
    """Takes turns by a routine, and writes down what it does."""

    def __init__(
        self,
        client: ChatCompletionClient,
        tools: list[Tool] | Workbench,
        recorder: Recorder,
        do: Routine,
        before: Routine | None = None,
    ) -> None:
        self.client = RecordingClient(client, recorder)
        self.tools = RecordingWorkbench(tools, recorder)
        self.recorder = recorder
        self._do = do
        self._before = before

    async def ask(self, text: str) -> CreateResult:
        return await self.client.create([UserMessage(content=text, source="user")])

    async def say(self, text: str) -> object:
        if self._before is not None:
            await self._before(self, text)
        self.recorder.begin_turn()
        try:
            answer = await self._do(self, text)
        except asyncio.CancelledError:
            self.recorder.end_turn("cancelled", "It was cancelled.")
            raise
        self.recorder.end_turn("respond", answer)
        return answer

    async def repeat(self, about: str, text: str) -> bool:
        del about, text
        return False


@routine
async def answer(hand: Hand, text: str) -> str:
    """Asks the model and says what it said."""
    return str((await hand.ask(text)).content)


def hand_again(
    *, name: str, before: str | None = None
) -> Callable[[ChatCompletionClient, Workbench, Recorder], Hand]:
    """What the recipe names; `before` is a routine that is done before a turn is begun."""
    first = None if before is None else ROUTINES[before]
    return lambda client, tools, recorder: Hand(client, tools, recorder, ROUTINES[name], first)


def nothing_again() -> str:
    """What a recipe names that makes no agent."""
    return "a hand"


def hand_in(
    logs: Path,
    *replies: ScriptedReply,
    do: Routine = answer,
    again: Routine | None = None,
    before: Routine | None = None,
    tools: tuple[Tool, ...] = (),
    recipe: Recipe | None = None,
) -> Hand:
    """A hand whose run is written down.

    In a replay it does what `again` says, by default the same, and before each turn `before`.
    """
    arguments = {
        "name": getattr(again or do, "__name__", ""),
        "before": getattr(before, "__name__", None),
    }
    own = Recipe(factory="kits.hands:hand_again", arguments=arguments)
    recorder = Recorder(logs, agent="hand", recipe=recipe or own)
    return Hand(ScriptedModel(scripted_answers(replies)), list(tools), recorder, do)


def let_go(hand: Hand) -> RunFolder:
    """Ends the run; gives its folder."""
    hand.recorder.close()
    return hand.recorder.folder
