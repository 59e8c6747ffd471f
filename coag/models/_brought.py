"""What a client brought, looked at before it is used: nobody holds clients to their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage

from coag.schema import estimate_tokens

from ._dialogue import storable

_SHOWN = 80
"""Characters of a wrong value that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A result whose fields are what their types say."""

    content: str | tuple[FunctionCall, ...] = ""
    thought: str = ""
    finish_reason: str | None = None
    usage: RequestUsage
    usage_estimated: bool = False
    """True if the client told no numbers that can be, so that these are estimated."""
    fault: str = ""
    """Why the result cannot be read, for the log and the model; its content is empty then."""


def brought(result: object, sent: Sequence[Mapping[str, Any]]) -> Brought:
    """The result as it can be used: bad numbers of usage estimated, anything else bad told.

    Args:
        result: What the client gave back.
        sent: The messages that it answers, as they are recorded.
    """
    if not isinstance(result, CreateResult):
        fault = _told("The client brought no result but", result)
        return Brought(usage=_estimate(sent, ""), usage_estimated=True, fault=fault)
    # Made without validation, a result may lack any field.
    content: Any = getattr(result, "content", None)
    thought: Any = getattr(result, "thought", None)
    finish: Any = getattr(result, "finish_reason", None)
    usage: Any = getattr(result, "usage", None)
    fault = _fault(content, thought)
    estimated = not _believable(usage)
    return Brought(
        content="" if fault else _content(content),
        thought="" if fault else storable(thought or ""),
        finish_reason=None if finish is None else storable(finish),
        usage=_estimate(sent, content) if estimated else usage,
        usage_estimated=estimated,
        fault=fault,
    )


def _content(content: Any) -> str | tuple[FunctionCall, ...]:
    """Text that can be stored, or calls; None, which careless clients bring, is an empty text."""
    if content is None or isinstance(content, str):
        return storable(content or "")
    return tuple(cast("Sequence[FunctionCall]", content))


def _fault(content: Any, thought: Any) -> str:
    if thought is not None and not isinstance(thought, str):
        return _told("The client brought as the model's thought no text but", thought)
    if content is None or isinstance(content, str):
        return ""
    if not isinstance(content, list | tuple):
        return _told("The client brought as its answer neither a text nor calls but", content)
    for call in cast("Sequence[object]", content):
        if not isinstance(call, FunctionCall):
            return _told("Among the tool calls of the answer was", call)
        name = cast("object", call.name)
        if not isinstance(name, str):
            return _told("A tool call of the answer names as its tool", name)
    return ""


def _told(said: str, value: object) -> str:
    shown = storable(repr(value))
    return f"{said} {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}."


def _believable(usage: object) -> bool:
    if not isinstance(usage, RequestUsage):
        return False
    numbers = cast("tuple[object, ...]", (usage.prompt_tokens, usage.completion_tokens))
    return all(isinstance(number, int) and number >= 0 for number in numbers)


def _estimate(sent: Sequence[Mapping[str, Any]], content: object) -> RequestUsage:
    said = sum(estimate_tokens(str(message.get("content", ""))) for message in sent)
    written = content if isinstance(content, str) else "" if content is None else repr(content)
    return RequestUsage(prompt_tokens=said, completion_tokens=estimate_tokens(written))
