"""The answer of a model client on its way into a record, and out of it again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionTokenLogprob,
    CreateResult,
    RequestUsage,
    TopLogprob,
)

from coag.errors import ModelCallError, ModelTimeoutError
from coag.models import is_refusal
from coag.schema import Given, ModelCall, well_formed
from coag.tracing import Redactor

from ._plain_json import plain_json

_ESCAPED = re.compile(r"\\(\\|u[0-9a-f]{4})")


class _StatusError(Exception):
    """An error of a server, by the number of its HTTP status."""

    def __init__(self, reason: str, status_code: int) -> None:
        self.status_code = status_code
        super().__init__(reason)


def given_of(
    result: CreateResult, pieces: Sequence[str] | None, redactor: Redactor | None = None
) -> Given:
    """What of an answer its text, its calls, its usage and its finish reason do not tell.

    Args:
        result: The answer.
        pieces: The pieces of its stream; None without a stream.
        redactor: Knows secrets; None for the one that knows this process's environment.
    """
    content: Any = result.content
    content = "" if content is None else content  # as a careless client may bring it
    text = "".join(pieces or ())
    whole: dict[str, Any] = {
        "content": content if isinstance(content, str) else [_call(call) for call in content],
        "thought": result.thought,
        "stream": None if pieces is None or text == content else text,
        "logprobs": _told_logprobs(result.logprobs, content, redactor),
    }
    exact = _mapped(whole, _escape) if any(map(_halved, _texts(whole))) else None
    kept = dict.fromkeys(whole) if exact else plain_json(whole)
    logprobs: list[Any] | None = kept["logprobs"]
    return Given(
        ended="text" if isinstance(content, str) else "calls",
        thought=kept["thought"],
        cached=result.cached,
        pieces=None if pieces is None else tuple(map(len, pieces)),
        stream=kept["stream"],
        logprobs=logprobs if logprobs is None else tuple(logprobs),
        exact=plain_json(exact),
    )


def given_up(error: BaseException | None, pieces: Sequence[str] | None) -> Given:
    """What came before a request ended without an answer.

    Args:
        error: What was raised; None for a stream that just ended.
        pieces: What the stream had given; None without a stream.
    """
    text = "".join(pieces or ())
    broken_off = isinstance(error, asyncio.CancelledError | GeneratorExit)
    told = Given(
        ended="nothing" if error is None else "cancelled" if broken_off else "raised",
        pieces=None if pieces is None else tuple(map(len, pieces)),
        stream=well_formed(text) or None,
        exact={"stream": _escape(text)} if _halved(text) else None,
    )
    return told.model_copy(update={"fault": _fault(error)})


def result_of(call: ModelCall) -> CreateResult:
    """The answer as the client gave it, but for secrets; None stays None where one was careless."""
    given = call.given or Given(ended="calls" if call.tool_calls else "text")
    recorded = call.raw if given.ended == "text" else list(call.tool_calls)
    exact: Mapping[str, Any] = _mapped(given.exact or {}, _unescape)
    content = exact.get("content", recorded)
    logprobs = exact.get("logprobs", given.logprobs)
    usage = call.usage
    return CreateResult.model_construct(
        finish_reason=cast("Any", call.finish_reason),
        content=content if isinstance(content, str) else [_function_call(each) for each in content],
        usage=RequestUsage(
            prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
        ),
        cached=given.cached,
        logprobs=None if logprobs is None else [_logprob(each) for each in logprobs],
        thought=exact.get("thought", given.thought),
    )


def pieces_of(call: ModelCall) -> Iterator[str]:
    """The pieces of the stream, in order. Where a secret was taken out, they lie differently."""
    given = call.given
    if given is None or not given.pieces:
        return
    exact: Mapping[str, Any] = _mapped(given.exact or {}, _unescape)
    text = exact.get("stream", given.stream)
    if text is None:
        text = exact.get("content", call.raw)
    at = 0
    for length in given.pieces[:-1]:
        yield text[at : at + length]
        at += length
    yield text[at:]


def error_of(call: ModelCall) -> ModelCallError:
    """A recorded error, to be raised again; its cause is of the recorded sort."""
    reason = call.error or "no reason was recorded"
    fault = call.given.fault if call.given else None
    if fault == "timeout":
        return ModelTimeoutError(call.model, reason)
    error = ModelCallError(call.model, reason)
    if fault == "refused":
        error.__cause__ = ValueError(reason)
    elif fault is not None:
        error.__cause__ = _StatusError(reason, int(fault.removeprefix("status ")))
    return error


def brought_none(call: ModelCall) -> bool:
    """Whether no answer came of a request; an error may also tell of an answer of no use."""
    if call.given is not None:
        return call.given.ended in ("raised", "cancelled")
    came = call.raw or call.tool_calls or call.finish_reason
    return call.error is not None and not came


def was_cancelled(call: ModelCall) -> bool:
    """Whether a request was cancelled, or its stream left."""
    given = call.given
    return brought_none(call) and (given.ended == "cancelled" if given else call.error == _LEFT)


_LEFT = "cancelled"
"""What records of version 1 say of a request that was cancelled."""


def _fault(error: BaseException | None) -> str | None:
    if isinstance(error, TimeoutError):
        return "timeout"
    for holder in (error, getattr(error, "response", None)):
        status: object = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return f"status {status}"
    return "refused" if isinstance(error, Exception) and is_refusal(error) else None


def _told_logprobs(
    logprobs: Sequence[ChatCompletionTokenLogprob] | None,
    content: object,
    redactor: Redactor | None,
) -> list[Any] | None:
    """Log probabilities as short lists. None of a text with a secret: tokens are its pieces."""
    if logprobs is None:
        return None
    redactor = redactor or Redactor.from_environment()
    if isinstance(content, str) and redactor.clean_text(content) != content:
        return None
    return [
        [
            each.token,
            each.logprob,
            each.bytes,
            None
            if each.top_logprobs is None
            else [[top.logprob, top.bytes] for top in each.top_logprobs],
        ]
        for each in logprobs
    ]


def _logprob(told: Sequence[Any]) -> ChatCompletionTokenLogprob:
    token, logprob, as_bytes, tops = told
    return ChatCompletionTokenLogprob(
        token=token,
        logprob=float(logprob),
        bytes=as_bytes,
        top_logprobs=tops and [TopLogprob(float(top[0]), top[1]) for top in tops],
    )


def _call(call: FunctionCall) -> dict[str, str]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _function_call(call: Mapping[str, Any]) -> FunctionCall:
    # Records of phases name no id: their calls are proposals.
    return FunctionCall(
        id=call.get("id", ""), name=str(call["name"]), arguments=str(call["arguments"])
    )


def _mapped(value: Any, change: Any) -> Any:
    """The JSON with each of its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(item, change) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _mapped(item, change) for key, item in items}
    return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        whole = cast("list[Any] | dict[str, Any]", value)
        for item in whole.values() if isinstance(whole, dict) else whole:
            yield from _texts(item)


def _halved(text: str) -> bool:
    """Whether the text holds half characters."""
    return well_formed(text) != text


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def _unescape(text: str) -> str:
    return _ESCAPED.sub(
        lambda found: "\\" if found[1] == "\\" else chr(int(found[1][1:], 16)), text
    )
