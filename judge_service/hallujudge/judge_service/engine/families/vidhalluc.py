"""VidHalluc: answers by their declarations; places of scene changes also by a sentence encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import AnswersItem
from hallujudge.metrics.vidhalluc import BENCHMARKS, VidhallucSthMetric
from hallujudge.metrics.vidhalluc.scene_changes import GIVEN, places_of, with_similarities

from ...threads import in_thread
from ..answers_pipeline import AnswersPipeline, declared_entry
from ..pipelines import checked_items
from ..registry import Pipeline, Trial
from ..resources import Resources
from ..responses import ResponseCheck
from ..spec import ScoreSpec

if TYPE_CHECKING:
    from ...matchers import TextComparer


class SceneChangesPipeline(AnswersPipeline):
    """Scores videos after comparing their places.

    Args:
        metric: The metric.
        responses: Recognises missing responses.
        comparer: Compares places.
    """

    def __init__(
        self, metric: AnswersMetric, responses: ResponseCheck, comparer: TextComparer
    ) -> None:
        super().__init__(metric, responses)
        self._comparer = comparer

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order; a batch's places are encoded together."""
        mine: list[AnswersItem] = checked_items(items, AnswersItem)
        answers = (answer for item in mine for answer in item.answers)
        found = (each for answer in answers for each in places_of(answer, self.metric.variant))
        places = list(dict.fromkeys(found))
        numbers = await in_thread(lambda: self._comparer.similarities(places)) if places else []
        known: dict[tuple[str, str], float] = dict(zip(places, numbers, strict=True))
        return await super().evaluate(
            [
                structs.replace(
                    item, answers=tuple([with_similarities(a, known) for a in item.answers])
                )
                for item in mine
            ]
        )


_ENTRIES = {declared.name: declared_entry(declared) for declared in BENCHMARKS}
# Its similarities are given.
_CHANGES = _ENTRIES.pop(VidhallucSthMetric.name)


def _open(spec: ScoreSpec, resources: Resources) -> Pipeline:
    if (name := spec.options.get("encoder") or GIVEN) == GIVEN:
        return _CHANGES.open(spec, resources)
    if resources.offers is not None:
        resources.offers.check("encoder", name, resources.offers.models)
    comparer = resources.judges.text_comparer(name)
    responses = ResponseCheck(spec.options)
    metric = _CHANGES.metric_for(spec, responses, encoder=comparer.label)
    return SceneChangesPipeline(metric, responses, comparer)


ENTRIES = (
    *_ENTRIES.values(),
    replace(
        _CHANGES,
        trial=Trial(item=_CHANGES.trial.item, score="description_score", value=1.0),
        open=_open,
    ),
)
"""The metrics of the family."""
