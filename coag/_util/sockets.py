"""Where servers of ours listen."""

from __future__ import annotations

import errno
import socket


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
