"""Approval requests that wait for a person."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Lock

from coag.cycle import ApprovalAnswer, ApprovalRequest


class Waiting:
    """What waits for a decision, by a key of its own; may be used from several threads.

    Ids of requests count up in each agent, so they do not tell the requests of two apart.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._open: dict[str, tuple[ApprovalRequest, Future[ApprovalAnswer]]] = {}

    def add(self, request: ApprovalRequest) -> tuple[str, Future[ApprovalAnswer]]:
        """Opens a request; gives its key and the future of its answer."""
        future: Future[ApprovalAnswer] = Future()
        with self._lock:
            self._count += 1
            key = str(self._count)
            self._open[key] = (request, future)
        return key, future

    def drop(self, key: str) -> None:
        """Closes a request that nobody waits for any more."""
        with self._lock:
            self._open.pop(key, None)

    def listed(self) -> dict[str, ApprovalRequest]:
        """What is open, oldest first."""
        with self._lock:
            return {key: request for key, (request, _) in self._open.items()}

    def answer(self, key: str, answer: ApprovalAnswer) -> bool:
        """Answers a request; False if it is not open, or no longer."""
        with self._lock:
            _, future = self._open.pop(key, (None, None))
        if future is None:
            return False
        future.set_result(answer)
        return True
