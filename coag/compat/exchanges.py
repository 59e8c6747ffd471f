"""Requests, answers and results of stock agents as they are recorded, and made again from it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any, Literal, TypeVar, cast

from autogen_core import FunctionCall, Image
from autogen_core.models import (
    ChatCompletionTokenLogprob,
    CreateResult,
    ModelInfo,
    RequestUsage,
    TopLogprob,
)
from autogen_core.tools import ImageResultContent, TextResultContent, ToolResult
from pydantic import BaseModel

from coag._util.text import well_formed
from coag.errors import ConfigurationError, ModelCallError, ModelTimeoutError
from coag.models import ModelRequest, is_refusal, sent_messages
from coag.schema import (
    AnswerDetails,
    Intent,
    ModelCall,
    Receipt,
    ReceiptStatus,
    Redactor,
    RequestDetails,
    Returned,
    from_import_name,
)

from .tool_runner import read_result

# ---- Any value as JSON that can be written, read and compared ----


def plain_json(value: object) -> Any:
    """The value as JSON that UTF-8 can carry: the same value, the same JSON, in any process.

    What is no JSON is given by its type alone: its text may name a place in memory.
    """
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if isfinite(value) else str(value)
        case str():
            return well_formed(value)
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {well_formed(str(key)): plain_json(item) for key, item in items}
        case list() | tuple():
            return [plain_json(item) for item in cast("list[object]", value)]
        case BaseModel():
            return plain_json(value.model_dump(mode="json"))
        case type() if issubclass(value, BaseModel):
            return {"type": value.__name__, "schema": hash_of(value.model_json_schema())}
        case _:
            return f"<{type(value).__module__}.{type(value).__qualname__}>"


def hash_of(value: object) -> str:
    """A hash of the value's JSON, whatever the order of its keys; 64 bits, in hex."""
    return hashlib.sha256(canonical(plain_json(value)).encode()).hexdigest()[:16]


def canonical(value: object) -> str:
    """JSON as the one text in which equal values are equal."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


# ---- A request to a model as a replay compares it ----


def asked_of(request: ModelRequest, model_info: ModelInfo | None = None) -> RequestDetails:
    """The part of a request that is in no other field of its record."""
    choice, form = request.tool_choice, request.json_output
    return RequestDetails(
        tools=tuple(hash_of(schema) for schema in request.schemas),
        tool_choice=choice if isinstance(choice, str) else f"tool {choice.name}",
        json_output=hash_of(form.model_json_schema()) if isinstance(form, type) else form,
        arguments=plain_json(request.arguments),
        stream=request.is_stream,
        model_info=None if model_info is None else plain_json(model_info),
    )


def compared_request(request: ModelRequest) -> dict[str, Any]:
    """A live request with the fields of its record."""
    names = [schema["name"] for schema in request.schemas]
    sent = sent_messages(request.messages)
    return _compared(sent, names, request.expected, asked_of(request))


def compared(call: ModelCall) -> dict[str, Any]:
    """A recorded request with what a replay compares; less of one whose rest was not recorded."""
    return _compared(call.messages, call.tools, call.expected, call.asked)


def without_rest(request: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared of requests whose rest was not recorded: who says what, and the tools."""
    messages = [{"role": each["role"], "content": each["content"]} for each in request["messages"]]
    return {"messages": messages, "tools": request["tools"]}


def _compared(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[str],
    expected: str | None,
    details: RequestDetails | None,
) -> dict[str, Any]:
    fields: dict[str, Any] = {"messages": list(messages), "tools": list(tools)}
    if details is None:
        return without_rest(fields)
    rest = details.model_dump(mode="json", exclude={"model_info"})
    return {**fields, "expected": expected, "asked": rest}


def shown(request: Mapping[str, Any]) -> dict[str, Any]:
    """A compared request under the names that AutoGen has for its parts, for messages."""
    rest: Mapping[str, Any] | None = request.get("asked")
    if rest is None:
        return dict(request)
    hashes: list[str] = rest["tools"]
    named = zip(request["tools"], hashes, strict=True)
    return {
        "messages": request["messages"],
        "tools": {name: {"schema": f"of hash {digest}"} for name, digest in named},
        "tool_choice": rest["tool_choice"],
        "json_output": [request["expected"], rest["json_output"]],
        "extra_create_args": rest["arguments"],
        "stream": rest["stream"],
    }


# ---- The answer of a model client to a record, and back ----


_ESCAPED = re.compile(r"\\(\\|u[0-9a-f]{4})")


