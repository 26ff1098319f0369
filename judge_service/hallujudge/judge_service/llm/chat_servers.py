"""The servers of a judge: what sends to each, and which one a call goes to."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from .. import __version__
from ..errors import InvalidInputError, MissingExtraError, OutputError
from ..settings.connection import Secret
from ..tenancy import Attributes
from .circuits import CircuitBreaker, Circuits
from .failures import CallFailedError, FailureKind, failure_in_reply, failure_of_status
from .http import CHUNK, Endpoint, HttpEndpoint, LoopSender, Sender, late_reply, no_connection
from .rate_limits import AdaptiveLimiter

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"
# Azure's newer addresses take OpenAI's own client; the older ones have a version in the query.
_PLAIN_AZURE = "/openai/v1"
# The package makes no client without a key; this one is not sent.
_NO_KEY = "none"


class OpenAISender(LoopSender["AsyncOpenAI"]):
    """Sends through OpenAI's own package: to OpenAI, to Azure, or to a gateway in front of them.

    The package knows addresses, headers and credentials: ``OPENAI_ORG_ID``, ``OPENAI_PROJECT_ID``,
    the proxies of the environment, Azure's deployments and tokens of Microsoft Entra. Retries,
    Retry-After, deadlines and what failures mean stay ours, so its own retries are off.

    Args:
        endpoint: Where the server is, and how it is reached.
    """

    library = "openai"

    async def post(self, path: str, body: Mapping[str, object]) -> bytes:
        """Send JSON and return the reply's body.

        Raises:
            CallFailedError: There is no usable reply.
            InvalidInputError: The installed package does not know the path.
        """
        # Judged texts may hold lone surrogates, which UTF-8 cannot encode.
        clean = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
        return await self._with_key(lambda key: self._sent(path, clean, key))

    async def get(self, path: str) -> bytes:
        """Return the body at a path, of which the package knows ``models`` only.

        Raises:
            CallFailedError: There is no usable reply.
        """
        return await self._with_key(lambda key: self._sent(path, {}, key))

    async def _sent(self, path: str, body: dict[str, Any], key: Secret) -> bytes:
        client = await self._open()
        # The key's file may have been replaced since the client was made.
        if key:
            client.api_key = key.reveal()
        try:
            async with (
                asyncio.timeout(self.endpoint.timeout_seconds),
                self._call(client, path, body) as response,
            ):
                reply = key.scrubbed(await self._read(response))
        except (TimeoutError, self._library.APITimeoutError) as err:
            raise late_reply(self.endpoint) from err
        except self._library.APIStatusError as err:
            # Servers quote a wrong key in their messages.
            quoted = key.scrubbed(err.response.content)
            raise failure_of_status(
                err.status_code, err.response.headers, quoted, now=time.time()
            ) from err
        except self._library.APIConnectionError as err:
            address = f"{self.endpoint.host}:{self.endpoint.port}"
            raise no_connection(err.__cause__ or err, address) from err
        if failure := failure_in_reply(reply):
            raise failure
        return reply

    async def _read(self, response: Any) -> bytes:
        try:
            return await self._joined(response.iter_bytes(CHUNK))
        except CallFailedError:
            raise
        except Exception as err:  # of httpx or httpx2, depending on the package's release
            raise CallFailedError(
                FailureKind.CONNECTION, "the connection broke within the reply"
            ) from err

    def _new_client(self) -> AsyncOpenAI:
        with MissingExtraError.unless_installed("calling a model at OpenAI or Azure", "openai"):
            import openai
        self._library, endpoint = openai, self.endpoint
        options: dict[str, Any] = {
            "max_retries": 0,
            # The deadline is that of the whole call, however many pieces the reply comes in.
            "timeout": openai.Timeout(None, connect=endpoint.connect_seconds),
            "default_headers": {"User-Agent": f"hallujudge/{__version__}"},
            # A redirect would send the key and the prompt to another host.
            "http_client": openai.DefaultAsyncHttpxClient(
                follow_redirects=False, proxy=endpoint.proxy or None
            ),
        }
        token = _entra_token() if endpoint.entra else None
        plain = endpoint.url.rstrip("/").endswith(_PLAIN_AZURE)
        if endpoint.sender == "openai" or plain:
            # Never the environment's key: it is not this server's, unless the settings say so.
            key = token or endpoint.key.reveal() or _NO_KEY
            return openai.AsyncOpenAI(base_url=endpoint.url, api_key=key, **options)
        if not endpoint.api_version:
            raise InvalidInputError(
                f"Azure at {endpoint.url} needs the version of its API; set azure.api_version, such"
                " as 2024-10-21"
            )
        try:
            return openai.AsyncAzureOpenAI(
                azure_endpoint=endpoint.url,
                azure_deployment=endpoint.deployment or None,
                api_version=endpoint.api_version,
                api_key=None if token else endpoint.key.reveal() or None,
                azure_ad_token_provider=token,
                **options,
            )
        except openai.OpenAIError as err:
            raise InvalidInputError(
                f"Azure at {endpoint.url} needs a key or a token; set AZURE_OPENAI_API_KEY, or "
                "azure.entra = 1 for a token of Microsoft Entra",
                reason=FailureKind.AUTH.value,
            ) from err

    def _call(
        self, client: Any, path: str, body: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[Any]:
        """Return a call by the package's own function for a path."""
        needed: tuple[str, ...] = ()
        if path == "models":
            function = client.models.with_streaming_response.list
        elif path == "chat/completions":
            needed = ("model", "messages")
            function = client.chat.completions.with_streaming_response.create
        elif path == "decisions":
            needed = ("model", "input", "questions")
            function = self._decisions(client).with_streaming_response.create
        else:
            raise CallFailedError(FailureKind.MODEL, f"OpenAI's package does not call {path}")
        given = {name: body[name] for name in needed}
        # Parameters of other servers pass through the package as they are.
        more = {name: value for name, value in body.items() if name not in needed}
        headers = {"Authorization": self._library.Omit()} if client.api_key == _NO_KEY else None
        call = function(**given, extra_body=more or None, extra_headers=headers)
        return cast("AbstractAsyncContextManager[Any]", call)

    def _decisions(self, client: Any) -> Any:
        if not hasattr(client, "decisions"):
            raise InvalidInputError(
                "decisions need openai 3.54 or newer, and "
                f"{self._library.__version__} is installed: pip install 'openai>=3.54'"
            )
        return client.decisions


