"""Where servers of ours listen."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager


def listen(host: str, port: int) -> socket.socket:
    """A socket on which requests may arrive at once; port 0 takes a free one.

    Raises:
        OSError: The address cannot be had, or is empty: that would be all addresses.
    """
    if not host:
        raise OSError(errno.EADDRNOTAVAIL, "an address is missing; 0.0.0.0 would be all of them")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family)
    listening.set_inheritable(False)
    # Accepted connections inherit it. asyncio sets it only where a socket names its protocol, and
    # without it an answer in two pieces takes 40 ms more.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


@contextmanager
def reserved_port(host: str = "127.0.0.1") -> Generator[int]:
    """A free port for a server that takes only a number; nobody else is given it until the end.

    Nobody listens on it until the server does, which may also end and come back. It has to let
    addresses be reused (SO_REUSEADDR), as most do. Only Linux lets it listen on a port that is
    reserved so; elsewhere the port was free a moment ago.
    """
    with socket.socket() as holding:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holding.bind((host, 0))
        port = int(holding.getsockname()[1])
        if sys.platform != "linux":
            holding.close()
        yield port