class _StatusError(Exception):
    """An error of a server, by the number of its HTTP status."""

    def __init__(self, reason: str, status_code: int) -> None:
        self.status_code = status_code
        super().__init__(reason)


def given_of(result: CreateResult, pieces: Sequence[str] | None) -> AnswerDetails:
    """What of an answer its text, its calls, its usage and its finish reason do not say."""
    content: Any = result.content
    content = "" if content is None else content  # as some clients give it
    text = "".join(pieces or ())
    fields: dict[str, Any] = {
        "content": content if isinstance(content, str) else [asdict(call) for call in content],
        "thought": result.thought,
        "stream": None if pieces is None or text == content else text,
        "logprobs": _short_logprobs(result.logprobs, content),
    }
    halved = _halved(json.dumps(fields, ensure_ascii=False))
    exact = _mapped(fields, _escape) if halved else None
    values = dict.fromkeys(fields) if exact else plain_json(fields)
    logprobs: list[Any] | None = values["logprobs"]
    return AnswerDetails(
        ended="text" if isinstance(content, str) else "calls",
        thought=values["thought"],
        cached=result.cached,
        pieces=None if pieces is None else tuple(map(len, pieces)),
        stream=values["stream"],
        logprobs=logprobs if logprobs is None else tuple(logprobs),
        exact=plain_json(exact),
    )


def given_up(error: BaseException | None, pieces: Sequence[str] | None) -> AnswerDetails:
    """What came before a request ended without an answer."""
    text = "".join(pieces or ())
    cancelled = isinstance(error, asyncio.CancelledError | GeneratorExit)
    details = AnswerDetails(
        ended="nothing" if error is None else "cancelled" if cancelled else "raised",
        pieces=None if pieces is None else tuple(map(len, pieces)),
        stream=well_formed(text) or None,
        exact={"stream": _escape(text)} if _halved(text) else None,
    )
    return details.model_copy(update={"fault": _fault(error)})


def result_of(call: ModelCall) -> CreateResult:
    """The answer as the client gave it, without secrets; None stays None."""
    details = call.given or AnswerDetails(ended="calls" if call.tool_calls else "text")
    recorded = call.raw if details.ended == "text" else list(call.tool_calls)
    exact: Mapping[str, Any] = _mapped(details.exact or {}, _unescape)
    content = exact.get("content", recorded)
    logprobs = exact.get("logprobs", details.logprobs)
    usage = call.usage
    return CreateResult.model_construct(
        finish_reason=cast("Any", call.finish_reason),
        # Records of phases name no id: their calls are proposals.
        content=content
        if isinstance(content, str)
        else [
            FunctionCall(id=each.get("id", ""), name=each["name"], arguments=each["arguments"])
            for each in content
        ],
        usage=RequestUsage(
            prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
        ),
        cached=details.cached,
        logprobs=None if logprobs is None else [_logprob(each) for each in logprobs],
        thought=exact.get("thought", details.thought),
    )


def pieces_of(call: ModelCall) -> Iterator[str]:
    """The pieces of the stream, in order. Where a secret was removed, their bounds differ."""
    details = call.given
    if details is None or not details.pieces:
        return
    exact: Mapping[str, Any] = _mapped(details.exact or {}, _unescape)
    text = exact.get("stream", details.stream)
    if text is None:
        text = exact.get("content", call.raw)
    at = 0
    for length in details.pieces[:-1]:
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


def ended_as(call: ModelCall) -> Literal["text", "calls", "nothing", "raised", "cancelled"]:
    """How a request ended; an error may also come from an unusable answer."""
    if call.given is not None:
        return call.given.ended
    if call.error and not (call.raw or call.tool_calls or call.finish_reason):
        if call.error == "cancelled":
            return "cancelled"
        if not call.error.startswith(UNREADABLE):
            return "raised"
    return "calls" if call.tool_calls else "text"


UNREADABLE = (
    "The client brought",
    "Among the tool calls",
    "A tool call of the answer",
    "The answer was empty",
)
"""How a problem begins with an answer that came and could not be read."""


def _fault(error: BaseException | None) -> str | None:
    if isinstance(error, TimeoutError):
        return "timeout"
    for holder in (error, getattr(error, "response", None)):
        status: object = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return f"status {status}"
    return "refused" if isinstance(error, Exception) and is_refusal(error) else None


def _short_logprobs(
    logprobs: Sequence[ChatCompletionTokenLogprob] | None, content: object
) -> list[Any] | None:
    """Log probabilities as short lists. None of a text with a secret: tokens are its pieces."""
    clean = Redactor.from_environment().clean_text
    if logprobs is None or (isinstance(content, str) and clean(content) != content):
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


