"""A scripted OpenAI-compatible server on loopback, which can fail in every way.

Each chat completion request is answered by the next step of the script; the last step stays. A
step is a function of the request's number and body, or one of the ready-made ones below.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

Body: TypeAlias = dict[str, Any]
_DATA_URL = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,(.*)")


@dataclass(frozen=True)
class Reply:
    """An HTTP response, and how it is sent."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the first byte."""
    drip: float = 0.0
    """Seconds between pieces of the body; 0: all at once."""
    cut: int | None = None
    """The connection is reset after so many bytes of the body."""
    reset: bool = False
    """Whether to reset the connection instead of responding."""
    hold: asyncio.Event | None = None
    """An event that the test sets to send the response."""


Step: TypeAlias = Callable[[int, Body], Reply]


def completion(
    content: str | None,
    *,
    finish: str = "stop",
    refusal: str | None = None,
    reasoning: str | None = None,
    logprobs: Any = None,
    usage: Body | None = None,
    model: str = "",
) -> Reply:
    """Return a well-formed chat completion, with a model name only if one is given."""
    message: Body = {"role": "assistant", "content": content}
    if refusal is not None:
        message["refusal"] = refusal
    if reasoning is not None:  # vLLM 0.32.0 with a reasoning parser
        message["reasoning"] = reasoning
    words = len((content or "").split()) + 1
    return as_json(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": model,
            "choices": [
                {"index": 0, "message": message, "finish_reason": finish, "logprobs": logprobs}
            ],
            "usage": usage or {"prompt_tokens": 100, "completion_tokens": words},
        }
    )


RULED_OUT = -9999.0
"""What vLLM lists for a token that the grammar of a constraint rules out."""


def stating(shares: Mapping[str, float]) -> Reply:
    """Return a reply with the probabilities of choices among all, the one that is written first."""
    total = math.fsum(shares.values())
    top = {word: math.log(share / total) for word, share in shares.items()}
    return completion(next(iter(shares)), logprobs={"content": [place({**top, "The": RULED_OUT})]})


def drawn_from(free: Mapping[str, float]) -> Step:
    """Return a step that writes as vLLM does: the constraint's mask first, then probabilities.

    Args:
        free: Probabilities of the first token where nothing is ruled out.
    """

    def step(_number: int, body: Body) -> Reply:
        choices = body.get("structured_outputs", {}).get("choice", [])
        allowed = [t for t in free if not choices or any(each.startswith(t) for each in choices)]
        total = math.fsum(free[text] for text in allowed)
        logprobs = {t: math.log(free[t] / total) if t in allowed else RULED_OUT for t in free}
        likeliest = sorted(free, key=lambda text: -logprobs[text])[: body.get("top_logprobs", 0)]
        first = likeliest[0]
        whole = next((each for each in choices if each.startswith(first)), first)
        places = [place({text: logprobs[text] for text in likeliest})]
        if rest := whole.removeprefix(first):
            places.append(place({rest: 0.0, "The": RULED_OUT}))
        finish = "length" if body["max_tokens"] == 1 else "stop"
        if finish == "stop":
            places.append(place({"<|eot_id|>": 0.0}))
        return completion(whole, finish=finish, logprobs={"content": places})

    return step


def place(top: Mapping[str, float]) -> Body:
    """Return a token and the list of those in its place; the first one is written."""
    listed = [{"token": text, "logprob": logprob} for text, logprob in top.items()]
    return {**listed[0], "top_logprobs": listed}


def as_json(value: object, status: int = 200, **headers: str) -> Reply:
    body = json.dumps(value).encode()
    return Reply(status=status, body=body, headers=headers | {"Content-Type": "application/json"})


def error(
    status: int, message: str = "", code: str | int = "", kind: str = "", **headers: str
) -> Reply:
    content = {"message": message, "code": code} | ({"type": kind} if kind else {})
    return as_json({"error": content}, status, **headers)


