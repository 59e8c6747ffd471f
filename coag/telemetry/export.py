"""Spans of a finished run, from its folder: to a tracer provider, or to a collector over OTLP."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from opentelemetry.trace import TracerProvider

from coag.errors import ConfigurationError
from coag.schema import one_line
from coag.tracing import RunFolder, TraceProblem, read_run, read_trace

from .attributes import Content, Subject, provider_of
from .spans import SpanBuilder

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

DEFAULT_ENDPOINT = "http://127.0.0.1:4318"
"""Where a collector listens on this machine by default."""
_PATH = "/v1/traces"
_BATCH = 200
"""Spans of one request."""
_LOCAL = ("127.0.0.1", "localhost", "::1")
_CONNECT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """What was exported."""

    run: str
    """The run's id."""
    records: int
    """How many records of its trace were read."""


def export_run(
    run: RunFolder | Path | str,
    *,
    tracer_provider: TracerProvider | None = None,
    record_content: bool = False,
    on_problem: Callable[[TraceProblem], None] | None = None,
) -> ExportedRun:
    """Makes the spans of a run from its folder, with the times at which things happened.

    All of a run is one trace. Metrics are not made: they would carry the time of the export.
    A provider that sends in batches drops spans where its queue is full; `send_run` does not.

    Args:
        run: The run's folder.
        tracer_provider: Where spans go; None for the global one.
        record_content: Send messages, prompts, arguments and results, too.
        on_problem: Called for a truncated last line and for hashes that do not fit; None to have
            them raised.

    Raises:
        TraceError: There is no run, or its trace cannot be read; the spans before stay made.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    info = read_run(folder.path)
    builder = SpanBuilder(
        Subject(
            agent=info.agent,
            run=info.id,
            provider=provider_of(model=info.model),
            kind=info.kind,
            parent=None if info.parent is None else info.parent.run,
        ),
        tracer_provider=tracer_provider,
        meters=None,
        content=Content() if record_content else None,
        in_caller_span=False,
    )
    records = 0
    try:
        for entry in read_trace(folder.trace_path, on_problem):
            builder.add(entry.body)
            records += 1
    finally:
        builder.close()
    return ExportedRun(info.id, records)


# ---- OTLP over HTTP ----


def send_run(
    run: RunFolder | Path | str,
    endpoint: str | None = None,
    *,
    record_content: bool = False,
    on_problem: Callable[[TraceProblem], None] | None = None,
) -> int:
    """Sends the spans of a run to a collector and waits until it has taken them.

    Only an answer of 2xx counts as taken; redirects are not followed. The variables of the
    environment (`OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, ...)
    apply, except where an argument replaces them.

    Args:
        run: The run's folder.
        endpoint: The collector's URL, with or without `/v1/traces`; None for the one of the
            environment, or `DEFAULT_ENDPOINT`.
        record_content: Send messages, prompts, arguments and results, too.
        on_problem: Called for a truncated last line and for hashes that do not fit; None to have
            them raised.

    Returns:
        How many spans were sent.

    Raises:
        ConfigurationError: The extra `otel` is missing, OpenTelemetry is switched off, or the
            collector did not take the spans; the message says why.
        TraceError: There is no run, or its trace cannot be read.
    """
    url = _traces_url(endpoint)
    try:
        import requests
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    except ImportError as error:
        raise ConfigurationError(
            "Sending spans needs a package that is not installed: pip install 'coag[otel]'."
        ) from error
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        raise ConfigurationError("OTEL_SDK_DISABLED is true: nothing would be sent. Unset it.")
    _check_listener(url)
    attributes = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in attributes
    service = Resource.create({} if named else {"service.name": "coag"})
    session = requests.Session()
    batches = _Batches(OTLPSpanExporter(endpoint=url, session=session), session)
    provider = SdkTracerProvider(resource=service, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(cast("SpanExporter", batches)))
    try:
        export_run(
            run, tracer_provider=provider, record_content=record_content, on_problem=on_problem
        )
    finally:
        provider.shutdown()
    if why := batches.failure:
        raise ConfigurationError(f"The collector at {url!r} did not take the spans: {why}")
    return batches.sent


class _Batches:
    """A span exporter that sends whole batches at once, counts them, and stops at a failure.

    The SDK's batch processor drops spans when its queue is full and reports no failure.
    """

    def __init__(self, exporter: SpanExporter, session: requests.Session) -> None:
        self.sent = 0
        """Spans that the collector took."""
        self.failure = ""
        """Why it did not take some; empty if it took all."""
        self._exporter = exporter
        self._waiting: list[ReadableSpan] = []
        self._status: tuple[int, str] | None = None
        session.hooks["response"] = [self._on_response]

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Takes spans; sends them when there are enough for a request."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        self._waiting += [] if self.failure else spans
        if len(self._waiting) >= _BATCH:
            self.force_flush()
        return SpanExportResult.FAILURE if self.failure else SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Sends the spans that wait."""
        del timeout_millis
        if self._waiting and not self.failure:
            batch, self._waiting, self._status = self._waiting, [], None
            try:
                succeeded = self._exporter.export(batch).name == "SUCCESS"
                self.failure = self._failure(succeeded)
            except (OSError, ValueError) as error:  # older exporters let these through
                self.failure = one_line(str(error))
            self.sent += 0 if self.failure else len(batch)
        return not self.failure

    def shutdown(self) -> None:
        """Sends the rest and closes the connection."""
        self.force_flush()
        self._exporter.shutdown()

    def _on_response(
        self, response: requests.Response, *_: object, **__: object
    ) -> requests.Response:
        """Notes the status; without a location no redirect is followed."""
        self._status = response.status_code, response.reason or ""
        response.headers.pop("Location", None)
        return response

    def _failure(self, succeeded: bool) -> str:
        if self._status is None:
            return "" if succeeded else "it gave no answer; the exporter's log says more"
        status, reason = self._status
        if succeeded and 200 <= status < 300:
            return ""
        answered = f"it answered {status} {one_line(reason, 100)}".rstrip()
        return f"{answered}; redirects are not followed" if 300 <= status < 400 else answered


def _traces_url(endpoint: str | None) -> str:
    """The URL to send to: the argument, or the environment's, or the default."""
    traces = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
    base = endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or DEFAULT_ENDPOINT
    url = base if base.endswith(_PATH) else f"{base.removesuffix('/')}{_PATH}"
    url = traces if traces and endpoint is None else url
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ConfigurationError(
            f"{url!r} is no collector's URL. Give one like {DEFAULT_ENDPOINT}."
        )
    return url


def _check_listener(url: str) -> None:
    """Fails at once where nobody listens on this machine; the exporter would retry for long."""
    parts = urlsplit(url)
    if parts.hostname not in _LOCAL:
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), _CONNECT_SECONDS).close()
    except OSError as error:
        raise ConfigurationError(
            f"No collector answers at {url!r}: {error.strerror or error}. Start one there, or "
            "name another with --endpoint or OTEL_EXPORTER_OTLP_ENDPOINT."
        ) from error
