"""What the LLM judge costs: tokens for each claim, and time that the client adds to a call.

    python benchmarks/bench_llm.py tokens [--references tri-he.json] [--tokenizer FOLDER]
    python benchmarks/bench_llm.py overhead [--calls 2000] [--in-flight 64]

``tokens`` builds every prompt of ours, and one of the published protocol's size, for the same
claims, and counts them. Answers are the shortest that each protocol allows: the published one asks
for "My answer is 'yes'", or a "no" with a second sentence, ours for one word. A model that explains
itself under the published protocol, which nothing there forbids, generates more: --published-answer
sets what it writes for each claim. Without --tokenizer, tokens are words and signs.

``overhead`` compares three clients on one server that answers after 20 ms, in turns within one run:
ours, the bare openai package, and the bare openai package on its aiohttp transport.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path

from hallujudge.judge_service.judges import (
    ChatClient,
    ChatSettings,
    Endpoint,
    JudgeRequestItem,
    LlmJudge,
)
from hallujudge.judge_service.judges._chat import ChatRequest
from hallujudge.metrics.triplets import Triplet, TripletError, triplet_of

REPO = Path(__file__).resolve().parents[1]
MESSAGES = [
    {"role": "system", "content": "Answer with one word. " * 40},
    {"role": "user", "content": "a claim and a scene graph " * 40},
]


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    tokens = commands.add_parser("tokens")
    tokens.add_argument(
        "--references", type=Path, default=REPO.parent / "shared/goldens/tri_he/tri-he.json"
    )
    tokens.add_argument(
        "--claims", type=Path, default=REPO.parent / "shared/goldens/tri_he/matcher_claims.jsonl"
    )
    tokens.add_argument("--tokenizer", type=Path, help="folder of a model, with tokenizer.json")
    tokens.add_argument("--published-answer", default="", help="what the published judge writes")
    overhead = commands.add_parser("overhead")
    overhead.add_argument("--calls", type=int, default=2000)
    overhead.add_argument("--in-flight", type=int, default=64)
    overhead.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.command == "tokens":
        count_tokens(
            arguments.references, arguments.claims, arguments.tokenizer, arguments.published_answer
        )
    else:
        asyncio.run(measure_overhead(arguments.calls, arguments.in_flight, arguments.rounds))


def counter(folder: Path | None) -> Callable[[str], int]:
    """Counts a text's tokens."""
    if folder is None:
        return lambda text: len(re.findall(r"\w+|[^\w\s]", text))
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: len(tokenizer.encode(text).ids)


def items_of(references: Path, claims: Path) -> tuple[list[JudgeRequestItem], list[list[str]]]:
    """The golden claims with their scene graphs, and the matcher's verdicts on them."""
    scenes = json.loads(references.read_text())
    items, verdicts = [], []
    for line in claims.read_text().splitlines():
        entry = json.loads(line)
        scene = scenes[entry["image_id"]]
        items.append(
            JudgeRequestItem(
                id=entry["image_id"],
                claims=tuple(Triplet(*claim) for claim in entry["claims"]),
                reference_triplets=tuple(filter(None, map(read, scene["triplets"]))),
                reference_objects=tuple(scene["all_object"]),
            )
        )
        verdicts.append(entry["verdicts"])
    return items, verdicts


def read(text: str) -> Triplet | None:
    """A reference triplet; None where its text is not one."""
    try:
        return triplet_of(text)
    except TripletError:
        return None


# The published prompt has about 2,000 characters of instructions before the references and the
# claim, and 300 behind them. Only its size matters here, and what stands where.
PUBLISHED_HEAD = "instruction words for the judge to follow in order " * 37
PUBLISHED_TAIL = "words on how the answer is to be put down exactly " * 6
PUBLISHED_YES = "My answer is 'yes'"
PUBLISHED_NO = "My answer is 'no'. The error is related to 'object2'."


def count_tokens(references: Path, claims: Path, tokenizer: Path | None, answer: str) -> None:
    """Prints calls and tokens for each claim, published and ours."""
    count = counter(tokenizer)
    items, verdicts = items_of(references, claims)
    total = sum(len(item.claims) for item in items)
    rows = [("published", *published(items, verdicts, count, answer))]
    for size in (1, 20):
        for constraint in ("structured_outputs", "json_schema"):
            rows.append(
                (
                    f"ours, {size} a call, {constraint}",
                    *ours(items, verdicts, count, size, constraint),
                )
            )
    how = f"tokens of {tokenizer}" if tokenizer else "words and signs"
    print(f"{total} claims of {len(items)} answers; {how}")
    base = rows[0]
    for name, calls, prompt, shared, generated in rows:
        print(
            f"{name:40} calls/claim {calls / total:.3f}  prompt/claim {prompt / total:7.1f}  "
            f"shared {shared / prompt:6.1%}  generated/claim {generated / total:5.2f}  "
            f"generated: {base[4] / generated:.1f} times fewer, prompt: {base[2] / prompt:.1f}"
        )


