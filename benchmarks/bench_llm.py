"""Overhead of the LLM judge's client per call; bench_llm_tokens.py counts tokens.

    python benchmarks/bench_llm.py [--calls 2000] [--max-concurrency 64] [--rounds 5]

Three clients call one server that answers after 20 ms, in turns within one run: ours, the bare
openai package, and the bare openai package on its aiohttp transport.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import needs
from arguments import Arguments

from hallujudge.judge_service.llm.chat import ChatRequest
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.http import Endpoint

MESSAGES = [
    {"role": "system", "content": "Answer with one word. " * 40},
    {"role": "user", "content": "a claim and a scene graph " * 40},
]


def main() -> None:
    """Run the benchmark."""
    parser = Arguments(__doc__)
    parser.size("--calls", 2000, smoke=20)
    parser.size("--max-concurrency", 64, smoke=4)
    parser.size("--rounds", 5, smoke=1)
    given = parser.given()
    needs.packages("aiohttp")
    asyncio.run(measure_overhead(given.calls, given.max_concurrency, given.rounds))


SERVER = """
import asyncio, json
BODY = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{
    "index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "supported"}}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}}).encode()
HEAD = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\n"
HEAD += b"Content-Length: %d\\r\\n\\r\\n" % len(BODY)
class Server(asyncio.Protocol):
    def connection_made(self, transport): self.transport, self.data = transport, b""
    def data_received(self, data):
        self.data += data
        while (end := self.data.find(b"\\r\\n\\r\\n")) >= 0:
            head = self.data[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15:].split(b"\\r\\n")[0]) if at >= 0 else 0
            if len(self.data) < end + 4 + length: return
            self.data = self.data[end + 4 + length:]
            loop.call_later(DELAY, self.transport.write, HEAD + BODY)
DELAY = 0.02
loop = asyncio.new_event_loop()
server = loop.run_until_complete(loop.create_server(Server, "127.0.0.1", 0))
print(server.sockets[0].getsockname()[1], flush=True)
loop.run_forever()
"""


async def measure_overhead(calls: int, max_concurrency: int, rounds: int) -> None:
    """Print each client's median time of a call at a concurrency."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    try:
        closing: Closing = []
        clients = {
            "hallujudge": our_client(url, max_concurrency, closing),
            **openai_clients(url, closing),
        }
        times: dict[str, list[float]] = {name: [] for name in clients}
        for number in range(rounds + 1):
            for name in random.Random(number).sample(list(clients), len(clients)):
                seconds = await run(
                    clients[name], calls if number else max_concurrency, max_concurrency
                )
                if number:  # the first round opens connections
                    times[name].append(seconds / calls)
        for close in closing:
            await close()
    finally:
        process.kill()
        process.wait()
    base = statistics.median(times["openai"]) if "openai" in times else None
    for name, seen in times.items():
        middle = statistics.median(seen)
        against = ""
        if base is not None:
            against = (
                f"{(middle - base) * 1000:+.3f} ms of work a call against openai, "
                f"{(middle - base) * max_concurrency * 1000:+.1f} ms of latency "
            )
        print(
            f"{name:20} {1 / middle:7.0f} calls/s, "
            f"{middle * max_concurrency * 1000:6.1f} ms a call at {max_concurrency} in flight, "
            f"{against}(rounds {min(seen) * 1000:.3f} to {max(seen) * 1000:.3f} ms)"
        )


async def run(call: Callable[[], Awaitable[object]], calls: int, max_concurrency: int) -> float:
    """Return the seconds that a number of calls take."""
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await call()

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(max_concurrency)))
    return time.perf_counter() - started


Closing = list[Callable[[], Awaitable[None]]]


def our_client(url: str, max_concurrency: int, closing: Closing) -> Callable[[], Awaitable[object]]:
    """Return a call by Hallujudge's client."""
    settings = ChatSettings(
        endpoint=Endpoint(url=url), model="m", dialect="vllm", max_concurrency=max_concurrency
    )
    client = ChatClient(settings)
    closing.append(client.close)
    request = ChatRequest(messages=MESSAGES, max_tokens=8, choices=("supported", "object1"))
    return lambda: client.ask(request)


def openai_clients(url: str, closing: Closing) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return calls by the openai package, on each installed transport."""
    try:
        from openai import AsyncOpenAI, DefaultAioHttpClient
    except ImportError:
        print("openai: not installed, so ours is timed alone (pip install 'openai[aiohttp]')")
        return {}

    def caller(client: AsyncOpenAI) -> Callable[[], Awaitable[object]]:
        return lambda: client.chat.completions.create(
            model="m",
            messages=MESSAGES,
            max_tokens=8,
            temperature=0,
            top_p=1,
            seed=0,
            logprobs=True,
            top_logprobs=8,
            extra_body={"structured_outputs": {"choice": ["supported", "object1"]}},
        )

    clients = {"openai": AsyncOpenAI(base_url=url, api_key="k")}
    try:
        clients["openai on aiohttp"] = AsyncOpenAI(
            base_url=url, api_key="k", http_client=DefaultAioHttpClient()
        )
    except RuntimeError:
        print("openai on aiohttp: not installed (pip install 'openai[aiohttp]')")
    closing += [client.close for client in clients.values()]
    return {name: caller(client) for name, client in clients.items()}


if __name__ == "__main__":
    main()
