"""A tool that emits many signals, and a reader that finds them by cursor."""

from __future__ import annotations

import asyncio

from coag.situated import (
    EnhancedTool,
    ToolConnection,
    ToolConnectionError,
    Workspace,
    internal_operation,
    observable,
    operation,
    signal,
)


class Ticker(EnhancedTool):
    """Emits numbered signals."""

    last = observable(int, 0, description="The number of the last one.")
    tick = signal("ticker.tick", "Once a number.", payload={"n": int})

    @operation
    def start(self, count: int, pause: float = 0.001) -> str:
        """Begins to emit."""
        self.run(count, pause)
        return "It ticks."

    @internal_operation
    async def run(self, count: int, pause: float) -> None:
        for _ in range(count):
            await self.sleep(pause)
            self.last += 1
            self.tick.emit(n=self.last)


def ticking() -> Workspace:
    """A workspace with a ticker."""
    workspace = Workspace()
    workspace.add(Ticker())
    return workspace


class Reader:
    """Reads the signals of a ticker after each hint, and every so often without one.

    Args:
        connection: How the ticker is reached.
        seconds: How long it waits for a hint.
    """

    def __init__(self, connection: ToolConnection, seconds: float = 0.5) -> None:
        self.numbers: list[int] = []
        self.hints: list[str | None] = []
        self.failures = 0
        self._cursor: str | None = None
        self._connection = connection
        self._seconds = seconds
        self._hinted = asyncio.Event()
        connection.on_hint(self._hint)

    def _hint(self, tool: str | None) -> None:
        self.hints.append(tool)
        self._hinted.set()

    async def until(self, number: int) -> None:
        """Reads until a signal with this number was found."""
        while not self.numbers or self.numbers[-1] < number:
            try:
                async with asyncio.timeout(self._seconds):
                    await self._hinted.wait()
            except TimeoutError:
                pass  # it reads all the same
            self._hinted.clear()
            try:
                page = await self._connection.read_signals("ticker", self._cursor)
            except ToolConnectionError:
                self.failures += 1
                continue
            self._cursor = page.cursor
            self.numbers += [record.data["n"] for record in page.events]
