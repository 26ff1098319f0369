"""A collector of OpenTelemetry that takes log records over HTTP, as Langfuse and others do."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

__all__ = ["LogCollector", "attributes_of", "collecting_logs"]


class LogCollector:
    """What was received."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.paths: set[str] = set()
        self.address = ""

    def evaluations(self) -> list[dict[str, Any]]:
        """Return the attributes of the evaluation events."""
        return [
            attributes_of(one)
            for one in self.records
            if one.event_name == "gen_ai.evaluation.result"
        ]


def attributes_of(record: Any) -> dict[str, Any]:
    """Return the attributes of a record as plain values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in record.attributes}


@contextmanager
def collecting_logs() -> Iterator[LogCollector]:
    """Run a collector."""
    found = LogCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                for scope in resource.scope_logs:
                    found.records.extend(scope.log_records)
            found.paths.add(self.path)
            answer = ExportLogsServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    found.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
