"""How items of the benchmarks of questions look on the HTML page."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from support import amber_samples
from support.event_hallusion_samples import VIDEOS
from support.hallusion_bench_samples import record

from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.backends.base import BatchResult
from hallujudge.sdk.report import HtmlPage


def page_of(metric: str, **arguments: Any) -> str:
    page = HtmlPage()

    def add(batch: BatchResult) -> None:
        for each, result in zip(batch.items, batch.results, strict=True):
            page.add(each, result)

    with Client.embedded() as client:
        return page.render(client.score(metric, on_batch=add, **arguments))


def articles(metric: str, **arguments: Any) -> list[str]:
    """Return the text of every item on the page."""
    found = re.findall(r"<article.*?</article>", page_of(metric, **arguments), re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]+>", " ", text)) for text in found]


def item(texts: list[str], start: str) -> str:
    (found,) = [" ".join(text.split()) for text in texts if text.split()[0] == start]
    return found


def test_an_answer_of_hallusion_bench() -> None:
    row = record("VD_map_0_1_0", 0, gt_answer="0", gt_answer_details="It is to the north.")
    found = item(articles("hallusion-bench", responses=[row]), "VD_map_0_1_0")
    assert "Question Is it so? Answer Yes. Right answer no: It is to the north." in found
    assert "About an edited figure Verdict of vlmevalkit Given label wrong" in found
    assert "{" not in found


def test_a_video_of_event_hallusion() -> None:
    texts = articles("event-hallusion", responses=VIDEOS)
    found = item(texts, "entire_0")
    assert "Question Is it so? Answer No. It is not. Question" in found, (
        "a right answer has no label"
    )
    assert "Event A man walks a dog. Description right A man walks a dog." in found
    assert found.endswith("Held judgement **Yes**. It is.")
    assert not any("{" in text for text in texts)


def test_a_pair_of_video_hallucer() -> None:
    runs = {
        "basic": {"video": "a.mp4", "question": "A dog?", "answer": "yes", "predict": "No."},
        "hallucination": {"video": "b.mp4", "question": "A cat?", "answer": "no", "predict": "No."},
    }
    found = item(articles("video-hallucer", responses={"temporal": [runs]}), "temporal/0")
    assert "basic, a.mp4 Question A dog? Answer No. Right answer yes" in found
    assert found.endswith("hallucination, b.mp4 Question A cat? Answer No.")


@pytest.mark.parametrize("word", ["puppy", "Puppys"])
def test_hallucinated_words_of_an_amber_description_are_marked(word: str) -> None:
    rows = [{"id": 1, "response": f"A man near a {word}.", "nouns": ["man", "puppy"]}]
    inputs = InputOptions(
        associations=amber_samples.ASSOCIATIONS, safe_words=amber_samples.SAFE, allow_missing=True
    )
    page = page_of("amber", responses=rows, references=amber_samples.ANNOTATIONS, inputs=inputs)
    assert f">{word}</mark>" in page
