"""The papers' analyses on small cases worked out by hand."""

from __future__ import annotations

from itertools import permutations

import pytest
from oracles import answers_published as oracle
from support.qa_samples import infact_questions

from hallujudge.metrics import OptionError
from hallujudge.metrics.infact.analysis import mode_means, overconfidence, taxonomy_means
from hallujudge.metrics.infact.metric import InfactMetric
from hallujudge.metrics.infact.taxonomy import TAXONOMY, level_of
from hallujudge.metrics.pope.analysis import (
    accumulated_proportions,
    caption_consistency,
    hit_ratio_by_company,
    hit_ratio_by_frequency,
    parser_comparison,
    template_stability,
)
from hallujudge.metrics.pope.build import (
    SAMPLINGS,
    TEMPLATES,
    article_of,
    build_pope,
    count_objects,
)
from hallujudge.metrics.pope.metric import PopeMetric
from hallujudge.metrics.pope.open_vqa import VqaMatch, match_of_number, offered_answers, vqa_score
from hallujudge.metrics.vidhal.analysis import (
    QualityVote,
    caption_quality,
    frame_reliance,
    human_agreement,
    input_order_sensitivity,
    misalignment,
    model_consensus,
    transitive_inconsistency,
)
from hallujudge.metrics.vidhal.metric import VidhalOrderingMetric
from hallujudge.metrics.vidhal.planner import PairAnswer, PairQuestion, RelativeOrdering

IMAGES = {
    "1": ["dog", "cat", "car"],
    "2": ["dog", "bus"],
    "3": ["dog", "cat", "bus", "apple"],
    "4": ["umbrella", "cat", "dog"],
}


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_questions_are_balanced(sampling: str) -> None:
    built = build_pope(IMAGES, sampling=sampling, questions_per_image=4)
    assert [q.label for q in built.questions] == ["yes", "no"] * 8
    for question in built.questions:
        assert (question.object in IMAGES[question.image]) == (question.label == "yes")
    assert [q.question_id for q in built.questions] == list(range(1, 17))


def test_absent_objects_by_frequency_and_by_company() -> None:
    popular = build_pope(IMAGES, sampling="popular", questions_per_image=2)
    absent = {q.image: q.object for q in popular.questions if q.label == "no"}
    # cat 3, bus 2; apple, car and umbrella once each.
    assert absent == {"1": "bus", "2": "cat", "3": "car", "4": "bus"}
    adversarial = build_pope(IMAGES, sampling="adversarial", questions_per_image=2)
    absent = {q.image: q.object for q in adversarial.questions if q.label == "no"}
    # Beside cat, dog and umbrella: apple 2, bus 3, car 2. Beside dog and bus: cat 4, apple 2.
    assert absent == {"1": "bus", "2": "cat", "3": "car", "4": "bus"}


def test_present_objects_do_not_depend_on_the_sampling() -> None:
    present = [
        [q.object for q in build_pope(IMAGES, sampling=s, seed=5).questions if q.label == "yes"]
        for s in SAMPLINGS
    ]
    assert present[0] == present[1] == present[2]


