"""Places of scene changes, compared by a sentence encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.errors import MissingExtraError, NotFoundError
from hallujudge.judge_service.matchers import TextComparer, VectorStore
from hallujudge.metrics import Answer, AnswersItem

if TYPE_CHECKING:
    from hallujudge.judge_service.matchers import Vectors

SAID = "Scene change: Yes, Locations: from a hall to a garden."


class Letters:
    """An encoder whose vectors count letters."""

    label = "letters"
    size = 26

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = [[text.count(chr(97 + n)) for n in range(26)] for text in texts]
        counts = np.array(rows, dtype=np.float32)
        units: Vectors = counts / np.linalg.norm(counts, axis=1, keepdims=True)
        return units


def video(number: int, true: str) -> AnswersItem:
    answer = Answer(response=SAID, label="yes", fields={"locations": true})
    return AnswersItem(id=str(number), answers=(answer,))


@pytest.mark.parametrize("variant", ["published", "corrected"])
async def test_places_are_compared_by_the_encoder(
    monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    asked: list[str] = []

    def comparer(_self: JudgeFactory, model: str) -> TextComparer:
        asked.append(model)
        return TextComparer(VectorStore(Letters(), 10), "letters@1")

    monkeypatch.setattr(JudgeFactory, "text_comparer", comparer)
    spec = ScoreSpec(metric="vidhalluc-sth", variant=variant, options={"encoder": "simcse"})
    session = await Engine().open(spec)
    results = await session.score([video(1, "From a hall to a grange."), video(2, "From x to y.")])
    report = session.report()
    assert asked == ["simcse"]
    assert "|encoder:letters@1|" in report.signature
    assert (report.totals["places"], report.totals["unknown_places"]) == (4, 0)
    assert results[0].evidence is not None
    places = results[0].evidence.to_json()["answers"][1:]  # type: ignore[index]  # a list
    assert [(each["name"], each["correct"]) for each in places] == [("from", True), ("to", True)]  # type: ignore[index, union-attr, call-overload]  # objects
    assert 0 < (report["description_score"].value or 0) < 1


async def test_an_encoder_that_is_not_there_is_an_error() -> None:
    spec = ScoreSpec(metric="vidhalluc-sth", options={"encoder": "./no-such-folder"})
    with pytest.raises((NotFoundError, MissingExtraError)):
        await Engine().open(spec)
