"""The client that is examined, asked within limits."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

import httpx
from autogen_core import ComponentModel, FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
from autogen_core.tools import ToolSchema
from pydantic import BaseModel, SecretStr

from coag.models import (
    form_arguments,
    is_refusal,
    limit_arguments,
    limit_name_of,
    listening,
    model_name_of,
    reason_of,
)
from coag.schema import Rung, TokenUsage

from .findings import Finding, Found, Grade, Limits, Probe

# ---- The server under examination: every request to it is bounded, timed and counted here ----


ToolChoice: TypeAlias = Literal["auto", "required", "none"]

AGAIN = "Ask again when the server is less busy, or raise --seconds."
"""Advice where an answer came too late."""

_ENDLESS = 4
"""A stream is broken off after this many times the pieces that its token limit allows."""
_REASON = 300
"""Characters of an error that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What one request brought."""

    text: str = ""
    thought: str = ""
    """What the model thought aloud, where the server tells it apart."""
    calls: tuple[FunctionCall, ...] = ()
    finish: str = ""
    """AutoGen's `finish_reason`; empty if no answer came."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    seconds: float = 0.0
    first_piece: float | None = None
    """Seconds until the first piece of a stream; None if none came."""
    pieces: int = 0
    endless: bool = False
    """True if a stream was broken off because it went far beyond its limit."""
    error: str | None = None
    """Why no answer came, in one line without keys."""
    refused: bool = False
    """True if the client or the server said that it does not do this, or not in this form."""
    late: bool = False
    """True if the request was given up because its time was over."""

    @property
    def trouble(self) -> Found:
        """What an error comes to."""
        if self.late:
            return Found.LATE
        return Found.REFUSED if self.refused else Found.FAILED

    def unanswered(self, probe: Probe, what: str, advice: str) -> Finding:
        """The finding of a probe that brought an error.

        Args:
            probe: The probe.
            what: What was asked for, as the beginning of a sentence.
            advice: What to do if the server does not do this; not for a late answer, which
                says nothing about the form that was asked for.
        """
        verb = "is refused" if self.refused else "got no answer" if self.late else "fails"
        return Finding(
            probe=probe,
            found=self.trouble,
            grade=Grade.UNKNOWN if self.late else Grade.POOR,
            text=f"{what} {verb}: {self.error}.",
            advice=AGAIN if self.late else advice,
        )


