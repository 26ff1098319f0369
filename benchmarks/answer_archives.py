"""Drawn archives of every benchmark of closed questions, for measuring how they are scored."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.example_archives import declared_examples, numbered

from hallujudge.metrics.answers.closed_questions import ClosedQuestions

YES_NO = ("Yes", "No", "Yes, there is a dog.", "No, there is no cat in the image.")
SETS = ("object_relation", "temporal", "semantic_detail", "external_factual")
CAPTIONS = ("ground_truth", "in_video", "out_video")
OPERATORS = ("base", "caption_injection", "compression", "gaussian_noise")

Archive: TypeAlias = "Mapping[str, object]"
"""Option of the command -> content of its file."""


def rows(size: int, make: Callable[[int, random.Random], dict[str, object]]) -> list[object]:
    """Return the records of a file, the same in each run."""
    rng = random.Random(size)
    return [make(number, rng) for number in range(size)]


def pope(size: int) -> Archive:
    """Answers with their labels."""
    return {"-r": rows(size, lambda n, rng: {**pope_answer(n, rng), **pope_question(n)})}


def pope_joined(size: int) -> Archive:
    """Answers, and questions in a file of their own."""
    questions = [pope_question(n) for n in range(size)]
    return {"-r": rows(size, pope_answer), "-R": questions}


def pope_answer(n: int, rng: random.Random) -> dict[str, object]:
    """Return an answer without its label."""
    return {"question_id": n, "response": rng.choice(YES_NO)}


def pope_question(n: int) -> dict[str, object]:
    """Return a question with its label."""
    asked = f"Is there a thing {n} in the image?"
    return {
        "question_id": n,
        "image": f"{n // 6}.jpg",
        "text": asked,
        "label": ("yes", "no")[n % 2],
    }


def label(n: int) -> str:
    """Return the label of a question."""
    return ("yes", "no")[n % 2]


def video_hallucer(size: int) -> Archive:
    """Pairs, half as many as answers."""

    def pair(n: int, rng: random.Random) -> dict[str, object]:
        sides = {
            role: {
                "video": f"{n}.mp4",
                "question": f"Is it {role} {n}?",
                "answer": right,
                "predict": rng.choice(YES_NO),
            }
            for role, right in (("basic", "yes"), ("hallucination", "no"))
        }
        return {**sides, "type": "t"}

    count = size // 2
    pairs = rows(count, pair)
    return {"-r": {name: pairs[start :: len(SETS)] for start, name in enumerate(SETS)}}


def vidhal(size: int, answer: Callable[[random.Random], str]) -> Archive:
    """Answers by video, the display orders, and the annotations."""
    rng = random.Random(size)
    ids = [f"video_{n}" for n in range(size)]
    annotations = [
        {
            "video": name,
            "captions": {"1": f"A man runs {name}", "2": f"He walks {name}", "3": "A dog sits"},
            "aspect": ("action", "order")[n % 2],
        }
        for n, name in enumerate(ids)
    ]
    shown = {name: dict(zip("ABC", rng.sample("123", 3), strict=True)) for name in ids}
    return {
        "-r": {name: answer(rng) for name in ids},
        "-R": annotations,
        "--options": shown,
    }


def infact(size: int) -> Archive:
    """Questions under some conditions each."""

    def answer(n: int, rng: random.Random) -> dict[str, object]:
        return {
            "id": n // len(OPERATORS),
            "video": f"{n // 8}.mp4",
            "operator": OPERATORS[n % len(OPERATORS)],
            "question": f"What happens in {n // len(OPERATORS)}?",
            "options": {"A": "a", "B": "b", "C": "c"},
            "label": "A",
            "response": rng.choice(("A", "B", "(A)", "Answer: C")),
        }

    return {"-r": rows(size, answer)}


def amber(size: int) -> Archive:
    """Answers to yes/no questions, their annotations and queries."""
    numbers = range(1, size + 1)
    kinds = ("attribute-state", "attribute-number", "attribute-action", "hallucination", "relation")
    kind = [f"discriminative-{each}" for each in kinds]
    truths = [{"id": n, "type": kind[n % 5], "truth": label(n)} for n in numbers]
    asked = [{"id": n, "image": f"{n // 6}.jpg", "query": f"Is it {n}?"} for n in numbers]
    answers = rows(size, lambda n, rng: {"id": n + 1, "response": rng.choice(("Yes", "No"))})
    return {"-r": answers, "-R": truths, "--questions": asked}


def binary_clips(size: int) -> Archive:
    """Questions of VidHalluc with two clips each, in two files."""
    rng = random.Random(size)
    ids = [[f"{n}_{clip}" for clip in "xy"] for n in range(size // 2)]
    asked = {
        str(n): [{"q": f"Is it {n}?", "a": dict(zip(clips, ("Yes", "No"), strict=True))}]
        for n, clips in enumerate(ids)
    }
    said = {
        str(n): [{"q": f"Is it {n}?", "a": {clip: rng.choice(YES_NO) for clip in clips}}]
        for n, clips in enumerate(ids)
    }
    return {"-r": said, "-R": asked}


def chosen_actions(size: int) -> Archive:
    """Clips of VidHalluc with four actions, two for each id."""
    rng = random.Random(size)
    texts = ("A", "B, C", "AC", "(D)", "a person is running", "running on a track")
    clips = {
        f"clip_{n}": {
            "Question": "Which actions are shown?",
            "Choices": {"A": "running", "B": "running on a track", "C": "skiing", "D": f"it {n}"},
            "Correct Answer": rng.choice(("A", "BC")),
            "Model Answer": rng.choice(texts),
        }
        for n in range(size)
    }
    names = list(clips)
    return {"-r": {n: {name: clips[name] for name in names[n : n + 2]} for n in range(0, size, 2)}}


def rated_answers(size: int) -> Archive:
    """Answers of MMHal-Bench, and the chat completions of their judge."""
    texts = ("It agrees.\n\nRating: 4", "**Rating:** 3", "Rating: 1, somewhat", "It is good.")
    answers = rows(
        size,
        lambda n, rng: {
            "question_type": ("attribute", "holistic")[n % 2],
            "image_id": f"image_{n}",
            "image_content": ["Cap", "Hydrant"],
            "question": f"What color is cap {n % 96}?",
            "gt_answer": "The cap is yellow.",
            "model_answer": f"It is {rng.choice(('red', 'yellow'))}.",
        },
    )
    said = rows(size, lambda _, rng: {"choices": [{"message": {"content": rng.choice(texts)}}]})
    return {"-r": answers, "--reviews": said}


def hallusion_bench(size: int) -> Archive:
    """Answers by set, figure and question: four questions about three figures of each set."""

    def answer(n: int, rng: random.Random) -> dict[str, object]:
        number, place = divmod(n, 12)
        figure, question = divmod(place, 4)
        return {
            "category": ("VS", "VD")[number % 2],
            "subcategory": ("chart", "map", "table", "illusion")[number % 4],
            "set_id": str(number),
            "figure_id": str(figure),
            "question_id": str(question),
            "visual_input": str(figure),
            "question": f"Is it {question} in {number}?",
            "gt_answer": str(n % 2),
            "gt_answer_details": f"It is {question}.",
            "model_prediction": rng.choice(YES_NO),
        }

    return {"-r": rows(size, answer)}


def event_hallusion(size: int) -> Archive:
    """Videos with three questions and a judged description each."""

    def video(n: int, rng: random.Random) -> dict[str, object]:
        asked = [
            {"question": f"Is it {k}?", "answer": ("Yes.", "No.")[k % 2], "prediction": said}
            for k, said in enumerate(rng.choices(YES_NO, k=3))
        ]
        event = {"unexpected": "A dog flies.", "caption": f"A dog runs {n}."}
        described = {"desc": f"A dog runs {n}.", "judgement": rng.choice(("Yes.", "No."))}
        return {"id": f"{n}", "split": "entire", "event_info": event, "qa": asked, **described}

    return {"-r": rows(size // 4, video)}


def changed_scenes(size: int) -> Archive:
    """Videos of VidHalluc that may change from one place to another."""
    rng = random.Random(size)
    places = ("a kitchen", "a street", "a room", "a field")
    similar = [
        {"model": one, "truth": other, "similarity": float(one == other)}
        for one in places
        for other in places
    ]

    def way() -> str:
        return f"From {rng.choice(places)} to {rng.choice(places)}."

    truths = {f"v_{n}": {"Scene change": "Yes", "Locations": way()} for n in range(size)}
    said = {name: f"Scene change: Yes, Locations: {way()}" for name in truths}
    return {"-r": said, "-R": truths, "--similarities": similar}


def judged_objects(size: int) -> Archive:
    """Captions of OpenCHAIR with four judged objects each."""
    texts = ("Yes.", "no", "Unsure", "I am not sure.")

    def caption(n: int, rng: random.Random) -> dict[str, object]:
        said = {"generated_caption": f"A dog {n}.", "gt_caption": f"A dog runs {n}."}
        objects = ["dog", "cat", "man", f"thing {n}"]
        return {**said, "generated_objs": objects, "judge_texts": rng.choices(texts, k=4)}

    return {"-r": rows(size // 4, caption)}


def repeated(declared: ClosedQuestions, size: int) -> Archive:
    """Whole examples of a benchmark, over and over, with other ids and drawn answers."""
    whole, record = numbered(declared)
    key = declared.keys.response[0]
    said = [record(n)[key] for n in range(whole)]
    return {"-r": rows(size - size % whole, lambda n, rng: {**record(n), key: rng.choice(said)})}


_WRITTEN: Mapping[str, tuple[str, Callable[[int], Archive]]] = {
    "pope": ("pope", pope),
    "pope-joined": ("pope", pope_joined),
    "pope-repope": ("pope --variant repope", pope),
    "video-hallucer": ("video-hallucer", video_hallucer),
    "vidhal-mcqa": ("vidhal-mcqa", lambda size: vidhal(size, lambda rng: rng.choice("ABC"))),
    "vidhal-ordering": (
        "vidhal-ordering",
        lambda size: vidhal(size, lambda rng: ", ".join(rng.sample("ABC", 3))),
    ),
    "infact": ("infact", infact),
    "amber": ("amber", amber),
    "hallusion-bench": ("hallusion-bench", hallusion_bench),
    "event-hallusion": ("event-hallusion", event_hallusion),
    "mmhal": ("mmhal", rated_answers),
    "vidhalluc-bqa": ("vidhalluc-bqa", binary_clips),
    "vidhalluc-mcq": ("vidhalluc-mcq", chosen_actions),
    "vidhalluc-sth": ("vidhalluc-sth", changed_scenes),
    "openchair": ("openchair", judged_objects),
}
_METRICS = {command.split()[0] for command, _ in _WRITTEN.values()}
FAMILIES: Mapping[str, tuple[str, Callable[[int], Archive]]] = {
    **_WRITTEN,
    **{
        declared.name: (declared.name, partial(repeated, declared))
        for declared in declared_examples()
        if declared.name not in _METRICS
    },
}
"""Name -> options of the command, and what makes the archive; from the example by default."""
