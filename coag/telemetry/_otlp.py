"""Sending a run's spans to a collector: OTLP over HTTP."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from coag.errors import ConfigurationError
from coag.tracing import RunFolder, TraceProblem

from ._export import export_run

if TYPE_CHECKING:  # the extra need not be there
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

DEFAULT_ENDPOINT = "http://127.0.0.1:4318"
"""Where a collector listens on this machine, if nothing else is said."""

_PATH = "/v1/traces"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_BATCH = 200
"""Spans of one request."""
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

    What the environment says (`OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME`,
    `OTEL_RESOURCE_ATTRIBUTES`, ...) holds, but for what is given here.

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
    try:
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
    url = _traces_url(endpoint)
    _check_here(url)
    sending = _Sending(OTLPSpanExporter(endpoint=url))
    provider = TracerProvider(resource=Resource.create(_service()), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(cast("SpanExporter", sending)))
    with _Overheard() as overheard:
        try:
            export_run(
                run, tracer_provider=provider, record_content=record_content, on_problem=on_problem
            )
        finally:
            provider.shutdown()
    if sending.failed:
        why = overheard.said or "it gave no reason"
        raise ConfigurationError(f"The collector at {url!r} did not take the spans: {why}")
    return sending.sent


class _Sending:
    """A span exporter that sends in batches, at once, and stops at the first failure."""

    def __init__(self, exporter: SpanExporter) -> None:
        self.sent = 0
        self.failed = False
        self._exporter = exporter
        self._held: list[ReadableSpan] = []

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
        self.failed = self._exporter.export(batch).name != "SUCCESS"
        self.sent += 0 if self.failed else len(batch)


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
