"""Sending finished runs to a collector over OTLP."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from coag.errors import ConfigurationError
from coag.schema import one_line
from coag.tracing import RunFolder, TraceProblem

from .export import export_run

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult


# ---- Sending spans so that nothing a collector answers, or does not, holds anybody up ----


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


# ---- Sending a run's spans to a collector: OTLP over HTTP ----


DEFAULT_ENDPOINT = "http://127.0.0.1:4318"
"""Where a collector listens on this machine, if nothing else is said."""

_PATH = "/v1/traces"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_TIMEOUT = 10.0
"""Seconds that a request may take in all, repetitions included, if nothing else is said."""
_HERE = ("127.0.0.1", "localhost", "::1")
_SECONDS = 2.0
"""How long a collector on this machine may take to let somebody in."""


def send_run(
    run: RunFolder | Path | str,
    endpoint: str | None = None,
    *,
    record_content: bool = False,
    on_problem: Callable[[TraceProblem], None] | None = None,
) -> int:
    """Sends the spans of a run to a collector and waits until they are there.

    Only an answer of 2xx says that they are; a redirect is not followed, and of answers the
    status is all that is read. What the environment says (`OTEL_EXPORTER_OTLP_*`,
    `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, ...) holds, but for what is given here.

    Args:
        run: The run's folder.
        endpoint: The collector's URL, with or without `/v1/traces`; None for what the environment
            says, or `DEFAULT_ENDPOINT`.
        record_content: Send what was said, prompts, arguments and results, too.
        on_problem: Is told of a truncated last line and of hashes that do not fit; None to have
            them raised.

    Returns:
        How many spans were sent.

    Raises:
        ConfigurationError: The extra `otel` is missing, OpenTelemetry is switched off, or the
            collector did not take the spans; the message says why.
        TraceError: There is no run, or its trace cannot be read.
    """
    url, seconds = _traces_url(endpoint), _timeout()
    sending, provider = _to_collector(url, seconds)
    with _Overheard() as overheard:
        try:
            export_run(
                run, tracer_provider=provider, record_content=record_content, on_problem=on_problem
            )
        finally:
            provider.shutdown()
    if sending.failed:
        why = sending.why or one_line(overheard.said) or "it gave no reason"
        raise ConfigurationError(f"The collector at {url!r} did not take the spans: {why}")
    return sending.sent


def _to_collector(url: str, seconds: float) -> tuple[Sending, TracerProvider]:
    """What sends to a collector, and a provider whose spans all go there.

    Raises:
        ConfigurationError: The extra is missing, OpenTelemetry is switched off, or nobody listens.
    """
    try:
        import requests
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    except ImportError as error:
        raise ConfigurationError(
            "Sending spans needs a package that is not installed: pip install 'coag[otel]'."
        ) from error
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        raise ConfigurationError("OTEL_SDK_DISABLED is true: nothing would be sent. Unset it.")
    _check_here(url)
    session = requests.Session()
    exporter = OTLPSpanExporter(endpoint=url, timeout=seconds, session=session)
    sending = Sending(exporter, session, seconds)
    provider = TracerProvider(resource=Resource.create(_service()), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(cast("SpanExporter", sending)))
    return sending, provider


class _Overheard(logging.Handler):
    """Keeps the first thing that the exporter logs, in place of printing it all."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said = ""
        self._logger = logging.getLogger("opentelemetry.exporter.otlp")
        self._propagated = self._logger.propagate

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a message; the last one says what it came to."""
        self.said = record.getMessage()

    def __enter__(self) -> _Overheard:
        self._logger.addHandler(self)
        self._logger.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.propagate = self._propagated
        self._logger.removeHandler(self)


def _traces_url(endpoint: str | None) -> str:
    """Where to send to, as the environment says it or somebody typed it.

    Raises:
        ConfigurationError: It is no URL of HTTP.
    """
    traces, base = (os.environ.get(variable, "") for variable in _ENDPOINTS)
    if endpoint is None and traces:
        url = traces
    else:
        given = endpoint or base or DEFAULT_ENDPOINT
        url = given if given.endswith(_PATH) else f"{given.removesuffix('/')}{_PATH}"
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        given = endpoint or traces or base
        raise ConfigurationError(
            f"{given!r} is no collector's URL. Give one like {DEFAULT_ENDPOINT}."
        )
    return url


def _timeout() -> float:
    """How long a request may take, as the environment says it, seconds.

    Raises:
        ConfigurationError: It is no time.
    """
    said = next((name for name in _TIMEOUTS if os.environ.get(name)), None)
    if said is None:
        return _TIMEOUT
    try:
        seconds = float(os.environ[said])
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise ConfigurationError(
            f"{said} is {os.environ[said]!r}: give the seconds that a request may take, more "
            "than 0."
        )
    return seconds


def _check_here(url: str) -> None:
    """Says at once that nobody listens on this machine, instead of trying for ten seconds.

    Raises:
        ConfigurationError: Nobody does.
    """
    parts = urlsplit(url)
    if parts.hostname not in _HERE:
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), _SECONDS).close()
    except OSError as error:
        raise ConfigurationError(
            f"No collector answers at {url!r}: {error.strerror or error}. Start one there, or "
            "name another with --endpoint or OTEL_EXPORTER_OTLP_ENDPOINT."
        ) from error


def _service() -> dict[str, str]:
    """The name of what sends, unless the environment has one."""
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return {} if named else {"service.name": "coag"}