class Patient:
    """A model server as agents meet it: through an AutoGen client.

    Args:
        client: The client; it stays open.
        limits: The bounds of each request.
    """

    def __init__(self, client: ChatCompletionClient, limits: Limits) -> None:
        self.client = client
        self.limits = limits
        self.usage = TokenUsage()
        self.findings: dict[Probe, Finding] = {}
        """What was found so far."""
        self._limit_name = limit_name_of(client)

    def found(self, probe: Probe) -> Found:
        """What an earlier probe found."""
        return self.findings[probe].found

    async def ask(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        rung: Rung = Rung.TEXT,
        form: type[BaseModel] | None = None,
        client: ChatCompletionClient | None = None,
    ) -> Reply:
        """Asks for a whole answer.

        Args:
            messages: What to ask.
            tools: What may be called.
            tool_choice: As AutoGen has it.
            rung: How to ask for the form.
            form: The form to ask for; None for none.
            client: Ask by this client instead of the patient's own.
        """
        asked = client or self.client
        json_output, extra = (None, {}) if form is None else form_arguments(asked, rung, form)
        extra = {**extra, **self._limit(asked, self.limits.max_tokens)}
        begun = time.monotonic()
        with listening() as heard:
            try:
                async with asyncio.timeout(self.limits.seconds):
                    result = await asked.create(
                        messages,
                        tools=tools,
                        tool_choice=tool_choice,
                        json_output=json_output,
                        extra_create_args=extra,
                    )
            except Exception as error:
                # The one guard of whole answers: a client may raise anything, and that it does
                # is what is looked for here.
                self.usage += heard.usage()
                return self._failure(error, begun)
            usage = heard.usage(result.usage)
        self.usage += usage
        return _reply(result, usage, time.monotonic() - begun)

    async def stream(self, messages: Sequence[LLMMessage], max_tokens: int) -> Reply:
        """Asks for an answer in pieces, with its usage where the client can ask for that."""
        begun = time.monotonic()
        listener = _Listener(begun, most=max_tokens * _ENDLESS)
        # Only OpenAI-like clients must ask for usage in a stream, and take this argument.
        asks = "include_usage" in inspect.signature(self.client.create_stream).parameters
        extra: dict[str, Any] = {"stream_options": {"include_usage": True}} if asks else {}
        extra |= self._limit(self.client, max_tokens)
        parts = self.client.create_stream(messages, extra_create_args=extra)
        try:
            async with asyncio.timeout(self.limits.seconds), aclosing(parts):
                async for part in parts:
                    if listener.take(part):
                        break
        except Exception as error:
            # The one guard of streams; see `ask`.
            self.usage += TokenUsage(calls=1)
            return self._failure(error, begun, listener)
        reply = listener.reply(time.monotonic() - begun)
        self.usage += reply.usage
        return reply

    def _limit(self, client: ChatCompletionClient, tokens: int) -> dict[str, Any]:
        return limit_arguments(client, self._limit_name, tokens)

    def _failure(self, error: Exception, begun: float, listener: _Listener | None = None) -> Reply:
        seconds = time.monotonic() - begun
        late = isinstance(error, TimeoutError)
        reason = f"no answer within {self.limits.seconds:g} s" if late else reason_of(error)
        return Reply(
            seconds=seconds,
            error=reason[:_REASON],
            refused=not late and is_refusal(error),
            late=late,
            pieces=listener.pieces if listener else 0,
            first_piece=listener.first if listener else None,
            usage=TokenUsage(calls=1),
        )


class _Listener:
    """Takes the pieces of a stream."""

    def __init__(self, begun: float, most: int) -> None:
        self.pieces = 0
        self.first: float | None = None
        self._begun = begun
        self._most = most
        self._texts: list[str] = []
        self._result: CreateResult | None = None

    def take(self, part: str | CreateResult) -> bool:
        """Takes a piece; True if that is enough."""
        if isinstance(part, CreateResult):
            self._result = part
            return False
        self.pieces += 1
        self._texts.append(part)
        if self.first is None:
            self.first = time.monotonic() - self._begun
        return self.pieces > self._most

    def reply(self, seconds: float) -> Reply:
        """What the stream brought."""
        if self._result is None:
            return Reply(
                text="".join(self._texts),
                pieces=self.pieces,
                first_piece=self.first,
                seconds=seconds,
                endless=self.pieces > self._most,
                error=None if self.pieces else "the stream ended without a result",
                usage=TokenUsage(calls=1),
            )
        told = self._result.usage
        usage = TokenUsage(
            prompt_tokens=told.prompt_tokens, completion_tokens=told.completion_tokens, calls=1
        )
        content = self._result.content or "".join(self._texts)
        return Reply(
            text=content if isinstance(content, str) else "",
            pieces=self.pieces,
            first_piece=self.first,
            seconds=seconds,
            finish=self._result.finish_reason,
            usage=usage,
        )


def component_of(client: ChatCompletionClient) -> ComponentModel | None:
    """What the client says it was made with; None if it is no component that can say so."""
    try:
        return client.dump_component()
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        return None


def claiming(client: ChatCompletionClient, **abilities: bool) -> ChatCompletionClient | None:
    """A client of the same server with other claims in its `model_info`; None if none can be made.

    AutoGen's clients refuse or change requests by what they claim, which hides the server.
    """
    component = component_of(client)
    if component is None or "model_info" not in component.config:
        return None
    claims: Mapping[str, Any] = {**client.model_info, **abilities}
    config = {**component.config, "model_info": claims}
    return ChatCompletionClient.load_component(component.model_copy(update={"config": config}))


