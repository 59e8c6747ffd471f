"""A session with an MCP server, whichever major of the mcp package is installed.

A notice of a server is passed on at once and never waited for; code that must be sure asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, NamedTuple, Protocol, TextIO

from coag._util.json_schemas import value_fault
from coag.errors import CoagError

from .parameters import ServerParams

# ---- What can go wrong between this process and a server ----


class McpServerError(CoagError):
    """An MCP server could not be started, asked or understood.

    Attributes:
        server: How the server is called in messages.
        may_have_happened: Whether what was asked for may have been done all the same.
    """

    def __init__(self, server: str, problem: str, *, may_have_happened: bool = False) -> None:
        self.server = server
        self.may_have_happened = may_have_happened
        super().__init__(f"MCP server {server!r} {problem}")


class NotSentError(Exception):
    """A request never reached the server: the connection was closed before."""


class LostError(Exception):
    """The connection broke while the server had a request."""


class McpRefusedError(Exception):
    """The server answered with an error of the protocol, or with something unintelligible."""

    def __init__(self, problem: str, *, understood: bool) -> None:
        self.understood = understood
        super().__init__(problem)


MESSAGE_CHARACTERS = 500
"""Characters of a server's error that are kept."""


def check_structured(tool: str, content: Mapping[str, Any] | None, schema: str) -> None:
    """The package's check of a result by its tool's schema (JSON), in bounded time.

    Raises:
        RuntimeError: It does not fit, or is not there.
    """
    if content is None:
        raise RuntimeError(f"tool {tool!r} has an output schema, but gave no structured content")
    if fault := value_fault(content, schema):
        raise RuntimeError(f"tool {tool!r} gave structured content that does not fit: {fault}")


# ---- What a server has, and the notices that it sends ----


class McpTool(NamedTuple):
    """A tool as its server defines it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of its arguments."""
    hints: Mapping[str, bool]
    """What it says of its effects: `read_only`, `idempotent`, `destructive`; without those
    that it does not."""


class McpResource(NamedTuple):
    """Something that can be read at a server."""

    uri: str
    name: str
    description: str = ""
    mime_type: str = "application/json"


class McpText(NamedTuple):
    """What was read of a resource."""

    text: str
    mime_type: str


class McpNotice(NamedTuple):
    """A notice of a server, or of what happened to the stream of its notices."""

    kind: Literal["opened", "updated", "tools", "log", "progress", "missed", "deaf"]
    """`opened`: this is another session, which knows nothing of the one before; `updated`: a
    resource may be new; `tools`: the list of tools is; `missed`: notices may have been lost;
    `deaf`: none will come any more."""
    uri: str | None = None
    """With `updated`: which resource."""
    data: Any = None
    """With `log` and `progress`: the notification's parameters as JSON."""


OnNotice = Callable[[McpNotice], None]
"""Called with each notice; returns at once, and must not raise."""
Sampler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Answers a request for sampling: MCP's parameters and result, both as JSON. The server gets what
it raises as an error."""


class McpSession(Protocol):
    """A session that is open.

    Every method raises `NotSentError`, `LostError` or `McpRefusedError`; none has a bound of its
    own. A request whose task is cancelled is also cancelled at the server.
    """

    has_tools: bool
    """Whether the server says that it has tools."""
    has_resources: bool
    """Whether the server says that it has resources."""
    tells_updates: bool
    """Whether the server says when a resource is new."""

    async def page_of_tools(self, cursor: str | None) -> tuple[list[McpTool], str | None]:
        """Some of the server's tools, and where the next ones begin."""
        ...

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What a tool returned, as MCP's JSON has it.

        Args:
            name: Its name.
            arguments: What it is given.
            meta: `_meta` of the request: what goes along and is no argument.
        """
        ...

    async def page_of_resources(self, cursor: str | None) -> tuple[list[McpResource], str | None]:
        """Some of the server's resources, and where the next ones begin."""
        ...

    async def read_resource(self, uri: str) -> McpText:
        """What a resource is now; several texts as one, and what is no text as a line."""
        ...

    async def watch(self, uris: Set[str]) -> None:
        """From now on there are notices when one of these resources is new, and of no others."""
        ...

    async def ping(self) -> None:
        """Returns when the server has given a sign of life."""
        ...

    async def other(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """What another method of the mcp package's session returns, as the package has it."""
        ...


class OpenSession(Protocol):
    """How a session is opened."""

    def __call__(
        self,
        params: ServerParams,
        *,
        stderr: TextIO,
        on_notice: OnNotice,
        sampler: Sampler | None = None,
    ) -> AbstractAsyncContextManager[McpSession]:
        """Starts or calls the server, and greets it.

        Args:
            params: How it is reached.
            stderr: A real file for the standard error of a server that is started.
            on_notice: Called with what the server tells.
            sampler: Answers its requests for sampling; None refuses them.
        """
        ...
