"""What can go wrong between this process and an MCP server."""

from __future__ import annotations

from coag.errors import CoagError


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


class LateError(Exception):
    """The server gave no answer in its time."""


class RefusedError(Exception):
    """The server answered with an error of the protocol, or with something unintelligible.

    Attributes:
        understood: Whether the answer was a proper one, so that nothing is left in doubt.
    """

    def __init__(self, problem: str, *, understood: bool) -> None:
        self.understood = understood
        super().__init__(problem)
