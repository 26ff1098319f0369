"""Why a server can't be reached: what gRPC does not say about TLS and plain text."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

from hallujudge.judge_service.settings.connection import SYSTEM, host_of

if TYPE_CHECKING:
    from hallujudge.judge_service.settings.connection import Connection

__all__ = ["diagnose"]

_SECONDS = 2.0
# The first bytes of every HTTP/2 connection, with an empty SETTINGS frame.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS_FRAME = 4


def diagnose(target: str, connection: Connection) -> str:
    """Connect once more without gRPC, and return what is wrong with TLS; empty: nothing is seen.

    Args:
        target: The server's address.
        connection: How the client connects.
    """
    host, _, port = target.rpartition(":")
    if not host or not port.isdigit():
        return ""
    with suppress(OSError):
        if connection.is_tls:
            return _over_tls((host_of(target), int(port)), connection)
        return _in_plain_text((host_of(target), int(port)))
    return ""


def _over_tls(address: tuple[str, int], connection: Connection) -> str:
    try:
        context = _context(connection)
    except ssl.SSLError as err:
        return f"the TLS files of this client can't be used ({_reason(err)}); check them"
    with socket.create_connection(address, _SECONDS) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=address[0]) as secure:
                # With TLS 1.3 a server looks at the client's certificate after the handshake, and
                # gRPC's servers then close the connection without a word.
                secure.sendall(_PREFACE)
                return "" if _answers(secure) else _refused(connection, "it hangs up")
        except ssl.SSLCertVerificationError as err:
            return _certificate(err, address[0])
        except ssl.SSLError as err:
            return _handshake(err, connection)


def _answers(secure: ssl.SSLSocket) -> bool:
    try:
        return bool(secure.recv(1))
    except TimeoutError:
        return True  # slow, but it did not hang up
    except ConnectionError:
        return False


def _context(connection: Connection) -> ssl.SSLContext:
    file = None if connection.tls_ca in ("", SYSTEM) else connection.tls_ca
    context = ssl.create_default_context(cafile=file)
    context.set_alpn_protocols(["h2"])
    if connection.tls_cert:
        context.load_cert_chain(connection.tls_cert, connection.tls_key, password="")
    return context


def _certificate(err: ssl.SSLCertVerificationError, host: str) -> str:
    advice = "set Connection(tls_ca=…) to the authority that it is from"
    if "expired" in err.verify_message:
        advice = "have it renewed"
    elif "mismatch" in err.verify_message.lower() or "not valid for" in err.verify_message:
        advice = f"use a name that the certificate has, not {host}"
    return f"the server's certificate is not accepted: {err.verify_message}; {advice}"


def _handshake(err: ssl.SSLError, connection: Connection) -> str:
    reason = _reason(err)
    if "wrong version number" in reason or "record layer" in reason or "http request" in reason:
        return "the server speaks plain text, not TLS; leave out tls_ca, or start it with tls_cert"
    if "alert" in reason:
        return _refused(connection, reason)
    return f"the TLS handshake failed: {reason}"


def _refused(connection: Connection, reason: str) -> str:
    what = "wants a certificate of the client"
    if connection.tls_cert:
        what = "does not accept the client's certificate"
    return (
        f"the server {what} ({reason}); set Connection(tls_cert=…) and Connection(tls_key=…) to a "
        "certificate from its authority"
    )


def _in_plain_text(address: tuple[str, int]) -> str:
    with socket.create_connection(address, _SECONDS) as plain:
        plain.sendall(_PREFACE)
        answer = b""
        with suppress(OSError):
            answer = plain.recv(9)
    if len(answer) > 3 and answer[3] == _SETTINGS_FRAME:
        return ""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    # Nothing is sent: this only finds out whether the server speaks TLS.
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(address, _SECONDS) as plain:
        try:
            with context.wrap_socket(plain):
                pass
        except ssl.SSLError as err:
            if "alert" not in _reason(err):
                return ""
    return (
        "the server speaks TLS, not plain text; set Connection(tls_ca=…) to the authority of its "
        "certificate, or to system"
    )


def _reason(err: ssl.SSLError) -> str:
    return (err.reason or str(err)).replace("_", " ").lower()