# What real servers and proxies sent, recorded from llama-server (llama.cpp 7e4c0a9), transformers
# serve 5.24.0, LiteLLM 1.106.12 and vLLM 0.32.0. The error of vLLM is 0.33.0's by its code.
TOO_LONG_AT_LLAMA = error(
    400,
    "request (22703 tokens) exceeds the available context size (4096 tokens), try increasing it",
    400,
    "exceed_context_size_error",
)
NO_IMAGES_AT_LLAMA = error(
    500,
    "image input is not supported - hint: if this is unexpected, you may need to provide the "
    "mmproj",
    500,
    "server_error",
)
UNREAD_AT_LLAMA = error(
    500,
    "The model produced output that does not match the expected peg-native format",
    500,
    "server_error",
)
TOO_LONG_AT_LITELLM = error(
    400,
    "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - too many",
    "400",
)
QUOTA_AT_LITELLM = error(
    429,
    "litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota, "
    "please check your plan and billing details.",
    "429",
    "throttling_error",
)
NO_SCHEMAS_AT_LITELLM = error(
    400,
    "litellm.UnsupportedParamsError: openai does not support parameters: ['response_format'], for "
    "model=gpt-4. To drop these, set `litellm.drop_params=True` or for proxy:\n\n"
    "`litellm_settings:\n drop_params: true`\n. \n If you want to use these params dynamically "
    "send allowed_openai_params=['response_format'] in your request.\n\nLiteLLM: model group "
    "'texts' failed with the error above. No fallback was attempted.",
    "400",
    "invalid_request_error",
)
UNKNOWN_MODEL_AT_LITELLM = error(
    400,
    "/chat/completions: Invalid model name passed in model=nope/x. Call `/v1/models` to view "
    "available models for your key.",
    "400",
    "invalid_request_error",
)
REJECTED_KEY_AT_LITELLM = error(400, "No connected db.", "400", "no_db_connection")
UNKNOWN_FIELDS_AT_TRANSFORMERS = as_json(
    {"detail": "Unexpected fields in the request: {'top_k', 'repetition_penalty', 'min_p'}"}, 422
)
UNKNOWN_ESCAPE_AT_LLAMA = error(
    400,
    "Failed to initialize samplers: failed to parse grammar",
    400,
    "invalid_request_error",
)
NO_DECISIONS_AT_VLLM = error(
    501, "The model does not support the Decisions API", 501, "NotImplementedError"
)


def always(reply: Reply) -> Step:
    return lambda _number, _body: reply


def saying(content: str | None, **options: Any) -> Step:
    return always(completion(content, **options))


def to_prompts(reply: Reply) -> Step:
    """Return a step that sends a reply to all prompts but the client's own question."""
    return lambda _number, body: completion("yes") if is_own_question(body) else reply


def is_own_question(body: Body) -> bool:
    """Return whether a client asks another question, because a call failed."""
    return "Is snow white?" in prompt_of(body)


def completion_of_odd(content: str) -> Step:
    """Return a step that replies to every other request, and refuses the others."""
    refused = completion(None, refusal="I'd rather not.")
    return lambda number, _body: completion(content) if number % 2 else refused


def prompt_of(body: Body) -> str:
    """Return the last user message, without its images."""
    content = body["messages"][-1]["content"]
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    return str(content)


def images_of(body: Body) -> list[bytes]:
    """Return the images of the last user message, which must be data URLs."""
    content = body["messages"][-1]["content"]
    parts = content if isinstance(content, list) else []
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(re.fullmatch(_DATA_URL, url)[1], validate=True) for url in urls]  # type: ignore[index]  # a test may fail here


def claims_of(body: Body) -> list[list[str]]:
    """Return the claims of a judge's prompt."""
    block = re.search(r"<<<(CLAIMS?)\n(.*?)\n\1>>>", prompt_of(body), re.DOTALL)
    assert block is not None, prompt_of(body)
    return [json.loads(line) for line in block[2].split("\n")]


def scene_of(body: Body) -> list[list[str]]:
    block = re.search(r"<<<SCENE\n(.*?)\nSCENE>>>", prompt_of(body), re.DOTALL)
    return [json.loads(line) for line in block[1].split("\n")] if block else []


def by_scene_graph(_number: int, body: Body) -> Reply:
    """Reply that a claim is supported if the scene graph has it word for word.

    To a prompt without claims it replies with the first choice. Unlike vLLM, it reports no
    log-probabilities.
    """
    if "<<<CLAIM" not in prompt_of(body):
        return completion(body.get("structured_outputs", {}).get("choice", ["{}"])[0])
    scene, said = scene_of(body), claims_of(body)
    objects = {part for fact in scene for part in (fact[0], fact[2])}

    def verdict(claim: list[str]) -> str:
        if claim in scene:
            return "supported"
        if claim[0] not in objects:
            return "object1"
        return "relation" if claim[2] in objects else "object2"

    if "format" in body.get("response_format", {}):
        raise AssertionError("no such field")
    keys = _schema_keys(body)
    if body.get("structured_outputs", {}).get("regex"):
        keys = [claim[0] for claim in said]
    elif "structured_outputs" in body or not keys:
        return completion(verdict(said[0]))
    if keys == ["verdict"]:
        return completion(json.dumps({"verdict": verdict(said[0])}))
    return completion(json.dumps({claim[0]: verdict(claim[1:]) for claim in said}))


def _schema_keys(body: Body) -> list[str]:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return list(schema.get("properties", {}))