def _reply(result: CreateResult, usage: TokenUsage, seconds: float) -> Reply:
    # A careless client may bring None against its type: `or` makes that an empty answer.
    content = result.content or ""
    return Reply(
        text=content if isinstance(content, str) else "",
        thought=result.thought or "",
        calls=() if isinstance(content, str) else tuple(content),
        finish=result.finish_reason,
        usage=usage,
        seconds=seconds,
    )


# ---- Is the server there, and does it list the model? ----


_NAMED = 5
"""How many models of a list are named."""
_OLLAMA = "http://127.0.0.1:11434"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Directory:
    """Where a server lists its models."""

    url: str
    headers: Mapping[str, str]


async def listed(patient: Patient) -> tuple[Finding, ...]:
    """Asks the server for its list of models, at the address that the client has."""
    directory = _directory_of(component_of(patient.client))
    if directory is None:
        text = "The client tells no address at which models are listed."
        return (_finding(Found.SKIPPED, Grade.UNKNOWN, text),)
    begun = time.monotonic()
    try:
        async with httpx.AsyncClient(timeout=patient.limits.seconds) as http:
            response = await http.get(directory.url, headers=dict(directory.headers))
    except httpx.HTTPError as error:
        text = f"The server cannot be reached: {reason_of(error)}."
        advice = "Start it, or check the address in the spec."
        return (_finding(Found.FAILED, Grade.BAD, text, advice),)
    figures = {"answer_seconds": time.monotonic() - begun}
    if response.status_code in (401, 403):
        text = f"The server refuses the key (status {response.status_code})."
        return (_finding(Found.REFUSED, Grade.BAD, text, "Check the key in the environment."),)
    finding = _judged(_names(response), model_name_of(patient.client), response.status_code)
    return (finding.model_copy(update={"figures": figures}),)


def _judged(names: tuple[str, ...], model: str, status: int) -> Finding:
    if not names:
        text = f"The server is there, but lists no models (status {status})."
        return _finding(Found.UNCLEAR, Grade.UNKNOWN, text)
    if model in names or f"{model}:latest" in names:
        return _finding(Found.YES, Grade.GOOD, f"The server lists {model!r}.")
    # A server may call a model by the path of its file, which is nobody's business.
    shown = ", ".join(repr(name.rpartition("/")[2]) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    text = f"The server does not list {model!r}, but {shown}{more}."
    advice = "Servers of one model answer to any name; of others ask by a listed name."
    return _finding(Found.NO, Grade.POOR, text, advice)


def _directory_of(component: ComponentModel | None) -> _Directory | None:
    if component is None:
        return None
    config = component.config
    if component.provider.startswith("autogen_ext.models.ollama"):
        host = str(config.get("host") or os.environ.get("OLLAMA_HOST") or _OLLAMA)
        address = host if "://" in host else f"http://{host}"
        return _Directory(url=f"{address.rstrip('/')}/api/tags", headers={})
    base = config.get("base_url")
    if not component.provider.startswith("autogen_ext.models.openai") or not base:
        return None
    key: object = config.get("api_key")
    secret = key.get_secret_value() if isinstance(key, SecretStr) else ""
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    return _Directory(url=str(httpx.URL(str(base)).copy_with(path=_models(base))), headers=headers)


def _models(base: object) -> str:
    return f"{httpx.URL(str(base)).path.rstrip('/')}/models"


def _names(response: httpx.Response) -> tuple[str, ...]:
    """The names in OpenAI's or Ollama's list; none if it is no such list."""
    try:
        told = _mapping(response.json())
    except ValueError:
        return ()
    entries: object = told.get("data") or told.get("models")
    if not isinstance(entries, list):
        return ()
    named = (_mapping(entry) for entry in cast("list[object]", entries))
    names = (entry.get("id") or entry.get("name") for entry in named)
    return tuple(name for name in names if isinstance(name, str))


def _mapping(value: object) -> Mapping[str, object]:
    """The value if it is an object of JSON, else an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _finding(found: Found, grade: Grade, text: str, advice: str = "") -> Finding:
    return Finding(probe=Probe.LISTED, found=found, grade=grade, text=text, advice=advice)
