"""What an agent needs of the place where enhanced tools are: one connection per server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, TypeVar

from coag._util.timeouts import describe_error, is_cancelled
from coag.errors import CoagError
from coag.schema import Reconciliation

from .records import Acknowledgement, PropertyReading, SignalPage, ToolDescription

T = TypeVar("T")
Hint = Callable[[str | None], None]
"""Called with the id of a tool that may have something new; None where that may be any: the
connection was made again. It returns at once and must not wait."""


class ToolConnectionError(CoagError):
    """A server of tools could not be reached, or gave nothing that can be used.

    Attributes:
        server: How the server is called.
        may_have_happened: Whether what was asked for may have been done all the same.
    """

    def __init__(self, server: str, problem: str, *, may_have_happened: bool = False) -> None:
        self.server = server
        self.may_have_happened = may_have_happened
        super().__init__(f"The tools of {server!r}: {problem}")


class ToolConnection(Protocol):
    """A connection to one server of enhanced tools, shared by all activities of an agent.

    Every method may be called at any time: a connection that was lost is made again by the next
    call, and the tools in focus are subscribed to again. A method that cannot do what is asked
    raises `ToolConnectionError`; none waits without a bound.
    """

    name: str
    """How the server is called; unique within an agent."""

    async def catalogue(self) -> Sequence[ToolDescription]:
        """The tools that the server has now."""
        ...

    async def manual(self, tool: str) -> str:
        """The manual of a tool (Markdown)."""
        ...

    async def read_properties(self, tool: str) -> PropertyReading:
        """The observable properties of a tool now."""
        ...

    async def read_signals(self, tool: str, after: str | None, limit: int = 500) -> SignalPage:
        """The signals after a cursor, the oldest first; None for all that the log keeps."""
        ...

    async def focus(self, tools: AbstractSet[str]) -> None:
        """From now on hints are wanted for these tools, and for no others."""
        ...

    async def invoke(
        self, tool: str, operation: str, arguments: Mapping[str, Any], key: str
    ) -> Acknowledgement:
        """Starts an operation, at most once for one key; errors say whether it may have begun."""
        ...

    async def became_of(self, tool: str, key: str) -> Reconciliation:
        """What became of a call with this key, as far as the tool knows."""
        ...

    def on_hint(self, hint: Hint) -> None:
        """Sets who is called when something may be new."""
        ...

    async def close(self) -> None:
        """Ends the connection; the server stays."""
        ...


async def ask(
    server: str, call: Callable[[], Awaitable[T]], *, may_have_happened: bool = False
) -> T:
    """Awaits a call of a connection, which is foreign code and may raise anything.

    Raises:
        ToolConnectionError: The call raised; with `may_have_happened` as it is given here.
    """
    try:
        return await call()
    except ToolConnectionError:
        raise
    except (Exception, asyncio.CancelledError) as error:  # foreign code
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        raise ToolConnectionError(
            server, describe_error(error), may_have_happened=may_have_happened
        ) from error