def ask(server: ScriptedLlm, *arguments: object) -> tuple[str, ...]:
    """Return the arguments of ``hallujudge ask`` that put questions to a server."""
    return ("ask", *map(str, arguments), "--url", server.url, "--model", "m")


class ScriptedLlm:
    """The server; use it as an async context manager, or with :meth:`in_thread`."""

    def __init__(
        self,
        *steps: Step,
        version: str = "0.32.0",
        ready_after: float = 0.0,
        model: str = "m",
        counts_tokens: bool = True,
        port: int = 0,
        socket: str = "",
    ) -> None:
        self.steps: Sequence[Step] = steps or (by_scene_graph,)
        self.version = version
        self.model = model
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.probabilities: dict[str, Step] = {}
        """Steps of endpoints that report probabilities, by the end of their paths."""
        self.posted: list[tuple[str, Body]] = []
        """Their paths and requests."""
        self.abandoned = 0
        """Requests whose client disconnected before the response."""
        self.counts_tokens = counts_tokens
        self.port = port
        self.socket = socket
        self._ready_at = time.monotonic() + ready_after
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    @property
    def chats(self) -> int:
        return len(self.requests)

    @property
    def connections(self) -> int:
        """Open connections."""
        return len(self._connections)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        if self.socket:
            self._server = await asyncio.start_unix_server(self._connected, self.socket)
            return
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        path = first.split(" ")[1]
        self.paths.append(path)
        end = path.partition("?")[0].rpartition("/")[2]
        if end in self.probabilities and data:
            body = json.loads(data)
            self.posted.append((path, body))
            await self._send(writer, self.probabilities[end](len(self.posted), body))
            return True
        if end != "completions":
            await self._send(writer, self._other(path))
            return True
        self.headers.append(headers)
        self.requests.append(json.loads(data))
        number = len(self.requests)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            step = self.steps[min(number, len(self.steps)) - 1]
            reply = step(number, self.requests[-1])
            if await self._hung_up(reader, reply):
                self.abandoned += 1
                return False
            return await self._send(writer, reply)
        finally:
            self.in_flight -= 1

    def _other(self, path: str) -> Reply:
        if path == "/health":
            return Reply(status=200 if time.monotonic() >= self._ready_at else 503)
        if path == "/version":
            return as_json({"version": self.version})
        if path.endswith("/models"):
            model = {"id": self.model, "object": "model", "owned_by": "vllm"}
            return as_json({"object": "list", "data": [model]})
        if path == "/tokenize" and self.counts_tokens:
            return as_json({"count": 42})
        return error(404, "no such path")

    async def _hung_up(self, reader: asyncio.StreamReader, reply: Reply) -> bool:
        """Wait until the response is due; return whether the client disconnected meanwhile."""
        if reply.delay:
            # A client that waits for its answer sends nothing: reading ends when it hangs up.
            gone = asyncio.ensure_future(reader.read(1))
            try:
                if (await asyncio.wait({gone}, timeout=reply.delay))[0]:
                    return True
            finally:
                gone.cancel()
        if reply.hold is not None:
            await reply.hold.wait()
        return False

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        if reply.reset:
            writer.transport.abort()
            return False
        headers = reply.headers | {"Content-Length": str(len(reply.body))}
        lines = [f"HTTP/1.1 {reply.status} X", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        pieces = [reply.body[i : i + 1] for i in range(len(reply.body))] if reply.drip else []
        for piece in pieces or [reply.body if reply.cut is None else reply.body[: reply.cut]]:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(reply.drip)
        if reply.cut is not None:
            await asyncio.sleep(0.01)
            writer.transport.abort()
            return False
        return True

    def read_all_sent(self) -> None:
        """Return once the server, in its thread, has read every request sent before this call.

        It accepts connections and reads requests in the order in which they came.
        """
        with urllib.request.urlopen(f"{self.url}/models", timeout=60) as response:
            response.read()

    def shown(self) -> list[tuple[str, list[bytes]]]:
        """Return the prompts and images so far."""
        return [(prompt_of(body), images_of(body)) for body in self.requests]

    def in_thread(self) -> Callable[[], None]:
        """Start the server in a separate thread; return the function that stops it."""
        loop, started = asyncio.new_event_loop(), threading.Event()

        def main() -> None:
            loop.run_until_complete(self.start())
            # A stop that comes before the loop runs for ever would end only the start.
            loop.call_soon(started.set)
            loop.run_forever()
            loop.run_until_complete(self.stop())
            loop.close()

        thread = threading.Thread(target=main, daemon=True)
        thread.start()
        assert started.wait(60)

        def stop() -> None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(60)
            assert not thread.is_alive(), "the server does not end"

        return stop
