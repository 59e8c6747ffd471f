"""A model that gives recorded answers: the stand-in for every model in a replay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage

from coag.compat import UNREADABLE, ended_as
from coag.models import Answer, ModelClient, ModelRequest, StructuredModel, publish_usage
from coag.schema import ModelCall, OutputMode

_NO_RESULT = f"{UNREADABLE[0]} no result"


class ReplayAnswers(Protocol):
    """Knows what came of the requests that are about to be made."""

    async def answer(self) -> ModelCall:
        """The record of the request that is being made, with what only others know of it.

        That is a thought beside a text, a fault `refused` where a looser form was asked for next,
        and tool calls that were too many.
        """
        ...

    def upcoming(self) -> Sequence[ModelCall]:
        """The requests that this phase is about to make, as far as they are known."""
        ...


class ReplayModelClient(ModelClient):
    """Answers, raises or is cancelled as the source says; nothing is sent anywhere."""

    def __init__(self, source: ReplayAnswers, on_answer: Callable[[str], None]) -> None:
        super().__init__()
        self._source = source
        self._on_answer = on_answer

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Gives or raises what the source says."""
        call = await self._source.answer()
        self._on_answer(call.model)
        publish_usage(call.usage, failed=bool(call.error))
        match ended_as(call):
            case "cancelled":
                raise asyncio.CancelledError
            case "raised":
                raise _error(call)
            case _ if call.error and call.error.startswith(_NO_RESULT):
                return cast("CreateResult", UnreadableAnswer(call.error))
            case _:
                pass
        native = call.rung is OutputMode.NATIVE
        thought = call.raw if native and (call.tool_calls or call.error) else ""
        usage = RequestUsage(
            prompt_tokens=call.usage.prompt_tokens, completion_tokens=call.usage.completion_tokens
        )
        return CreateResult.model_construct(
            finish_reason=call.finish_reason,
            content=_content(call),
            usage=None if call.usage_estimated else usage,  # then it is estimated again
            cached=False,
            thought=thought or (call.given.thought if call.given else None) or None,
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


def _content(call: ModelCall) -> Any:
    native = call.rung is OutputMode.NATIVE
    calls = [
        FunctionCall(id=each.get("id", ""), name=each["name"], arguments=each["arguments"])
        for each in call.tool_calls
    ]
    if calls and call.repaired and native:  # calls that the model wrote as text
        written = [json.dumps({"name": one.name, "arguments": one.arguments}) for one in calls]
        return "\n".join(f"<tool_call>{one}</tool_call>" for one in written)
    if calls:
        return calls
    if call.error and call.error.startswith(UNREADABLE[0]) and not call.raw:
        return UnreadableAnswer(call.error)
    return "" if native and call.error is not None else call.raw  # else a thought alone


def _error(call: ModelCall) -> Exception:
    """An error that reads as the recorded one, and is a refusal if that was one."""
    name, _, text = (call.error or "").partition(": ")
    if name == "TimeoutError":
        return TimeoutError(text)
    refused = call.given is not None and call.given.fault == "refused"
    base: type[Exception] = ValueError if refused else Exception
    named = type(name if name.isidentifier() else "RecordedError", (base,), {})
    return cast("type[Exception]", named)(text)


class UnreadableAnswer:
    """Shows as what a client brought in the place of an answer."""

    def __init__(self, problem: str) -> None:
        self._text = problem.partition(" but ")[2].removesuffix(".")

    def __repr__(self) -> str:
        return self._text
