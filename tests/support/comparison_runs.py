"""Small runs of invented models, to compare."""

from __future__ import annotations

import random
from pathlib import Path

from support.amber_samples import ASSOCIATIONS, SAFE

from hallujudge.sdk import Client, InputOptions, RunReport

__all__ = ["amber_run", "chair_run", "pope_run"]

WORDS = ("dog", "cat", "car", "chair", "bench", "person", "bus", "pizza")


def chair_run(
    folder: Path | None,
    wrong: float,
    *,
    seed: int = 0,
    images: int = 60,
    missing: tuple[str, ...] = (),
    first: int = 0,
    variant: str = "",
) -> RunReport:
    """Score captions of two objects, the second of which is hallucinated with a probability.

    Args:
        folder: Where the run is saved; None for nowhere.
        wrong: The probability.
        seed: Seed of the model.
        images: How many images there are.
        missing: Ids of captions that are null.
        first: The first image's id.
        variant: The metric's variant.
    """
    model = random.Random(seed)
    captions: dict[str, str | None] = {}
    objects = {}
    for number in range(first, first + images):
        there, absent = WORDS[number % 8], WORDS[(number + 4) % 8]
        other = absent if model.random() < wrong else WORDS[(number + 1) % 8]
        captions[str(number)] = f"A {there} and a {other}."
        objects[str(number)] = [there, WORDS[(number + 1) % 8]]
    captions |= dict.fromkeys(missing)
    with Client.embedded() as client:
        report = client.score("chair", responses=captions, references=objects, variant=variant)
    if folder is not None:
        report.save(folder)
    return report


def pope_run(folder: Path | None, right: float, *, seed: int = 0, unclear: float = 0) -> RunReport:
    """Score answers to three questions about each of 40 images, by the parser ``strict``.

    Args:
        folder: Where the run is saved; None for nowhere.
        right: The probability of a right answer.
        seed: Seed of the model.
        unclear: The probability of an answer that the parser can't read.
    """
    model = random.Random(seed)
    questions, answers = [], []
    for number in range(120):
        label = "yes" if number % 2 else "no"
        other = "no" if number % 2 else "yes"
        answer = label if model.random() < right else other
        text = "I am not sure" if model.random() < unclear else answer
        questions.append(
            {"question_id": number, "image": f"{number // 3}.jpg", "text": "?", "label": label}
        )
        answers.append({"question_id": number, "text": text})
    with Client.embedded() as client:
        report = client.score("pope", responses=answers, references=questions, variant="strict")
    if folder is not None:
        report.save(folder)
    return report


def amber_run(kinds: str, *, seed: int = 0) -> RunReport:
    """Score answers about AMBER's images.

    Args:
        kinds: ``d`` for a description and ``q`` for a question, one letter for each answer.
        seed: Seed of the model.
    """
    model = random.Random(seed)
    annotations: list[dict[str, object]] = []
    answers: list[dict[str, object]] = []
    for number, kind in enumerate(kinds):
        if kind == "d":
            shown = {"type": "generative", "truth": ["tree", "dog"], "hallu": ["man"]}
            said: dict[str, object] = {"nouns": model.sample(["tree", "dog", "man", "sun"], 2)}
        else:
            shown = {"type": "discriminative-hallucination", "truth": "no"}
            said = {"response": model.choice(["Yes", "No"])}
        annotations.append({"id": number, **shown})
        answers.append({"id": number, **said})
    inputs = InputOptions(own={"associations": ASSOCIATIONS, "safe_words": SAFE})
    with Client.embedded() as client:
        return client.score("amber", responses=answers, references=annotations, inputs=inputs)
