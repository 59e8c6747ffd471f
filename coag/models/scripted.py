"""A model that is a script: it answers what code says, and counts what it is asked."""

from __future__ import annotations

import inspect
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self, TypeAlias, cast

from autogen_core import Component, ComponentModel, FunctionCall
from autogen_core.models import (
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import ToolSchema
from pydantic import BaseModel, JsonValue, PlainSerializer, PlainValidator, TypeAdapter

from coag.errors import ConfigurationError
from coag.schema import Imported, estimate_tokens, provider_name

from .client import (
    ModelClient,
    ModelRequest,
    cancellable,
    capable_info,
    estimated_tokens,
    message_text,
    token_usage,
)

# ---- What a scripted model is asked, and what it may answer ----


ScriptedReply: TypeAlias = str | BaseModel | Mapping[str, Any] | Sequence[FunctionCall]
"""What a script may answer: text; a value or a mapping, sent as JSON; tool calls; or all of it
as a `CreateResult` (which is a `BaseModel`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRequest:
    """What a scripted model was asked."""

    messages: tuple[LLMMessage, ...]
    tools: tuple[ToolSchema, ...] = ()
    tool_choice: str = "auto"
    """`auto`, `required`, `none`, or the name of the tool to call."""
    json_output: bool = False
    """True if the answer must be JSON, with or without a schema."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the answer, where one was asked for."""
    schema_name: str | None = None
    """The schema's name: that of the answer's type."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All further arguments of the call, e.g. `max_tokens`."""
    number: int = 1
    """1 for the first request to this model."""

    @property
    def text(self) -> str:
        """The text of all messages, tool results included, one after the other."""
        return "\n".join(message_text(message) for message in self.messages)

    @property
    def system_text(self) -> str:
        """The text of the system messages."""
        return "\n".join(m.content for m in self.messages if isinstance(m, SystemMessage))

    @property
    def last_user_text(self) -> str:
        """The text of the last message that the user said; empty if there is none."""
        said = [message_text(m) for m in self.messages if isinstance(m, UserMessage)]
        return said[-1] if said else ""


Script: TypeAlias = Callable[[ScriptedRequest], ScriptedReply | Awaitable[ScriptedReply]]
"""A scripted model's behaviour; plain or async. What it raises, the client raises."""


def as_result(reply: ScriptedReply, request: ScriptedRequest) -> CreateResult:
    """The reply as AutoGen's clients give it, with estimated usage."""
    if isinstance(reply, CreateResult):
        return reply
    if isinstance(reply, BaseModel):
        reply = reply.model_dump_json()
    elif isinstance(reply, Mapping):
        reply = json.dumps(reply, ensure_ascii=False)
    content = reply if isinstance(reply, str) else list(reply)
    parts = content if isinstance(content, str) else [c.name + c.arguments for c in content]
    usage = RequestUsage(
        prompt_tokens=estimated_tokens(request.messages, request.tools),
        completion_tokens=estimate_tokens("".join(parts)),
    )
    finish = "stop" if isinstance(content, str) else "function_calls"
    return CreateResult(finish_reason=finish, content=content, usage=usage, cached=False)


# ---- A model that is a function of the request: for tests, for demos, for docs ----


_DEFAULT_INFO = capable_info("scripted")


class ScriptedModelConfig(BaseModel):
    """The declarative form of a scripted model: its arguments."""

    script: Imported
    name: str = "scripted"
    model_info: ModelInfo | None = None


class ScriptedModel(ModelClient, Component[ScriptedModelConfig]):
    """A `ChatCompletionClient` over a function of the request; no network, no tokenizer.

    It refuses what its `model_info` says it cannot do with a `ValueError`, as AutoGen's own
    clients do. Usage is estimated (`coag.schema.estimate_tokens`). Token limits are passed on
    in `ScriptedRequest.extra` and not enforced. Its component names the script by import, so
    that one with a script of a module can be dumped.

    Args:
        script: Answers each request.
        name: What the model is called in records.
        model_info: What it claims to be able to do; by default all but vision.

    Raises:
        TypeError: The script is no function, as a list of answers.
    """

    component_config_schema = ScriptedModelConfig
    component_provider_override = "coag.models.ScriptedModel"
    context_tokens = 128_000

    def __init__(
        self, script: Script, *, name: str = "scripted", model_info: ModelInfo | None = None
    ) -> None:
        super().__init__()
        if not callable(script):
            give = "For answers in their order give ScriptedModel(scripted_answers([...]))."
            raise TypeError(f"A script is a function of the request, not {script!r}. {give}")
        self.name = name
        self.requests: deque[ScriptedRequest] = deque(maxlen=1_000)
        self.calls = 0
        self._script = script
        self._info = _DEFAULT_INFO if model_info is None else model_info

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Asks the script."""
        choice = request.tool_choice
        form: Mapping[str, Any] = request.arguments.get("response_format") or {}
        schema: Mapping[str, Any] = form.get("json_schema") or {}
        if isinstance(request.json_output, type):
            schema = {"schema": request.json_output.model_json_schema(), "name": request.expected}
        asked = ScriptedRequest(
            messages=tuple(request.messages),
            tools=tuple(request.schemas),
            tool_choice=choice if isinstance(choice, str) else choice.name,
            json_output=bool(
                request.json_output or form.get("type") in ("json_schema", "json_object")
            ),
            schema=schema.get("schema"),
            schema_name=schema.get("name"),
            extra=dict(request.arguments),
            number=self.calls + 1,
        )
        self._refuse_what_it_cannot(asked)
        self.calls += 1
        self.requests.append(asked)
        given = self._script(asked)
        reply = await cancellable(given, request.token) if inspect.isawaitable(given) else given
        result = as_result(reply, asked)
        self.used += token_usage(result.usage)
        return result

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """Asks the script; yields a text word by word, then the result."""
        result = await self.answer(request)
        if isinstance(result.content, str):
            for chunk in re.findall(r"\S+\s*|\s+", result.content):
                yield chunk
        yield result

    @property
    def model_info(self) -> ModelInfo:
        """What the model claims to be able to do."""
        return self._info

    def dump_component(self) -> ComponentModel:
        """The component of this very class.

        Raises:
            ConfigurationError: The script cannot be imported.
        """
        dumped = super().dump_component()
        return dumped.model_copy(update={"provider": provider_name(type(self))})

    def _to_config(self) -> ScriptedModelConfig:
        try:
            script = Imported.of(self._script)
        except ConfigurationError as error:
            raise ConfigurationError(f"Scripted model {self.name!r}: {error}") from error
        info = None if self._info is _DEFAULT_INFO else self._info
        return ScriptedModelConfig(script=script, name=self.name, model_info=info)

    @classmethod
    def _from_config(cls, config: ScriptedModelConfig) -> Self:
        return cls(config.script.get(), name=config.name, model_info=config.model_info)

    def _refuse_what_it_cannot(self, request: ScriptedRequest) -> None:
        wanted = {
            "function_calling": bool(request.tools),
            "structured_output": request.schema is not None,
            "json_output": request.json_output and request.schema is None,
        }
        for ability, needed in wanted.items():
            if needed and not self._info.get(ability):
                raise ValueError(f"Scripted model {self.name!r} does not support {ability}.")


# ---- Scripted answers: a script that gives them in order ----


_Writable: TypeAlias = str | list[FunctionCall] | dict[str, JsonValue]
"""The answers that JSON can give back."""
_WRITABLE = TypeAdapter[list[_Writable]](list[_Writable])


def _written(answers: list[ScriptedReply | Exception]) -> Any:
    for number, answer in enumerate(answers, 1):
        if not isinstance(answer, str | list | dict):
            kind = f"answer {number} is a {type(answer).__name__}, and only texts, JSON objects"
            raise ValueError(f"{kind} and tool calls can be written down; give a function")
    return _WRITABLE.dump_python(cast("list[_Writable]", answers), mode="json")


@dataclass(slots=True)
class ScriptedAnswers:
    """A script that gives its answers in order, and raises an exception that is among them.

    It can be written down in a component where its answers are texts, JSON objects and tool
    calls. How many it has given is state: a loaded one begins with the first.
    """

    answers: Annotated[
        list[ScriptedReply | Exception],
        PlainValidator(_WRITABLE.validate_python),
        PlainSerializer(_written),  # after the validator, which would take its place
    ]
    """What it answers, in order."""
    given: int = field(default=0, init=False)
    """How many answers were given."""

    def __call__(self, request: ScriptedRequest) -> ScriptedReply:
        """The next answer."""
        if self.given == len(self.answers):
            form = request.schema_name or "text"
            asked = f"{form} with {request.last_user_text[-200:]!r}"
            count = len(self.answers)
            raise RuntimeError(f"All {count} scripted answers are used up; asked for {asked}.")
        reply = self.answers[self.given]
        self.given += 1
        if isinstance(reply, Exception):
            raise reply
        return reply


def scripted_answers(answers: Iterable[ScriptedReply | Exception]) -> ScriptedAnswers:
    """A script that gives these answers in order; an exception among them is raised.

    The script raises `RuntimeError` when there is no answer left, and says what was asked.
    """
    return ScriptedAnswers([_plain(answer) for answer in answers])


def _plain(answer: ScriptedReply | Exception) -> ScriptedReply | Exception:
    if isinstance(answer, BaseModel) and not isinstance(answer, CreateResult):
        return answer.model_dump_json()
    return list(answer) if isinstance(answer, tuple) else answer
