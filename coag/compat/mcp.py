"""Tools of MCP servers, pinned.

What AutoGen's `McpWorkbench` does, over either major of the mcp package, and:

- a server is started when it is needed, and again, a bounded number of times, when it has ended;
- a call that is cancelled, late or lost says whether it may have happened;
- what a server says of its tools is pinned at first sight; a tool that changes, or that comes
  later, is quarantined until a person approves it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

from autogen_core import CancellationToken, Component, ComponentModel, Image, trace_tool_span
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import ToolOverride, ToolSchema, Workbench
from pydantic import BaseModel, ConfigDict, Field

from coag.errors import CoagError, ConfigurationError, UnknownNameError
from coag.mcp import (
    McpClient,
    McpNotice,
    McpRefusedError,
    McpServerError,
    Sampler,
    ServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
    dumpable,
    sdk,
    supported,
)

from .guarded_calls import result_when_cancelled
from .mcp_tools import (
    McpLimits,
    McpToolResult,
    PinBoard,
    QuarantinedTool,
    ToolDefinition,
    ToolOffer,
    failed_result,
    fitting,
    make_offer,
    mcp_result,
)
from .tools import ToolEffects

__all__ = [
    "PinnedMcpWorkbench",
    "StdioServerParams",
    "StreamableHttpServerParams",
    "McpLimits",
    "McpToolResult",
    "McpServerError",
    "QuarantinedTool",
]

# ---- Requests of a server for sampling, answered by a model client ----


def sampler(client: ChatCompletionClient) -> Sampler:
    """Answers requests for sampling by a model client."""

    async def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
        system = request.get("systemPrompt")
        messages: list[LLMMessage] = [SystemMessage(content=system)] if system else []
        messages += [_message(message) for message in request.get("messages", ())]
        result = await client.create(messages)
        text = result.content if isinstance(result.content, str) else str(result.content)
        return {
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": client.model_info["family"],
            "stopReason": result.finish_reason,
        }

    return answer


def _message(message: Mapping[str, Any]) -> LLMMessage:
    given: Any = message["content"]
    contents = cast("list[Mapping[str, Any]]", given if isinstance(given, list) else [given])
    parts = [_part(content) for content in contents]
    if message["role"] == "user":
        return UserMessage(content=parts, source="mcp_server")  # it is not the user who says it
    return AssistantMessage(content="\n".join(map(str, parts)), source="assistant")


def _part(content: Mapping[str, Any]) -> str | Image:
    match content.get("type"):
        case "text":
            return str(content["text"])
        case "image":
            return Image.from_base64(content["data"])
        case other:
            raise CoagError(f"A model cannot be shown content of type {other!r}.")


# ---- The workbench ----


_LOG = logging.getLogger(__name__)
sdk()  # says at import whether the mcp package can be used


class PinnedMcpConfig(BaseModel):
    """A `PinnedMcpWorkbench` as a component: no secret, no pins, only where they are."""

    model_config = ConfigDict(extra="forbid")

    server_params: StdioServerParams | StreamableHttpServerParams = Field(discriminator="type")
    """Values of `env` and `headers` are references `${NAME}`."""
    pins: str | None = None
    trust_first_use: bool = True
    limits: McpLimits = McpLimits()
    tool_overrides: dict[str, ToolOverride] = {}
    model_client: ComponentModel | dict[str, Any] | None = None


class PinnedMcpWorkbench(Workbench, Component[PinnedMcpConfig]):
    """The tools of an MCP server, for `CoagAgent` and `AssistantAgent` alike.

    The server is started at the first listing or call, by `start()`, or by `async with`, and ends
    with `stop()` or with the event loop. Prompts and resources are asked for as of `McpWorkbench`,
    and are what the mcp package makes of them.

    Args:
        server: How the server is reached, by parameters of ours or of AutoGen, or AutoGen's
            `McpWorkbench`, whose settings are taken over.
            `${NAME}` in arguments, `env`, `url` and `headers` refers to an environment variable.
        pins: File in which trusted definitions are kept; None keeps them in memory.
        trust_first_use: Whether what the server offers first is trusted without approval.
        limits: The bounds; None takes the defaults, and the parameters' own read time-out where
            one was given.
        tool_overrides: Other names and descriptions, by the tools' names at the server.
        model_client: Answers the server's requests for sampling; None refuses them.

    Raises:
        ConfigurationError: The server is reached by another transport than stdio and Streamable
            HTTP.
        ValueError: Two tools are given the same name.
    """

    component_provider_override = "coag.compat.mcp.PinnedMcpWorkbench"
    component_config_schema = PinnedMcpConfig

    def __init__(
        self,
        server: object,
        *,
        pins: str | Path | None = None,
        trust_first_use: bool = True,
        limits: McpLimits | None = None,
        tool_overrides: Mapping[str, ToolOverride] | None = None,
        model_client: ChatCompletionClient | None = None,
    ) -> None:
        if isinstance(server, Workbench):
            stock: Any = server
            if tool_overrides is None:
                tool_overrides = getattr(stock, "_tool_overrides", None)
            model_client = model_client or getattr(stock, "_model_client", None)
            server = getattr(stock, "server_params", server)
        self._params = supported(server)
        self._tool_overrides = dict(tool_overrides or {})
        own_names = {override.name or own: own for own, override in self._tool_overrides.items()}
        if len(own_names) < len(self._tool_overrides):
            raise ValueError(f"Two tools are given the same name in {tool_overrides!r}.")
        self._own_names = own_names
        self._model_client = model_client
        self._limits = limits or _limits_of(self._params)
        self._board = PinBoard(Path(pins) if pins else None, trust_first_use=trust_first_use)
        self._changed = True
        """Whether the server may have other tools than when they were listed last."""
        self._client = McpClient(
            self._params,
            bounds=self._limits,
            on_notice=self._noticed,
            sampler=sampler(model_client) if model_client else None,
        )
        self._offer: ToolOffer | None = None
        """What was found at the last listing; None before the first."""

    @property
    def server_params(self) -> ServerParams:
        """How the server is reached."""
        return self._params

    @property
    def quarantined(self) -> Mapping[str, QuarantinedTool]:
        """Tools that changed or came later, by name, as of the last listing."""
        return dict(self._offer.quarantined) if self._offer else {}

    @property
    def left_out(self) -> tuple[str, ...]:
        """Why tools could not be offered at the last listing, one sentence each."""
        return self._offer.left_out if self._offer else ()

    async def approve(self, name: str, *, digest: str | None = None) -> None:
        """Trusts a quarantined tool as it is in `quarantined` now.

        Args:
            name: Its name at the server.
            digest: The `new.digest` that was looked at; refuses if it has changed since.

        Raises:
            UnknownNameError: No such tool is quarantined.
            ConfigurationError: The digest is another one by now, or the pins cannot be saved.
        """
        offer, held = self._offer, dict(self.quarantined)
        if name not in held or offer is None:
            raise UnknownNameError("quarantined tool", name, held)
        definition = held.pop(name).new
        if digest not in (None, definition.digest):
            changed = f"Tool {name!r} changed again: its digest is {definition.digest!r} now"
            raise ConfigurationError(f"{changed}, not {digest!r}. Look at its diff once more.")
        await asyncio.to_thread(self._board.approve, definition)
        self._offer = make_offer(offer.tools, held, self._tool_overrides, self._limits)

    def effects(self, name: str) -> ToolEffects:
        """What the server says of a tool's effects; nothing of one that is not offered."""
        offer = self._offer
        own = offer.own_names.get(name) if offer else None
        hints = offer.tools[own].hints if offer and own else {}
        return ToolEffects(
            read_only=hints.get("read_only", False),
            idempotent=hints.get("idempotent", False),
            critical=hints.get("destructive", False),
        )

    async def list_tools(self) -> list[ToolSchema]:
        """The trusted tools that the server offers now.

        While a call runs, or when the server has ended, these are the ones listed last: a stock
        agent hangs where a listing raises in the middle of its turn. The error of a later call
        describes it.

        Raises:
            McpServerError: The server was never listed and cannot be.
            ConfigurationError: An environment variable is missing, or the pins cannot be used.
        """
        offer = self._offer
        if offer is None or not self._client.busy:
            try:
                offer = await self._listed()
            except McpServerError as error:
                if offer is None:
                    raise
                _LOG.warning("%s Its tools are shown as they were listed last.", error)
        return list(offer.schemas)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> McpToolResult:
        """Calls a tool; whatever happens but a cancellation of this task is a result."""
        before = f"{name} was cancelled before it began. Nothing was done."
        during = f"{name} was cancelled while it ran; it may have been done all the same."
        with trace_tool_span(tool_name=name, tool_call_id=call_id):
            return await result_when_cancelled(
                self._called(name, dict(arguments or {})),
                cancellation_token,
                before=failed_result(name, before),
                during=failed_result(name, during, may_have_happened=True),
            )

    async def start(self) -> None:
        """Starts the server and lists its tools; forgets how often it ended.

        Raises:
            McpServerError: It cannot be started.
            ConfigurationError: An environment variable is missing, or the pins cannot be used.
        """
        await self._client.start()
        await self._listed()

    async def stop(self) -> None:
        """Ends the server, if it runs."""
        await self._client.close()

    async def reset(self) -> None:
        """Starts the server again; what is pinned stays."""
        await self.stop()
        await self.start()

    async def list_prompts(self) -> Any:
        """The server's prompts, as the mcp package has them."""
        return await self._other("list_prompts")

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> Any:
        """A prompt, filled in."""
        return await self._other("get_prompt", name=name, arguments=arguments)

    async def list_resources(self) -> Any:
        """The server's resources."""
        return await self._other("list_resources")

    async def list_resource_templates(self) -> Any:
        """Forms of addresses of the server's resources."""
        return await self._other("list_resource_templates")

    async def read_resource(self, uri: str) -> Any:
        """What a resource is now."""
        return await self._other("read_resource", uri=uri)

    async def _other(self, method: str, **arguments: Any) -> Any:
        return await self._client.request(lambda session: session.other(method, arguments))

    async def save_state(self) -> Mapping[str, Any]:
        """The pins, where no file keeps them."""
        return self._board.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes over pins that `save_state` gave; where a file keeps them, the file stays right.

        Raises:
            ConfigurationError: They are none.
        """
        self._board.load_state(state)

    def _noticed(self, notice: McpNotice) -> None:
        self._changed = self._changed or notice.kind in ("tools", "opened")

    def _to_config(self) -> PinnedMcpConfig:
        client, path = self._model_client, self._board.path
        return PinnedMcpConfig(
            server_params=dumpable(self._params),
            pins=str(path) if path else None,
            trust_first_use=self._board.trust_first_use,
            limits=self._limits,
            tool_overrides=self._tool_overrides,
            model_client=client.dump_component() if client else None,
        )

    @classmethod
    def _from_config(cls, config: PinnedMcpConfig) -> Self:
        client = config.model_client
        return cls(
            config.server_params,
            pins=config.pins,
            trust_first_use=config.trust_first_use,
            limits=config.limits,
            tool_overrides=config.tool_overrides,
            model_client=ChatCompletionClient.load_component(client) if client else None,
        )

    async def _listed(self) -> ToolOffer:
        await self._client.connection()
        self._changed = False  # a change that comes during the listing counts
        definitions: list[ToolDefinition] = []
        cursor: str | None = None
        for _ in range(self._limits.tools):
            try:
                page, cursor = await self._client.request(
                    lambda session, cursor=cursor: session.page_of_tools(cursor)
                )
            except McpRefusedError as error:
                problem = f"did not list its tools: {error}"
                raise McpServerError(self._client.label, problem) from error
            definitions += [ToolDefinition.of(*tool) for tool in page]
            if cursor is None or len(definitions) > self._limits.tools:
                break
        tools, left_out = fitting(definitions, self._limits)
        held = await asyncio.to_thread(self._board.judge, tools)
        for name in held.keys() - self.quarantined.keys():
            changed = held[name].changed
            _LOG.warning(
                "MCP server %r: tool %r is quarantined: %s.", self._client.label, name, changed
            )
        self._offer = make_offer(tools, held, self._tool_overrides, self._limits, left_out)
        return self._offer

    async def _called(self, name: str, arguments: dict[str, Any]) -> McpToolResult:
        """Calls a tool, if it is trusted; every failure is a result."""
        try:
            await self._client.connection()
            offer = self._offer
            if offer is None or (self._changed and not self._client.busy):
                offer = await self._listed()
            own = offer.own_names.get(name)
            if own is None:
                return failed_result(name, self._refusal(offer, name))
            raw = await self._client.request(lambda session: session.call_tool(own, arguments))
        except McpServerError as error:
            return failed_result(name, str(error), may_have_happened=error.may_have_happened)
        except ConfigurationError as error:
            return failed_result(name, f"{error} Nothing was done.")
        except McpRefusedError as error:
            text = f"The server did not accept {name}, or its answer is no MCP: {error}"
            return failed_result(name, text, may_have_happened=not error.understood)
        self._client.succeeded()
        return mcp_result(name, raw, self._limits)

    def _refusal(self, offer: ToolOffer, name: str) -> str:
        """Why a tool that is not offered cannot be called; nothing that the server says of it."""
        held = offer.quarantined.get(self._own_names.get(name, name))
        if held is None:
            return f"There is no tool {name!r}. Nothing was done."
        return (
            f"Tool {name!r} is quarantined: {held.changed}. Nothing was done. A person can look at "
            f"`quarantined[{held.name!r}].diff` of the workbench, and then "
            f"`await approve({held.name!r})`."
        )


def _limits_of(params: ServerParams) -> McpLimits:
    own = "read_timeout_seconds" if isinstance(params, StdioServerParams) else "sse_read_timeout"
    if own not in params.model_fields_set:
        return McpLimits()
    return McpLimits(call_seconds=getattr(params, own))
