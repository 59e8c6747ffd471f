"""Ports of this machine that a test opens again, or has another process open."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

_FIRST, _COUNT, _TRIES = 20_000, 12_000, 100


def port_to_keep() -> int:
    """A free port that nobody else is given before it is used, or while it is closed for a time.

    It is below those that systems hand out to connections and to servers that ask for any port.
    """
    for _ in range(_TRIES):
        port = _FIRST + secrets.randbelow(_COUNT)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port of this machine is free")
