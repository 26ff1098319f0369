"""A seeded fuzz of every RPC of a server: whatever is sent, no answer may be a defect."""

from __future__ import annotations

import gzip
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

import grpc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import Default
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from hallujudge.judge.v1 import jobs_pb2, scoring_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.server.interceptors import METHODS
from hallujudge.judge_service.wire.convert import item_to_proto
from hallujudge.metrics.families import metric_names

__all__ = ["SCORING", "WORDS", "Fuzz", "Tally", "mutated", "payloads_of", "request_of"]

DEFECTS = (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
"""Codes that no call may end with."""

_REQUESTS = {
    "/grpc.health.v1.Health/Check": health_pb2.HealthCheckRequest,
    "/grpc.health.v1.Health/Watch": health_pb2.HealthCheckRequest,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": (
        reflection_pb2.ServerReflectionRequest
    ),
    "/hallujudge.judge.v1.JudgeService/None": pb.ScoreRequest,
}
WORDS = (
    "dog", "A dog and a cat on a couch.", "yes", "No.", "coco", "auto", "minilm", "../etc/passwd",
    "/proc/self/mem", "http://127.0.0.1:1/x", "x" * 300, "\x00", "\u2028\x1b[2J", "\U0001f600" * 9,
    "a\nERROR forged", "1e999", "nan", "-1", "9" * 50, "(" * 200, "{{{{", "[" * 500, "%s%n", "",
    "root: word, word\n", '{"a": ["b"]}', "person, man\ndog, puppy", "true", "rules", "sentences",
)  # fmt: skip
SCORING = tuple(
    name for name in METHODS if name.endswith(("Score", "ScoreStream", "Extract", "Judge"))
)
_SECONDS = 20.0


@dataclass(slots=True)
class Tally:
    """What was sent, and how it ended."""

    calls: int = 0
    """Calls made."""
    codes: Counter[str] = field(default_factory=Counter)
    """Calls by status code."""
    methods: Counter[str] = field(default_factory=Counter)
    """Calls by method."""
    defects: list[str] = field(default_factory=list)
    """Calls that ended with a defect, with what repeats them."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while a call is counted."""

    def add(self, name: str, code: grpc.StatusCode) -> None:
        """Count a call."""
        with self.lock:
            self.calls += 1
            self.codes[code.name] += 1
            self.methods[f"{name.rpartition('/')[2]} {code.name}"] += 1


class Fuzz:
    """Sends hostile calls. Call number ``n`` of a seed is always the same.

    Args:
        seed: The seed.
        key: A valid API key; most calls carry it.
    """

    def __init__(self, seed: int, key: str) -> None:
        self._seed = seed
        self._key = key
        self._jobs: list[str] = []
        self._shapes = {name: request_of(name) for name in METHODS} | _REQUESTS

    def run(self, address: str, *, calls: int, seconds: float = 0, width: int = 4) -> Tally:
        """Send calls and return how they ended.

        Args:
            address: The server.
            calls: How many calls are sent.
            seconds: How long more calls are begun after them.
            width: Calls at the same time.
        """
        tally, numbers = Tally(), itertools.count()

        def work(channel: grpc.Channel) -> None:
            while (number := next(numbers)) < calls or time.monotonic() < end:
                self._call(channel, number, tally)

        options = [
            ("grpc.enable_retries", 0),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1),
        ]
        # The asyncio client reports a failed write in place of the server's status.
        with (
            grpc.insecure_channel(address, options=options) as channel,
            ThreadPoolExecutor(width) as pool,
        ):
            self._make_jobs(channel)
            end = time.monotonic() + seconds
            for done in [pool.submit(work, channel) for _ in range(width)]:
                done.result()
        return tally

    def _make_jobs(self, channel: grpc.Channel) -> None:
        """Create jobs, open ones and closed ones, for calls that name a job."""
        create: Any = channel.unary_unary("/hallujudge.judge.v1.ScoringJobService/CreateJob")
        metadata = (("authorization", f"Bearer {self._key}"),)
        for number, name in enumerate(metric_names()):
            request = jobs_pb2.CreateJobRequest(
                request_id=f"fuzz {number}",
                spec=scoring_pb2.ScoreSpec(metric=name),
                items=[item_to_proto(metric_entry(name).trial.item)],
                more=number % 2 == 0,
            )
            answer = create(request.SerializeToString(), metadata=metadata, timeout=_SECONDS)
            self._jobs.append(jobs_pb2.CreateJobResponse.FromString(answer).job.id)

    def _call(self, channel: grpc.Channel, number: int, tally: Tally) -> None:
        random = Random(f"{self._seed}/{number}")
        # Methods that score get most calls: they have most code behind them.
        name = random.choice([*self._shapes, *SCORING * 3])
        shape = self._shapes[name]
        payloads = payloads_of(random, shape, self._jobs)
        multi: Any = channel.stream_stream(name)
        call = multi(
            iter(payloads),
            metadata=_metadata(random, self._key),
            timeout=_SECONDS,
            compression=random.choice((None, grpc.Compression.Gzip, grpc.Compression.Deflate)),
        )
        code, details = grpc.StatusCode.OK, ""
        try:
            for _ in call:
                if name.endswith(("Watch", "WatchJob")):  # it never ends by itself
                    break
        except grpc.RpcError as err:
            code, details = err.code(), err.details() or ""
        call.cancel()
        tally.add(name, code)
        if code in DEFECTS:
            tally.defects.append(f"seed {self._seed}, call {number}, {name}: {code.name} {details}")


