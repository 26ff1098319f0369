"""Notes that limit a number follow it into every table that shows it, in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.qa_samples import write_lines

from hallujudge.sdk import Client, GateLimits, compare, gate, leaderboard, paper_table
from hallujudge.sdk.analysis import analyze
from hallujudge.sdk.comparison import CompareOptions, leaderboards
from hallujudge.sdk.comparison.overview import score_all
from hallujudge.sdk.report.table_pages import PAGE_FORMATS, Shown

NOTE = "strict parses 3 of 12 answers (25.0%) otherwise"
QUICK = CompareOptions(replicates=100)


def scored(folder: Path, models: Mapping[str, tuple[str, ...]], **options: Any) -> Path:
    """Score twelve answers of each model, and return the folder of the overview."""
    (folder / "logs").mkdir()
    for model, said in models.items():
        rows = [
            {
                "question_id": number,
                "image": f"{number}.jpg",
                "question": "Is there a dog in the image?",
                "label": "no" if number % 2 else "yes",
                "answer": said[number % len(said)],
            }
            for number in range(12)
        ]
        write_lines(folder / "logs" / f"{model}.jsonl", rows)
    with Client.embedded() as client:
        score_all(folder / "logs", folder / "scores", client=client, options={"pope": options})
    return folder / "scores"


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of ``score all`` over two models, one of which writes a no in bold letters."""
    models = {"plain": ("Yes", "No", "Yes", "No"), "bold": ("Yes", "No", "Yes", "**No**")}
    return scored(tmp_path_factory.mktemp("notes"), models)


def overview(scores: Path) -> Shown:
    with Client.embedded() as client:
        return score_all(scores.parent / "logs", scores, client=client)


TABLES: Mapping[str, Callable[[Path], Shown]] = {
    "overview": overview,
    "compare": lambda at: compare(at / "plain" / "pope", at / "bold" / "pope", options=QUICK),
    "leaderboard": lambda at: leaderboard(
        at / "plain" / "pope",
        at / "bold" / "pope",
        options=CompareOptions(replicates=100, names=("plain", "bold")),
    ),
    "leaderboards": lambda at: leaderboards(at, options=QUICK),
    "table": lambda at: paper_table(at, options=QUICK),
    "gate": lambda at: gate(
        at / "bold" / "pope", limits=GateLimits(minimum={"accuracy": 0.1}), options=QUICK
    ),
}


@pytest.fixture(scope="module", params=TABLES)
def shown(scores: Path, request: pytest.FixtureRequest) -> Shown:
    return TABLES[request.param](scores)


def test_the_note_is_in_every_format(shown: Shown) -> None:
    for name, render in PAGE_FORMATS.items():
        text = " ".join(render(shown.page()).replace("\\", "").split())
        assert NOTE in text, name
    assert any(NOTE in text for text in texts_of(json.loads(shown.to_text())))


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value:
        if not isinstance(value, str):
            yield from texts_of(each) if isinstance(each, (str, dict, list)) else ()


def test_rows_of_a_csv_have_the_notes_of_their_own_run(scores: Path) -> None:
    text = PAGE_FORMATS["csv"](TABLES["leaderboards"](scores).page())
    rows = {row["run"]: row for row in csv.DictReader(io.StringIO(text))}
    assert NOTE in rows["bold"]["notes"]
    assert rows["plain"]["notes"].startswith("plain: ")
    assert NOTE not in rows["plain"]["notes"]


def test_an_analysis_has_the_notes_of_its_runs(scores: Path) -> None:
    notes = analyze(scores / "plain" / "pope", scores / "bold" / "pope").notes
    assert any(note.startswith("bold/pope: ") and NOTE in note for note in notes)


def test_rates_of_unparsed_answers_are_columns_where_they_differ(
    scores: Path, tmp_path: Path
) -> None:
    assert not any("unparsed" in key for key in TABLES["leaderboards"](scores).page().grids[0].keys)
    models = {"clear": ("Yes", "No"), "vague": ("Yes", "No", "Perhaps", "No")}
    folder = scored(tmp_path, models, variant="strict")
    options = CompareOptions(replicates=100, scores=("accuracy",))
    for table in (
        leaderboards(folder, options=QUICK),
        leaderboard(folder / "clear" / "pope", folder / "vague" / "pope", options=QUICK),
        paper_table(folder, options=options),
    ):
        grid = table.page().grids[0]
        place = [key.split()[-1] for key in grid.keys].index("unparsed_rate")
        assert sorted(map(float, (row[place] or 0 for row in grid.values))) == [0, 0.25]
        assert any("0.2500" in row for row in grid.rows)