Counts = tuple[int, int, int, int]


def published(
    items: list[JudgeRequestItem],
    verdicts: list[list[str]],
    count: Callable[[str], int],
    answer: str,
) -> Counts:
    """One call a claim; instructions first, then references, objects and the claim."""
    prompts, generated = [], 0
    for item, judged in zip(items, verdicts, strict=True):
        scene = str([tuple(t) for t in item.reference_triplets]), str(list(item.reference_objects))
        for claim, verdict in zip(item.claims, judged, strict=True):
            prompts.append("\n".join([PUBLISHED_HEAD, *scene, str(tuple(claim)), PUBLISHED_TAIL]))
            shortest = PUBLISHED_YES if verdict == "yes" else PUBLISHED_NO
            generated += count(answer or shortest) + 1
    return len(prompts), *shared_of(prompts, count), generated


def ours(
    items: list[JudgeRequestItem],
    verdicts: list[list[str]],
    count: Callable[[str], int],
    size: int,
    constraint: str,
) -> Counts:
    """Our prompts as they are sent, and the shortest answer that the constraint allows."""
    settings = ChatSettings(endpoint=Endpoint(url="http://localhost/v1"), model="m")
    judge = LlmJudge("llm", ChatClient(settings), claims_per_call=size)
    seen: set[str] = set()
    prompts, generated = [], 0
    for item, judged in zip(items, verdicts, strict=True):
        for question in judge.questions(item):
            if (key := judge.key_of(question)) in seen:
                continue
            seen.add(key)
            prompts.append("\n".join(m["content"] for m in question.messages))
            words = ["supported" if judged[i] == "yes" else "object2" for i in question.claims]
            keyed = {str(n): word for n, word in enumerate(words, start=1)}
            if question.keyed:
                answer = json.dumps(keyed, separators=(",", ":"))
            elif constraint == "json_schema":
                answer = json.dumps({"verdict": words[0]}, separators=(",", ":"))
            else:
                answer = words[0]
            generated += count(answer) + 1
    return len(prompts), *shared_of(prompts, count), generated


def shared_of(prompts: list[str], count: Callable[[str], int]) -> tuple[int, int]:
    """Tokens of all prompts, and those that stand at the beginning of an earlier prompt too."""
    total = shared = 0
    before = ""
    for prompt in prompts:
        total += count(prompt)
        shared += count(prompt[: shared_chars(before, prompt)])
        before = prompt
    return total, shared


def shared_chars(one: str, two: str) -> int:
    """Characters that two texts begin with alike."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(two)))


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


async def measure_overhead(calls: int, in_flight: int, rounds: int) -> None:
    """Prints the median time for a call of each client, with so many in flight."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    try:
        closing: Closing = []
        clients = {
            "hallujudge": our_client(url, in_flight, closing),
            **openai_clients(url, closing),
        }
        times: dict[str, list[float]] = {name: [] for name in clients}
        for number in range(rounds + 1):
            for name in random.Random(number).sample(list(clients), len(clients)):
                seconds = await run(clients[name], calls if number else in_flight, in_flight)
                if number:  # the first round opens connections
                    times[name].append(seconds / calls)
        for close in closing:
            await close()
    finally:
        process.kill()
        process.wait()
    base = statistics.median(times["openai"])
    for name, seen in times.items():
        middle = statistics.median(seen)
        latency = middle * in_flight * 1000
        print(
            f"{name:20} {1 / middle:7.0f} calls/s, {latency:6.1f} ms a call at {in_flight} in "
            f"flight, {(middle - base) * 1000:+.3f} ms of work a call against openai, "
            f"{(middle - base) * in_flight * 1000:+.1f} ms of latency (rounds "
            f"{min(seen) * 1000:.3f} to {max(seen) * 1000:.3f} ms)"
        )


async def run(call: Callable[[], Awaitable[object]], calls: int, in_flight: int) -> float:
    """Seconds for so many calls."""
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await call()

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return time.perf_counter() - started


Closing = list[Callable[[], Awaitable[None]]]


def our_client(url: str, in_flight: int, closing: Closing) -> Callable[[], Awaitable[object]]:
    """A call by our client."""
    settings = ChatSettings(
        endpoint=Endpoint(url=url), model="m", dialect="vllm", in_flight=in_flight
    )
    client = ChatClient(settings)
    closing.append(client.close)
    request = ChatRequest(messages=MESSAGES, max_tokens=8, choices=("supported", "object1"))
    return lambda: client.ask(request)


def openai_clients(url: str, closing: Closing) -> dict[str, Callable[[], Awaitable[object]]]:
    """A call by the openai package, on each transport that is installed."""
    from openai import AsyncOpenAI, DefaultAioHttpClient

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
