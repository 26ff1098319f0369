"""Raw HTTP/2 frames, for what no gRPC client sends."""

from __future__ import annotations

import socket
import struct

__all__ = ["connected", "frame", "headers", "read_frame"]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, CONTINUATION = 0, 1, 3, 4, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def headers(path: str) -> bytes:
    """Return the header block of a gRPC call, without compression."""
    pairs = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    )
    return b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in pairs
    )


def connected(address: str) -> socket.socket:
    """Return a connection that has begun to speak HTTP/2."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=20)
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
    return connection


def read_frame(connection: socket.socket) -> tuple[int, bytes]:
    """Return the kind and the payload of the next frame."""
    head = _exactly(connection, 9)
    return head[3], _exactly(connection, int.from_bytes(head[:3], "big"))


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise AssertionError("the server closed the connection")
        data += more
    return data