def _logprob(parts: Sequence[Any]) -> ChatCompletionTokenLogprob:
    token, logprob, as_bytes, tops = parts
    return ChatCompletionTokenLogprob(
        token=token,
        logprob=float(logprob),
        bytes=as_bytes,
        top_logprobs=tops and [TopLogprob(float(top[0]), top[1]) for top in tops],
    )


def _mapped(value: Any, change: Any) -> Any:
    match value:
        case str():
            return change(value)
        case list():
            return [_mapped(item, change) for item in cast("list[Any]", value)]
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: _mapped(item, change) for key, item in items}
        case _:
            return value


def _halved(text: str) -> bool:
    """Whether the text holds half characters."""
    return well_formed(text) != text


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def _unescape(text: str) -> str:
    return _ESCAPED.sub(
        lambda found: "\\" if found[1] == "\\" else chr(int(found[1][1:], 16)), text
    )


# ---- A tool's result to a receipt, and back ----


_OURS = frozenset({"coag", "autogen_core", "autogen_agentchat", "autogen_ext"})
"""Packages whose modules are imported for the classes of recorded results."""
_PLAIN = frozenset(ToolResult.model_fields)
_ModelT = TypeVar("_ModelT", bound=BaseModel)


def status_of(result: ToolResult) -> ReceiptStatus:
    """What a result says of how its call ended."""
    if getattr(result, "may_have_happened", False):
        return ReceiptStatus.UNKNOWN
    failed = read_result(text_of(result), is_error=result.is_error).is_error
    return ReceiptStatus.FAILED if failed else ReceiptStatus.DONE


def text_of(result: ToolResult) -> str:
    """The result as the text of its receipt; an image is `[image]` there."""
    return well_formed(result.to_text(replace_image="[image]"))


def returned_of(
    result: ToolResult, action: str, status: ReceiptStatus, shown: Sequence[object] = ()
) -> Returned | None:
    """What a receipt must hold beside the text and the status; None if that is nothing."""
    kind = type(result)
    parts = result.result
    alone = len(parts) == 1 and isinstance(parts[0], TextResultContent)
    returned = Returned(
        type=None if kind is ToolResult else _name_of(kind),
        name=None if result.name == action else well_formed(result.name),
        is_error=result.is_error,
        parts=None if alone else tuple(map(_part, parts)),
        fields=plain_json(result.model_dump(mode="json", exclude=set(_PLAIN))),
        shown=tuple(map(_item, shown)),
    )
    default = Returned(is_error=status is not ReceiptStatus.DONE)
    return None if returned == default else returned


def tool_result_of(intent: Intent, receipt: Receipt) -> ToolResult:
    """The result of a recorded call."""
    failed = receipt.status is not ReceiptStatus.DONE
    returned = receipt.returned or Returned(is_error=failed)
    parts = ({"text": receipt.content},) if returned.parts is None else returned.parts
    return _class_of(returned.type, ToolResult).model_validate(
        {
            **returned.fields,
            "name": returned.name or intent.action,
            "result": [_content(part) for part in parts],
            "is_error": returned.is_error,
        }
    )


def shown_of(receipt: Receipt) -> list[Any]:
    """What a recorded call had shown while it ran, in order."""
    return [
        _class_of(item["type"], BaseModel).model_validate(item["value"])
        if "type" in item
        else item["value"]
        for item in (receipt.returned.shown if receipt.returned else ())
    ]


def _part(part: TextResultContent | ImageResultContent) -> dict[str, Any]:
    if isinstance(part, TextResultContent):
        return {"text": well_formed(part.content)}
    return {"image": part.content.data_uri}


def _content(part: Mapping[str, Any]) -> TextResultContent | ImageResultContent:
    if "image" in part:
        return ImageResultContent(content=Image.from_uri(part["image"]))
    return TextResultContent(content=part["text"])


def _item(item: object) -> dict[str, Any]:
    named = {"type": _name_of(type(item))} if isinstance(item, BaseModel) else {}
    return {**named, "value": plain_json(item)}


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_of(name: str | None, base: type[_ModelT]) -> type[_ModelT]:
    """The class of that name; of packages that are not ours only if they are imported already."""
    if name is None:
        return base
    module = name.partition(":")[0]
    if module.partition(".")[0] not in _OURS and module not in sys.modules:
        raise ConfigurationError(
            f"A recorded result is a {name!r}. Import {module!r} before the run is replayed."
        )
    value = from_import_name(name)
    if not isinstance(value, type) or not issubclass(value, base):
        raise ConfigurationError(f"A recorded result is a {name!r}, which is no {base.__name__}.")
    return value
