"""Invalid entries of a language model's replies: rejected alone, and equal here and at a server."""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.running import ServerProcess, read_rows

from hallujudge.metrics import Item
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.mementos import MementosItem
from hallujudge.metrics.tri_he import TriHeItem
from hallujudge.sdk import Client, ScoreSpec
from hallujudge.sdk.errors import InvalidInputError

NOUNS = ("cup", "box", "bowl", "dog", "cat", "ball", "table", "chair", "lamp", "book", "door")
VERBS = ("push", "pull", "drop", "open", "throw", "catch", "hold", "carry", "turn", "roll", "kick")
LENGTHS = (8, 32, 96)
SEQUENCES = 40
_INVALID_SHARE = 0.02
_WANTED = re.compile(r"sequence (\d+) of length (\d+)")


def replying(_number: int, body: llm.Body) -> llm.Reply:
    """A model with a share of invalid entries that does not depend on the length of the reply."""
    prompt = llm.prompt_of(body)
    wanted = _WANTED.search(prompt)
    assert wanted is not None, prompt
    number, length = map(int, wanted.groups())
    rng = random.Random(1000 * length + number)

    def words(start: int, known: tuple[str, ...], invalid: str) -> list[str]:
        chosen = [known[(start + at) % len(known)] for at in range(length // 4)]
        return [invalid.format(word) if rng.random() < _INVALID_SHARE else word for word in chosen]

    if "<<<RESPONSE" in prompt:
        relations = [*words(0, ("near",), ""), *words(0, ("on",), "") * 3]
        claims = [
            {"object1": NOUNS[at % 11], "relation": relation, "object2": NOUNS[at // 11]}
            for at, relation in enumerate(relations)
        ]
        return llm.completion(json.dumps({"triplets": claims}))
    lists = {
        "reference_objects": words(0, NOUNS, "red plastic {}"),
        "reference_behaviors": words(0, VERBS, "{}ing"),
        "predicted_objects": words(1, NOUNS, "{} on the left of it"),
        "predicted_behaviors": words(1, VERBS, "was {}ing"),
    }
    return llm.completion(json.dumps(lists))


@pytest.fixture(scope="module")
def model() -> Iterator[llm.ScriptedLlm]:
    server = llm.ScriptedLlm(replying)
    stop = server.in_thread()
    yield server
    stop()


def items_of(metric: str, length: int) -> list[Item]:
    texts = [f"A man holds it, sequence {n} of length {length}." for n in range(SEQUENCES)]
    if metric == "mementos":
        return [
            MementosItem(id=str(n), response=text, reference="A man throws a ball.")
            for n, text in enumerate(texts)
        ]
    scene = (Triplet("cup", "near", "box"),)
    return [TriHeItem(id=str(n), response=t, reference_triplets=scene) for n, t in enumerate(texts)]


def spec_of(metric: str, **options: str) -> ScoreSpec:
    return ScoreSpec(metric=metric, options={"extractor": "llm", **options})


@pytest.mark.parametrize("metric", ["mementos", "tri-he"])
def test_no_item_is_lost_however_long_its_reply_is(model: llm.ScriptedLlm, metric: str) -> None:
    invalid = []
    with Client.embedded({"llm.url": model.url, "llm.model": "tiny"}) as client:
        for length in LENGTHS:
            report = client.score_items(spec_of(metric), items_of(metric, length))
            assert report.coverage.unscored == 0
            found = [v for name, v in report.totals.items() if re.match("rejected|repaired", name)]
            invalid.append(sum(found))
            (note,) = (note for note in report.notes if note.startswith("Invalid "))
            assert "rejected" in note
    assert 0 < invalid[0] < invalid[1] < invalid[2]


@pytest.mark.parametrize("metric", ["mementos", "tri-he"])
def test_files_with_invalid_entries_are_equal(
    model: llm.ScriptedLlm, tmp_path: Path, metric: str
) -> None:
    settings = {"llm.url": model.url, "llm.model": "tiny"}
    run: dict[str, Any] = {"responses": [], "options": {"extractor": "llm"}, "html": True}
    texts = {str(n): f"A man holds it, sequence {n} of length 96." for n in range(8)}
    if metric == "mementos":
        run["responses"] = [{"image": n, "description": text} for n, text in texts.items()]
        run["references"] = [{"image": n, "description": "A man runs."} for n in texts]
    else:
        run["responses"] = [{"image_id": n, "response": text} for n, text in texts.items()]
        run["references"] = {key: [["cup", "near", "box"]] for key in texts}
    remote = ServerProcess("--llm-url", model.url, "--llm-model", "tiny")
    try:
        with Client.embedded(settings) as here, Client(remote.address) as there:
            for name, client in (("here", here), ("there", there)):
                client.score(metric, **run, folder=tmp_path / name)
    finally:
        remote.stop()
    for file in ("report.json", "items.jsonl", "report.html"):
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes()
    entries = [
        entry
        for row in read_rows(tmp_path / "here" / "items.jsonl")
        for entry in row["evidence"].get("invalid", ())
    ]
    report = json.loads((tmp_path / "here" / "report.json").read_bytes())
    counted = {name: n for name, n in report["totals"].items() if "rejected" in name}
    assert list(counted.values()) == [sum(not entry["repaired"] for entry in entries)]
    assert all(entry["problem"] for entry in entries)
    assert entries
    page = (tmp_path / "here" / "report.html").read_text()
    (note,) = (note for note in report["notes"] if note.startswith("Invalid "))
    assert html.escape(note) in page


def test_given_lists_have_no_invalid_keywords(model: llm.ScriptedLlm) -> None:
    items = [
        MementosItem(
            id=str(number),
            response="A man waits.",
            reference=f"A man holds it, sequence {number} of length 96.",
            predicted_objects=("cup",),
            predicted_behaviors=("push",),
        )
        for number in range(SEQUENCES)
    ]
    found: list[Any] = []
    with Client.embedded({"llm.url": model.url, "llm.model": "tiny"}) as client:
        client.score_items(
            spec_of("mementos"), items, on_batch=lambda batch: found.extend(batch.results)
        )
    places = {entry.place for result in found for entry in result.evidence.invalid}
    assert places == {"reference_objects", "reference_behaviors"}


def test_transferred_synonyms_are_in_the_signature(model: llm.ScriptedLlm) -> None:
    with Client.embedded({"llm.url": model.url, "llm.model": "tiny"}) as client:
        report = client.score_items(
            spec_of("mementos", synonyms="transfer"), items_of("mementos", 8)[:1]
        )
        assert "|extract:llm:tiny:extract-keywords-transfer-1@" in report.signature
        rules = ScoreSpec(metric="mementos", options={"synonyms": "transfer"})
        with pytest.raises(InvalidInputError, match="use the extractor llm"):
            client.score_items(rules, items_of("mementos", 8)[:1])
