"""Sending to one server: where it is, and the sender for servers of vLLM's kind.

A sender only sends JSON, returns bytes and classifies failures. What surrounds a call, such as
retries, limits and the cache, is the same for all senders.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

from .. import __version__
from ..errors import InvalidInputError, MissingExtraError
from ..settings.connection import Secret, masked, web_address
from ..threads import import_in_thread
from .circuits import Supervision
from .failures import CallFailedError, FailureKind, failure_in_reply, failure_of_status

if TYPE_CHECKING:
    import aiohttp


SenderName: TypeAlias = Literal["http", "openai", "azure"]
"""Our own sender, OpenAI's package, or the same with Azure's addresses and headers."""
CHUNK = 1 << 16
"""Bytes of a piece. Replies below this size are read at once; they cannot exceed the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where an OpenAI-compatible server is, and how it is reached."""

    url: str
    """Its base address, such as ``http://127.0.0.1:8000/v1``."""
    key: Secret = field(default_factory=lambda: Secret(""))
    """The API key; empty to send none."""
    socket: str = ""
    """Unix socket that it listens on; the address then only says the path below it."""
    sender: SenderName = "http"
    """What sends to it."""
    deployment: str = ""
    """The model's deployment at Azure; empty if it is called like the model."""
    api_version: str = ""
    """The version of Azure's API."""
    entra: bool = False
    """Whether calls have a token of Microsoft Entra in place of a key."""
    proxy: str = field(default="", repr=False)
    """Proxy, such as ``http://proxy:3128``; empty for none."""
    timeout_seconds: float = 120.0
    """Seconds for one call, from sending to the last byte; a slow reply does not prolong it."""
    connect_seconds: float = 10.0
    """Time for a connection."""
    max_reply_bytes: int = 8 << 20
    """Largest reply that is read."""
    supervision: Supervision | None = field(default=None, repr=False, compare=False)
    """What is known of it, if this process supervises it."""

    def __post_init__(self) -> None:
        parts = web_address(self.url)
        if parts is None:
            raise InvalidInputError(
                f"the model's address {masked(self.url)!r} is not a web address; "
                "write it like http://127.0.0.1:8000/v1"
            )
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InvalidInputError(
                "the model's address holds a user name, a password, a query or a fragment; put "
                "the key into the environment or a file"
            )
        if self.proxy and web_address(self.proxy) is None:
            raise InvalidInputError(
                f"the proxy {masked(self.proxy)!r} is not a web address; write it like "
                "http://proxy:3128"
            )
        if any(char in self.key.reveal() for char in "\r\n\0"):
            raise InvalidInputError("the judge's key has a line break in it; give one line")

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return "a private Unix socket" if self.socket else self.url

    @property
    def host(self) -> str:
        """The server's name or IP address."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The server's port."""
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)


class Sender(Protocol):
    """Sends to one server, or answers in its place."""

    async def post(self, path: str, body: Mapping[str, object]) -> bytes:
        """Send JSON and return the reply's body.

        Args:
            path: Below the base address, such as ``chat/completions``, or from the root with ``/``.
            body: The request.

        Raises:
            CallFailedError: There is no usable reply; the failure has the kind and the detail.
        """

    async def get(self, path: str) -> bytes:
        """Return the body at a path.

        Raises:
            CallFailedError: There is no usable reply.
        """

    async def close(self) -> None:
        """Close all connections."""


class _Client(Protocol):
    async def close(self) -> None:
        """Close all connections."""


_ClientT = TypeVar("_ClientT", bound=_Client)


class LoopSender(ABC, Generic[_ClientT]):
    """What senders share: a library's client, opened on first use in the loop that uses it.

    Args:
        endpoint: Where the server is, and how it is reached.
    """

    library: ClassVar[str]
    """The library, whose import takes long."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._key = endpoint.key
        self._library: Any = None
        self._client: _ClientT | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def close(self) -> None:
        """Close all connections, for good."""
        self._is_closed = True
        client, self._client = self._client, None
        # A client can only be closed in the loop that opened it.
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    async def _with_key(self, send: Callable[[Secret], Awaitable[bytes]]) -> bytes:
        """Send a request; once more if its key was rejected and the key's file has another."""
        key = self._key
        try:
            return await send(key)
        except CallFailedError as failure:
            # Some gateways refuse an old key as they refuse a prompt, with 403.
            if failure.kind not in (FailureKind.AUTH, FailureKind.REFUSED):
                raise
            newest = await asyncio.to_thread(self._key.newest)
            if newest == key or not newest.reveal().isprintable():
                raise
            self._key = newest
        return await send(self._key)

    async def _joined(self, pieces: AsyncIterable[bytes]) -> bytes:
        """Return a reply that comes in pieces; an endless one is left at the limit.

        Raises:
            CallFailedError: It is too large to be one.
        """
        most, read, size = self.endpoint.max_reply_bytes, [], 0
        async for piece in pieces:
            read.append(piece)
            size += len(piece)
            if size > most:
                raise CallFailedError(
                    FailureKind.NOT_THE_API, f"the reply is larger than {most} bytes"
                )
        return b"".join(read)

    async def _open(self) -> _ClientT:
        """Return the client.

        Raises:
            MissingExtraError: The library is not installed.
            RuntimeError: The connections were closed. A run that fails leaves calls that are sent
                to their ends; nothing would close the connection of one that then asks again.
        """
        with suppress(ImportError):  # reported where the client is made
            await import_in_thread(self.library)
        if self._is_closed:
            raise RuntimeError(f"the connections to {self.endpoint.place} were closed")
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = self._new_client(), loop
        return self._client

    @abstractmethod
    def _new_client(self) -> _ClientT:
        """Return a new client, and keep the library.

        Raises:
            MissingExtraError: The library is not installed.
        """


