"""Pictures of addresses, fetched only from hosts that the user allows.

An archive may name any address, also one that only this machine can reach, such as a cloud's
metadata. So that no archive makes this machine call what its author could not:

* Only http and https are followed, without a name and password, and never from https to http.
* With ``public``, every address that a host has must be on the public internet. A host that the
  user names may have any address.
* What was checked is what is called: the name is looked up once, and the connection goes to that
  address. Each redirect is checked in the same way, and at most three are followed.
* A picture has at most 20 MiB and is fetched within 30 seconds. Proxies, cookies and keys are not
  used.
"""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from hallujudge.judge_service.settings.connection import listed

from ..errors import InvalidInputError
from .media_files import VIDEO_SUFFIXES, Media, MediaError, path_of_address

PUBLIC = "public"
"""The value that allows every host on the public internet."""
# Bounds of one fetch. A host that never ends a file, or redirects forever, stops no run; the
# bytes are those that a picture of a folder may have.
_MOST_BYTES = 20 << 20
_SECONDS = 30.0
_REDIRECTS = 3
_PIECE = 1 << 16
_MOVED = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
# Addresses of IPv6 that lead to one of IPv4, which may be private.
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_AGENT = "hallujudge"


class _Place(NamedTuple):
    """Where a call goes."""

    url: str
    scheme: str
    host: str
    port: int
    target: str
    address: str


