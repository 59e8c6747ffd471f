"""Real Chroma servers on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from coag._util.sockets import reserved_port


class ChromaServer:
    """A real Chroma server on the loopback that can be killed and started again at its place."""

    def __init__(self, folder: Path, port: int) -> None:
        self._port = port
        self.address = f"http://127.0.0.1:{self._port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        beside_python = Path(sys.executable).parent / "chroma"
        command = str(beside_python) if beside_python.exists() else shutil.which("chroma")
        assert command, "the chroma command comes with the chromadb package"
        place = ["--path", str(self._folder), "--host", "127.0.0.1", "--port", str(self._port)]
        log = self._folder / "log.txt"
        with log.open("a") as output:
            self._process = subprocess.Popen(
                [command, "run", *place], stdout=output, stderr=subprocess.STDOUT
            )
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(timeout=0.1)
                pytest.fail(f"The Chroma server ended with {code}: {log.read_text()}")

    def hang(self) -> None:
        """Answers nothing, while connections stay open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)  # else it may answer yet

    def wake(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_chroma(folder: Path) -> Generator[ChromaServer]:
    """A server that has started, on a port of its own until the end."""
    with reserved_port() as port:
        server = ChromaServer(folder, port)
        server.start()
        try:
            yield server
        finally:
            server.kill()
