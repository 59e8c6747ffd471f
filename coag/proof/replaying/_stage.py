"""What the doubles of a replay share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from coag.schema import Percept, TraceRecord

from ._sink import CheckingSink

_PATIENCE = 2_000
"""Rounds of the event loop in which a record that must come first may come."""

Perceive = Callable[[Percept], Awaitable[None]]
"""Takes in a percept that came from outside in the middle of a turn."""


class Stage:
    """What the doubles share: the tape, and what arrives from outside meanwhile.

    Args:
        sink: Compares what is written.
        perceive: Takes in what came from outside.
        queued: Ids of the percepts that executions brought and that are yet to be perceived.
    """

    def __init__(
        self, sink: CheckingSink, perceive: Perceive, queued: Callable[[], set[str]]
    ) -> None:
        self.sink = sink
        self.tape = sink.tape
        self._perceive = perceive
        self._queued = queued

    async def pause(self) -> None:
        """Waits as the original waited: others run, and what arrives meanwhile is perceived."""
        await asyncio.sleep(0)
        self.sink.check()
        self.sink.settle()
        while self.is_input(head := self.tape.head) and isinstance(head, Percept):
            await self._perceive(head)
            self.sink.settle()

    def is_input(self, record: TraceRecord | None) -> bool:
        """Whether it is a percept that no execution brought."""
        return isinstance(record, Percept) and record.id not in self._queued()

    async def until(self, due: Callable[[TraceRecord | None], bool], what: str) -> None:
        """Waits until what is next on the tape is due, because others come before."""
        for _ in range(_PATIENCE):
            await self.pause()
            if due(self.tape.head):
                return
        head = self.tape.head
        told = "the end" if head is None else head.record
        self.sink.part("record", told, f"{what}, which is not next on the tape")
