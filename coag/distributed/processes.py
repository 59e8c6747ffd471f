"""A host, workers and a Chroma server as processes of this machine, on free ports."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from coag.errors import ConfigurationError

from .runtime import LOOPBACK, free_port

_READY_WITHIN = 60.0
"""Seconds; a worker imports chromadb and whatever its factories need."""
_STOP_WITHIN = 20.0
_TAIL = 2_000
_READY = re.compile(rb"^ready: .*(?=\n)", re.MULTILINE)
"""The line that a process of ours prints when it takes work."""
_LOOK = 0.05
"""Seconds between attempts to reach a server that does not say when it is ready."""


class _Process:
    """A process whose output goes into a file, and who says when it is ready."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Self:
        """Starts it.

        Raises:
            ConfigurationError: There is no such program.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=dict(environment),
            )
        except OSError as error:
            raise ConfigurationError(f"{command[0]!r} cannot be started: {error}.") from error
        return cls(process, log)

    async def ready(self) -> str:
        """The line by which it says that it is ready.

        Raises:
            ConfigurationError: It ended before, or is not ready in time.
        """
        await asyncio.wait([self._ready], timeout=_READY_WITHIN)
        if self._ready.done() and (line := self._ready.result()):
            return line
        raise await self._not_ready()

    async def listens(self, port: int) -> None:
        """Returns when it takes connections on a port.

        Raises:
            ConfigurationError: It ended before, or is not ready in time.
        """
        try:
            async with asyncio.timeout(_READY_WITHIN):
                while self._process.returncode is None:
                    try:
                        _, writer = await asyncio.open_connection(LOOPBACK, port)
                    except OSError:
                        await asyncio.sleep(_LOOK)
                        continue
                    writer.close()
                    await writer.wait_closed()
                    return
        except TimeoutError as error:
            raise await self._not_ready() from error
        raise await self._not_ready()

    async def _not_ready(self) -> ConfigurationError:
        ended = self._process.returncode is not None or self._ready.done()
        await self.end()
        printed = self._log.read_text(encoding="utf-8", errors="replace")[-_TAIL:]
        what = "ended before it was ready" if ended else f"was not ready in {_READY_WITHIN:g} s"
        return ConfigurationError(f"{self._log.stem!r} {what}. It printed:\n{printed}")

    async def end(self, *, kill: bool = False) -> None:
        """Ends it, by SIGTERM and then, or at once, by SIGKILL."""
        if self._process.returncode is None:
            send = self._process.kill if kill else self._process.terminate
            send()
        try:
            async with asyncio.timeout(_STOP_WITHIN):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader

    async def _read(self) -> None:
        output = self._process.stdout
        if output is None:
            raise AssertionError("The output is piped.")
        begun = b""
        with self._log.open("ab", buffering=0) as log:
            while chunk := await output.read(_TAIL):
                log.write(chunk)
                if not self._ready.done():
                    begun = (begun + chunk)[-2 * _TAIL :]
                    if told := _READY.search(begun):
                        self._ready.set_result(told[0].decode())
        if not self._ready.done():
            self._ready.set_result("")


class Processes:
    """What runs on this machine; `processes` starts and ends it.

    Args:
        folder: Takes what the processes print, Chroma's records, and what survives workers.
        environment: Of the processes.
        options: Given to the workers' factories.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], options: Mapping[str, str]
    ) -> None:
        self.folder = folder
        self.address = ""
        """The host's, `HOST:PORT`."""
        self.memory: str | None = None
        """The Chroma server's, `http://HOST:PORT`; None without one."""
        self._environment = environment
        self._options = dict(options)
        self._running: dict[str, _Process] = {}

    async def start_servers(self, *, chroma: bool) -> None:
        """Starts the host and, if wanted, a Chroma server."""
        command = [sys.executable, "-m", "coag.distributed", "host", "--port", "0"]
        host = await self._spawn("host", command)
        if chroma:
            await self._start_chroma()
        self.address = (await host.ready()).rpartition(" ")[2]

    async def start_workers(self, agents: Mapping[str, str]) -> None:
        """Starts a worker for each agent type; see `start_worker`."""
        for worker in [await self._spawn_worker(*one) for one in agents.items()]:
            await worker.ready()

    async def _start_chroma(self) -> None:
        port = free_port()
        beside = Path(sys.executable).parent / "chroma"
        command = str(beside) if beside.exists() else shutil.which("chroma") or "chroma"
        where = ["--host", LOOPBACK, "--port", str(port), "--path", str(self.folder / "records")]
        await (await self._spawn("chroma", [command, "run", *where])).listens(port)
        self.memory = self._options["memory"] = f"http://{LOOPBACK}:{port}"

    async def start_worker(self, type: str, factory: str) -> None:
        """Starts a worker for an agent type: the first one, or one in a dead one's place.

        Its factory is told the Chroma server's address as `place.options["memory"]`.

        Raises:
            ConfigurationError: It ends before it is ready; the message says what it printed.
        """
        await (await self._spawn_worker(type, factory)).ready()

    async def kill(self, name: str) -> None:
        """Kills a process with SIGKILL: a worker's type, `host` or `chroma`."""
        await self._running.pop(name).end(kill=True)

    async def end(self) -> None:
        """Ends everything, what was started last first."""
        while self._running:
            await self._running.popitem()[1].end()

    async def _spawn_worker(self, type: str, factory: str) -> _Process:
        command = ["worker", "--host", self.address, "--type", type, "--agent", factory]
        command += ["--logs", str(self.folder / "logs")]
        for name, value in self._options.items():
            command += ["--option", f"{name}={value}"]
        return await self._spawn(type, [sys.executable, "-m", "coag.distributed", *command])

    async def _spawn(self, name: str, command: Sequence[str]) -> _Process:
        if name in self._running:
            raise ConfigurationError(f"{name!r} runs already. Give every worker a type of its own.")
        log = self.folder / f"{name}.log"
        process = self._running[name] = await _Process.start(command, self._environment, log)
        return process


@asynccontextmanager
async def processes(
    folder: Path | str,
    agents: Mapping[str, str],
    *,
    chroma: bool = False,
    options: Mapping[str, str] | None = None,
    path: Sequence[Path | str] = (),
) -> AsyncGenerator[Processes]:
    """Runs a host, a worker for each agent type and, if wanted, a Chroma server.

    All of it on the loopback of this machine, on free ports: to try things out, and for tests.

    Args:
        folder: Takes what the processes print, Chroma's records, and what survives workers.
        agents: A factory `module:function` for each agent type.
        chroma: Whether to run a Chroma server.
        options: Given to the factories in `AgentPlace.options`.
        path: Folders in which workers find modules, beside the usual ones.

    Yields:
        What runs; `address` is what `connect` takes.

    Raises:
        ConfigurationError: One of them cannot be started; the message says what it printed.
    """
    running = Processes(_made(folder), _environment(path), options or {})
    try:
        await running.start_servers(chroma=chroma)
        await running.start_workers(agents)
        yield running
    finally:
        await running.end()


def _made(folder: Path | str) -> Path:
    whole = Path(folder).absolute()
    whole.mkdir(parents=True, exist_ok=True)
    return whole


def _environment(path: Sequence[Path | str]) -> dict[str, str]:
    """This process's, with further folders in which modules are found."""
    found = [str(Path(one).absolute()) for one in path]
    if inherited := os.environ.get("PYTHONPATH"):
        found.append(inherited)
    found_by = {"PYTHONPATH": os.pathsep.join(found)} if found else {}
    return {**os.environ, "PYTHONUNBUFFERED": "1", **found_by}
