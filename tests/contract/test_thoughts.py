"""Scores of every metric depend on the answer alone, in whatever form a model thinks before it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import pytest
from support.metric_runs import RUNS
from support.thoughts import FORMS, UNFINISHED, with_texts

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.session import Engine
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.metrics import AnswersItem, Item, Report
from hallujudge.metrics.framework.signature import THOUGHTS, parsed_signature
from hallujudge.metrics.responses.forms import BOXED
from hallujudge.metrics.responses.thoughts import with_thought
from hallujudge.sdk import Client

# Yes, no, letters and objects, none of which the answers must be taken for.
THOUGHT = "Is there no dog? Yes, or no: A, B, C or D. A horse, a bus and a pizza are not there."
ENGINE = Engine()


@cache
def items_of(metric: str) -> tuple[Item, ...]:
    with Client.embedded() as client:
        return tuple(each.item for each in client.score(metric, **RUNS[metric]()).items)


def scored(metric: str, items: Sequence[Item], variant: str = "", **options: str) -> Report:
    run: dict[str, Any] = RUNS[metric]()
    given = {name: str(value) for name, value in (run.get("options") or {}).items()}
    named = variant or run.get("variant", "")
    spec = ScoreSpec(metric=metric, variant=named, options={**given, **options})

    async def report() -> Report:
        session = await ENGINE.open(spec)
        await session.score(items)
        return session.report()

    return asyncio.run(report())


def texts_of(item: Item) -> list[str | None]:
    if isinstance(item, AnswersItem):
        return [answer.response for answer in item.answers]
    return [getattr(item, "response", None)]


def answers_only(signature: str) -> dict[str, str]:
    return {key: value for key, value in parsed_signature(signature).items() if key != THOUGHTS}


@pytest.mark.parametrize("metric", RUNS)
def test_scores_are_those_of_the_answers_in_every_form(metric: str) -> None:
    items = items_of(metric)
    plain = scored(metric, items)
    assert THOUGHTS not in parsed_signature(plain.signature)
    assert not plain.traits.get("thought")
    texts = sum(text is not None for item in items for text in texts_of(item))
    for name, form in FORMS.items():
        if (metric, name) == ("hallusion-bench", BOXED):
            # Its default parser is VLMEvalKit's, which reads boxes by a rule of its own.
            continue
        thinking = [with_texts(item, partial(form, THOUGHT)) for item in items]
        report = scored(metric, thinking)
        assert report.scores == plain.scores, name
        assert report.coverage == plain.coverage, name
        assert report.groups == plain.groups, name
        assert answers_only(report.signature) == answers_only(plain.signature), name
        assert parsed_signature(report.signature)[THOUGHTS] == "left-out", name
        assert report.traits["thought"] == texts, name


@pytest.mark.parametrize("metric", RUNS)
def test_no_variant_scores_a_thought_under_a_key_of_its_own(metric: str) -> None:
    """A server's content is the answer of tools too that know no marks of thoughts."""
    # White space around an answer belongs to neither.
    items = [with_texts(item, str.strip) for item in items_of(metric)]
    thinking = [with_texts(item, _keyed) for item in items]
    for variant in metric_entry(metric).variants:
        plain, report = (scored(metric, each, variant) for each in (items, thinking))
        assert report.scores == plain.scores, variant
        assert report.coverage == plain.coverage, variant
        assert parsed_signature(report.signature)[THOUGHTS] == "left-out", variant


def _keyed(text: str) -> str:
    return with_thought(THOUGHT, text, "reasoning_content")


@pytest.mark.parametrize("variant", ["published", "opera", "repope", "first-word", "strict"])
def test_every_parser_of_pope_sees_the_answer_alone(variant: str) -> None:
    items = items_of("pope")
    plain = scored("pope", items, variant)
    for name, form in FORMS.items():
        thinking = [with_texts(item, partial(form, THOUGHT)) for item in items]
        assert scored("pope", thinking, variant).scores == plain.scores, name


@pytest.mark.parametrize("metric", RUNS)
@pytest.mark.parametrize("mark", UNFINISHED)
def test_a_thought_without_an_end_is_no_answer(metric: str, mark: str) -> None:
    items = items_of(metric)
    cut = [with_texts(item, lambda text: f"{mark}{text} Yes, there is") for item in items]
    # Nor are the verdicts, claims or keywords that came with it.
    answered = [item for item in cut if any(text is not None for text in texts_of(item))]
    counted = scored(metric, answered)
    assert not counted.coverage.scored
    assert set(counted.coverage.reasons) <= {THOUGHT_UNFINISHED}


@pytest.mark.parametrize("metric", RUNS)
def test_what_came_with_a_failed_response_is_not_scored(metric: str) -> None:
    items = items_of(metric)
    failed = [with_texts(item, lambda _: "Error code: 500 - overloaded") for item in items]
    answered = [item for item in failed if any(text is not None for text in texts_of(item))]
    coverage = scored(metric, answered).coverage
    if metric in COUNT_MISSING:
        # Their released scripts count a missing answer as a wrong one.
        assert coverage.scored == len(answered)
        return
    assert not coverage.scored


COUNT_MISSING = ("vidhalluc-bqa", "vidhalluc-mcq", "vidhalluc-sth", "vidhalluc-tsh")


THOUGHT_UNFINISHED = "THOUGHT_UNFINISHED"


def test_kept_thoughts_are_scored_with_their_answers() -> None:
    [first, *_] = items_of("chair")
    whole = with_texts(first, lambda text: f"<think>A horse sleeps</think> {text}")
    kept = scored("chair", [whole], thoughts="keep")
    assert kept.chair_i == pytest.approx(2 / 3)
    assert "thoughts:kept" in kept.signature
    assert "with the option thoughts = keep chair_i is 0.6667, not 0.5000" in " ".join(
        scored("chair", [whole]).notes
    )


def test_marks_of_a_user_are_marks_of_thoughts() -> None:
    [first, *_] = items_of("chair")
    own = with_texts(first, lambda text: f"{{{{note A horse.}}}} {text}")
    report = scored("chair", [own], thought_marks="{{note }}")
    assert report.scores == scored("chair", [first]).scores
    assert "thoughts:left-out,marks={{note }}" in report.signature