def _entra_token() -> Callable[[], Awaitable[str]]:
    """Return a source of Microsoft Entra's tokens, which it renews before they expire."""
    with MissingExtraError.unless_installed("a token of Microsoft Entra", "azure"):
        from azure.identity import DefaultAzureCredential, get_bearer_token_provider
    # The asynchronous one needs aiohttp as well.
    provider = get_bearer_token_provider(DefaultAzureCredential(), _ENTRA_SCOPE)

    async def token() -> str:
        return str(await asyncio.to_thread(provider))

    return token


_URL = "/v1/chat/completions"
# Twice the largest reply over HTTP; a longer line is not a file of replies.
_MAX_LINE = 16 << 20


class BatchFiles:
    """Answers calls from files of replies, and writes those without a reply to a file.

    The files are those of ``vllm run-batch`` and hosted batch APIs. A line of the file of requests
    has ``custom_id``, ``method``, ``url`` and ``body``; a line of a file of replies has
    ``custom_id`` and ``response`` with ``status_code`` and ``body``. The id of a request is a hash
    of its body, so that a reply is found again whichever run asks.

    Args:
        requests: File for requests without a reply, which is replaced; None to write none.
        replies: Files of replies; of several replies to a request the last one counts.

    Raises:
        InvalidInputError: A file of replies can't be read.
    """

    def __init__(self, requests: Path | None, replies: Sequence[Path] = ()) -> None:
        # Only where replies are, so that memory does not grow with their texts.
        self._places = {
            custom_id: (path, place) for path in replies for custom_id, place in _ids(path)
        }
        self._written: set[str] = set()
        self._lock = threading.Lock()
        self._requests = None if requests is None else _opened(requests)

    async def post(self, path: str, body: Mapping[str, object]) -> bytes:  # noqa: ARG002
        """Return the body of the reply to a request.

        Raises:
            CallFailedError: The file has no reply to the request, or an error.
        """
        custom_id = _id_of(body)
        if custom_id in self._places:
            return await asyncio.to_thread(self._reply, custom_id)
        if self._requests is not None and custom_id not in self._written:
            # Before the line is written, so that an equal call meanwhile does not write a second
            # one.
            self._written.add(custom_id)
            await asyncio.to_thread(self._write, custom_id, body)
        raise CallFailedError(FailureKind.NO_REPLY, "the file of replies has no reply to it")

    async def get(self, path: str) -> bytes:
        """Fail, since there is no server.

        Raises:
            CallFailedError: Always.
        """
        raise CallFailedError(FailureKind.CONNECTION, f"no server is asked for {path}")

    async def close(self) -> None:
        """Close the file of requests."""
        if self._requests is not None:
            self._requests.close()

    def _write(self, custom_id: str, body: Mapping[str, object]) -> None:
        line = {"custom_id": custom_id, "method": "POST", "url": _URL, "body": body}
        assert self._requests is not None, "the caller checked it"
        try:
            with self._lock:
                self._requests.write(json.dumps(line).encode() + b"\n")
                self._requests.flush()
        except OSError as err:
            raise OutputError(f"can't write {self._requests.name}: {err.strerror or err}") from err

    def _reply(self, custom_id: str) -> bytes:
        path, place = self._places[custom_id]
        with path.open("rb") as file:
            file.seek(place)
            line = json.loads(file.readline(_MAX_LINE))
        response = line.get("response") or {}
        body = json.dumps(response.get("body") or {"error": line.get("error")}).encode()
        status = response.get("status_code", 500)
        # Offline runs of vLLM write no status where all went well.
        if line.get("error") or status not in (200, None):
            status = status if isinstance(status, int) and status != 200 else 500
            failure = failure_of_status(status, {}, body, now=time.time())
            raise CallFailedError(FailureKind.NO_REPLY, f"its reply is an error: {failure.detail}")
        if not isinstance(response.get("body"), dict) or "choices" not in response["body"]:
            raise CallFailedError(FailureKind.NO_REPLY, "its reply is no chat completion")
        return body


