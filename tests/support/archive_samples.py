"""Known answers, written in the layouts of other tools, with the keys that the tools write."""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "CAPTIONS",
    "CAPTION_LAYOUTS",
    "QUESTIONS",
    "QUESTION_LAYOUTS",
    "Caption",
    "Question",
    "json_lines",
    "packed",
    "write_lines",
    "write_table",
]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A yes/no question with its label and a model's answer."""

    id: int
    category: str
    image: str
    text: str
    label: str
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """A caption with the objects of its image."""

    image_id: int
    text: str | None
    objects: tuple[str, ...]


_ANSWERS = (
    ("yes", "Yes, there is a dog."),
    ("no", "no"),
    ("yes", "No."),
    ("no", "Yes"),
    ("no", "Ich weiß es nicht – 犬"),
    ("yes", "Failed to obtain answer via API."),
)
# As in POPE, the ids begin anew in each category.
QUESTIONS = tuple(
    Question(
        id=number,
        category=category,
        image=f"COCO_val2014_{number:012}.jpg",
        text=f"Is there a thing {category} {number} in the image?",
        label=label,
        answer=answer,
    )
    for category in ("random", "popular", "adversarial")
    for number, (label, answer) in enumerate(_ANSWERS, 1)
)
CAPTIONS = (
    Caption(image_id=42, text="A dog on a couch, with a cat.", objects=("dog", "couch")),
    Caption(image_id=7, text="Two\nlines about a cat.", objects=("cat",)),
    Caption(image_id=391895, text="A person – una persona – on a horse.", objects=("person",)),
)


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_lines(rows), encoding="utf-8")
    return path


def packed(path: Path, kind: str) -> Path:
    """Pack a file as ``gz`` or ``zst`` and return the new file."""
    data = path.read_bytes()
    if kind == "gz":
        data = gzip.compress(data)
    else:
        import zstandard

        data = zstandard.ZstdCompressor().compress(data)
    packed_path = path.with_name(f"{path.name}.{kind}")
    packed_path.write_bytes(data)
    return packed_path


# lmms-eval ----------------------------------------------------------------------------------------

_LATEST = "llava__v1.5"


def _pope_scores(question: Question) -> Row:
    prediction = (question.answer or "").lower().strip()
    score = {
        "question_id": str(question.id),
        "score": float(prediction == question.label),
        "prediction": prediction,
        "ground_truth": question.label,
    }
    names = ("pope_accuracy", "pope_precision", "pope_recall", "pope_f1_score", "pope_yes_ratio")
    return dict.fromkeys(names, score)


def _pope_doc(question: Question) -> Row:
    return {
        "id": str(question.id),
        "question_id": str(question.id),
        "question": question.text,
        "answer": question.label,
        "image_source": question.image,
        "category": question.category,
    }


def _chair_scores(caption: Caption) -> Row:
    score = {"answer": list(caption.objects), "pred": ["dog"], "image_id": caption.image_id}
    return dict.fromkeys(("coco_cap_chair_i", "coco_cap_chair_s", "coco_cap_chair_recall"), score)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    response: str | None
    target: str
    prompt: str
    doc: Row
    scores: Row


def _pope_samples(questions: Sequence[Question]) -> list[_Sample]:
    return [
        _Sample(
            response=q.answer,
            target=q.label,
            prompt=f"{q.text}\nAnswer the question using a single word or phrase.",
            doc=_pope_doc(q),
            scores=_pope_scores(q),
        )
        for q in questions
    ]


def _chair_samples(captions: Sequence[Caption]) -> list[_Sample]:
    return [
        _Sample(
            response=c.text,
            target="",
            prompt="Describe the image.",
            doc={"image_id": c.image_id},
            scores=_chair_scores(c),
        )
        for c in captions
    ]


def _hashes() -> Row:
    return {"doc_hash": "d", "prompt_hash": "p", "target_hash": "t"}


