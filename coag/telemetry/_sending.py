"""Sending spans so that nothing a collector answers, or does not, holds anybody up."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextvars import copy_context
from io import BytesIO
from typing import TYPE_CHECKING

from coag.schema import one_line

if TYPE_CHECKING:  # the extra need not be there
    import requests
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

_BATCH = 200
"""Spans of one request."""
_GRACE = 0.5
"""Seconds that the exporter gets, beyond its time, to say itself what went wrong."""


class Sending:
    """A span exporter that sends in batches, at once, and stops at the first failure.

    Args:
        exporter: What makes the requests.
        session: What it makes them with.
        seconds: How long a request may take in all, repetitions included.
    """

    def __init__(self, exporter: SpanExporter, session: requests.Session, seconds: float) -> None:
        self.sent = 0
        """Spans that the collector took."""
        self.failed = False
        """Whether it did not take some."""
        self.why = ""
        """Why it did not, where the collector's answer, or its missing, tells."""
        self._exporter = exporter
        self._seconds = seconds
        self._answer: tuple[int, str] | None = None
        self._held: list[ReadableSpan] = []
        session.hooks["response"] = [self._hear]

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Takes spans; sends them when there are enough for a request."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        self._held += [] if self.failed else spans
        if len(self._held) >= _BATCH:
            self._send()
        return SpanExportResult.FAILURE if self.failed else SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Sends the rest and lets go of the connection."""
        if self._held and not self.failed:
            self._send()
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Sends what is held back."""
        del timeout_millis
        if self._held and not self.failed:
            self._send()
        return not self.failed

    def _send(self) -> None:
        batch, self._held = self._held, []
        self._answer = None
        taken = self._in_time(batch)
        self.failed = not taken or self._answer is None or not 200 <= self._answer[0] < 300
        self.why = self._reason() if self.failed else ""
        self.sent += 0 if self.failed else len(batch)

    def _in_time(self, batch: list[ReadableSpan]) -> bool:
        """Has a batch sent; whether the exporter calls it sent before the time is over.

        The exporter's own limit holds for each wait alone: who sends a byte now and then would
        keep it for ever. A request whose time is over is left to itself, and ends at the latest
        with the process.
        """
        results: list[SpanExportResult] = []
        context = copy_context()

        def export() -> None:
            try:
                results.append(context.run(self._exporter.export, batch))
            except (OSError, ValueError) as error:  # what older exporters let through
                self.why = one_line(str(error))

        thread = threading.Thread(target=export, name="coag-otlp", daemon=True)
        thread.start()
        thread.join(self._seconds + _GRACE)
        if thread.is_alive():
            self.why = f"it gave no whole answer within {self._seconds:g} s"
        return [result.name for result in results] == ["SUCCESS"]

    def _hear(self, response: requests.Response, *_: object, **__: object) -> requests.Response:
        """Keeps an answer's status; what it says else is not waited for, nor where it points."""
        self._answer = response.status_code, response.reason or ""
        response.headers.pop("Location", None)
        response.close()
        response.raw = BytesIO()
        return response

    def _reason(self) -> str:
        if self._answer is None:
            return self.why
        status, reason = self._answer
        told = f"it answered {status} {one_line(reason, 100)}".rstrip()
        return f"{told}; redirects are not followed" if 300 <= status < 400 else told
