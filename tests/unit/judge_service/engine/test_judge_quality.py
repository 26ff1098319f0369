"""Notes on how a judge did on known data, and report cards that cannot be used."""

from __future__ import annotations

import json
import runpy
from itertools import product
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.judge_service.engine.families.tri_he import ENTRY
from hallujudge.judge_service.engine.judge_quality import (
    KEYWORD_QUALITY,
    agreement_note,
    best_measured,
    card_of,
    card_sha256,
    measured_agreements,
)
from hallujudge.judge_service.engine.registry import open_pipeline
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.matchers import MatcherSettings
from hallujudge.judge_service.matchers.model_folders import MINILM_SHA256, find_model
from hallujudge.sdk import Client

MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
ROOT = Path(__file__).resolve().parents[4]


def test_a_note_says_that_the_default_judge_rejects_most_true_claims() -> None:
    note = agreement_note("rules", "matcher", MatcherSettings(), MINILM_SHA256)
    assert (
        expected_message(
            "judge_service.engine.judge_quality:calls-of-checked-true-claims-unsupported"
        )
        in note
    )
    assert expected_message("judge_service.engine.judge_quality:do-not-quote-it-as-rate") in note


@pytest.mark.parametrize(
    ("extractor", "judge", "settings", "weights"),
    [
        ("llm", "matcher", MatcherSettings(), MINILM_SHA256),
        ("rules", "llm", MatcherSettings(), ""),
        ("rules", "matcher", MatcherSettings(support_above=0.123), MINILM_SHA256),
        ("rules", "matcher", MatcherSettings(model="mpnet"), "f" * 64),
        (
            "rules",
            "nli",
            MatcherSettings(protocol="nli", small_model="some/model"),
            MINILM_SHA256,
        ),
    ],
)
def test_a_note_says_what_was_not_measured(
    extractor: str, judge: str, settings: MatcherSettings, weights: str
) -> None:
    assert "not measured together" in agreement_note(extractor, judge, settings, weights)


def test_the_papers_encoder_is_known_by_its_weights() -> None:
    known = [each for each in measured_agreements() if each.weights == MPNET_SHA256]
    # Its weights were not at hand when the third version of the rules was measured.
    assert {(each.model, each.extractor) for each in known} == {("mpnet", "sentences")}
    for name in ("mpnet", "/models/all-mpnet-base-v2"):
        settings = MatcherSettings(model=name)
        note = agreement_note("sentences", "matcher", settings, MPNET_SHA256)
        assert (
            expected_message(
                "judge_service.engine.judge_quality:of-checked-true-claims-unsupported"
            )
            in note
        )


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_a_folder_with_measured_weights_is_known(variant: str) -> None:
    """The encoder is known by its weights, whatever it is called."""
    by_name, by_folder = (
        ENTRY.open(
            ScoreSpec(metric="tri-he", variant=variant, options={"matcher_model": model}),
            Resources(),
        )
        for model in ("minilm", str(find_model("minilm").path))
    )
    assert by_folder.notes == by_name.notes
    assert expected_message(
        "judge_service.engine.judge_quality:of-checked-true-claims-unsupported"
    ) in " ".join(by_folder.notes)
    name = "judge.matcher_support_above"
    assert by_folder.settings[name] == by_name.settings[name]


def test_every_pair_of_thresholds_is_measured() -> None:
    measured = [
        (each.extractor, each.weights, each.keep_above, each.support_above)
        for each in measured_agreements()
    ]
    support = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65)
    pairs = (
        ("rules", MINILM_SHA256),
        ("sentences", MINILM_SHA256),
        ("sentences", MPNET_SHA256),
    )
    grid = [(*pair, keep, above) for pair, keep, above in product(pairs, (0.4, 0.5), support)]
    assert sorted(measured) == sorted(grid)


def test_the_page_has_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/explanation/tri-he-validation.md").read_text(encoding="utf-8")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "bench_judge_agreement.py"))
    assert benchmark["agreement_table"](measured_agreements()) in page


@pytest.mark.parametrize("extractor", ["rules", "sentences"])
def test_corrected_takes_the_best_on_the_tuning_half(extractor: str) -> None:
    best = best_measured(extractor, "published", MINILM_SHA256)
    assert best is not None
    assert best.tuning == max(
        each.tuning
        for each in measured_agreements()
        if (each.extractor, each.weights) == (extractor, MINILM_SHA256)
    )
    published = next(
        each
        for each in measured_agreements()
        if (each.extractor, each.weights) == (extractor, MINILM_SHA256)
        and (each.keep_above, each.support_above) == (0.5, 0.6)
    )
    assert best.check > published.check, "the choice holds on the half that it was not made by"