def _id_of(body: Mapping[str, object]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return f"hallujudge-{sha256(text.encode()).hexdigest()[:40]}"


def _opened(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")
    except OSError as err:
        raise OutputError(f"can't write {path}: {err.strerror or err}; name another file") from err


def _ids(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the id and the place of each reply."""
    try:
        with path.open("rb") as file:
            place, number = 0, 0
            while line := file.readline(_MAX_LINE):
                number += 1
                if line.strip():
                    yield _custom_id(line, f"{path}:{number}"), place
                place += len(line)
    except OSError as err:
        raise InvalidInputError(
            f"{path}: {err.strerror or err}; give the file of replies that the batch wrote"
        ) from err


def _custom_id(line: bytes, place: str) -> str:
    try:
        values: Any = json.loads(line)
    except (ValueError, RecursionError) as err:
        raise InvalidInputError(
            f"{place}: not a line of JSON, or longer than {_MAX_LINE:,} bytes; give the file of "
            "replies that the batch wrote"
        ) from err
    custom_id = values.get("custom_id") if isinstance(values, dict) else None
    if not isinstance(custom_id, str) or not isinstance(
        values.get("response", {}), (dict, type(None))
    ):
        raise InvalidInputError(
            f"{place}: a reply has custom_id and response; give the file of replies, not that of "
            "requests"
        )
    if "method" in values:
        raise InvalidInputError(f"{place}: a request, not a reply; give the file of replies")
    return custom_id


class ChatServer:
    """One server of a judge.

    Calls with the same affinity go to the same server, so that its prefix cache holds what their
    prompts have in common. A server that is down is passed over until it answers again.

    Args:
        endpoint: Where it is.
        max_concurrency: Calls at the same time at most.
        circuit_threshold: Failures in a row after which it is not called for a while.
        circuit_seconds: How long it is not called at most.
        longest_wait: Longest pause that it may ask for, in seconds.
        clock: Seconds on a clock that never goes back.
        offline: Files in place of the server.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        max_concurrency: int,
        circuit_threshold: int,
        circuit_seconds: float,
        longest_wait: float,
        clock: Callable[[], float],
        offline: BatchFiles | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.sender = offline or _sender_of(endpoint, max_concurrency)
        self.limiter = AdaptiveLimiter(
            max_concurrency, clock, name=f"judge at {endpoint.place}", longest_wait=longest_wait
        )
        self.circuits = Circuits(circuit_threshold, circuit_seconds, clock)

    @property
    def breaker(self) -> CircuitBreaker:
        """The circuit that the running task's calls pass."""
        return self.circuits.mine

    def attributes(self, model: str) -> Attributes:
        """Return the attributes of a call's span, by OpenTelemetry's conventions."""
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "server.address": self.endpoint.host,
            "server.port": self.endpoint.port,
        }

    @property
    def is_down(self) -> bool:
        """Whether the server has failed so often that the caller's calls are not sent for now."""
        return self.breaker.state == "open"


def _sender_of(endpoint: Endpoint, connections: int) -> Sender:
    if endpoint.sender == "http":
        return HttpEndpoint(endpoint, connections)
    return OpenAISender(endpoint)


def preferred(servers: Sequence[ChatServer], affinity: str) -> list[ChatServer]:
    """Return the servers in the order in which calls with an affinity use them.

    Rendezvous hashing: every process finds the same order, and a server that is added or left out
    moves no call between the others.

    Args:
        servers: All servers.
        affinity: What the calls have in common.
    """
    if len(servers) == 1:
        return list(servers)

    def weight(server: ChatServer) -> bytes:
        return sha256(f"{server.endpoint.url}\0{affinity}".encode("utf-8", "replace")).digest()

    return sorted(servers, key=weight)


def next_server(order: Iterable[ChatServer]) -> ChatServer:
    """Return the first server that is not down, or the one that is called again the soonest."""
    servers = list(order)
    up = (server for server in servers if not server.is_down)
    return next(up, min(servers, key=lambda server: server.breaker.seconds_left))