class HttpEndpoint(LoopSender["aiohttp.ClientSession"]):
    """The sender for servers of vLLM's kind: a connection pool of aiohttp.

    It carries four times the calls of OpenAI's package for the same processor time.

    Args:
        endpoint: Where it is.
        connections: Connections at most.
    """

    library = "aiohttp"

    def __init__(self, endpoint: Endpoint, connections: int) -> None:
        super().__init__(endpoint)
        self._connections = connections

    async def post(self, path: str, body: Mapping[str, object]) -> bytes:
        """Send JSON and return the reply's body.

        Raises:
            CallFailedError: There is no usable reply; the failure has the kind and the detail.
        """
        # Judged texts may hold lone surrogates, which UTF-8 cannot encode.
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        return await self._request("POST", path, data)

    async def get(self, path: str) -> bytes:
        """Return the body at a path below the base address, or from the root with ``/``.

        Raises:
            CallFailedError: There is no usable reply.
        """
        return await self._request("GET", path, None)

    async def _request(self, method: str, path: str, data: bytes | None) -> bytes:
        return await self._with_key(lambda key: self._sent(method, path, data, key))

    async def _sent(self, method: str, path: str, data: bytes | None, key: Secret) -> bytes:
        session = await self._open()
        try:
            async with session.request(
                method,
                self._address(path),
                data=data,
                headers={"Authorization": f"Bearer {key.reveal()}"} if key else None,
                # A redirect would send the key and the prompt to another host.
                allow_redirects=False,
                proxy=self.endpoint.proxy or None,
            ) as response:
                # Servers quote a wrong key in their messages.
                body = key.scrubbed(await self._read(response))
                if response.status != 200:
                    raise failure_of_status(
                        response.status, response.headers, body, now=time.time()
                    )
                if failure := failure_in_reply(body):
                    raise failure
                return body
        # First, because aiohttp's timeouts are client errors as well.
        except TimeoutError as err:
            raise late_reply(self.endpoint) from err
        except self._library.ClientPayloadError as err:
            raise CallFailedError(
                FailureKind.CONNECTION, "the connection broke within the reply"
            ) from err
        except self._library.ClientConnectorError as err:
            at = self.endpoint.place if self.endpoint.socket else f"{err.host}:{err.port}"
            raise no_connection(err, at) from err
        except (self._library.ClientError, OSError) as err:
            raise no_connection(err) from err

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        if (response.content_length or 0) <= CHUNK and response.content_length is not None:
            return await response.read()
        return await self._joined(response.content.iter_chunked(CHUNK))

    def _address(self, path: str) -> str:
        base = self.endpoint.url.rstrip("/")
        if path.startswith("/"):
            parts = urlsplit(base)
            return f"{parts.scheme}://{parts.netloc}{path}"
        return f"{base}/{path}"

    def _new_client(self) -> aiohttp.ClientSession:
        with MissingExtraError.unless_installed("calling a model at a web address", "llm"):
            import aiohttp
        self._library = aiohttp
        headers = {"Content-Type": "application/json", "User-Agent": f"hallujudge/{__version__}"}
        path, limit = self.endpoint.socket, self._connections
        return aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(path, limit=limit)
            if path
            else aiohttp.TCPConnector(limit=limit),
            timeout=aiohttp.ClientTimeout(
                total=self.endpoint.timeout_seconds, connect=self.endpoint.connect_seconds
            ),
            headers=headers,
            # Calls share a connection, and no other state.
            cookie_jar=aiohttp.DummyCookieJar(),
        )


def no_connection(err: BaseException, address: str = "") -> CallFailedError:
    """Return the failure of a call without a connection, in the system's own words if it has any.

    Args:
        err: The library's error.
        address: Host and port, if the connection was never there.
    """
    cause: BaseException | None = err
    while cause is not None and address:
        if isinstance(cause, socket.gaierror):
            why = cause.strerror or "no such host"
        elif isinstance(cause, ConnectionError) and cause.errno:
            why = os.strerror(cause.errno)
        else:
            cause = cause.__cause__ or cause.__context__
            continue
        return CallFailedError(FailureKind.CONNECTION, f"no connection to {address}: {why}")
    # One line, without addresses of objects.
    text = str(err) or type(err).__name__
    return CallFailedError(FailureKind.CONNECTION, masked(text.splitlines()[0])[:200])


def late_reply(endpoint: Endpoint) -> CallFailedError:
    """Return the failure of a reply that was not complete in time."""
    return CallFailedError(
        FailureKind.TIMEOUT, f"no complete reply in {endpoint.timeout_seconds:g} s"
    )