class PictureFetcher:
    """Fetches pictures, each once, into a folder that is removed with the fetcher.

    Args:
        allowed: ``public``, or names of hosts with commas, each with its port if it is not the
            usual one.

    Raises:
        InvalidInputError: No host is named, or one is an address with a path.
    """

    def __init__(self, allowed: str) -> None:
        self._hosts = frozenset(name.lower() for name in listed(allowed))
        # A path or a whole URL would match no host, and nothing would be fetched.
        if not self._hosts or any("/" in name for name in self._hosts):
            raise InvalidInputError(
                f"fetch is {allowed!r:.80}; give {PUBLIC}, or names of hosts with commas, such as "
                "images.example.org or 10.0.0.5:8080"
            )
        self._folder = Path(tempfile.mkdtemp(prefix="hallujudge-fetched-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._found: dict[str, Media | MediaError] = {}

    def media(self, url: str) -> Media:
        """Return the picture of an address, as a file of this machine.

        Raises:
            MediaError: Its host is not allowed, or the call fails.
        """
        if url not in self._found:
            try:
                self._found[url] = self._fetched(url)
            except MediaError as err:
                self._found[url] = err
        found = self._found[url]
        if isinstance(found, MediaError):
            # A new one: raising the kept error again would add to its traceback each time.
            raise MediaError(found.reason, found.detail)
        return found

    def _fetched(self, url: str) -> Media:
        name = path_of_address(url) or url
        if PurePosixPath(name).suffix.lower() in VIDEO_SUFFIXES:
            raise _refused(url, "videos are not fetched; put the file in the folder of pictures")
        # The name of the file is of this machine's making, whatever the address says.
        path = self._folder / sha256(url.encode()).hexdigest()
        path.write_bytes(self._read(url))
        return Media(name=name, files=(path,))

    def _read(self, url: str) -> bytes:
        asked = url
        for _ in range(_REDIRECTS + 1):
            place = self._place(url, asked)
            with _answered(place, asked) as reply:
                if reply.status not in _MOVED:
                    return _body(reply, asked)
                to = urljoin(url, reply.getheader("Location") or "")
            if place.scheme == "https" and not to.startswith("https:"):
                raise _refused(asked, f"it leads from https to {to!r:.80}")
            url = to
        raise _refused(asked, f"it leads to more than {_REDIRECTS} other addresses")

    def _place(self, url: str, asked: str) -> _Place:
        """Return where a call goes, after every check.

        Raises:
            MediaError: It must not be called.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError as err:
            raise _refused(asked, f"{url!r:.80} is no address: {err}") from err
        if parts.scheme not in _PORTS or not host or parts.username is not None:
            raise _refused(asked, "only http and https without a name and password are followed")
        is_named = host in self._hosts or f"{host}:{port}" in self._hosts
        usual = port == _PORTS[parts.scheme]
        if not (f"{host}:{port}" in self._hosts or (usual and is_named) or PUBLIC in self._hosts):
            at = host if usual else f"{host}:{port}"
            raise _refused(
                asked, f"{at} is not among the hosts of InputOptions(own=dict(fetch=…)); add it"
            )
        address = _address_of(host, port, asked, may_be_private=is_named)
        return _Place(url, parts.scheme, host, port, _target(parts), address)


def _address_of(host: str, port: int, asked: str, *, may_be_private: bool) -> str:
    """Return the address of a host; of several, all must be allowed."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as err:
        raise MediaError("MEDIA_UNFETCHED", f"{asked!r:.80}: no such host: {host}") from err
    addresses = [str(each[4][0]) for each in found]
    for address in addresses:
        if not may_be_private and not is_public(address):
            raise _refused(
                asked,
                f"{host} has the private address {address}; name the host with "
                "InputOptions(own=dict(fetch=…)) if it is yours",
            )
    # The call goes to this very address: a second look-up might answer with a private one.
    return addresses[0]


def is_public(text: str) -> bool:
    """Return whether an address is on the public internet."""
    # A scope such as %eth0 is not part of the number.
    address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address.sixtofour or address.teredo or any(address in net for net in _TRANSLATED):
            return False
    return address.is_global and not address.is_multicast


def _target(parts: SplitResult) -> str:
    # A line feed in a path would begin another header.
    path = "".join(char if char.isprintable() and char != " " else "%20" for char in parts.path)
    return (path or "/") + (f"?{parts.query}" if parts.query else "")


class _Pinned(http.client.HTTPConnection):
    """A connection to the address that was checked, whatever the host's name means by now."""

    def __init__(self, place: _Place) -> None:
        super().__init__(place.host, place.port, timeout=_SECONDS)
        self._place = place
        # An answer takes the connection's own over, which is then None.
        self.made: socket.socket | None = None

    def connect(self) -> None:
        made = socket.create_connection((self._place.address, self.port), self.timeout)
        if self._place.scheme == "https":
            context = ssl.create_default_context()
            # The certificate is checked against the host's name, though an address is called.
            made = context.wrap_socket(made, server_hostname=self._place.host)
        self.sock = self.made = made

    def end(self) -> None:
        """End the call, in whichever thread."""
        if self.made is not None:
            # The other side may have closed the connection already.
            with suppress(OSError):
                self.made.shutdown(socket.SHUT_RDWR)


@contextmanager
def _answered(place: _Place, asked: str) -> Iterator[http.client.HTTPResponse]:
    """Yield the answer to a call, which ends after 30 seconds, however slowly it arrives."""
    connection = _Pinned(place)
    late = threading.Event()

    def end() -> None:
        late.set()
        connection.end()

    timer = threading.Timer(_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        target = place.target.encode("ascii", "ignore").decode()
        connection.request("GET", target, headers={"User-Agent": _AGENT, "Accept": "image/*"})
        with connection.getresponse() as reply:
            yield reply
    except (OSError, http.client.HTTPException, ValueError) as err:
        said = f"not whole after {_SECONDS:g} s" if late.is_set() else str(err) or repr(err)
        raise MediaError("MEDIA_UNFETCHED", f"{asked!r:.80}: {said:.200}") from err
    finally:
        timer.cancel()
        connection.close()


def _body(reply: http.client.HTTPResponse, asked: str) -> bytes:
    if reply.status != http.client.OK:
        raise MediaError("MEDIA_UNFETCHED", f"{asked!r:.80}: HTTP {reply.status}")
    found = bytearray()
    while piece := reply.read(_PIECE):
        found += piece
        # The length that a header promises may be wrong, or absent.
        if len(found) > _MOST_BYTES:
            raise MediaError(
                "MEDIA_TOO_LARGE", f"{asked!r:.80} has more than {_MOST_BYTES >> 20} MiB"
            )
    return bytes(found)


def _refused(url: str, why: str) -> MediaError:
    return MediaError("MEDIA_REFUSED", f"{url!r:.80} is not fetched: {why}")
