"""First calls in a fresh process: which heavy modules they import, and on which thread.

Run as a program with the name of a call. It prints, as JSON, the modules that were imported on the
event loop's thread while the loop ran, and those that were imported elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

HEAVY = frozenset(
    {
        *("numpy", "networkx", "nltk", "textblob", "grpc", "google.protobuf", "aiohttp"),
        *("onnx", "onnxruntime", "tokenizers", "safetensors"),
        *("torch", "transformers", "sentence_transformers", "openpyxl", "pandas"),
    }
)
CAPTIONS = {"1": "A dog on two sofas and a cat."}
OBJECTS = {"1": ["dog"]}
ANSWERS = [{"question_id": 1, "image": "1", "text": "Yes", "label": "yes"}]
CHOICES = [
    {"id": "1", "response": "A", "label": "A", "operator": "base", "dimension": "factuality"}
]
DESCRIPTIONS = [{"id": "1", "response": "A man rides horses.", "reference": "A man rides."}]
SCENES = [{"image_id": 1, "response": "A man rides a horse.", "triplets": [["man", "on", "horse"]]}]


class Watch(MetaPathFinder):
    """An import finder that records imports of heavy modules, and finds no module."""

    def __init__(self) -> None:
        self.on_loop: list[str] = []
        self.elsewhere: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in HEAVY:
            (self.on_loop if loop_runs_here() else self.elsewhere).append(name)
        return None


def loop_runs_here() -> bool:
    """Return whether this thread is running an event loop."""
    with suppress(RuntimeError):
        return bool(asyncio.get_running_loop())
    return False


async def chair(variant: str, address: str = "") -> None:
    from hallujudge.sdk import AsyncClient

    async with AsyncClient(address) if address else AsyncClient.embedded() as client:
        await client.score("chair", responses=CAPTIONS, references=OBJECTS, variant=variant)


async def embedded(metric: str, responses: object, options: Mapping[str, str]) -> None:
    from hallujudge.sdk import AsyncClient
    from hallujudge.sdk.errors import HallujudgeError

    async with AsyncClient.embedded() as client:
        # A model that is not on this machine ends the call, after what it needs was imported.
        with suppress(HallujudgeError):
            await client.score(metric, responses=responses, options=options)  # type: ignore[arg-type]  # records of each metric


async def extract(metric: str) -> None:
    from hallujudge.sdk import AsyncClient

    async with AsyncClient.embedded() as client:
        await client.extract(metric, ["Two men ride horses."])


async def normalize() -> None:
    from hallujudge.sdk import AsyncClient

    async with AsyncClient.embedded() as client:
        await client.normalize(["puppies"])


async def at_a_server() -> None:
    await chair("", address=sys.argv[2])


CALLS: dict[str, Callable[[], Awaitable[None]]] = {
    "chair published": lambda: chair("published"),
    "chair corrected": lambda: chair("corrected"),
    "pope": lambda: embedded("pope", ANSWERS, {}),
    "infact": lambda: embedded("infact", CHOICES, {}),
    "mementos": lambda: embedded("mementos", DESCRIPTIONS, {}),
    "tri-he": lambda: embedded("tri-he", SCENES, {}),
    "tri-he llm": lambda: embedded("tri-he", SCENES, {"judge": "llm"}),
    "extract chair": lambda: extract("chair"),
    "extract tri-he": lambda: extract("tri-he"),
    "extract mementos": lambda: extract("mementos"),
    "normalize": normalize,
    "at a server": at_a_server,
}


def main() -> None:
    watch = Watch()
    sys.meta_path.insert(0, watch)
    asyncio.run(CALLS[sys.argv[1]]())  # type: ignore[arg-type]  # coroutines, all of them
    print(json.dumps({"on_loop": watch.on_loop, "elsewhere": watch.elsewhere}))


if __name__ == "__main__":
    main()
