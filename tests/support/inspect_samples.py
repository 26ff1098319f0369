"""Layouts of Inspect AI's logs."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from support.archive_values import Question, Row

__all__ = ["ZstdZip", "write_inspect_eval", "write_inspect_json", "write_inspect_zstd"]


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


def write_inspect_json(folder: Path, questions: Sequence[Question]) -> Path:
    samples = [_inspect_sample(q, number) for number, q in enumerate(questions)]
    path = folder / "2025-01-02T03-04-05+00-00_pope_abc.json"
    path.write_text(json.dumps({**_inspect_header(), "samples": samples}, indent=2))
    return path


def write_inspect_zstd(folder: Path, questions: Sequence[Question]) -> Path:
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


def write_inspect_eval(folder: Path, questions: Sequence[Question]) -> Path:
    path = folder / "2025-01-02T03-04-05+00-00_pope_abc.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps(_inspect_header()))
        for number, q in enumerate(questions):
            sample = _inspect_sample(q, number)
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(_inspect_header()))
    return path
