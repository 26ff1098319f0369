"""Questions and answers: embedded equals remote, byte for byte; messages keep everything."""

from __future__ import annotations

import json
from itertools import cycle, islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import amber_samples as amber
from support.event_hallusion_samples import VIDEOS as EVENT_VIDEOS
from support.example_archives import numbered
from support.keyed_archives import MADE
from support.qa_samples import infact_lines, infact_questions, write_lines
from support.running import here
from support.sizes import further

from hallujudge.judge_service.wire import convert as _convert
from hallujudge.metrics import (
    Answer,
    AnswersEvidence,
    AnswersItem,
    AnswerVerdict,
    Item,
    ItemResult,
    Outcome,
)
from hallujudge.metrics.answers.closed_questions import ClosedQuestions

AWKWARD = [
    "Yes",
    "No.",
    "",
    None,
    "not sure",
    "我不知道",
    "(B)",
    "B, A, C",
    "a ‘dog’ 🐕",
    "x" * 600_000,
]


def archives(folder: Path) -> dict[str, tuple[str | Path, ...]]:
    answers = [
        {
            "question_id": n,
            "image": n // 3,
            "text": text,
            "label": ("yes", "no")[n % 2],
            "model": "m",
        }
        for n, text in enumerate(AWKWARD * 3)
    ]
    orders = {
        f"v_{n}": text for n, text in enumerate(["B, A, C", "A, B", "C, C, A", "", None, "b"])
    }
    display = {video: {"B": "1", "C": "3", "A": "2"} for video in orders}
    videos = [
        {"video": video, "aspect": "ab"[n // 3 % 2], "captions": {"1": "x", "3": "z", "2": "y"}}
        for n, video in enumerate(orders)
    ]
    lines = infact_lines(infact_questions(60))
    lines[0]["response"] = "I cannot tell"
    for name, content in (("orders", orders), ("display", display), ("videos", videos)):
        (folder / name).write_text(json.dumps(content))
    captions = [
        {
            "clip": str(n),
            "mode": mode,
            "human_caption": "A man opens a wooden box. Then he takes out a small key.",
            "model_caption": text,
            "result_tuple": [
                [1, str(text), "a wooden box", "dynamic-action", "", "entailment"],
                [2, "Then he takes a ‘key’ 🐕.", "small key", "dynamic-action", "", "entailment"],
                [3, "A man opens a box.", "opens a box", "dynamic-action", "", "entailment"],
                [4, "He sings a song.", "", "summary", "", "contradiction"],
            ][: n % 5],
        }
        for n, text in enumerate(AWKWARD[:-1])
        for mode in ("hallucination", "omission")
    ]
    rated = [
        {
            "question_type": "attribute",
            "image_id": str(n),
            "question": "Which?",
            "gt_answer": "That one.",
            "model_answer": text,
            "review": ("Rating: 5", "**Rating:** 1", "", "Rating: 2. Rating: 3")[n % 4],
        }
        for n, text in enumerate(AWKWARD)
    ]
    opened = [
        {
            "question_id": n,
            "direct_answers": ["a cat", "cat", "café"],
            "response": text,
            "judgement": ("<NAN>", "A cat", "", "café.", "CAT")[n % 5],
        }
        for n, text in enumerate(AWKWARD)
    ]
    judged = [
        {
            "image_id": n,
            "gt_caption": "A dog.",
            "generated_objs": ["dog", "photo", "猫"][: n % 4],
            "judge_texts": [text or "", "no", "Yes."][: n % 4],
        }
        for n, text in enumerate(AWKWARD)
    ]
    given = ("--responses", folder / "orders", "--references", folder / "videos")
    (folder / "events").write_text(json.dumps(EVENT_VIDEOS))
    tables: dict[str, object] = {
        "nouns-file": amber.NOUNS,
        "questions": amber.QUESTIONS,
        "associations": amber.ASSOCIATIONS,
        "references": amber.ANNOTATIONS,
        "responses": amber.RESPONSES,
    }
    for name, table in tables.items():
        (folder / f"amber_{name}").write_text(json.dumps(table))
    (folder / "safe").write_text("\n".join(amber.SAFE))
    pairs = [(f"--{name}", folder / f"amber_{name}") for name in tables]
    return {
        "amber": (*(part for pair in pairs for part in pair), "--safe-words", folder / "safe"),
        "event-hallusion": ("--responses", folder / "events", "--group-by", "category"),
        "pope": ("--responses", write_lines(folder / "answers", answers), "--group-by", "model"),
        "vidhal-mcqa": (*given, "--options", folder / "display"),
        "vidhal-ordering": (*given, "--options", folder / "display"),
        "infact": ("--responses", write_lines(folder / "lines", lines)),
        "openchair": ("--responses", write_lines(folder / "judged", judged)),
        "mmhal": ("--responses", write_lines(folder / "rated", rated)),
        "argus": ("--responses", write_lines(folder / "captions", captions)),
        "vqa": ("--responses", write_lines(folder / "open", opened)),
        **{name: ("--responses", made_lines(folder, made)) for name, made in MADE.items()},
    }


def made_lines(folder: Path, declared: ClosedQuestions) -> Path:
    """Write whole examples with awkward responses."""
    size, record = numbered(declared)
    texts = islice(cycle(AWKWARD), size * -(-len(AWKWARD) // size))
    key = declared.keys.response[0]
    return write_lines(folder / declared.name, [{**record(n), key: x} for n, x in enumerate(texts)])


@pytest.mark.parametrize(
    ("metric", "variant"),
    [
        ("pope", "published"),
        ("pope", "strict"),
        ("vidhal-mcqa", "published"),
        ("vidhal-mcqa", "corrected"),
        ("vidhal-ordering", "published"),
        ("vidhal-ordering", "corrected"),
        ("infact", "paper"),
        ("amber", "published"),
        ("amber", "corrected"),
        ("event-hallusion", "published"),
        ("event-hallusion", "corrected"),
        ("vqa", "paper"),
        ("openchair", "published"),
        ("openchair", "corrected"),
        ("mmhal", "published"),
        ("mmhal", "corrected"),
        ("argus", "published"),
        ("argus", "corrected"),
        *((name, made.variants[0].name) for name, made in MADE.items()),
        *(
            further("test_files_are_equal", name, each.name)
            for name, made in MADE.items()
            for each in made.variants[1:]
        ),
    ],
)
def test_files_are_equal(server: str, tmp_path: Path, metric: str, variant: str) -> None:
    given_files = archives(tmp_path)[metric]
    outputs = []
    for name, where in (("embedded", ()), ("remote", ("--server", server))):
        run = here(
            *("score", metric, *given_files, "--variant", variant, "--confidence", "0.9"),
            *("--out", tmp_path / name, "--format", "json,html", *where),
        )
        assert run.returncode in {0, 3}, run.stderr
        files = ("report.json", "items.jsonl", "report.html")
        outputs.append([(tmp_path / name / file).read_bytes() for file in files] + [run.stdout])
    assert outputs[0] == outputs[1]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
head = {"id": texts, "group_id": texts, "fields": st.dictionaries(texts, texts, max_size=3)}
items = st.builds(
    AnswersItem,
    **head,
    answers=st.lists(
        st.builds(
            Answer,
            response=st.none() | texts,
            question=texts,
            label=texts,
            name=texts,
            options=st.dictionaries(texts, texts, max_size=3),
            fields=st.dictionaries(texts, texts, max_size=3),
        ),
        max_size=3,
    ).map(tuple),
)
evidence = st.builds(
    AnswersEvidence,
    answers=st.lists(
        st.builds(AnswerVerdict, texts, st.none() | texts, texts, st.none() | st.booleans(), texts),
        max_size=3,
    ).map(tuple),
)


@given(items)
def test_items_survive_the_wire(item: Item) -> None:
    assert _convert.item_from_proto(_convert.item_to_proto(item)) == item


@given(evidence)
def test_evidence_survives_the_wire(found: AnswersEvidence) -> None:
    result = ItemResult(id="1", group_id="g", outcome=Outcome.SCORED, evidence=found)
    assert _convert.result_from_proto(_convert.result_to_proto(result)) == result
