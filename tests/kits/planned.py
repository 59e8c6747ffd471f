"""A fake model for drop-in tests: it does what it was planned to, errs on demand, and watches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from autogen_core import CancellationToken, Component, FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.models import ModelClient, ModelRequest

Planned = tuple[str, Any]
"""A tool call: its name and its arguments, an object or text as it is."""
PROMPT_TOKENS, COMPLETION_TOKENS = 7, 3
"""What every call costs."""
Kind = Literal["tools", "json", "text"]

BLANK = " \n\t "
LONG = "lorem ipsum " * 170_000
"""Two megabytes."""
BAD_TEXTS: Mapping[str, str] = {
    "empty": "",
    "blank": BLANK,
    "prose": "I think that all is well.",
    "long": LONG,
    "null": "null",
    "list": "[]",
    "number": "17",
    "string": '"just a string"',
    "wrong_form": '{"unexpected": [1, 2, {"x": null}]}',
    "cut": '{"situation": "All is ca',
    "fenced_nothing": "```json\n```",
    "control": "\x00\x01\ud800",
    "deep": "[" * 5_000,
}
"""Texts that are no answer to anything, by what is wrong with them."""
BAD_ARGUMENTS: Mapping[str, str] = {
    "prose": "not json at all",
    "cut": '{"a": 1, "b"',
    "list": "[1, 2]",
    "string": '"a string"',
    "null": "null",
    "empty": "",
    "fenced": '```json\n{"a": 1, "b": 2}\n```',
    "missing": '{"a": 1}',
    "wrong_type": '{"a": "one", "b": []}',
    "deep": '{"a":' * 3_000,
}
"""Arguments of `add` that are not quite right, by what is wrong with them."""


@dataclass
class Fault:
    """Something that goes wrong instead of the answer."""

    answer: str | Sequence[FunctionCall] | BaseException
    when: Kind | Literal["any"] = "any"
    times: int = 1
    """How often; -1 for ever."""
    skip: int = 0
    """How many good answers come first."""


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    messages: tuple[LLMMessage, ...]
    tools: tuple[str, ...]
    kind: Kind
    token: CancellationToken | None

    @property
    def text(self) -> str:
        """All that was said."""
        return "\n".join(texts_of(self.messages))


class PlannedConfig(BaseModel):
    """The declarative form of the fake."""

    answer: str = "FINAL"
    plan: list[list[tuple[str, Any]]] = []
    info: dict[str, Any] = {}
    forms: dict[str, Any] = {}
    thought: str | None = None


def texts_of(messages: Sequence[LLMMessage]) -> list[str]:
    """The texts of messages, images as `[image]`."""
    texts: list[str] = []
    for message in messages:
        if isinstance(message.content, str):
            texts.append(message.content)
            continue
        for part in message.content:
            texts.append("[image]" if isinstance(part, Image) else str(part))
    return texts


class PlannedModel(ModelClient, Component[PlannedConfig]):
    """Calls what is planned where tools are offered, fills forms, else gives its answer.

    It refuses what AutoGen's OpenAI client refuses, and keeps what a provider would reject in
    `violations`.
    """

    component_config_schema = PlannedConfig
    component_provider_override = "kits.planned.PlannedModel"
    context_tokens = 100_000

    def __init__(
        self,
        answer: str = "FINAL",
        *batches: Planned | Sequence[Planned],
        forms: Mapping[str, Any] | None = None,
        thought: str | None = None,
        seconds: float = 0.0,
        **info: Any,
    ) -> None:
        super().__init__()
        self.said = answer
        self.plan = [_batch(batch) for batch in batches]
        self.forms = dict(forms or {})
        self.thought = thought
        self.seconds = seconds
        self.faults: list[Fault] = []
        self.asked: list[Asked] = []
        self.violations: list[str] = []
        self.at_work = 0
        self.closed = 0
        self._given = dict(info)
        self._info = cast(
            "ModelInfo",
            {
                "vision": False,
                "function_calling": True,
                "json_output": True,
                "structured_output": True,
                "family": "unknown",
                "multiple_system_messages": False,
                **info,
            },
        )
        self._first_plan = [list(batch) for batch in self.plan]
        self._numbers = 0

    # ---- for tests ----

    def then(self, *batches: Planned | Sequence[Planned]) -> Self:
        """Plans further calls."""
        self.plan += [_batch(batch) for batch in batches]
        return self

    def err(
        self,
        answer: str | Sequence[FunctionCall] | BaseException,
        when: Kind | Literal["any"] = "any",
        times: int = 1,
        skip: int = 0,
    ) -> Self:
        """Errs so many times, after so many good answers."""
        self.faults.append(Fault(answer, when, times, skip))
        return self

    def call(self, name: str, arguments: Any) -> FunctionCall:
        """A call with an id of its own."""
        self._numbers += 1
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return FunctionCall(id=f"call-{self._numbers}", name=name, arguments=text)

    @property
    def heard(self) -> str:
        """Everything that was ever asked."""
        return "\n".join(asked.text for asked in self.asked)

    @property
    def cost(self) -> tuple[int, int]:
        """Prompt and completion tokens so far."""
        return PROMPT_TOKENS * len(self.asked), COMPLETION_TOKENS * len(self.asked)

    # ---- answering ----

    def _decide(self, request: ModelRequest) -> CreateResult:
        self._refuse(request)
        names = tuple(schema["name"] for schema in request.schemas)
        kind: Kind = "json" if request.json_output else "tools" if names else "text"
        self.asked.append(Asked(tuple(request.messages), names, kind, request.token))
        self.violations += _violations(request.messages)
        content = self._fault(kind)
        if content is None:
            content = self._content(self.asked[-1], request.expected)
        return CreateResult(
            finish_reason="stop" if isinstance(content, str) else "function_calls",
            content=content,
            usage=RequestUsage(PROMPT_TOKENS, COMPLETION_TOKENS),
            cached=False,
            thought=self.thought,
        )

    def _fault(self, kind: Kind) -> str | list[FunctionCall] | None:
        for fault in self.faults:
            if fault.times == 0 or fault.when not in ("any", kind):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.times -= 1
            if isinstance(fault.answer, BaseException):
                raise fault.answer
            return fault.answer if isinstance(fault.answer, str) else list(fault.answer)
        return None

    def _content(self, asked: Asked, form: str | None) -> str | list[FunctionCall]:
        if asked.kind == "json":
            return json.dumps(self._form(form or self._described(texts_of(asked.messages)[-1])))
        if asked.kind == "tools" and self.plan and any(c[0] in asked.tools for c in self.plan[0]):
            return [self.call(*planned) for planned in self.plan.pop(0)]
        return self.said

    def _described(self, text: str) -> str:
        """Which of the forms the schema in a prompt is, where the request does not name it."""
        schema = text.partition("JSON Schema:")[2]
        for name, form in self.forms.items():
            keys = cast("dict[str, Any]", form) if isinstance(form, dict) else {"": None}
            if schema and all(f'"{key}"' in schema for key in keys):
                return name
        return ""

    def _form(self, name: str) -> Any:
        if name in self.forms:
            return self.forms[name]
        thought: dict[str, Any] = {"situation": "All is calm.", "risks": [], "goal_status": "open"}
        match name:
            case "ReasoningAnswer":
                return thought
            case "ProposalAnswer":
                return {"candidates": self._candidates()}
            case "EvaluationAnswer":
                return {"evaluations": [{"candidate": n, "score": 0.5} for n in range(1, 5)]}
            case "SelectionAnswer":
                return {"reason": "so", "choice": 1}
            case "DeliberationAnswer":
                return {**thought, "candidates": self._candidates()}
            case _:
                return {**thought, "candidates": self._candidates(), "evaluations": [], "choice": 1}

    def _candidates(self) -> list[dict[str, Any]]:
        answer = ("respond", self.forms.get("respond", {"text": self.said}))
        batch = self.plan.pop(0) if self.plan else [answer]
        return [
            {"action": name, "arguments": given if isinstance(given, str) else json.dumps(given)}
            for name, given in batch
        ]

    def _refuse(self, request: ModelRequest) -> None:
        """Raises what AutoGen's OpenAI client raises."""
        info, messages, json_output = self._info, request.messages, request.json_output
        if request.tools and not info["function_calling"]:
            raise ValueError("Model does not support function calling")
        if json_output is True and not info["json_output"]:
            raise ValueError("Model does not support JSON output.")
        if isinstance(json_output, type) and not info.get("structured_output"):
            raise ValueError("Model does not support structured output.")
        seen = [part for m in messages if isinstance(m.content, list) for part in m.content]
        if any(isinstance(part, Image) for part in seen) and not info["vision"]:
            raise ValueError("Model does not support vision and image was provided")
        system = [n for n, message in enumerate(messages) if isinstance(message, SystemMessage)]
        if system not in ([], [0]) and not info.get("multiple_system_messages"):
            raise ValueError("Multiple and Not continuous system messages are not supported")

    async def _work(self, token: CancellationToken | None) -> None:
        if token is not None and token.is_cancelled():
            raise asyncio.CancelledError
        if self.seconds:
            future = asyncio.ensure_future(asyncio.sleep(self.seconds))
            if token is not None:
                token.link_future(future)
            await future

    # ---- the client ----

    async def answer(self, request: ModelRequest) -> CreateResult:
        self.at_work += 1
        try:
            await self._work(request.token)
            return self._decide(request)
        finally:
            self.at_work -= 1

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        self.at_work += 1
        try:
            result = self._decide(request)
            if isinstance(result.content, str):
                step = max(1, len(result.content) // 4)
                for begin in range(0, len(result.content), step):
                    await self._work(request.token)
                    await asyncio.sleep(0)
                    yield result.content[begin : begin + step]
            else:
                await self._work(request.token)
            yield result
        finally:
            self.at_work -= 1

    async def close(self) -> None:
        self.closed += 1

    def total_usage(self) -> RequestUsage:
        return RequestUsage(*self.cost)

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        return sum(len(text) // 4 + 1 for text in texts_of(messages))

    @property
    def model_info(self) -> ModelInfo:
        return self._info

    def _to_config(self) -> PlannedConfig:
        return PlannedConfig(
            answer=self.said,
            plan=self._first_plan,
            info=self._given,
            forms=self.forms,
            thought=self.thought,
        )

    @classmethod
    def _from_config(cls, config: PlannedConfig) -> Self:
        return cls(
            config.answer,
            *config.plan,
            forms=config.forms,
            thought=config.thought,
            **config.info,
        )


def _batch(batch: Planned | Sequence[Planned]) -> list[Planned]:
    if isinstance(batch, tuple) and isinstance(batch[0], str):
        return [cast("Planned", batch)]
    return [(name, given) for name, given in cast("Sequence[Planned]", batch)]


def _violations(messages: Sequence[LLMMessage]) -> list[str]:
    """What a provider of OpenAI's kind would reject in this transcript."""
    violations: list[str] = []
    if not any(isinstance(message, UserMessage) for message in messages):
        violations.append("nobody has said anything")
    open_calls: set[str] = set()
    for message in messages:
        if isinstance(message, FunctionExecutionResultMessage):
            answered = {result.call_id for result in message.content}
            if answered - open_calls:
                violations.append(f"results without calls: {sorted(answered - open_calls)}")
            open_calls -= answered
            continue
        if open_calls:
            violations.append(f"calls without results: {sorted(open_calls)}")
            open_calls = set()
        if isinstance(message, AssistantMessage) and isinstance(message.content, list):
            open_calls = {call.id for call in message.content}
        if not message.content:
            violations.append(f"an empty {message.type}")
    return [*violations, *([f"calls without results: {sorted(open_calls)}"] if open_calls else [])]
