"""Serving the inspector: in this thread until stopped, or in a background thread."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from coag.proof import Domain
from coag.serving import Served, listen, serve_until_stopped, url_of

from .app import create_app
from .desk import Desk


def serve_inspector(
    logs: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    domain: Domain | None = None,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serves the inspector in this thread until SIGINT or SIGTERM.

    Args:
        logs: A folder of logs, or the folder of one run.
        host: The address to serve. Anything but this machine's own shows the logs to whoever
            reaches it.
        port: The port; 0 takes a free one.
        domain: What is known of the runs' domain, for the causes of failures.
        on_start: Is told the address, once it can be opened.

    Raises:
        ConfigurationError: There is no such folder.
        OSError: The address is not to be had.
    """
    desk = Desk(logs, domain=domain)
    listening: socket.socket = listen(host, port)
    if on_start is not None:
        on_start(url_of(listening))
    serve_until_stopped(
        create_app(desk, host=host), listening, has_lifespan=True, closing=desk.close
    )


class Inspector:
    """The inspector, served from a background thread, as a context manager.

    Example:
        `with Inspector(Path("logs")) as inspector: print(inspector.url)`

    Args:
        logs: A folder of logs, or the folder of one run.
        host: The address to serve.
        port: The port; 0 takes a free one.
        domain: What is known of the runs' domain, for the causes of failures.

    Raises:
        ConfigurationError: There is no such folder.
    """

    def __init__(
        self,
        logs: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        domain: Domain | None = None,
    ) -> None:
        self._desk = Desk(logs, domain=domain)
        self._address = (host, port)
        self._served: Served | None = None

    @property
    def url(self) -> str:
        """Where it is, without a slash at the end; empty while it is not served."""
        return self._served.address if self._served else ""

    def __enter__(self) -> Self:
        host, port = self._address
        self._served = Served(
            create_app(self._desk, host=host),
            host,
            port,
            has_lifespan=True,
            closing=self._desk.close,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        served, self._served = self._served, None
        if served is not None:
            served.stop()
