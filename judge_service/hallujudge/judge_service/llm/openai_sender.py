"""Sending through OpenAI's own package: to OpenAI, to Azure, or to a gateway in front of them.

The package knows addresses, headers and credentials: ``OPENAI_ORG_ID``, ``OPENAI_PROJECT_ID``, the
proxies of the environment, Azure's deployments and tokens of Microsoft Entra. Retries, Retry-After,
deadlines and what failures mean stay ours, so its own retries are off.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

from ..errors import InvalidInputError, MissingExtraError
from ..installation import __version__
from ..settings.connection import Secret
from .failures import CallFailedError, FailureKind, failure_in_reply, failure_of_status
from .http import LoopSender, large_reply, late_reply, no_connection

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_CHUNK = 1 << 16
_ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"
# Azure's newer addresses take OpenAI's own client; the older ones have a version in the query.
_PLAIN_AZURE = "/openai/v1"
# The package makes no client without a key; this one is not sent.
_NO_KEY = "none"


class OpenAISender(LoopSender["AsyncOpenAI"]):
    """A client of the package ``openai``.

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
        return await self._key.used(lambda key: self._sent(path, clean, key))

    async def get(self, path: str) -> bytes:
        """Return the body at a path, of which the package knows ``models`` only.

        Raises:
            CallFailedError: There is no usable reply.
        """
        return await self._key.used(lambda key: self._sent(path, {}, key))

    async def _sent(self, path: str, body: dict[str, Any], key: Secret) -> bytes:
        client = await self._open()
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
        pieces, size = [], 0
        try:
            async for piece in response.iter_bytes(_CHUNK):
                pieces.append(piece)
                size += len(piece)
                if size > self.endpoint.max_reply_bytes:
                    break
        except Exception as err:  # of httpx or httpx2, depending on the package's release
            raise CallFailedError(
                FailureKind.CONNECTION, "the connection broke within the reply"
            ) from err
        if size > self.endpoint.max_reply_bytes:
            raise large_reply(self.endpoint)
        return b"".join(pieces)

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
