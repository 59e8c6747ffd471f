"""An MCP server of ours, whichever major of the mcp package is installed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from coag._util.sockets import listen
from coag.errors import ConfigurationError

from .session import McpResource, McpServerError, McpText, McpTool

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

# ---- What a server offers ----


class NoSuchResourceError(Exception):
    """There is nothing to be read at an address."""


class McpAnswer(NamedTuple):
    """What a tool says when it was called."""

    text: str
    data: dict[str, Any] | None = None
    """The same for programs: structured content."""
    is_error: bool = False

    def as_json(self) -> dict[str, Any]:
        """MCP's result of a call."""
        content = [{"type": "text", "text": self.text}]
        return {"content": content, "structuredContent": self.data, "isError": self.is_error}


class McpOffer(Protocol):
    """What a server offers; it may change at any time, which the server is notified of."""

    name: str
    version: str
    instructions: str

    def tools(self) -> Sequence[McpTool]:
        """The tools."""
        ...

    def resources(self) -> Sequence[McpResource]:
        """What can be read."""
        ...

    def templates(self) -> Sequence[McpResource]:
        """Forms of addresses at which more can be read (RFC 6570)."""
        ...

    async def call(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> McpAnswer:
        """Calls a tool; a failure is an answer, too."""
        ...

    async def read(self, uri: str) -> McpText:
        """What is at an address.

        Raises:
            NoSuchResourceError: Nothing is.
        """
        ...


class McpServing(Protocol):
    """A server over the mcp package. Its methods are called on its event loop."""

    def updated(self, uri: str) -> None:
        """Tells those who watch a resource that it is new. Waits for nobody."""
        ...

    def tools_changed(self) -> None:
        """Tells every client that tools and resources came or went. Waits for nobody."""
        ...

    async def run_stdio(self) -> None:
        """Serves the process that started this one, until it closes our standard input."""
        ...

    @asynccontextmanager
    def http_app(self, hosts: Sequence[str], path: str) -> AsyncGenerator[ASGIApp]:
        """An application that serves by Streamable HTTP, with sessions, as long as it is held.

        Args:
            hosts: What a `Host` header may name, each with its port or `:*`.
            path: Where it is reached.
        """
        ...


class MakeServer(Protocol):
    """How a server is made."""

    def __call__(self, offer: McpOffer) -> McpServing:
        """The server of what is offered."""
        ...


# ---- Hints on their way to one session ----


TOOLS_CHANGED = ""
"""The entry of an outbox for the notice that tools were added or removed."""


class Outbox:
    """Notices for one session: each waits once at most, and only its own session is slow."""

    def __init__(self) -> None:
        self.watched: set[str] = set()
        """The resources that the session wants to hear of."""
        self._waiting: dict[str, None] = {}
        self._filled = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    def put(self, what: str) -> None:
        """Adds a notice, if it is wanted and does not wait already."""
        if what == TOOLS_CHANGED or what in self.watched:
            self._waiting[what] = None
            self._filled.set()

    def start(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Sends from now on what waits, one after the other; a second start changes nothing."""
        if self._sending is None:
            self._sending = asyncio.create_task(self._empty(send))

    def close(self) -> None:
        """Sends no more."""
        if self._sending is not None:
            self._sending.cancel()

    async def closed(self) -> None:
        """Returns when nothing is sent any more."""
        if self._sending is not None:
            await asyncio.wait({self._sending})

    async def _empty(self, send: Callable[[str], Awaitable[None]]) -> None:
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._waiting:
                what = next(iter(self._waiting))
                del self._waiting[what]  # before it is sent: what is new meanwhile counts again
                await send(what)


# ---- What a server over either major has, in MCP's JSON: the package's models read it ----


class ServedOffer:
    """The half of a server that knows no package: what it offers, and whom it tells what is new."""

    def __init__(self, offer: McpOffer) -> None:
        self._offer = offer
        self._outboxes: set[Outbox] = set()

    def updated(self, uri: str) -> None:
        """Tells those who watch a resource that it is new."""
        for outbox in self._outboxes:
            outbox.put(uri)

    def tools_changed(self) -> None:
        """Tells every client that tools and resources came or went."""
        self.updated(TOOLS_CHANGED)

    def _listed_tools(self) -> dict[str, Any]:
        tools = [
            {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.parameters,
                "annotations": {
                    "readOnlyHint": tool.hints.get("read_only"),
                    "idempotentHint": tool.hints.get("idempotent"),
                    "destructiveHint": tool.hints.get("destructive"),
                },
            }
            for tool in self._offer.tools()
        ]
        return {"tools": tools}

    def _listed_resources(self) -> dict[str, Any]:
        return {"resources": [_listed("uri", one) for one in self._offer.resources()]}

    def _listed_templates(self) -> dict[str, Any]:
        return {
            "resourceTemplates": [_listed("uriTemplate", one) for one in self._offer.templates()]
        }


def _listed(address: str, one: McpResource) -> dict[str, Any]:
    return {
        address: one.uri,
        "name": one.name,
        "description": one.description,
        "mimeType": one.mime_type,
    }


def safe_names(hosts: Sequence[str]) -> dict[str, list[str]]:
    """The package's settings against DNS rebinding, for names that a `Host` header may have."""
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return {"allowed_hosts": list(hosts), "allowed_origins": origins}


# ---- Over HTTP, on this machine ----


_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_STOP_SECONDS = 1
_PATH = "/mcp"


@asynccontextmanager
async def http_server(
    serving: McpServing, *, host: str = "127.0.0.1", port: int = 0, hosts: Sequence[str] = ()
) -> AsyncGenerator[str]:
    """Serves by Streamable HTTP as long as it is held; gives the address.

    Requests must name this machine or one of `hosts` in their `Host` header, so that no page of
    another origin reaches it under a name of its own (DNS rebinding).

    Args:
        serving: What is served.
        host: The address that is listened on.
        port: The port; 0 takes a free one.
        hosts: More names, `NAME:PORT` or `NAME:*`; needed where `host` is no loopback address.

    Raises:
        ConfigurationError: It would be reached from other machines, and no names are given.
        McpServerError: The address cannot be had.
    """
    if f"[{host}]" not in _LOOPBACK and host not in _LOOPBACK and not hosts:
        raise ConfigurationError(
            f"{host!r} can be reached from other machines: say by `hosts` under which names "
            "('tools.example.org:*'), and put something in front that checks who asks."
        )
    try:
        listening = listen(host, port)
    except OSError as error:
        raise McpServerError(f"{host}:{port}", f"cannot listen: {error}") from error
    port = listening.getsockname()[1]
    names = [f"{name}:*" for name in _LOOPBACK] + list(hosts)
    started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    stopping = asyncio.Event()
    running = asyncio.create_task(_run(serving, listening, names, started, stopping))
    try:
        await asyncio.wait({started, running}, return_when=asyncio.FIRST_COMPLETED)
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}{_PATH}"
    finally:
        stopping.set()
        await running
        listening.close()


async def _run(
    serving: McpServing,
    listening: socket.socket,
    names: Sequence[str],
    started: asyncio.Future[None],
    stopping: asyncio.Event,
) -> None:
    import uvicorn

    # The scopes of anyio in there must be entered and left by one and the same task.
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(serving.http_app(names, _PATH))
        config = uvicorn.Config(
            app,
            log_level="critical",
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        server = uvicorn.Server(config)
        setattr(server, "capture_signals", nullcontext)  # noqa: B010 - signals are the program's
        serve = asyncio.create_task(server.serve(sockets=[listening]))
        started.set_result(None)
        await stopping.wait()
        server.should_exit = True
        await stack.aclose()  # which ends the streams that it would wait for
        await serve


def one_path(path: str, app: ASGIApp) -> ASGIApp:
    """An application that answers at one path only."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.responses import Response

        found = scope["type"] == "http" and scope["path"].rstrip("/") == path
        await (app if found else Response(status_code=404))(scope, receive, send)

    return answer
