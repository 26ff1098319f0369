"""Missing, empty, failed and foreign responses are unscored in every metric and variant."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from support.messages import expected_message

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.responses import ResponseCheck, failure_texts, language_problem
from hallujudge.metrics import (
    Answer,
    AnswersItem,
    ChairItem,
    Item,
    ItemResult,
    Outcome,
    Report,
    one_answer,
)
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.mementos import MementosItem
from hallujudge.metrics.tri_he import TriHeItem

FAILED = "Failed to obtain answer via API."


def items_of(metric: str, text: str) -> list[Item]:
    made: dict[str, Item] = {
        "chair": ChairItem(id="1", response=text, reference_objects=("dog",)),
        "pope": one_answer(id="1", response=text, label="yes"),
        "vidhal-mcqa": one_answer(id="1", response=text, label="A"),
        "vidhal-ordering": one_answer(id="1", response=text, label="A, B, C"),
        "infact": AnswersItem(id="1", answers=(Answer(response=text, label="A", name="base"),)),
        "mementos": MementosItem(id="1", response=text, reference="A dog runs."),
    }
    return [made[metric]]


def score(
    metric: str, items: list[Item], variant: str = "", options: Mapping[str, str] | None = None
) -> tuple[list[ItemResult], Report]:
    spec = ScoreSpec(
        metric=metric,
        variant=variant,
        options=options or {},
    )

    async def run() -> tuple[list[ItemResult], Report]:
        session = await Engine().open(spec)
        return await session.score(items), session.report()

    return asyncio.run(run())


VARIANTS = [
    *(("pope", name) for name in YES_NO_PARSERS),
    *(
        (metric, name)
        for metric in ("chair", "vidhal-mcqa", "vidhal-ordering", "mementos")
        for name in ("published", "corrected")
    ),
    ("infact", "paper"),
]


@pytest.mark.parametrize(("metric", "variant"), VARIANTS)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", UnscoredReason.RESPONSE_EMPTY),
        (" \n\t", UnscoredReason.RESPONSE_EMPTY),
        ("\u200b\ufeff ", UnscoredReason.RESPONSE_EMPTY),
        (FAILED, UnscoredReason.RESPONSE_FAILED),
        ("failed to obtain  answer via API.\n", UnscoredReason.RESPONSE_FAILED),
        ("nan", UnscoredReason.RESPONSE_FAILED),
        ("#NAME?", UnscoredReason.RESPONSE_FAILED),
        ("\n" * 600 + FAILED + " " * 600, UnscoredReason.RESPONSE_FAILED),
        ('{"error": {"code": 500}}', UnscoredReason.RESPONSE_FAILED),
    ],
)
def test_no_variant_scores_a_response_that_is_none(
    metric: str, variant: str, text: str, reason: UnscoredReason
) -> None:
    [result], report = score(metric, items_of(metric, text), variant)
    assert (result.outcome, result.reason) == (Outcome.UNSCORED, reason)
    assert report.coverage.reasons == {reason: 1}
    assert "responses:" not in report.signature


@pytest.mark.parametrize(("metric", "variant"), [("pope", "published"), ("chair", "published")])
@pytest.mark.parametrize("text", ["", FAILED])
def test_count_empty_scores_as_the_released_script(metric: str, variant: str, text: str) -> None:
    options = {"count_empty": "true"}
    [result], report = score(metric, items_of(metric, text), variant, options)
    assert result.outcome is Outcome.SCORED
    assert "|responses:count-empty|" in report.signature
    assert report.settings["count_empty"] == "true"


def test_an_operator_with_a_failed_call_counts_as_not_run() -> None:
    said = {"base": "A", "shuffle": FAILED}
    fields = {"order_sensitive": "true"}
    item = AnswersItem(
        id="1",
        answers=tuple(
            Answer(response=text, label="A", name=name, fields=fields)
            for name, text in said.items()
        ),
    )
    [result], report = score("infact", [item])
    assert result.evidence is not None
    assert result.evidence.to_json()["answers"][1]["how"] == "RESPONSE_FAILED"  # type: ignore[index,call-overload]  # JSON
    assert report.base_accuracy == 1
    assert report.tss_shuffle is None
    assert report.totals["runs"] == 1


def test_tri_he_scores_given_claims_whatever_the_text_is() -> None:
    graph = (("man", "riding", "horse"),)
    item = TriHeItem(id="1", response=FAILED, reference_triplets=graph)  # type: ignore[arg-type]  # equal tuples
    [result], _ = score("tri-he", [item], options={"judge": "matcher", "backend": "onnx"})
    assert result.reason == UnscoredReason.RESPONSE_FAILED


def test_callers_add_texts() -> None:
    check = ResponseCheck({"failure_texts": "# ours\nModel offline\nquota *"})
    assert check.problem("model  OFFLINE") is not None
    assert check.problem("Quota of today is used") is not None
    assert check.problem("The model offline sign is red.") is None
    assert check.signature.startswith("failures+")


def test_an_answer_about_errors_is_an_answer() -> None:
    check = ResponseCheck({})
    for text in ("No", "There is an error message on the screen.", "Nan bread on a plate.", "{}"):
        assert check.problem(text) is None, text


@pytest.mark.parametrize(
    "text",
    [
        '{"Error": "quota"}',
        '[{"error": {"code": 500}}]',
        "{'error': {'message': 'Rate limit', 'type': 'x'}}",
        '{"object": "error", "message": "too long"}',
        "[{'object': 'error', 'message': 'too long'}]",
        "None",
    ],
)
def test_errors_of_services_in_any_notation_are_failures(text: str) -> None:
    problem = ResponseCheck({}).problem(text)
    assert problem is not None
    assert problem[0] is UnscoredReason.RESPONSE_FAILED


@pytest.mark.parametrize(
    "text",
    [
        '{"error": null, "answer": "yes"}',
        "{'error': None, 'answer': 'yes'}",
        '[{"error": 1}, {"answer": "yes"}]',
        "['error']",
        "[A, B, C]",
        "[" * 5000 + '"error"',
    ],
)
def test_an_object_without_an_error_is_an_answer(text: str) -> None:
    assert ResponseCheck({}).problem(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "<html><head><title>502 Bad Gateway</title></head></html>",
        "<!doctype html><html><body>Please log in</body></html>",
        "openai.error.RateLimitError: slow down",
        "openai.APITimeoutError: Request timed out.",
        "HTTPSConnectionPool(host='api.example', port=443): Read timed out.",
        "CUDA out of memory. Tried to allocate 20.00 MiB",
        "RuntimeError: CUDA error: device-side assert triggered",
        "ERROR",
    ],
)
def test_web_pages_and_exceptions_are_failures(text: str) -> None:
    problem = ResponseCheck({}).problem(text)
    assert problem is not None
    assert problem[0] is UnscoredReason.RESPONSE_FAILED
    assert ResponseCheck({}).problem(f"The screen shows: {text}") is None


@pytest.mark.parametrize(
    "text",
    [
        "RateLimitError: Error code: 429 - too many requests",
        "litellm.RateLimitError: too many requests",
        "google.api_core.exceptions.ResourceExhausted: 429 Quota exceeded for this project",
        "httpx.ReadTimeout",
        "KeyError('choices')",
        "OSError: [Errno 2] No such file or directory",
        "ValueError",
    ],
)
def test_names_of_exceptions_are_failures(text: str) -> None:
    problem = ResponseCheck({}).problem(text)
    assert problem is not None
    assert problem[0] is UnscoredReason.RESPONSE_FAILED


@pytest.mark.parametrize(
    "text",
    ["TVs are on the wall", "e.g. Dogs: two of them", "iPhone: a phone", "yesterday", "McDonald's"],
)
def test_names_that_are_no_exceptions_are_answers(text: str) -> None:
    assert ResponseCheck({}).problem(text) is None


def test_the_shipped_texts_are_found() -> None:
    check = ResponseCheck({})
    assert failure_texts()
    for text in failure_texts():
        problem = check.problem(text.removesuffix("*"))
        assert problem is not None, text
        assert problem[0] is UnscoredReason.RESPONSE_FAILED


CHINESE = "一只猫坐在沙发上"


def item_of(metric: str, response: str) -> Item:
    items: dict[str, Item] = {
        "chair": ChairItem(id="1", response=response, reference_objects=("dog",)),
        "tri-he": TriHeItem(
            id="1", response=response, reference_triplets=(Triplet("dog", "on", "grass"),)
        ),
        "mementos": MementosItem(id="1", response=response, reference="A dog runs."),
    }
    return items[metric]


def score_in(item: Item, metric: str, **options: str) -> tuple[ItemResult, Report]:
    spec = ScoreSpec(metric=metric, options=options)

    async def run() -> tuple[ItemResult, Report]:
        session = await Engine().open(spec)
        (result,) = await session.score([item])
        return result, session.report()

    return asyncio.run(run())


@pytest.mark.parametrize("metric", ["chair", "tri-he", "mementos"])
def test_a_response_in_another_language_has_no_score(metric: str) -> None:
    result, report = score_in(item_of(metric, CHINESE), metric)
    assert result.reason == UnscoredReason.LANGUAGE_UNSUPPORTED
    assert "not English" in result.detail
    assert report.coverage.unscored == 1
    assert "any-language" not in report.signature


def test_any_language_can_be_allowed_and_is_in_the_signature() -> None:
    result, report = score_in(item_of("chair", CHINESE), "chair", language="any")
    assert (result.reason, result.scores.get("chair_s")) == ("", 0.0)
    assert "any-language" in report.signature


def test_a_human_description_in_another_language_is_not_a_reference() -> None:
    item = MementosItem(id="1", response="A dog runs.", reference=CHINESE)
    result, _ = score_in(item, "mementos")
    assert result.reason == UnscoredReason.LANGUAGE_UNSUPPORTED
    assert result.detail.startswith("the human description")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("一只猫坐在沙发上", "not Latin"),
        ("Кошка на диване", "not Latin"),
        ("고양이가 소파에 앉아 있다", "not Latin"),
        ("قطة على الأريكة", "not Latin"),
        (
            "The picture shows a street with many people. 左边有一辆红色的公共汽车，右边有一只狗。",
            "not Latin",
        ),
        ("Ein Hund sitzt auf dem Sofa.", "German"),
        ("Der Hund schläft", "German"),
        ("Un chat sur un canapé.", "French"),
        ("Uma mulher com um cachorro.", "Portuguese"),
        ("Un hombre con una pelota en la calle.", "Spanish"),
        ("Kot siedzi na kanapie obok psa.", "Polish"),
        ("Con chó trên ghế.", "Vietnamese"),
        (
            "paka anakaa mweupe juu ya kiti cha rangi nyekundu karibu na meza kubwa",
            "none of its 13 words",
        ),
    ],
)
def test_other_languages_are_recognised(text: str, named: str) -> None:
    problem = language_problem(text)
    assert problem is not None
    assert named in problem


@pytest.mark.parametrize(
    "text",
    [
        "A cat.",
        "a cat",
        "",
        "123",
        "🐶🐱",
        "Yes",
        "Los Angeles skyline",
        "van driving man",
        "bear den",
        "A café on the Champs-Élysées in Rio de Janeiro.",
        "cat, dog, car, bus, person, chair, table, cup, bowl, fork, knife, spoon, bed",
        "The sign says 停止 and a man waits.",
        'A sign over the shop reads "北京烤鸭店" and two men wait.',
    ],
)
def test_english_and_short_texts_pass(text: str) -> None:
    assert language_problem(text) is None


def test_only_the_beginning_is_read() -> None:
    assert (
        language_problem(
            expected_message("judge_service.engine.families.tri_he:dog-sits-on-the-grass") * 200
            + "猫" * 100_000
        )
        is None
    )
