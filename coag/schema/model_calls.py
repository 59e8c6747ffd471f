"""The record of asking a model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from .outcomes import TokenUsage
from .values import Moment, Phase, Value


class OutputMode(StrEnum):
    """How the form of an answer is asked for; from strictest to loosest."""

    JSON_SCHEMA = "json_schema"
    JSON_MODE = "json_mode"
    PROMPT = "prompt"
    NATIVE = "native"
    """Tools were offered; the answer is tool calls or text."""
    TEXT = "text"
    """No form was asked for (plain agents)."""


class RequestDetails(Value):
    """What a request asked for beside its messages, the names of its tools and its answer's type.

    It is what a replay must compare, and no more.
    """

    tools: tuple[str, ...] = ()
    """A hash of each tool's schema, in the order of `ModelCall.tools`."""
    tool_choice: str = "auto"
    """`auto`, `required`, `none`, or `tool NAME`."""
    json_output: bool | str | None = None
    """As it was given; of a type, a hash of its schema."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """The further arguments of the request, as JSON; of what is no JSON, its type."""
    stream: bool = False
    """True if the answer was asked for as a stream."""
    model_info: dict[str, Any] | None = None
    """What the client says its model can do: with its first request, and when that changes."""


class AnswerDetails(Value):
    """What a client gave beside the text, the tool calls, the usage and the finish reason."""

    ended: Literal["text", "calls", "nothing", "raised", "cancelled"]
    """The result of the request; `nothing` is a stream that ended without one."""
    thought: str | None = None
    """The model's own thought, where its client separates it."""
    cached: bool = False
    """True if the client says that the answer came out of a cache."""
    pieces: tuple[int, ...] | None = None
    """Characters of each piece of the stream, in order; None without a stream. They are cut out
    of `stream` where that is there, else out of `raw`."""
    stream: str | None = None
    """The text of all pieces, where it is not `raw`."""
    logprobs: tuple[Any, ...] | None = None
    """For each token of the answer its text, log probability, bytes and its alternatives, as pairs
    of probability and bytes; where the client gave them, and the answer holds no secret."""
    exact: dict[str, Any] | None = None
    """`content`, `thought`, `stream` and `logprobs` with half characters (lone surrogates)
    escaped, where there are any: they can be in no UTF-8 file."""
    fault: str | None = None
    """Of what sort an error was: `timeout`, `status NUMBER`, or `refused` for a request that the
    client itself would not make; None for all others."""


def _as_it_is(message: object, handler: ValidatorFunctionWrapHandler) -> Any:
    return cast("object", message) if type(message) is dict else handler(message)


SentMessage = Annotated[dict[str, Any], WrapValidator(_as_it_is)]
"""A message of a request, which nobody changes: the records of a long dialogue share theirs."""


class ModelCall(Value):
    """One request to a model and its result; failed ones included."""

    record: Literal["model_call"] = "model_call"
    id: str
    at: Moment
    cycle: int = 0
    phase: Phase | None = None
    """The phase that asked; None for a plain agent."""
    model: str
    expected: str | None = None
    """Name of the answer's type, where one was asked for."""
    rung: OutputMode
    attempt: int
    """1 for the first request, 2 for the one that repeats it with the error."""
    messages: tuple[SentMessage, ...]
    """The messages as sent: `role`, `content`, and for plain agents `source`, `tool_calls`,
    `thought`, `results` (what each tool result belongs to) and `parts` (of a message with images:
    the characters of each text and a hash of each image)."""
    raw: str
    """The answer as it came; empty if none came."""
    tools: tuple[str, ...] = ()
    """Names of the tools that were offered."""
    tool_calls: tuple[dict[str, Any], ...] = ()
    """The tool calls in the answer: `id`, `name`, `arguments`."""
    usage: TokenUsage
    usage_estimated: bool = False
    """True if the client gave no possible usage; the tokens are estimated from the texts."""
    finish_reason: str | None = None
    repaired: bool = False
    """True if the raw answer was no valid JSON and could be repaired."""
    error: str | None = None
    """Why the answer could not be used, or why none came."""
    error_type: str | None = None
    """Class of what the client raised in place of an answer; None where it raised nothing."""
    seconds: float = 0.0
    asked: RequestDetails | None = None
    """The rest of the request; None where a phase asked, and in records of version 1."""
    given: AnswerDetails | None = None
    """The rest of the answer; None where there is none, and in records of version 1."""
