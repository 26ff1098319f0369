"""Authentication of callers, by API key, client certificate or address, and the server's TLS.

HTTP and gRPC share it: an HTTP request has a context with the same methods.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
import time
from base64 import b64decode
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import grpc

from ..access import Caller, Scope
from ..access.key_store import KeyStore
from ..errors import InvalidInputError, UnauthenticatedError
from ..settings.connection import never_ends, with_port
from ..settings.server_settings import ServerSettings, TlsSettings
from ..threads import look_regularly

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

# Callers without a key may score; only a key can make its owner an administrator.
_ORDINARY = frozenset({Scope.SCORE, Scope.EXTRACT, Scope.JUDGE})
_HEADER = "authorization"
# Names of certificates appear in logs and metrics.
_MAX_NAME = 80
_LOG = logging.getLogger(__name__)
# Chains of certificates have kilobytes; a larger file was named by mistake.
_MAX_FILE_BYTES = 1 << 20
_DAY_SECONDS = 86_400
# Certificates of Let's Encrypt are renewed when a third of their 90 days is left.
_SOON_SECONDS = 14 * _DAY_SECONDS
# Both files of a pair are replaced within this time.
_PAIR_SECONDS = 1.0


class Authenticator:
    """Identifies callers, and rejects those who may not call.

    Args:
        keys: The API keys, or None if the server has none.
        certificates: Whether a client certificate identifies a caller without a key.
        anonymous: Whether callers without a key or certificate are served.
    """

    def __init__(
        self, keys: KeyStore | None = None, *, certificates: bool = False, anonymous: bool = True
    ) -> None:
        self._keys = keys
        self._certificates = certificates
        self.serves_anyone = anonymous
        """Whether a caller without a key or certificate may score."""

    def caller_of(self, context: _Context) -> Caller:
        """Return the caller of an RPC.

        Raises:
            UnauthenticatedError: The key is missing or invalid.
        """
        if self._keys is not None and (key := _key_of(context)):
            return self._keys.caller(key)
        if self._keys is None and self._certificates and (name := _certificate_of(context)):
            return Caller(id=f"certificate:{name}", name=f"certificate of {name}", scopes=_ORDINARY)
        if not self.serves_anyone:
            raise UnauthenticatedError(
                "this server needs an API key; send it as 'authorization: Bearer KEY'. The client "
                "of Hallujudge reads it from HALLUJUDGE_API_KEY, or from the file that "
                "HALLUJUDGE_API_KEY_FILE names",
                reason="KEY_MISSING",
            )
        return anonymous(context.peer())

    def check(self, caller: Caller) -> None:
        """Reject a caller whose key was revoked or has expired during a call.

        Raises:
            UnauthenticatedError: The key is no longer valid.
        """
        if self._keys is not None and caller.key_id:
            self._keys.check(caller)

    def current(self, caller: Caller) -> Caller:
        """Return a caller with the scopes and limits that its key has now.

        Raises:
            UnauthenticatedError: The key is no longer valid.
        """
        if self._keys is None or not caller.key_id:
            return caller
        return self._keys.current(caller)


def new_authenticator(settings: ServerSettings) -> Authenticator:
    """Return the authenticator that the settings describe.

    Raises:
        InvalidInputError: The settings would serve every caller from other machines without
            ``access.allow_anonymous``, or the file of keys can't be read.
    """
    keys = KeyStore(Path(settings.access.keys_file)) if settings.access.keys_file else None
    if keys is not None:
        look_regularly(keys.look, "hallujudge-keys")
    known = keys is not None or bool(settings.tls.ca)
    if not known and not settings.access.allow_anonymous and (place := _open_place(settings)):
        raise InvalidInputError(
            f"the server would serve anybody who reaches {place}; set "
            "access.keys_file (hallujudge keys create makes it) or tls.ca, listen on 127.0.0.1, or "
            "set access.allow_anonymous = 1 to serve anybody"
        )
    return Authenticator(
        keys,
        certificates=bool(settings.tls.ca),
        anonymous=bool(settings.access.allow_anonymous) or not known,
    )


def _open_place(settings: ServerSettings) -> str:
    """Return the address that other machines can reach, or an empty text."""
    # The address listened on decides, not the caller's: behind a proxy every caller is local.
    if not is_loopback(settings.host):
        return with_port(settings.host, settings.port)
    if settings.http.port >= 0 and not is_loopback(settings.http.host):
        return with_port(settings.http.host, settings.http.port)
    return ""


def describes_itself(settings: ServerSettings, host: str) -> bool:
    """Return whether a server at an address describes its methods to every caller."""
    return settings.reflection == "on" or (settings.reflection == "auto" and is_loopback(host))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address that a server listens on."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(1024)
def anonymous(peer: str) -> Caller:
    """Return the anonymous caller at an address, such as ``ipv4:10.0.0.7:40312``.

    It is known by its host, because the port differs between connections. Places are counted by
    connection too: programs of one machine, or behind one proxy, leave each other some.
    """
    host, network = host_of(peer), network_of(peer)
    return Caller(
        id=f"peer:{host}",
        name=f"anonymous ({host})",
        scopes=_ORDINARY,
        levels=(f"peer:{network}", peer) if peer != host else (),
    )


def _key_of(context: _Context) -> str:
    """Return the API key of a call, or an empty text."""
    for name, value in context.invocation_metadata() or ():
        if name == _HEADER and isinstance(value, str):
            scheme, _, text = value.partition(" ")
            # RFC 9110 (section 11.1) takes the name of a scheme in any case.
            if scheme.lower() == "bearer":
                return text.strip()
            if scheme.lower() == "basic":
                return _password_in(text)
    return ""


def _password_in(text: str) -> str:
    """Return the password of basic authentication, or an empty text.

    A trainer that is given an address and nothing else sends it for http://key:KEY@HOST:PORT.
    """
    try:
        return b64decode(text.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _certificate_of(context: _Context) -> str:
    """Return the common name of the client's certificate, or an empty text."""
    names = context.auth_context().get("x509_common_name") or []
    text = next(iter(names), b"").decode(errors="replace")
    # A name with a line break would forge a line of the log.
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:_MAX_NAME]


