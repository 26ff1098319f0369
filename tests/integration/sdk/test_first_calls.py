"""A client's first calls import heavy modules in a thread, and not on the event loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from support import first_calls
from support import scripted_llm as llm
from support.sizes import further

pytestmark = pytest.mark.slow

# What each first call imports at least: a call that failed early would import nothing.
IMPORTED = {
    "chair published": {"numpy", "nltk"},
    "chair corrected": {"numpy", "nltk"},
    "pope": {"numpy"},
    "infact": {"numpy"},
    "mementos": {"numpy", "textblob"},
    "tri-he": {"numpy"},
    "extract chair": {"nltk"},
    "extract tri-he": set(),
    "extract mementos": set(),
    "normalize": {"textblob"},
}


def first_call(*arguments: str, **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, first_calls.__file__, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# Of each heavy module the call that needs it most.
QUICKEST = ("chair corrected", "mementos", "tri-he")
OTHERS = [further("test_embedded_scoring", call) for call in IMPORTED if call not in QUICKEST]


@pytest.mark.parametrize("call", [*QUICKEST, *OTHERS])
def test_embedded_scoring(call: str) -> None:
    found = first_call(call)
    assert found["on_loop"] == []
    assert set(found["elsewhere"]) >= IMPORTED[call]


def test_a_client_of_a_server(server: str) -> None:
    found = first_call("at a server", server)
    assert found["on_loop"] == []
    assert set(found["elsewhere"]) >= {"grpc", "numpy"}


def test_a_language_model_as_judge() -> None:
    model = llm.ScriptedLlm()
    stop = model.in_thread()
    try:
        settings = {"HALLUJUDGE_LLM_URL": model.url, "HALLUJUDGE_LLM_MODEL": "m"}
        found = first_call("tri-he llm", **settings)
    finally:
        stop()
    assert model.chats > 0
    assert found["on_loop"] == []
    assert set(found["elsewhere"]) >= {"aiohttp", "numpy"}


LEXICON_READ = """
import sys
from hallujudge.sdk import Client

text = "A dog sits on two sofas next to some knives and a man who holds several wine glasses. " * 6
count, read = 2_000, []
sys.addaudithook(lambda event, given: event == "open" and read.append(str(given[0])))
records = [
    {"image_id": n, "question": "?", "answer": f"{n} {text}", "objs": ["dog"]} for n in range(count)
]
with Client.embedded() as client:
    objects = {n: ["dog"] for n in range(count)}
    client.score("object-halbench", responses=records, references=objects)
print(sum(name.endswith("lexicon.txt.gz") for name in read))
"""


def test_batches_of_a_run_without_models_do_not_load_the_same_at_once() -> None:
    """Long batches are scored in a thread, several of which would each read the lexicon."""
    done = subprocess.run(
        [sys.executable, "-c", LEXICON_READ], capture_output=True, text=True, check=False
    )
    assert done.stdout == "1\n", done.stderr
