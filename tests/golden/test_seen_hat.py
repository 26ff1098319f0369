"""The card of a judge that sees, on captions whose words people marked (HAT).

The pictures are not part of the data: each caption gets one of its own, by which a scripted judge
knows the marked words. It errs at known places, which a plain loop counts.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.pictures import png
from support.qa_samples import write_lines
from support.running import here, read_rows

_WORD = re.compile(r"[a-z0-9]+")


def wrong_words(record: dict[str, Any]) -> set[str]:
    return {
        part for word, marked in record["words"] if marked for part in _WORD.findall(word.lower())
    }


def errs(claim: list[str]) -> bool:
    """Return whether the judge gives the wrong verdict on a claim: on one of five."""
    return hashlib.sha256(json.dumps(claim).encode()).digest()[0] % 5 == 0


def test_the_card_is_a_plain_count(goldens: Path, tmp_path: Path) -> None:
    text = (goldens / "hat" / "captions.jsonl").read_text("utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    marked: dict[str, set[str]] = {}
    for number, record in enumerate(records):
        data = png(number)
        (pictures / f"{record['id']}.png").write_bytes(data)
        marked[hashlib.sha256(data).hexdigest()] = wrong_words(record)

    def step(_number: int, body: llm.Body) -> llm.Reply:
        [image], [claim] = llm.images_of(body), llm.claims_of(body)
        words = marked[hashlib.sha256(image).hexdigest()]
        wrong = bool(words & set(_WORD.findall(" ".join(claim).lower()))) != errs(claim)
        return llm.completion("not_supported" if wrong else "supported")

    answers = write_lines(
        tmp_path / "captions.jsonl",
        [{"id": r["id"], "image": f"{r['id']}.png", "caption": r["caption"]} for r in records],
    )
    server = llm.ScriptedLlm(step)
    stop = server.in_thread()
    run, card = tmp_path / "run", tmp_path / "card.json"
    try:
        scored = here(
            *("score", "seen-claims", "-r", answers, "--images", pictures, "--judge", "llm"),
            *("--llm-url", server.url, "--llm-model", "m", "-o", run),
        )
    finally:
        stop()
    assert scored.returncode in (0, 3), scored.stderr
    labels = goldens / "hat" / "captions.jsonl"
    made = here("judge", "card", run, "--labels", labels, "-o", card)
    assert made.returncode == 0, made.stderr
    agreed = rejected = wrong = total = 0
    for row in read_rows(run / "items.jsonl"):
        for claim in row["evidence"].get("claims", ()) if row["outcome"] == "scored" else ():
            truth = claim_is_wrong(records, row, claim)
            total += 1
            wrong += truth
            agreed += (claim["verdict"] == "not_supported") == truth
            rejected += claim["verdict"] == "not_supported"
    found = json.loads(card.read_text("utf-8"))
    assert found["labels"] == found["claims"] == total > 500
    assert found["accuracy"]["agreement"]["value"] == pytest.approx(agreed / total, abs=1e-9)
    assert 0.7 < agreed / total < 0.85, "it errs on a fifth of the claims, and by words alone"
    bias = (total - rejected) / total - (total - wrong) / total
    assert found["yes_bias"]["difference"] == pytest.approx(bias, abs=1e-9)


def claim_is_wrong(
    records: list[dict[str, Any]], row: dict[str, Any], claim: dict[str, Any]
) -> bool:
    """Return whether people marked a word of a claim's place in the caption."""
    [record] = [each for each in records if each["id"] == row["id"]]
    start, end = claim["span"]
    at = 0
    for word, marked in record["words"]:
        first = record["caption"].index(word, at)
        at = first + len(word)
        if marked and first < end and at > start:
            return True
    return False