@pytest.mark.parametrize(
    ("variant", "options", "wanted"),
    [
        ("published", {}, "0.6"),
        ("corrected", {"support_above": "0.7"}, "0.7"),
        ("corrected", {"extractor": "given"}, "0.6"),
    ],
)
def test_thresholds_of_a_variant(variant: str, options: dict[str, str], wanted: str) -> None:
    pipeline = ENTRY.open(ScoreSpec(metric="tri-he", variant=variant, options=options), Resources())
    assert pipeline.settings["judge.matcher_support_above"] == wanted
    assert pipeline.notes


@pytest.mark.parametrize("extractor", ["rules", "sentences"])
def test_corrected_has_measured_thresholds(extractor: str) -> None:
    best = best_measured(extractor, "published", MINILM_SHA256)
    assert best is not None
    spec = ScoreSpec(metric="tri-he", variant="corrected", options={"extractor": extractor})
    pipeline = ENTRY.open(spec, Resources())
    assert pipeline.settings["judge.matcher_keep_above"] == str(best.keep_above)
    assert pipeline.settings["judge.matcher_support_above"] == str(best.support_above)
    assert expected_message(
        "judge_service.engine.judge_quality:of-checked-true-claims", 1 - best.true_supported
    ) in " ".join(pipeline.notes)


def test_the_quality_of_the_keyword_rules_is_the_pages() -> None:
    page = (ROOT / "docs/explanation/rule-extractor-quality.md").read_text(encoding="utf-8")
    cells = [f"{number:.3f}" for row in KEYWORD_QUALITY for number in (row.precision, row.recall)]
    found = " | ".join(f"**{cell}**" for cell in cells)
    assert f"| **held out, 50** | {found} |" in page


@pytest.mark.parametrize(
    ("metric", "options", "note"),
    [
        ("mementos", {}, "the rules find 95% of the objects (98% of what they list is right)"),
        ("mementos", {"extractor": "given"}, "what took them was not measured on known data"),
        ("hallusion-bench", {"correctness": "given"}, "How their judge does on known data was not"),
        ("event-hallusion", {}, "How their judge does on known data was not measured"),
    ],
)
def test_every_judged_metric_says_what_is_known_of_its_judge(
    metric: str, options: dict[str, str], note: str
) -> None:
    pipeline = open_pipeline(ScoreSpec(metric=metric, options=options), Resources())
    assert note in " ".join(pipeline.notes)


def test_an_answer_parser_is_not_a_judge() -> None:
    assert open_pipeline(ScoreSpec(metric="hallusion-bench"), Resources()).notes == ()


def card(**change: object) -> str:
    content: dict[str, object] = {
        "schema": "hallujudge.judge-card/1",
        "judge": "tiny,prompt",
        "accuracy": {
            "agreement": {"value": 0.9, "ci_low": 0.8, "ci_high": 0.95},
            "sensitivity": {"value": 0.75},
            "specificity": {"value": None},
        },
        "compared_with": "labels",
        "labels": 1200,
        "yes_bias": {"difference": -0.02},
        "reliability": {"ece": 0.031},
        "flips": [{"change": "20 claims a call", "share": 0.1}, {"change": "other", "share": None}],
    }
    content |= change
    return json.dumps(content | {"sha256": card_sha256(content)})


def spec(text: str) -> ScoreSpec:
    return ScoreSpec(metric="tri-he", options={"card": text})


def test_the_main_figures_are_in_the_note() -> None:
    found = card_of(spec(card()), ["tiny>big,prompt>prompt", "tiny,prompt", "big,prompt"])
    assert found is not None
    assert found.note.partition(" of tiny: ")[2] == (
        expected_message("judge_service.engine.judge_quality:it-agrees-with-labels-on-of-verdicts")
    )
    assert card_of(spec(""), ["tiny,prompt"]) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (card(), "this run's is 'big,prompt'"),
        (card(schema="other"), "its schema is 'other'"),
        (card(labels="many"), "not a judge's report card: a value in it is of another kind"),
        (card(accuracy=None), "not a judge's report card"),
        ("[" * 100_000, "not a judge's report card"),
    ],
)
def test_other_cards_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        card_of(spec(text), ["big,prompt"])


def test_a_run_without_a_judge_has_no_card() -> None:
    given = {"1": {"split": "entire", "judgement": "Yes."}}
    with (
        Client.embedded() as client,
        pytest.raises(
            InvalidInputError,
            match=expected_message(
                "judge_service.engine.judging_pipeline:the-option-card-is-about-judge-but"
            ),
        ),
    ):
        client.score("event-hallusion", responses=given, options={"card": card()})