def _layout_a(samples: Sequence[_Sample]) -> Row:
    logs = [
        {
            "doc_id": number,
            "target": s.target,
            "doc": s.doc,
            "arguments": [[s.prompt, "{}"]],
            "resps": [[s.response]],
            "filtered_resps": [s.response],
            **s.scores,
        }
        for number, s in enumerate(samples)
    ]
    return {"args": {"model": "llava"}, "model_configs": {}, "logs": logs, "time": "0102_0304"}


def _layout_b1(samples: Sequence[_Sample]) -> list[Row]:
    return [
        {
            "doc_id": number,
            "doc": s.doc,
            "target": s.target,
            "arguments": {"gen_args_0": {"arg_0": s.prompt, "arg_1": {}}},
            "resps": [[s.response]],
            "filtered_resps": [s.response],
            "input": s.prompt,
            **_hashes(),
            **s.scores,
        }
        for number, s in enumerate(samples)
    ]


def _layout_b2(samples: Sequence[_Sample]) -> list[Row]:
    return [
        {
            "doc_id": number,
            "target": s.target,
            "filtered_resps": [s.response],
            "doc_hash": "d",
            **s.scores,
            "input": s.prompt,
        }
        for number, s in enumerate(samples)
    ]


def _layout_c(samples: Sequence[_Sample]) -> list[Row]:
    return [
        {
            "doc_id": number,
            "target": s.target,
            "filtered_resps": s.response,
            "token_counts": [{"output_tokens": 3}],
            "input_media": [{"type": "image"}],
            "input": s.prompt,
            **s.scores,
        }
        for number, s in enumerate(samples)
    ]


def _write_lmms(
    layout: str, task: str, make: Callable[..., list[_Sample]]
) -> Callable[[Path, Sequence[Any]], Path]:
    lines = {"A'": _layout_b1, "B1": _layout_b1, "B2": _layout_b2, "C": _layout_c}

    def write(folder: Path, known: Sequence[Any]) -> Path:
        samples = make(known)
        if layout == "A":
            path = folder / f"0102_0304_llava_model_args_abcdef/{task}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(_layout_a(samples), indent=4), encoding="utf-8")
            return path
        names = {"A'": f"samples_{task}_2024-09-09T10-00-00.123.jsonl"}
        name = names.get(layout, f"{_LATEST}/20250102_030405_samples_{task}.jsonl")
        path = write_lines(folder / name, lines[layout](samples))
        summary = {"results": {task: {"alias": task}}, "configs": {}, "versions": {}}
        path.with_name("20250102_030405_results.json").write_text(json.dumps(summary))
        return path

    return write


# Other tools --------------------------------------------------------------------------------------


def _write_harness(folder: Path, questions: Sequence[Question]) -> Path:
    """Two filters repeat every sample."""
    rows = [
        {
            "doc_id": number,
            "doc": _pope_doc(q),
            "target": q.label,
            "arguments": {"gen_args_0": {"arg_0": q.text, "arg_1": {"until": []}}},
            "resps": [[q.answer]],
            "filtered_resps": [q.answer if chosen == "none" else "[invalid]"],
            "filter": chosen,
            "metrics": ["exact_match"],
            **_hashes(),
            "exact_match": 0.0,
        }
        for number, q in enumerate(questions)
        for chosen in ("none", "strict-match")
    ]
    return write_lines(folder / "model/samples_pope_2025-01-02T03-04-05.678.jsonl", rows)


def _kit_rows(questions: Sequence[Question]) -> list[Row]:
    """Each image and question once, with the categories that it is asked in."""
    rows: dict[tuple[str, str], Row] = {}
    for q in questions:
        row = rows.get((q.image, q.text))
        if row is not None:
            row["category"] += f",{q.category}"
            continue
        rows[q.image, q.text] = {
            "index": len(rows),
            "question": q.text,
            "answer": q.label.capitalize(),
            "category": q.category,
            "image_path": q.image,
            "prediction": q.answer,
        }
    return list(rows.values())


