"""A host, workers and a Chroma server as processes of this machine, on free ports."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from coag._util.sockets import reserved_port
from coag.errors import ConfigurationError

from .runtime import LOOPBACK

_READY_WITHIN = 60.0
"""Seconds; a worker imports chromadb and the modules of its factories."""
_STOP_WITHIN = 20.0
_TAIL = 2_000
_READY = re.compile(r"^ready: .*(?=\n)", re.MULTILINE)
"""The line by which a process of ours says that it takes work."""
_LOOK = 0.05
"""Seconds between two looks whether a process is ready."""
_PROGRAM = (sys.executable, "-m", "coag.distributed")


class _Process:
    """A process whose output goes into a file, by which it says when it is ready."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, start: int) -> None:
        self._process = process
        self._log = log
        self._start = start
        """Where in the file its output begins; a process before it may have written there."""

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Self:
        """Starts it."""
        try:
            with log.open("ab") as output:
                start = output.tell()
                process = await asyncio.create_subprocess_exec(
                    *command, stdout=output, stderr=output, env=dict(environment)
                )
        except OSError as error:
            raise ConfigurationError(f"{command[0]!r} cannot be started: {error}.") from error
        return cls(process, log, start)

    async def until_ready(self, port: int | None = None) -> str:
        """Waits for the line in which it says so, which is returned; or until a port is open."""
        deadline = time.monotonic() + _READY_WITHIN
        ended = False
        while not ended and time.monotonic() < deadline:
            ended = self._process.returncode is not None
            if port is not None and await _listens(port):
                return ""
            if port is None and (line := _READY.search(self._printed())):
                return line[0]
            await asyncio.sleep(_LOOK)
        await self.end()
        what = "ended before it was ready" if ended else f"was not ready in {_READY_WITHIN:g} s"
        printed = self._printed()[-_TAIL:]
        raise ConfigurationError(f"{self._log.stem!r} {what}. It printed:\n{printed}")

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

    def _printed(self) -> str:
        return self._log.read_bytes()[self._start :].decode(errors="replace")


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


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
        host = await self._spawn("host", [*_PROGRAM, "host", "--port", "0"])
        if chroma:
            beside = Path(sys.executable).parent / "chroma"
            command = str(beside) if beside.exists() else shutil.which("chroma") or "chroma"
            records = ["--path", str(self.folder / "records")]
            with reserved_port(LOOPBACK) as port:
                where = ["run", "--host", LOOPBACK, "--port", str(port), *records]
                await (await self._spawn("chroma", [command, *where])).until_ready(port)
            self.memory = self._options["memory"] = f"http://{LOOPBACK}:{port}"
        self.address = (await host.until_ready()).rpartition(" ")[2]

    async def start_workers(self, agents: Mapping[str, str]) -> None:
        """Starts a worker for each agent type, all at once; see `start_worker`."""
        rest = [part for one in self._options.items() for part in ("--option", "=".join(one))]
        rest += ["--host", self.address, "--logs", str(self.folder / "logs")]
        workers = [
            await self._spawn(type, [*_PROGRAM, "worker", "--type", type, "--agent", name, *rest])
            for type, name in agents.items()
        ]
        for worker in workers:
            await worker.until_ready()

    async def start_worker(self, type: str, factory: str) -> None:
        """Starts a worker for an agent type: the first one, or the replacement of a lost one.

        Its factory gets the Chroma server's address as `place.options["memory"]`.

        Raises:
            ConfigurationError: It ends before it is ready; the message says what it printed.
        """
        await self.start_workers({type: factory})

    async def kill(self, name: str) -> None:
        """Kills a process with SIGKILL: a worker's type, `host` or `chroma`."""
        await self._running.pop(name).end(kill=True)

    async def end(self) -> None:
        """Ends everything, what was started last first."""
        while self._running:
            await self._running.popitem()[1].end()

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
    path = Path(folder).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


def _environment(path: Sequence[Path | str]) -> dict[str, str]:
    """This process's, with further folders in which modules are found."""
    folders = [str(Path(one).absolute()) for one in path]
    folders += filter(None, [os.environ.get("PYTHONPATH")])
    found_by = {"PYTHONPATH": os.pathsep.join(folders)} if folders else {}
    return {**os.environ, "PYTHONUNBUFFERED": "1", **found_by}
