"""Serving a world: in this thread until stopped, or in a background thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Self

import uvicorn

from vacuum_world.errors import WorldError
from vacuum_world.world import WorldState, create_world

from .app import create_app
from .hub import KeptWorld, StateFile, WorldHub
from .tokens import Tokens, checked_control_token, digest, new_token

_START_TIMEOUT = 15.0
_STOP_TIMEOUT = 10.0


class _Uvicorn(uvicorn.Server):
    """A server that ends its event streams as soon as it is asked to stop."""

    def __init__(self, hub: WorldHub, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._hub = hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        # In its turn, not now: a signal may come while a stream is about to wait for its queue.
        asyncio.get_running_loop().call_soon_threadsafe(self._hub.close)


def open_world(
    world: WorldState, control_token: str | None, state_file: Path | None
) -> tuple[WorldHub, str | None]:
    """The world to serve and the experimenter's token.

    A kept world takes the place of `world`. Without a token given, the one that the kept world
    knows stays in force (and is returned as None, only its hash being kept), else a fresh one is
    made.

    Raises:
        ControlTokenError: The token given cannot be one.
        StateFileError: The file does not hold a world.
        OSError: The file cannot be read or written.
    """
    file = StateFile(state_file) if state_file else None
    saved = file.load() if file else None
    if control_token is not None:
        control_token = checked_control_token(control_token)
    elif saved is None:
        control_token = new_token()
    if saved is None:
        saved = KeptWorld(world=world, tokens=Tokens(control=digest(control_token or new_token())))
    elif control_token is not None:
        tokens = Tokens(control=digest(control_token), robots=saved.tokens.robots)
        saved = KeptWorld(world=saved.world, tokens=tokens)
    return WorldHub(saved, file), control_token


def listen(host: str, port: int) -> socket.socket:
    """A socket on which requests may arrive at once; port 0 takes a free one.

    Raises:
        OSError: The address is not to be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family)
    listening.set_inheritable(False)
    return listening


def url_of(listening: socket.socket) -> str:
    """Where a socket is reached."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _configured(
    hub: WorldHub, host: str, interval: float, on_start: Callable[[], None] | None = None
) -> _Uvicorn:
    app = create_app(hub, host=host, interval=interval, on_start=on_start)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=3,
    )
    return _Uvicorn(hub, config)


def serve_until_stopped(
    hub: WorldHub, listening: socket.socket, host: str, interval: float
) -> None:
    """Serve in this thread until SIGINT or SIGTERM."""
    _configured(hub, host, interval).run(sockets=[listening])


class _Running:
    """A server in its thread."""

    def __init__(
        self, *, hub: WorldHub, listening: socket.socket, host: str, interval: float
    ) -> None:
        self.started = threading.Event()
        """Set when requests are answered."""
        self._hub = hub
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server = _configured(hub, host, interval, self._on_start)
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [listening]},
            name="vacuum-world",
            daemon=True,
        )
        self._thread.start()

    def _on_start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._hub.open()
        self.started.set()

    def stopped(self) -> bool:
        """Stop it; whether it did in time."""
        self._server.should_exit = True
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._hub.close)
        self._thread.join(_STOP_TIMEOUT)
        return not self._thread.is_alive()


class WorldServer:
    """A world served from a background thread, as a context manager.

    Args:
        world: The world at the start; None makes one of seed 0.
        control_token: The experimenter's token; None makes a fresh one.
        state_file: Where the world is kept; a world that is there already takes the place of
            `world`.
        host: The address to serve.
        port: The port; 0 takes a free one.
        interval: Seconds between ticks where time passes by the clock.

    Raises:
        ControlTokenError: The token given cannot be one.
        StateFileError: The file does not hold a world.
        OSError: The address or the file is not to be had.
    """

    def __init__(
        self,
        world: WorldState | None = None,
        *,
        control_token: str | None = None,
        state_file: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        interval: float = 1.0,
    ) -> None:
        self.control_token = control_token or new_token()
        """The experimenter's token."""
        self._hub, _ = open_world(world or create_world(0), self.control_token, state_file)
        self._address = (host, port)
        self._interval = interval
        self._running: _Running | None = None
        self.url = ""
        """Where it is served; empty before `start`."""

    @property
    def world(self) -> WorldState:
        """The world now."""
        return self._hub.state

    def start(self) -> Self:
        """Serve; returns when requests are answered.

        Raises:
            OSError: The address is not to be had.
            WorldError: The server did not start.
        """
        host, port = self._address
        listening = listen(host, port)
        self._address = (host, listening.getsockname()[1])
        self.url = url_of(listening)
        running = _Running(hub=self._hub, listening=listening, host=host, interval=self._interval)
        self._running = running
        if not running.started.wait(_START_TIMEOUT):
            self.stop()
            raise WorldError(f"the world at {self.url} did not start in {_START_TIMEOUT} s")
        return self

    def stop(self) -> None:
        """End it; open event streams end, requests under way are answered first.

        Started again, it is found at the same address.

        Raises:
            WorldError: It did not stop in time.
        """
        running, self._running = self._running, None
        if running is not None and not running.stopped():
            raise WorldError(f"the world at {self.url} did not stop in {_STOP_TIMEOUT} s")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()
