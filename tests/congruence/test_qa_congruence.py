"""Questions and answers: embedded equals remote, byte for byte; messages keep everything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import amber_samples as amber
from support.event_hallusion_samples import VIDEOS as EVENT_VIDEOS
from support.qa_samples import infact_lines, infact_questions, write_lines
from support.running import here

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
    shown = [
        {"img_id": f"{n}.jpg", "object_name": "cup", "gt": ("yes", "no")[n % 2], "response": text}
        for n, text in enumerate(AWKWARD * 2)
    ]
    kinds = ("ground_truth", "in_video", "out_video")
    triplets = [
        {
            "video_id": n // 9,
            "aspect": "ab"[n // 3 % 2],
            "caption_type": kinds[n % 3],
            "ref_answer": "No" if n % 3 else "Yes",
            "model_response": text,
        }
        for n, text in enumerate(AWKWARD * 2)
    ]
    heard = [
        {
            "sub_category": ("audio-language", "visual_dominance")[n % 2],
            "granularity": ("event-level", None)[n // 2 % 2],
            "audio_path": f"{n // 2}.wav",
            "question": f"Is there thing {n}?",
            "answer": ("yes", "no")[n % 2],
            "pred": text,
        }
        for n, text in enumerate(AWKWARD * 2)
    ]
    tasks = ("AV Hallucination (Video)", "AV Matching", "AV Captioning")
    matched = [
        {
            "video_id": n // 3,
            "task": tasks[n % 3],
            "text": f"Is it {n}?",
            "label": "A dog barks." if n % 3 == 2 else ("Yes", "No")[n % 2],
            "prediction": text,
        }
        for n, text in enumerate(AWKWARD * 2)
    ]
    marked = [
        {
            **{"id": n, "q_type": "desc", "q_relation": ("irrel", "normal")[n % 2]},
            **{"figure_path": n // 3, "question": "Which?", "ref_answer": "That one."},
            **{"response": text, "score": (0, 1, 7, "1", None)[n % 5]},
            "eval_resp": (None, "Score: 0.6", f"Score: {text}", "1")[n % 4],
        }
        for n, text in enumerate(AWKWARD)
    ]
    graded = [
        {
            **{"Index": n, "Question": "Is it?", "Answer": "No", "Causes": "c", "Aspects": "a"},
            **{"Form": "Binary-choice", "Video Path": n // 3, "Group_id": f"g{n // 3}"},
            **{"Model Answer": text, "Correctness": ("1", "0", "F", "1.", "")[n % 5]},
        }
        for n, text in enumerate(AWKWARD)
    ]
    pairs = [(f"--{name}", folder / f"amber_{name}") for name in tables]
    return {
        "amber": (*(part for pair in pairs for part in pair), "--safe-words", folder / "safe"),
        "event-hallusion": ("--responses", folder / "events", "--group-by", "category"),
        "dash-b": ("--responses", write_lines(folder / "shown", shown)),
        "elv-halluc": ("--responses", write_lines(folder / "triplets", triplets)),
        "pope": ("--responses", write_lines(folder / "answers", answers), "--group-by", "model"),
        "vidhal-mcqa": (*given, "--options", folder / "display"),
        "vidhal-ordering": (*given, "--options", folder / "display"),
        "infact": ("--responses", write_lines(folder / "lines", lines)),
        "openchair": ("--responses", write_lines(folder / "judged", judged)),
        "mmhal": ("--responses", write_lines(folder / "rated", rated)),
        "argus": ("--responses", write_lines(folder / "captions", captions)),
        "vqa": ("--responses", write_lines(folder / "open", opened)),
        "cmm": ("--responses", write_lines(folder / "heard", heard)),
        "avhbench": ("--responses", write_lines(folder / "matched", matched)),
        "charthal": ("--responses", write_lines(folder / "marked", marked)),
        "haven": ("--responses", write_lines(folder / "graded", graded)),
    }


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
        ("dash-b", "published"),
        ("dash-b", "corrected"),
        ("elv-halluc", "published"),
        ("elv-halluc", "corrected"),
        ("cmm", "published"),
        ("cmm", "corrected"),
        ("avhbench", "paper"),
        ("charthal", "published"),
        ("charthal", "evaluated"),
        ("charthal", "corrected"),
        ("haven", "paper"),
        ("haven", "corrected"),
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