def request_of(name: str) -> Any:
    """Return the type of a method's requests."""
    from google.protobuf.message_factory import GetMessageClass

    service, _, method = name.strip("/").partition("/")
    found = Default().FindServiceByName(service).methods_by_name[method]
    return GetMessageClass(found.input_type)


# Payloads


def payloads_of(random: Random, shape: Any, jobs: list[str]) -> list[bytes]:
    """Return the messages of a call; half of the streams have a sensible order."""
    if shape is pb.ScoreStreamRequest and random.random() < 0.5:
        name = random.choice(metric_names())
        batches = [_batch(random, name) for _ in range(random.randrange(3))]
        messages = [pb.ScoreStreamRequest(spec=_spec(random, name)), *batches]
        payloads = [bytes(message.SerializeToString()) for message in messages]
        if random.random() < 0.3:
            payloads[-1] = mutated(random, payloads[-1])
        return payloads
    # Few jobs are cancelled or deleted, so that some are left for the other calls.
    ends = shape in (jobs_pb2.DeleteJobRequest, jobs_pb2.CancelJobRequest)
    named = jobs and "job_id" in shape.DESCRIPTOR.fields_by_name
    if named and random.random() < (0.01 if ends else 0.6):
        message = _message(random, shape)
        message.job_id = random.choice(jobs)
        return [bytes(message.SerializeToString())]
    return [_payload(random, shape) for _ in range(random.choice((1, 1, 1, 2, 4, 0)))]


def _payload(random: Random, shape: Any) -> bytes:
    kind = random.randrange(12)
    if kind < 4:
        return _plausible(random, shape)
    make: Callable[[], bytes] = (
        lambda: mutated(random, _plausible(random, shape)),
        lambda: mutated(random, _plausible(random, shape)),
        lambda: mutated(random, bytes(_message(random, shape).SerializeToString())),
        lambda: bytes(_message(random, shape).SerializeToString()),
        lambda: random.randbytes(random.choice((0, 1, 7, 100, 3000))),
        lambda: _nested(random),
        lambda: _many(random),
        lambda: gzip.compress(b"\0" * random.choice((1000, 3_000_000))),
    )[kind - 4]
    return make()


def _plausible(random: Random, shape: Any) -> bytes:
    """Return a request that a metric takes, with some odd values."""
    name = random.choice(metric_names())
    if shape is pb.ExtractRequest:
        texts = random.choices(WORDS, k=random.randrange(5))
        return bytes(shape(spec=_spec(random, name), texts=texts).SerializeToString())
    if shape in (pb.ScoreRequest, pb.JudgeRequest, jobs_pb2.CreateJobRequest):
        items = _batch(random, name).batch.items
        return bytes(shape(spec=_spec(random, name), items=items).SerializeToString())
    if shape is pb.ScoreStreamRequest:
        return bytes(_batch(random, name).SerializeToString())
    return bytes(_message(random, shape).SerializeToString())


def _spec(random: Random, name: str) -> scoring_pb2.ScoreSpec:
    entry = metric_entry(name)
    spec = scoring_pb2.ScoreSpec(metric=name, variant=random.choice(("", "", *entry.variants)))
    count = min(len(entry.options), random.choice((0, 0, 1, 2)))
    for option in random.sample(entry.options, k=count):
        odd = random.choice(WORDS)
        spec.options[option.name] = random.choice((option.default or "", *option.choices, odd))
    if entry.graph_roles and random.random() < 0.2:
        _fill(random, spec.graphs[random.choice(entry.graph_roles)], 2)
    spec.group_by.extend(random.choices(WORDS, k=random.choice((0, 0, 1))))
    if random.random() < 0.2:
        spec.interval.confidence = random.choice((0.5, 0.95, 0.0, 1.0, -1.0, float("nan"), 1e308))
    return spec


