"""A collector on this machine that takes OTLP over HTTP and decodes what it is sent."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """What a collector was sent, and how it answers."""

    url: str = ""
    status: int = 200
    location: str = ""
    """Where its answers point to."""
    spans: list[Span] = field(default_factory=list[Span])
    services: set[str] = field(default_factory=set[str])
    paths: list[str] = field(default_factory=list[str])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    raw: list[bytes] = field(default_factory=list[bytes])

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """Decodes a request; the status to answer with."""
        self.paths.append(path)
        self.headers.append(headers)
        if not 200 <= self.status < 300:
            return self.status
        body = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        self.raw.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for attribute in resource.resource.attributes:
                if attribute.key == "service.name":
                    self.services.add(attribute.value.string_value)
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        return self.status


@contextmanager
def running_collector() -> Generator[Collector]:
    """A collector that listens on a free port of this machine."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {key.lower(): value for key, value in self.headers.items()}
            status = collector.take(self.path, headers, body)
            self.send_response(status)
            if collector.location:
                self.send_header("location", collector.location)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