def peer_of(client: tuple[str, int] | None) -> str:
    """Return an HTTP client's address as gRPC writes it, so that both name a caller alike."""
    if client is None:
        return "unknown"
    # A socket that accepts both families maps IPv4 addresses into IPv6.
    host, port = client[0].removeprefix("::ffff:"), client[1]
    return f"ipv6:{quote(f'[{host}]', safe=':')}:{port}" if ":" in host else f"ipv4:{host}:{port}"


def host_of(peer: str) -> str:
    """Return a readable address without its port, which changes with every connection.

    gRPC writes an address as part of a URI, with brackets as ``%5B`` and ``%5D``.
    """
    if not peer.startswith(("ipv4:", "ipv6:")):
        return peer
    return unquote(peer.rpartition(":")[0])


def network_of(peer: str) -> str:
    """Return what an address counts for: itself, or its network (/64) if it is of IPv6.

    The owner of such a network can take any of its addresses.
    """
    host = host_of(peer)
    if not host.startswith("ipv6:") or is_loopback(host[5:]):
        return host
    # Without the zone of an address on a link, which a network does not have.
    address = host[5:].strip("[]").partition("%")[0]
    return f"ipv6:[{ipaddress.IPv6Network((address, 64), strict=False)}]"


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
        # Files that are being replaced are looked at again half a second later.
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
        # Without a password OpenSSL would ask for one at the terminal, and wait.
        context.load_cert_chain(self._settings.cert, self._settings.key, password="")
        # Clients that also offer HTTP/2 must not choose it, since uvicorn does not have it.
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
    # Only dates are looked at here; clients know the server by names of their own.
    trusting.check_hostname = False
    trusting.load_verify_locations(certificate)
    # The certificate itself is trusted, though another one has issued it.
    trusting.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server)
    # The client begins, the server answers with its certificate, and the client checks that.
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