def _batch(random: Random, name: str) -> pb.ScoreStreamRequest:
    """Return items like a metric's own example, half of them with odd values."""
    request = pb.ScoreStreamRequest(batch=pb.ItemBatch())
    for index in range(random.randrange(6)):
        item = request.batch.items.add()
        item.CopyFrom(item_to_proto(metric_entry(name).trial.item))
        item.id = random.choice((str(index), str(index), str(index), random.choice(WORDS)))
        if random.random() < 0.5:
            _fill(random, getattr(item, item.WhichOneof("task") or ""), 4, often=0.15)
    return request


def _message(random: Random, shape: Any) -> Any:
    message = shape()
    _fill(random, message, 5)
    return message


def _fill(random: Random, message: Any, depth: int, often: float = 0.6) -> None:
    for entry in message.DESCRIPTOR.fields:
        if random.random() > often or depth <= 0:
            continue
        if entry.type == FieldDescriptor.TYPE_MESSAGE:
            _fill_inner(random, message, entry, depth)
        elif entry.is_repeated:
            getattr(message, entry.name).extend(
                _scalar(random, entry) for _ in range(random.randrange(4))
            )
        else:
            setattr(message, entry.name, _scalar(random, entry))


def _fill_inner(random: Random, message: Any, entry: Any, depth: int) -> None:
    inner: Descriptor = entry.message_type
    if inner.GetOptions().map_entry:
        values = getattr(message, entry.name)
        for _ in range(random.randrange(3)):
            name = random.choice(WORDS)
            if inner.fields_by_name["value"].type == FieldDescriptor.TYPE_MESSAGE:
                _fill(random, values[name], depth - 1)
            else:
                values[name] = _scalar(random, inner.fields_by_name["value"])
    elif entry.is_repeated:
        for _ in range(random.randrange(4)):
            _fill(random, getattr(message, entry.name).add(), depth - 1)
    else:
        child = getattr(message, entry.name)
        child.SetInParent()
        _fill(random, child, depth - 1)


def _scalar(random: Random, entry: Any) -> Any:
    if entry.type == FieldDescriptor.TYPE_STRING:
        return random.choice(WORDS)
    if entry.type == FieldDescriptor.TYPE_BYTES:
        return random.randbytes(20)
    if entry.type == FieldDescriptor.TYPE_BOOL:
        return random.random() < 0.5
    if entry.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return random.choice((0.0, -1.0, 0.95, 1e308, float("nan"), float("inf")))
    if entry.type == FieldDescriptor.TYPE_ENUM:
        return random.choice((0, 1, 99))
    return random.choice((0, 1, 7, 2**31 - 1))


def mutated(random: Random, data: bytes) -> bytes:
    """Return bytes with some of them flipped, cut, repeated or not UTF-8."""
    found = bytearray(data)
    for _ in range(random.randrange(1, 8)):
        at = random.randrange(len(found) + 1)
        kind = random.randrange(5)
        if kind == 0 and found:
            found[at % len(found)] ^= 1 << random.randrange(8)
        elif kind == 1:
            found[at:at] = random.randbytes(random.randrange(5))
        elif kind == 2:
            del found[at : at + random.randrange(9)]
        elif kind == 3:
            found[at:at] = found[at : at + random.randrange(60)]
        else:
            found[at:at] = b"\xff\xc0\xaf"[: random.randrange(1, 4)]
    return bytes(found)


def _nested(random: Random) -> bytes:
    """Return fields in fields, or groups in groups, to a great depth."""
    depth = random.choice((50, 200, 5_000, 40_000))
    if random.random() < 0.5:
        return b"\x0b" * depth + b"\x0c" * random.choice((0, depth))
    data = b""
    for tag in (0x12, 0x0A, 0x1A) * min(depth // 3, 600):
        data = bytes([tag]) + _varint(len(data)) + data
    return data


def _many(random: Random) -> bytes:
    """Return very many small fields."""
    piece = random.choice((b"\x12\x00", b"\x12\x02\x0a\x00", b"\x0a\x00", b"\x08\x01", b"\x1a\x00"))
    body = piece * random.choice((2_000, 40_000, 1_500_000))
    return body if random.random() < 0.6 else b"\x12" + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _metadata(random: Random, key: str) -> tuple[tuple[str, str | bytes], ...]:
    kind = random.randrange(10)
    if kind == 0:
        return (("authorization", random.choice(("", "Bearer", "Bearer hj_x", "Basic a:b"))),)
    return (("authorization", f"Bearer {key}"), *_flood(random, kind))


def _flood(random: Random, kind: int) -> Iterator[tuple[str, str | bytes]]:
    if kind == 1:
        for index in range(random.choice((50, 500))):
            yield f"x-{index}", "v" * 20
    elif kind == 2:
        yield "x-long", "v" * random.choice((4_000, 100_000))
    elif kind == 3:
        yield "x-bin", random.randbytes(50)
        yield "grpc-status-details-bin", random.randbytes(50)
