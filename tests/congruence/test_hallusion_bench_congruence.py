"""HallusionBench: embedded equals remote, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hallusion_bench_samples import record
from support.qa_samples import write_lines
from support.running import here

TEXTS = ["Yes", "No.", "", None, "It is unclear", "我不知道", "yes and no", "x" * 600_000, "no"]
RECORDS = [
    record(
        f"{category}_ocr_{n // 3}_{figure}_{n % 3}",
        (0, 1, 2, None)[(n + figure) % 4],
        model_prediction=TEXTS[(n + 2 * figure) % len(TEXTS)],
        gt_answer=str(n % 2),
        model="m",
    )
    for category in ("VD", "VS")
    for n in range(9)
    for figure in range(3)
]


@pytest.mark.parametrize("correctness", ["vlmevalkit", "strict", "given"])
@pytest.mark.parametrize("variant", ["published", "image-only"])
def test_files_are_equal(server: str, tmp_path: Path, variant: str, correctness: str) -> None:
    answers = write_lines(tmp_path / "answers", RECORDS)
    outputs = []
    for name, where in (("embedded", ()), ("remote", ("--server", server))):
        run = here(
            *("score", "hallusion-bench", "--responses", answers, "--group-by", "model"),
            *("--variant", variant, "--correctness", correctness, "--out", tmp_path / name),
            *("--format", "json,html", *where),
        )
        assert run.returncode == 3, run.stderr
        files = ("report.json", "items.jsonl", "report.html")
        outputs.append([(tmp_path / name / file).read_bytes() for file in files] + [run.stdout])
    assert outputs[0] == outputs[1]
