"""A small web application, served from a background thread."""

from __future__ import annotations

import socket
import threading

import uvicorn
from starlette.types import ASGIApp

from coag.errors import CoagError

_START_SECONDS = 15.0
_STOP_SECONDS = 10.0


class ServingError(CoagError):
    """A local page could not be served, or did not stop."""


class _Uvicorn(uvicorn.Server):
    """A server that tells when it answers requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()


class Served:
    """An application that answers requests from when this is made until it is stopped.

    Args:
        app: The application; it has no lifespan of its own.
        host: The address to serve.
        port: The port; 0 takes a free one.

    Raises:
        OSError: The address is not to be had.
        ServingError: The server did not start.
    """

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
        listening.set_inheritable(False)
        bound, number = listening.getsockname()[:2]
        self.address = f"http://[{bound}]:{number}" if ":" in bound else f"http://{bound}:{number}"
        """Where it is reached, without a slash at the end."""
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        self._server = _Uvicorn(config)
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [listening]},
            name="coag-served",
            daemon=True,
        )
        self._thread.start()
        if not self._server.answers.wait(_START_SECONDS):
            self.stop()
            raise ServingError(f"The page at {self.address} did not start in {_START_SECONDS} s.")

    def stop(self) -> None:
        """Ends it; requests under way are answered first.

        Raises:
            ServingError: It did not stop in time.
        """
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            raise ServingError(f"The page at {self.address} did not stop in {_STOP_SECONDS} s.")
