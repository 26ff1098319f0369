"""EventHallusion on the command line: both variants, and the page with its items."""

from __future__ import annotations

import json
from pathlib import Path

from support.event_hallusion_samples import VIDEOS
from support.messages import expected_message
from support.pages import Page
from support.qa_running import report_of, values_of
from support.running import here


def test_both_variants_and_the_page(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(VIDEOS))
    given = ("--responses", path, "--format", "json,html")
    for variant in ("published", "corrected"):
        run = here(
            "score", "event-hallusion", *given, "--variant", variant, "--out", tmp_path / variant
        )
        assert run.returncode == 3, run.stderr
        assert (
            expected_message("sdk.archives.event_hallusion:of-descriptions-have-no-judgement")
            in run.stderr
        )
    assert values_of(tmp_path / "published")["question_accuracy"] == 3 / 6
    assert values_of(tmp_path / "published")["description_accuracy"] == 1 / 5
    assert values_of(tmp_path / "corrected")["question_accuracy"] == 3 / 4
    assert values_of(tmp_path / "corrected")["description_accuracy"] == 1 / 2
    report = report_of(tmp_path / "corrected")
    assert set(report["groups"]["split"]) == {"entire", "interleave", "misleading"}
    assert report["coverage"]["reasons"] == {"ANSWER_UNPARSED": 2, "REFERENCE_MISSING": 1}
    page = Page((tmp_path / "published" / "report.html").read_text(encoding="utf-8"))
    assert "1 wrong, description wrong" in page.summaries()