def _write_kit(suffix: str) -> Callable[[Path, Sequence[Question]], Path]:
    def write(folder: Path, questions: Sequence[Question]) -> Path:
        rows = _kit_rows(questions)
        path = folder / f"model/T20250102-030405/model_POPE.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, rows)
        return path

    return write


def write_table(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows as the table that the path's suffix names."""
    import pandas as pd

    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows)
    if path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, ensure_ascii=False, indent=4), encoding="utf-8")
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


def _inspect_sample(q: Question, number: int) -> Row:
    content = [{"type": "text", "text": q.text}, {"type": "image", "image": q.image}]
    answer = {"role": "assistant", "content": q.answer, "source": "generate"}
    return {
        "id": f"{q.category}-{q.id}",
        "epoch": 1,
        "input": [{"role": "user", "content": content}],
        "target": q.label,
        "messages": [],
        "output": {
            "model": "mockllm/model",
            "choices": [{"message": answer, "stop_reason": "stop"}],
            "completion": q.answer or "",
        },
        "scores": {"match": {"value": "C", "answer": q.answer}},
        "metadata": {"category": q.category, "number": number},
    }


def _inspect_header() -> Row:
    return {"version": 2, "status": "success", "eval": {"task": "pope", "model": "mockllm/model"}}


def _write_inspect_json(folder: Path, questions: Sequence[Question]) -> Path:
    samples = [_inspect_sample(q, number) for number, q in enumerate(questions)]
    path = folder / "2025-01-02T03-04-05+00-00_pope_abc.json"
    path.write_text(json.dumps({**_inspect_header(), "samples": samples}, indent=2))
    return path


