"""TLS of the server: credentials, and checks of their files before the server starts."""

from __future__ import annotations

import logging
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from ..errors import InvalidInputError
from ..settings.connection import never_ends
from ..threads import look_regularly

if TYPE_CHECKING:
    from ..settings.server_settings import TlsSettings

_LOG = logging.getLogger(__name__)
_MAX_FILE_BYTES = 1 << 20
_DAY_SECONDS = 86_400
# Certificates of Let's Encrypt are renewed when a third of their 90 days is left.
_SOON_SECONDS = 14 * _DAY_SECONDS
# Both files of a pair are replaced within this time.
_PAIR_SECONDS = 1.0


def server_credentials(settings: TlsSettings) -> grpc.ServerCredentials | None:
    """Return the credentials of the settings, or None for plain text.

    Replaced files are used from the next connection on.

    Raises:
        InvalidInputError: A file is missing, does not fit the others, or has expired.
    """
    if not settings.cert and not settings.key and not settings.ca:
        return None
    if not settings.cert or not settings.key:
        raise InvalidInputError(
            f"tls.cert is {settings.cert!r} and tls.key {settings.key!r}; set both to "
            "serve over TLS"
        )
    _check(settings)
    files = _Files(settings)
    look_regularly(files.look, "hallujudge-tls-dates")  # while the credentials keep them
    return grpc.dynamic_ssl_server_credentials(
        files.configuration(),
        files.changed,  # type: ignore[arg-type]  # None, which the stub omits, means unchanged
        require_client_authentication=bool(settings.ca),
    )


def server_context(settings: TlsSettings) -> ssl.SSLContext | None:
    """Return the TLS context for HTTP; :func:`server_credentials` must have checked the files.

    Replaced files are used within a second, by new connections.
    """
    if not settings.cert:
        return None
    files = _Files(settings)
    files.current = files.context()

    def renewed(connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
        assert files.current is not None, "it was read before the first connection"
        connection.context = files.current

    first = files.context()
    first.sni_callback = renewed  # called before each handshake, with a name or without
    look_regularly(files.renew, "hallujudge-tls")
    return first


class _Files:
    """The TLS files of the settings, which are read again when they change.

    Args:
        settings: The files.
    """

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._paths = tuple(
            Path(path) for path in (settings.key, settings.cert, settings.ca) if path
        )
        self._seen = self._looked_at = self._stamps()
        self._next_look = time.monotonic() + _PAIR_SECONDS
        self.current: ssl.SSLContext | None = None
        """The content for Python's TLS, once it was read."""

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """Return the current content of the files for gRPC."""
        key, chain, *authorities = (_read(path) for path in self._paths)
        return grpc.ssl_server_certificate_configuration(
            [(key, chain)], root_certificates=authorities[0] if authorities else None
        )

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return new content of the files, or None; gRPC calls this before each handshake."""
        try:
            stamps = self._stamps()
            if stamps == self._seen:
                return None
            found = self.configuration()
        except (OSError, InvalidInputError):
            return None  # the files are being replaced; the next handshake tries again
        self._seen = stamps
        return found

    def look(self) -> None:
        """Log that clients refuse the certificate, now or soon: once a day, and when it changes."""
        with suppress(OSError):
            stamps, now = self._stamps(), time.monotonic()
            if stamps != self._looked_at:
                self._looked_at, self._next_look = stamps, now + _PAIR_SECONDS
            elif now >= self._next_look:
                self._next_look = now + min(_DAY_SECONDS, self._noted())

    def _noted(self) -> float:
        """Log what is wrong with the files; return the seconds until they should be looked at."""
        try:
            left = _check(self._settings) - time.time()
        except InvalidInputError as err:
            _LOG.error("new connections fail or use the certificate from before: %s", err)
            return _DAY_SECONDS
        if left < _SOON_SECONDS:
            _LOG.warning(
                "tls.cert %r ends in %.1f days, and clients refuse it from then on; renew it",
                self._settings.cert,
                left / _DAY_SECONDS,
            )
        return max(left, 0) + _PAIR_SECONDS

    def context(self) -> ssl.SSLContext:
        """Return the current content of the files for Python's TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._settings.cert, self._settings.key, password="")
        context.set_alpn_protocols(["http/1.1"])
        if self._settings.ca:
            context.load_verify_locations(self._settings.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def renew(self) -> None:
        """Read the files for Python's TLS again if they changed."""
        # ssl.SSLError is an OSError. Files that are being replaced are read at the next look.
        with suppress(OSError, InvalidInputError):
            if (stamps := self._stamps()) != self._seen:
                self.configuration()  # refuses what can't be read without waiting
                self.current = self.context()
                self._seen = stamps

    def _stamps(self) -> tuple[tuple[int, int], ...]:
        return tuple((status.st_mtime_ns, status.st_size) for status in map(Path.stat, self._paths))


def _read(path: Path) -> bytes:
    if never_ends(path):
        raise InvalidInputError(
            f"the TLS file {path} is not a regular file, but a pipe or a device; give a file, "
            "which is read several times"
        )
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as err:
        raise InvalidInputError(
            f"the TLS file {path} can't be read: {err.strerror or err}; check its path, and that "
            "the server's user may read it"
        ) from err
    if len(data) > _MAX_FILE_BYTES:
        raise InvalidInputError(f"the TLS file {path} is larger than {_MAX_FILE_BYTES} bytes")
    return data


def _check(settings: TlsSettings) -> float:
    """Refuse files that no client accepts: gRPC would start with them and fail every handshake.

    Returns:
        When the certificate ends, in seconds since 1970.
    """
    for path in filter(None, (settings.cert, settings.key, settings.ca)):
        _read(Path(path))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        serving.load_cert_chain(settings.cert, settings.key, password="")
    except (ssl.SSLError, ValueError) as err:
        raise InvalidInputError(
            f"tls.cert {settings.cert!r} and tls.key {settings.key!r} can't be used "
            f"together ({_reason(err)}); give a PEM certificate and its own private key, without a "
            "password"
        ) from err
    if settings.ca:
        try:
            serving.load_verify_locations(settings.ca)
        except ssl.SSLError as err:
            raise InvalidInputError(
                f"tls.ca {settings.ca!r} has no certificates ({_reason(err)}); give a PEM file"
            ) from err
    return _check_dates(serving, settings.cert)


def _check_dates(serving: ssl.SSLContext, certificate: str) -> float:
    """Refuse an expired certificate, by a handshake in memory with a client that trusts it."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.load_verify_locations(certificate)
    trusting.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server)
    for side in (client, server, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError as err:
            raise InvalidInputError(
                f"tls.cert {certificate!r} can't be used: {err.verify_message}; renew it"
            ) from err
    found = client.getpeercert() or {}
    return float(ssl.cert_time_to_seconds(str(found["notAfter"])))


def _reason(err: Exception) -> str:
    return str(getattr(err, "reason", "") or err).replace("_", " ").lower()
