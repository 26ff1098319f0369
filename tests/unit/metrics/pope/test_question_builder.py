"""Questions that are built from the objects of images."""

from __future__ import annotations

import pytest
from support.messages import expected_message

from hallujudge.metrics import OptionError
from hallujudge.metrics.pope.question_builder import SAMPLINGS, TEMPLATES, article_of, build_pope

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
    adversarial = build_pope(IMAGES, sampling="adversarial-pooled", questions_per_image=2)
    absent = {q.image: q.object for q in adversarial.questions if q.label == "no"}
    # Beside cat, dog and umbrella: apple 2, bus 3, car 2. Beside dog and bus: cat 4, apple 2.
    assert absent == {"1": "bus", "2": "cat", "3": "car", "4": "bus"}


def test_each_present_object_has_its_own_companion_as_in_the_released_script() -> None:
    shown = {"1": ["cat", "dog"], "2": ["cat", "ant"], "3": ["dog", "bee"], "4": ["dog", "bee"]}
    shown |= {"5": ["cat", "cow"], "6": ["dog", "cow"], "7": ["bee", "dog"]}
    built = build_pope(shown, sampling="adversarial", questions_per_image=4)
    asked = [row.object for row in built.questions if row.image == "1"]
    pairs = dict(zip(asked[::2], asked[1::2], strict=True))
    assert pairs == {"cat": "ant", "dog": "bee"}, "pooled would be bee and cow"


def test_present_objects_do_not_depend_on_the_sampling() -> None:
    present = [
        [q.object for q in build_pope(IMAGES, sampling=s, seed=5).questions if q.label == "yes"]
        for s in SAMPLINGS
    ]
    assert all(each == present[0] for each in present)


def test_images_without_enough_objects_are_named() -> None:
    built = build_pope(IMAGES, sampling="random", min_objects=4, questions_per_image=2)
    assert set(built.skipped) == {"1", "2", "4"}
    assert built.skipped["2"] == "2 objects, fewer than 4"
    with pytest.raises(
        OptionError, match=expected_message("metrics.pope.question_builder:are-requested-but-only")
    ):
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


@pytest.mark.parametrize(
    ("name", "article"),
    [
        ("x-ray", "an"),
        ("MRI scan", "an"),
        ("SUV", "an"),
        ("UFO", "a"),
        ("TV", "a"),
        ("tv", "a"),
        ("t-shirt", "a"),
        ("u-turn sign", "a"),
        ("usb drive", "a"),
        ("urinal", "a"),
        ("urn", "an"),
        ("8 ball", "an"),
        ("18-wheeler", "an"),
        ("1 euro coin", "a"),
        ("80s jacket", "an"),
        ("éclair", "an"),
        ('"apple" logo', "an"),
        ("ouija board", "a"),
        ("onesie", "a"),
        ("ID card", "an"),
        ("umbrella", "an"),
        ("unicorn", "a"),
    ],
)
def test_articles_by_sound(name: str, article: str) -> None:
    assert article_of(name) == article


def test_an_article_that_begins_a_sentence() -> None:
    built = build_pope(
        {"1": ["umbrella"], "2": ["dog"]},
        sampling="random",
        questions_per_image=2,
        template="A <object>, yes or no?",
    )
    assert [row.text for row in built.questions[:2]] == [
        expected_message("judge_service.engine.families.event_hallusion:an-umbrella-yes-or-no"),
        expected_message("judge_service.engine.families.event_hallusion:dog-yes-or-no"),
    ]