def _write_inspect_zstd(folder: Path, questions: Sequence[Question]) -> Path:
    """Write a log as releases since 2026 do, with a long question kept apart."""
    path = folder / "2026-07-02T03-04-05+00-00_pope_abc.eval"
    with ZstdZip(path) as archive:
        archive.add("_journal/start.json", json.dumps(_inspect_header()))
        for number, q in enumerate(questions):
            sample = _inspect_sample(q, number)
            sample["input"][0]["content"][0]["text"] = "attachment://abc"
            sample["attachments"] = {"abc": q.text}
            archive.add(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        archive.add("header.json", json.dumps(_inspect_header()))
    return path


class ZstdZip:
    """Writes a zip file whose members are packed with zstd (method 93)."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._entries: list[bytes] = []

    def __enter__(self) -> ZstdZip:
        return self

    def add(self, name: str, text: str) -> None:
        """Add a member."""
        import zstandard

        data, raw = text.encode(), name.encode()
        blob = zstandard.ZstdCompressor().compress(data)
        sizes = struct.pack("<LLL", zlib.crc32(data), len(blob), len(data))
        fixed = struct.pack("<HHHHH", 20, 0x800, 93, 0, 0x21) + sizes
        offset = self._file.tell()
        self._file.write(b"PK\x03\x04" + fixed + struct.pack("<HH", len(raw), 4) + raw)
        self._file.write(b"\xfe\xca\x00\x00" + blob)
        ends = struct.pack("<HHHHHLL", len(raw), 0, 0, 0, 0, 0, offset)
        self._entries.append(b"PK\x01\x02" + struct.pack("<H", 20) + fixed + ends + raw)

    def __exit__(self, *_: object) -> None:
        directory, offset = b"".join(self._entries), self._file.tell()
        count = len(self._entries)
        end = struct.pack("<HHHHLLH", 0, 0, count, count, len(directory), offset, 0)
        self._file.write(directory + b"PK\x05\x06" + end)
        self._file.close()


def _write_inspect_eval(folder: Path, questions: Sequence[Question]) -> Path:
    path = folder / "2025-01-02T03-04-05+00-00_pope_abc.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps(_inspect_header()))
        for number, q in enumerate(questions):
            sample = _inspect_sample(q, number)
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(_inspect_header()))
    return path


def _plain_rows(questions: Sequence[Question]) -> list[Row]:
    return [
        {
            "uid": f"{q.category}/{q.id}",
            "model_output": q.answer,
            "gt": q.label,
            "picture": q.image,
            "category": q.category,
        }
        for q in questions
    ]


def _write_plain(suffix: str) -> Callable[[Path, Sequence[Question]], Path]:
    def write(folder: Path, questions: Sequence[Question]) -> Path:
        path = folder / f"plain.{suffix}"
        if suffix == "jsonl":
            return write_lines(path, _plain_rows(questions))
        return write_table(path, _plain_rows(questions))

    return write


PLAIN_MAP = {"id": "uid", "response": "model_output", "label": "gt", "image": "picture"}
"""Common key -> key of the plain tables."""

QUESTION_LAYOUTS: dict[str, Callable[[Path, Sequence[Question]], Path]] = {
    **{
        f"lmms-eval {layout}": _write_lmms(layout, "pope", _pope_samples)
        for layout in ("A", "A'", "B1", "B2", "C")
    },
    "lm-evaluation-harness": _write_harness,
    **{f"VLMEvalKit {suffix}": _write_kit(suffix) for suffix in ("xlsx", "tsv", "json")},
    "Inspect AI json": _write_inspect_json,
    "Inspect AI eval": _write_inspect_eval,
    "Inspect AI eval zstd": _write_inspect_zstd,
    **{
        f"plain {suffix}": _write_plain(suffix)
        for suffix in ("jsonl", "json", "csv", "tsv", "xlsx", "parquet")
    },
}
"""Layout -> function that writes answers with their labels into a folder, and returns the file."""


def _sentences(captions: Sequence[Caption]) -> Row:
    entries = [
        {
            "image_id": c.image_id,
            "caption": c.text,
            "mscoco_hallucinated_words": [["cat", "cat"]],
            "mscoco_gt_words": list(c.objects),
            "mscoco_generated_words": ["dog"],
            "hallucination_idxs": [1],
            "words": ["dog"],
            "metrics": {"CHAIRs": 1, "CHAIRi": 0.5, "Recall": 1.0, "Len": 3},
        }
        for c in captions
    ]
    overall = {"CHAIRs": 0.5, "CHAIRi": 0.25, "Recall": 0.5, "Len": 0.1}
    return {"sentences": entries, "overall_metrics": overall}


def _write_json(name: str, make: Callable[[Sequence[Caption]], Any]) -> Callable[..., Path]:
    def write(folder: Path, captions: Sequence[Caption]) -> Path:
        path = folder / name
        path.write_text(json.dumps(make(captions), ensure_ascii=False), encoding="utf-8")
        return path

    return write


def _write_caption_lines(folder: Path, captions: Sequence[Caption]) -> Path:
    rows = [{"image_id": c.image_id, "caption": c.text} for c in captions]
    return write_lines(folder / "model_generated_captions.json", rows)


CAPTION_LAYOUTS: dict[str, tuple[bool, Callable[[Path, Sequence[Caption]], Path]]] = {
    **{
        f"lmms-eval {layout}": (True, _write_lmms(layout, "coco_cap_chair", _chair_samples))
        for layout in ("A", "A'", "B1", "B2", "C")
    },
    "CHAIR output": (True, _write_json("chair_results.json", _sentences)),
    "imgToEval": (
        False,
        _write_json(
            "model_chair.json",
            lambda captions: {
                "overall": {"Bleu_1": 0.5, "CIDEr": 0.1},
                "imgToEval": {
                    str(c.image_id): {"image_id": c.image_id, "caption": c.text, "CIDEr": 0.1}
                    for c in captions
                },
            },
        ),
    ),
    "caption list": (
        False,
        _write_json(
            "captions.json",
            lambda captions: [{"image_id": c.image_id, "caption": c.text} for c in captions],
        ),
    ),
    "caption lines": (False, _write_caption_lines),
}
"""Layout -> whether it holds the objects of the images, and the function that writes it."""
