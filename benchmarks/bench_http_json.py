"""How fast a server reads and writes JSON: processor time of protobuf's mapping and its parts.

The message is a ``Score`` request of 2,000 captions. Parsing of the JSON text alone is printed as
well: it is what a faster JSON library could save.

Run with: python benchmarks/bench_http_json.py [--rounds 5]
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import needs
from arguments import Arguments

needs.packages("msgspec")

import msgspec  # noqa: E402
from google.protobuf import json_format  # noqa: E402

from hallujudge.judge.v1 import judge_service_pb2 as pb  # noqa: E402
from hallujudge.judge_service.engine import ScoreSpec  # noqa: E402
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto  # noqa: E402
from hallujudge.metrics import ChairItem  # noqa: E402

_ITEMS = 2_000
_TEXT = "A dog and a cat sit on a couch next to a person with a laptop, image {}."


def request() -> pb.ScoreRequest:
    """Return the message."""
    items = (
        ChairItem(id=str(n), response=_TEXT.format(n), reference_objects=("dog", "couch"))
        for n in range(_ITEMS)
    )
    spec = spec_to_proto(ScoreSpec(metric="chair"))
    return pb.ScoreRequest(spec=spec, items=map(item_to_proto, items))


def processor_time(work: Callable[[], object], rounds: int) -> float:
    """Return the least processor time of some rounds, in seconds."""
    taken = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


def main() -> None:
    """Run the benchmark."""
    parser = Arguments(__doc__)
    parser.size("--rounds", 5, smoke=1)
    rounds = parser.given().rounds
    message = request()
    text, binary = json_format.MessageToJson(message, indent=None), message.SerializeToString()
    print(f"{len(text)} bytes of JSON, {len(binary)} in binary form; load {os.getloadavg()[0]:.1f}")
    for name, work in {
        "JSON read as a message": lambda: json_format.Parse(text, pb.ScoreRequest()),
        "JSON parsed by json": lambda: json.loads(text),
        "JSON parsed by msgspec": lambda: msgspec.json.decode(text),
        "message written as JSON": lambda: json_format.MessageToJson(message, indent=None),
        "binary form read as a message": lambda: pb.ScoreRequest.FromString(binary),
    }.items():
        seconds = processor_time(work, rounds)
        print(f"{name:30} {seconds * 1e3:7.2f} ms, {len(text) / seconds / 1e6:7.1f} MB/s of JSON")


if __name__ == "__main__":
    main()
