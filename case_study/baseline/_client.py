"""A model client that is written down and lets one action a turn through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.compat import Recorder, RecordingClient, ReplayingClient
from coag.errors import ModelCallError, TraceError
from coag.models import has_own_limit, limit_arguments, limit_name_of, merged_system, reason_of

from ._one_piece import OnePieceClient
from ._spelling import SPELLED, SpellingClient, was_spelled

MAX_TOKENS = 1_000
"""Longest completion of a turn, reasoning and tool call, for a client that has no limit itself."""


class OneActionClient(OnePieceClient):
    """Passes requests on and writes each down with its answer.

    Of several tool calls in one answer only the first is passed on: one action a turn, as for
    every agent of the case study; the trace says so. A call that the answer spells out in words
    becomes a call, see `SpellingClient`, and the trace says that too. System messages that a memory
    scatters over the dialogue are joined at its front, since many models refuse them elsewhere.

    Args:
        client: Who answers.
        recorder: Who writes.
    """

    def __init__(self, client: ChatCompletionClient, recorder: Recorder) -> None:
        super().__init__(RecordingClient(SpellingClient(client, recorder.ids), recorder))
        self._recorder = recorder
        self._limit = _limit(client)

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        """Asks the client.

        Raises:
            ModelCallError: The client could not be asked.
            TraceError: The request could not be written down.
        """
        try:
            result = await self.wrapped.create(
                merged_system(messages),
                tools=tools,
                tool_choice=tool_choice,
                json_output=json_output,
                extra_create_args={**self._limit, **(extra_create_args or {})},
                cancellation_token=cancellation_token,
            )
        except TraceError:
            raise
        except Exception as error:  # clients are an open interface: whatever one raises
            raise ModelCallError(self._recorder.model, reason_of(error)) from error
        return self._one_action(result)

    def _one_action(self, result: CreateResult) -> CreateResult:
        if isinstance(result.content, str):
            return result
        for call in filter(was_spelled, result.content):
            self._recorder.note(SPELLED, f"Called in words: {call.name} {call.arguments}")
        if len(result.content) <= 1:
            return result
        text = f"Of {len(result.content)} tool calls in one answer only the first is run."
        self._recorder.note("bound", text)
        return result.model_copy(update={"content": result.content[:1]})


def _limit(client: ChatCompletionClient) -> Mapping[str, Any]:
    """The limit of a completion as this client is told it; in a replay, as it was told then."""
    if isinstance(client, ReplayingClient):
        return client.arguments
    if has_own_limit(client):
        return {}
    return limit_arguments(client, limit_name_of(client), MAX_TOKENS)
