"""The Model Context Protocol over either major of its Python package.

One session interface for clients (`McpSession`, held by `McpClient`), one for servers
(`McpOffer`, `McpServing`). The package is imported by `sdk()` only: in `v1` or `v2`, by what is
installed. Here is what both need and neither has: sessions that are made again, bounded requests, a
notice when notices were missed, and notices that wait for no slow client.
"""

from .client import McpClient
from .connection import McpBounds
from .installed import sdk
from .parameters import (
    ServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
    dumpable,
    supported,
)
from .server import McpAnswer, McpOffer, McpServing, NoSuchResourceError, http_server
from .session import (
    McpNotice,
    McpRefusedError,
    McpResource,
    McpServerError,
    McpSession,
    McpText,
    McpTool,
    Sampler,
)

__all__ = [
    "StdioServerParams",
    "StreamableHttpServerParams",
    "ServerParams",
    "supported",
    "dumpable",
    "McpClient",
    "McpBounds",
    "McpSession",
    "McpTool",
    "McpResource",
    "McpText",
    "McpNotice",
    "Sampler",
    "McpServerError",
    "McpRefusedError",
    "McpOffer",
    "McpServing",
    "McpAnswer",
    "NoSuchResourceError",
    "http_server",
    "sdk",
]