def test_images_without_enough_objects_are_named() -> None:
    built = build_pope(IMAGES, sampling="random", min_objects=4, questions_per_image=2)
    assert set(built.skipped) == {"1", "2", "4"}
    assert built.skipped["2"] == "2 objects, fewer than 4"
    with pytest.raises(OptionError, match="9 are wanted and 4"):
        build_pope(IMAGES, sampling="random", questions_per_image=2, images=9)
    everything = {"all": ["dog", "cat"], "some": ["dog", "cat"]}
    assert set(build_pope(everything, sampling="popular", questions_per_image=2).skipped) == {
        "all",
        "some",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"sampling": "rare"},
        {"questions_per_image": 3},
        {"questions_per_image": 0},
        {"template": "Is it there?"},
        {"template": "Is there {what}?"},
        {"template": "Is there {object"},
        {"template": "{object.nothing}"},
    ],
)
def test_bad_options_of_building(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        build_pope(IMAGES, **{"sampling": "random", **wrong})  # type: ignore[arg-type]  # wrong on purpose


def test_templates_and_articles() -> None:
    assert len(TEMPLATES) == 4
    objects = {"1": ["umbrella", "dog"], "2": ["unicorn", "hourglass"]}
    for template in (*TEMPLATES, "Do you see a/an <object>?", "Is that a {object}?"):
        built = build_pope(objects, sampling="popular", questions_per_image=4, template=template)
        texts = [q.text for q in built.questions]
        assert any("an umbrella" in text for text in texts)
        assert any("an hourglass" in text for text in texts)
        assert any("a unicorn" in text for text in texts)
        assert not any("<" in text or "{" in text for text in texts)
    names = ("apple", "oven", "elephant", "airplane", "orange", "umbrella", "honest man")
    assert all(article_of(name) == "an" for name in names)
    names = ("dog", "hair drier", "utensil", "university", "one-way sign", "European", "user")
    assert all(article_of(name) == "a" for name in names)


def test_hit_ratios() -> None:
    counts = count_objects(IMAGES)
    assert counts.by_frequency() == ("dog", "cat", "bus", "apple", "car", "umbrella")
    made_up = [{"dog", "car"}, set(), {"umbrella"}, {"cat"}]
    first, second = hit_ratio_by_frequency(made_up, counts, ks=(2, 6))
    assert first.value == pytest.approx((0.5 + 0 + 1) / 3)
    assert first.n == 3
    assert second.value == 1
    by_image = {"1": {"bus"}, "2": {"umbrella", "cat"}, "3": {"car"}}
    (ratio,) = hit_ratio_by_company(by_image, IMAGES, "bus", counts, ks=(2,))
    # Bus stands with dog (2), then apple and cat (1 each): images 2 and 3 show a bus.
    assert (ratio.value, ratio.n) == (0, 2)
    assert hit_ratio_by_frequency([set()], counts)[0].value is None
    assert accumulated_proportions([["dog", "dog"], ["car"]], counts.by_frequency(), (1, 6)) == [
        pytest.approx(2 / 3),
        1,
    ]
    assert accumulated_proportions([], ["dog"], (1,)) == [None]


def test_table_4_of_the_pope_paper() -> None:
    pope = template_stability({"1": 68.65, "2": 66.83, "3": 66.67, "4": 67.58})
    chair = template_stability({"1": 10.5, "2": 18.8, "3": 14.6, "4": 11.6})
    assert (round(pope.mean, 2), round(pope.std, 2)) == (67.43, 0.78)
    assert (round(chair.mean, 2), round(chair.std, 2)) == (13.88, 3.22)
    with pytest.raises(ValueError, match="at least one"):
        template_stability({})


def test_captions_beside_answers() -> None:
    polled = [
        ("1", "dog", "yes"),
        ("1", "cat", "no"),
        ("1", "bus", None),
        ("2", "dog", "no"),
        ("2", "car", "no"),
        ("1", "dog", "no"),
        ("9", "dog", "no"),
    ]
    found = caption_consistency(polled, {"1": {"dog", "bus"}, "2": {"dog"}})
    assert (found.denied, found.denied_but_mentioned) == (3, 1)
    assert (found.mentioned, found.mentioned_and_affirmed) == (2, 1)
    assert found.denial_rate == pytest.approx(2 / 3)
    assert found.affirmation_rate == 0.5


def test_open_answers() -> None:
    answers = ["cat"] * 6 + ["kitten"] * 3 + ["dog"]
    offered = offered_answers(answers)
    assert offered == ("cat", "kitten", "dog")
    assert match_of_number(" 2\n", offered).answer == "kitten"
    assert match_of_number("0", offered) == VqaMatch(answer=None, read=True)
    for noise in ("it is a cat", "4", "-1", "", "²", "1 2"):
        assert not match_of_number(noise, offered).read
    assert vqa_score("cat", answers) == 1
    assert vqa_score("kitten", answers) == pytest.approx((3 * 2 / 3 + 7) / 10)
    assert vqa_score("dog", answers) == pytest.approx(9 * (1 / 3) / 10)
    assert vqa_score(None, answers) == 0


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_planner_finds_every_order(size: int) -> None:
    letters = "ABCDE"[:size]
    most = 0
    for truth in permutations(letters):
        plan = RelativeOrdering(letters)
        while plan.question:
            assert plan.order is None
            plan.answer(min(plan.question, key=truth.index))
        assert plan.order == truth
        asked = [answer.question for answer in plan.answers]
        assert len(set(asked)) == len(asked), "no pair is asked twice"
        most = max(most, len(asked))
    assert most <= size * (size - 1) // 2


def test_three_captions_need_two_questions_or_three() -> None:
    plan = RelativeOrdering("ABC")
    assert plan.question == ("A", "B")
    plan.answer("A")
    assert plan.question == ("B", "C")
    plan.answer("B")
    assert plan.order == ("A", "B", "C")
    plan = RelativeOrdering("ABC")
    plan.answer("A")
    plan.answer("C")
    assert plan.question == ("A", "C"), "the third pair settles it"
    with pytest.raises(ValueError, match="neither"):
        plan.answer("B")
    plan.answer("C")
    assert plan.order == ("C", "A", "B")
    with pytest.raises(ValueError, match="settled"):
        plan.answer("A")
    with pytest.raises(ValueError, match="two different"):
        RelativeOrdering("AA")


def test_transitive_inconsistency() -> None:
    ends = PairQuestion("A", "C")
    answers = {
        "v1": [PairAnswer(question=ends, chosen="C")],
        "v2": [PairAnswer(question=ends, chosen="A")],
        "v3": [PairAnswer(question=PairQuestion("A", "B"), chosen="B")],
        "v4": [],
    }
    orders = dict.fromkeys(answers, ("A", "B", "C"))
    found = transitive_inconsistency(orders, answers)
    assert (found.rate, found.videos, found.n) == (0.5, ("v1",), 2)
    found = transitive_inconsistency(orders, answers, ends_only=False)
    assert found.rate == pytest.approx(2 / 3)
    assert (found.videos, found.n) == (("v1", "v3"), 3)
    assert transitive_inconsistency({}, {}).rate is None


def test_sensitivity_to_the_display_order() -> None:
    scores = {"A, B": {"v1": 1.0, "v2": 0.0}, "B, A": {"v1": 1.0, "v2": 1.0}}
    answers = {"A, B": {"v1": (1,), "v2": (2,)}, "B, A": {"v1": (1,), "v2": (1,)}}
    found = input_order_sensitivity(scores, answers)
    assert (found.mean, found.std, found.spread, found.same_answer) == (0.75, 0.25, 0.5, 0.5)
    with pytest.raises(ValueError, match="v2"):
        input_order_sensitivity({"A, B": {"v1": 1.0}, "B, A": {"v1": 1.0, "v2": 1.0}})


def test_consensus() -> None:
    correct = {
        "a": {"1": True, "2": True, "3": False},
        "b": {"1": True, "2": False, "3": False},
        "c": {"1": False, "2": False, "3": False},
    }
    found = model_consensus(correct)
    assert found.pairs == {("a", "b"): 0.5, ("a", "c"): 0, ("b", "c"): 0}
    assert found.models == {"a": 0.25, "b": 0.25, "c": 0}


def test_reliance_on_one_frame() -> None:
    video = {"1": (1, 2, 3), "2": (1, 2, 3), "3": (2, 1, 3), "4": (3, 2, 1)}
    frame = {"1": (1, 2, 3), "2": (2, 1, 3), "3": (2, 1, 3), "4": (3, 1, 2)}
    found = frame_reliance(video, frame)
    assert (found.overall, found.correct, found.incorrect, found.n) == (0.5, 0.5, 0.5, 4)
    choices = frame_reliance({"1": (1,), "2": (2,)}, {"1": (1,), "2": (3,)})
    assert (choices.correct, choices.incorrect) == (1, 0)


def test_misalignment_of_any_pair() -> None:
    orders = [(4, 1, 2, 3), (1, 2, 3, 4), (1, 2)]
    assert misalignment(orders, 4, 1) == 0.5
    assert misalignment(orders, 2, 1) == 0
    assert misalignment([], 2, 1) is None


def test_caption_quality() -> None:
    def votes(video: str, *answers: tuple[str, str | None]) -> list[QualityVote]:
        return [
            QualityVote(video=video, judge=f"j{n}", criterion=kind, prompt="1", answer=answer)
            for n, (kind, answer) in enumerate(answers)
        ]

    rows = [
        *votes("v1", ("realism", "yes"), ("realism", "no"), ("ordering", "yes")),
        *votes("v1", ("relevance", "yes"), ("relevance", None)),
        *votes("v2", ("realism", "yes"), ("ordering", "yes"), ("relevance", "yes")),
        *votes("v3", ("realism", "yes")),
    ]
    table = caption_quality(rows)
    assert list(table) == ["v2", "v1", "v3"]
    assert table["v1"] == {
        "realism": 0.5,
        "ordering": 1,
        "relevance": 1,
        "total": 2.5,
        "unread": 1,
    }
    assert table["v3"]["total"] is None
    with pytest.raises(ValueError, match="beauty"):
        caption_quality(votes("v", ("beauty", "yes")))


def test_human_agreement() -> None:
    choices = {"v1": [True, True, False], "v2": [True, False], "v3": [True]}
    found = human_agreement(choices, {"v1": "action", "v2": "action", "v3": "order"})
    assert found.videos["v2"] == 0.5
    assert found.misaligned == ("v2",), "half is no majority"
    assert found.mean == pytest.approx((2 / 3 + 0.5 + 1) / 3)
    assert found.groups["order"] == 1
    with pytest.raises(ValueError, match="v4"):
        human_agreement({"v4": []})


def test_modes_need_every_operator() -> None:
    full = dict.fromkeys(("gaussian_noise", "motion_blur", "compression"), 0.6)
    found = mode_means({**full, "shuffle": 0.2, "reverse": 0.4})
    assert found.rr_visual_degradation == pytest.approx(0.6)
    assert found.tss == pytest.approx(0.3)
    assert found.rr_evidence_corruption is None
    assert found.average is None
    with pytest.raises(ValueError, match="rotate"):
        mode_means({"rotate": 1.0})


def test_the_taxonomy() -> None:
    leaves = {d: sum(len(names) for names in levels.values()) for d, levels in TAXONOMY.items()}
    assert leaves == {"faithfulness": 12, "factuality": 12}
    assert level_of("1.1 Entity Recognition") == "static entities & attributes"
    assert level_of("spatio-temporal continuity reasoning") == "physical knowledge"
    assert level_of("something else") == ""
    means = taxonomy_means(
        {
            "Entity Recognition": 0.5,
            "unique entity counting": 1.0,
            "Scene Text Recognition": None,
            "Action Recognition": 0.25,
        }
    )
    assert means["faithfulness/static entities & attributes"] == 0.75
    assert means["faithfulness/dynamic actions & motions"] == 0.25
    assert means["faithfulness"] == 0.5
    assert means["factuality"] is None
    assert len(means) == 2 + 6 + 24
    with pytest.raises(ValueError, match="juggling"):
        taxonomy_means({"juggling": 1.0})


def test_overconfidence() -> None:
    wrong = [(0.9, False), (0.7, False), (0.4, False), (0.5, False), (0.9, True), (None, False)]
    found = overconfidence(wrong)
    assert (found.hallucination_like, found.knowledge_gap_like, found.other) == (3, 1, 1)
    assert (found.unanalysable, found.analysable) == (1, 5)
    assert found.overconfident_share == pytest.approx(0.6)
    with pytest.raises(ValueError, match="nan"):
        overconfidence([(float("nan"), False)])


def test_the_same_answers_under_every_parser() -> None:
    table = parser_comparison(["Yes.", "NO", "not sure", "no"], ["yes", "no", "no", "yes"])
    assert {name: row["accuracy"] for name, row in table.items()} == {
        "published": 0.5,
        "opera": 0.75,
        "lmms-eval": 0.25,
        "vlmevalkit": 0.5,
        "strict": pytest.approx(2 / 3),
    }
    assert table["strict"]["unparsed_rate"] == 0.25
    assert table["published"]["unparsed_rate"] == 0


def test_totals_over_columns() -> None:
    with pytest.raises(OptionError, match="maybe"):
        PopeMetric().count(["yes"], ["maybe"])
    with pytest.raises(OptionError, match="1 labels for 2"):
        PopeMetric().count(["yes", "no"], ["no"])
    display = {"A": 2, "B": 1, "C": 3}
    orders = ["B, A, C", "B, A, C", "A, B", "C, A, B"]
    totals = VidhalOrderingMetric().total(orders, [display] * 4)
    assert (totals["videos"], totals["invalid"], totals["commonest"]) == (4, 1, 2)
    assert totals["ndcg"] == pytest.approx(2)
    questions = infact_questions(200, seed=4)
    for words in (None, dict(zip("ABCD", ["a red dog", "two men", "rain", "wind"], strict=True))):
        say = words.get if words else str
        columns = {
            operator: [str(say(q["runs"][operator])) for q in questions]
            for operator in questions[0]["runs"]
        }
        labels = [str(say(q["label"])) for q in questions]
        got = InfactMetric().total(columns, labels, [q["order_sensitive"] for q in questions])
        wanted = oracle.infact(questions)
        assert got == {name: pytest.approx(wanted[name]) for name in got}
        assert len(got) == 9
    with pytest.raises(OptionError, match="1 answers to 2"):
        InfactMetric().total({"base": ["A"]}, ["A", "B"], [True, False])
