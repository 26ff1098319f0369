"""Authentication of callers: by API key, client certificate or address.

HTTP and gRPC share it: an HTTP request has a context with the same methods.
"""

from __future__ import annotations

import ipaddress
from base64 import b64decode
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, unquote

from ..access import Caller, Scope
from ..access.key_store import KeyStore
from ..errors import InvalidInputError, UnauthenticatedError
from ..settings.connection import with_port
from ..threads import look_regularly

if TYPE_CHECKING:
    import grpc

    from ..settings.server_settings import ServerSettings


_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

# Callers without a key may score; only a key can make its owner an administrator.
_ORDINARY = frozenset({Scope.SCORE, Scope.EXTRACT, Scope.JUDGE})
_HEADER = "authorization"
# Names of certificates appear in logs and metrics.
_MAX_NAME = 80


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
    address = host[5:].strip("[]").partition("%")[0]
    return f"ipv6:[{ipaddress.IPv6Network((address, 64), strict=False)}]"
