"""A model that gives recorded answers: the stand-in for every model in a replay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage

from coag.compat import ModelClient, ModelRequest
from coag.models import Answer, StructuredModel, publish_usage
from coag.schema import ModelCall, OutputMode

_NO_RESULT = "The client brought no result"
_UNREADABLE = (
    "The client brought",
    "Among the tool calls",
    "A tool call of the answer",
    "The answer was empty",
)
"""How a problem begins with an answer that came and could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAnswer:
    """What came of a request, with what its record does not tell."""

    call: ModelCall
    refused: bool = False
    """True if the client refused the form of the answer, and a looser one was asked for."""
    thought: str = ""
    """The model's own thought beside a text."""
    dropped: int = 0
    """Tool calls that were too many, and are not in the record."""


class ReplayAnswers(Protocol):
    """Knows what came of the requests that are about to be made."""

    async def answer(self) -> ReplayAnswer:
        """What came of the request that is being made."""
        ...

    def upcoming(self) -> Sequence[ModelCall]:
        """The requests that this phase is about to make, as far as they are known."""
        ...


class ReplayModelClient(ModelClient):
    """Answers, raises or is cancelled as the source says; nothing is sent anywhere.

    Args:
        source: Knows the answers.
        on_answer: Called with the model's name before its answer is given.
    """

    def __init__(self, source: ReplayAnswers, on_answer: Callable[[str], None]) -> None:
        super().__init__()
        self._source = source
        self._on_answer = on_answer

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Gives or raises what the source says."""
        answered = await self._source.answer()
        call = answered.call
        self._on_answer(call.model)
        publish_usage(call.usage, failed=bool(call.error))
        if _ended(call) == "cancelled":
            raise asyncio.CancelledError
        if _ended(call) == "raised":
            raise _error(call.error or "", refused=answered.refused)
        if call.error and call.error.startswith(_NO_RESULT):
            return cast("CreateResult", UnreadableAnswer(call.error))
        thought = (call.given.thought if call.given else None) or answered.thought
        return CreateResult.model_construct(
            finish_reason=call.finish_reason,
            content=_content(answered),
            usage=_usage(call),
            cached=False,
            thought=_thought(call) or thought or None,
            logprobs=None,
        )

    @property
    def model_info(self) -> ModelInfo:
        """What the upcoming requests show that their model could do."""
        upcoming = self._source.upcoming()
        rungs = [call.rung for call in upcoming]
        return ModelInfo(
            vision=False,
            function_calling=bool(upcoming and upcoming[0].tools),
            json_output=OutputMode.JSON_MODE in rungs,
            family="unknown",
            structured_output=rungs[:1] == [OutputMode.JSON_SCHEMA],
            multiple_system_messages=False,
        )


class ReplayAsker(StructuredModel):
    """Asks a stand-in, on the rungs of the ladder that the recorded requests show."""

    def __init__(self, source: ReplayAnswers) -> None:
        def named(model: str) -> None:
            self.name = model

        self._source = source
        super().__init__(ReplayModelClient(source, named), name="recorded", limit_name="none")

    async def ask(self, *args: Any, **options: Any) -> Answer[Any]:
        """Asks as `StructuredModel` does; which rungs hold is the recorded server's business."""
        info = self.client.model_info
        known = (
            (OutputMode.JSON_SCHEMA, "structured_output"),
            (OutputMode.JSON_MODE, "json_output"),
        )
        self._modes = (*(mode for mode, flag in known if info.get(flag)), OutputMode.PROMPT)
        upcoming = self._source.upcoming()
        self.name = upcoming[0].model if upcoming else self.name
        return await super().ask(*args, **options)


def _ended(call: ModelCall) -> str:
    """What the request came to: `raised`, `cancelled`, or an answer."""
    if call.given is not None:
        return call.given.ended
    if call.error == "cancelled":
        return "cancelled"
    nothing = call.error and not (call.raw or call.tool_calls or call.finish_reason)
    return "raised" if nothing and not (call.error or "").startswith(_UNREADABLE) else "text"


def _content(answered: ReplayAnswer) -> Any:
    call = answered.call
    if call.tool_calls and call.repaired and call.rung is OutputMode.NATIVE:
        return "\n".join(_as_text(shown) for shown in _recorded_calls(answered))
    if call.tool_calls:
        return [
            FunctionCall(id=shown.get("id", ""), name=shown["name"], arguments=shown["arguments"])
            for shown in _recorded_calls(answered)
        ]
    if call.error and call.error.startswith(_UNREADABLE[0]) and not call.raw:
        return UnreadableAnswer(call.error)
    thought_only = call.rung is OutputMode.NATIVE and call.error is not None
    return "" if thought_only else call.raw


def _recorded_calls(answered: ReplayAnswer) -> list[Mapping[str, Any]]:
    shown: list[Mapping[str, Any]] = list(answered.call.tool_calls)
    return [*shown, *([shown[-1]] * answered.dropped)]


def _thought(call: ModelCall) -> str:
    """The thought in the record's `raw`, where that holds no text."""
    if call.rung is not OutputMode.NATIVE or not (call.tool_calls or call.error):
        return ""
    return call.raw


def _as_text(given: Mapping[str, Any]) -> str:
    """A tool call as a model writes one."""
    call = {"name": given["name"], "arguments": given["arguments"]}
    return f"<tool_call>{json.dumps(call)}</tool_call>"


def _usage(call: ModelCall) -> Any:
    """The recorded usage; None where it was estimated, so that it is estimated again."""
    if call.usage_estimated:
        return None
    return RequestUsage(
        prompt_tokens=call.usage.prompt_tokens, completion_tokens=call.usage.completion_tokens
    )


def _error(reason: str, *, refused: bool) -> Exception:
    """An error that reads as the recorded one, and is a refusal if that was one."""
    name, _, text = reason.partition(": ")
    base: type[Exception] = ValueError if refused else Exception
    if name == "TimeoutError":
        return TimeoutError(text)
    named = type(name if name.isidentifier() else "RecordedError", (base,), {})
    return cast("type[Exception]", named)(text)


class UnreadableAnswer:
    """Shows as what a client brought in the place of an answer."""

    def __init__(self, problem: str) -> None:
        self._shown = problem.partition(" but ")[2].removesuffix(".")

    def __repr__(self) -> str:
        return self._shown
