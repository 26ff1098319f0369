"""A tree of archives becomes run folders and one overview; a bad file does not stop the rest."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from support.archive_samples import CAPTION_LAYOUTS, CAPTIONS, QUESTION_LAYOUTS, QUESTIONS
from support.messages import expected_message
from support.qa_samples import write_lines

from hallujudge.sdk import Client, RunReport
from hallujudge.sdk.cli import main
from hallujudge.sdk.comparison import CompareOptions, leaderboard, leaderboards, paper_table
from hallujudge.sdk.comparison.overview import Overview, score_all
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

SCORED = tuple(q for q in QUESTIONS if q.answer and not q.answer.startswith("Failed"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two models' logs of lmms-eval, a table of VLMEvalKit, and files that are not archives."""
    logs = tmp_path / "logs"
    for model in ("llava", "qwen"):
        for task, layouts, known in (
            ("pope", QUESTION_LAYOUTS, SCORED),
            ("chair", {name: write for name, (_, write) in CAPTION_LAYOUTS.items()}, CAPTIONS),
        ):
            folder = tmp_path / "made" / model / task
            path = layouts["lmms-eval C"](folder, known)  # type: ignore[arg-type]  # of their kinds
            (logs / model).mkdir(parents=True, exist_ok=True)
            path.rename(logs / model / path.name)
            path.with_name("20250102_030405_results.json").rename(logs / model / f"{task}_r.json")
    QUESTION_LAYOUTS["VLMEvalKit xlsx"](logs / "kit", SCORED)
    (logs / "notes.md").write_text("# Notes")
    return logs


def overview_of(folder: str | Path, out: Path, **more: Any) -> Overview:
    with Client.embedded() as client:
        return score_all(folder, out, client=client, **more)


def asked(*answers: str | None) -> list[dict[str, Any]]:
    """Questions with a label and an answer, alternately yes and no."""
    return [
        {
            "question_id": number,
            "image": f"{number}.jpg",
            "question": "Is there a dog in the image?",
            "label": "no" if number % 2 else "yes",
            "answer": text,
        }
        for number, text in enumerate(answers)
    ]


def test_every_run_is_scored_like_its_command(tree: Path, tmp_path: Path) -> None:
    overview = overview_of(tree, tmp_path / "out")
    assert overview.complete
    assert [(run.model, run.name) for run in overview.runs] == [
        ("kit/model", "pope"),
        ("llava", "chair"),
        ("llava", "pope"),
        ("qwen", "chair"),
        ("qwen", "pope"),
    ]
    assert len(overview.beside) == 5, "the summaries and notes.md"
    for run in overview.runs:
        with Client.embedded() as client:
            direct = client.score(run.report.metric, responses=run.archive)
        assert run.report.scores == direct.scores
        assert (run.folder / "report.json").exists()
        assert (run.folder / "items.jsonl").exists()


def test_the_overview_is_one_table_in_every_format(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    overview = overview_of(tree, out)
    with (out / "overview.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["model"] for row in rows] == ["kit/model", "llava", "qwen"]
    assert rows[0]["chair chair_i"] == ""
    for row, model in zip(rows[1:], ("llava", "qwen"), strict=True):
        (run,) = [r for r in overview.runs if (r.model, r.name) == (model, "chair")]
        assert float(row["chair chair_i"]) == run.report.scores["chair_i"].value
    for name, said in (
        ("overview.md", "| llava |"),
        ("overview.tex", r"\toprule"),
        ("overview.html", '<th scope="row">qwen</th>'),
    ):
        assert said in (out / name).read_text()
    found = json.loads((out / "overview.json").read_text())
    assert [run["model"] for run in found["runs"]] == [run.model for run in overview.runs]
    assert {run["items"] for run in found["runs"]} == {len(SCORED), len(CAPTIONS)}


def test_what_is_not_scored_is_listed_with_a_reason(tree: Path, tmp_path: Path) -> None:
    (tree / "cut.jsonl").write_text('{"doc_id": 0, "target": "yes", "filtered_resps": ["y"]}\n{')
    (tree / "model.pkl").write_bytes(b"\x80\x04")
    CAPTION_LAYOUTS["caption list"][1](tree, CAPTIONS)
    (tree / "mine.json").write_text('[{"uid": 1, "gt": "yes", "said_output": "Yes"}]')
    overview = overview_of(tree, tmp_path / "out")
    assert len(overview.runs) == 5
    assert not overview.complete
    reasons = {Path(entry.archive).name: entry for entry in overview.left_out}
    assert set(reasons) == {"cut.jsonl", "model.pkl", "captions.json", "mine.json"}
    assert (
        expected_message("sdk.archives.json_files:line-the-file-ends-in-the-middle")
        in reasons["cut.jsonl"].reason
    )
    assert "never opened" in reasons["model.pkl"].reason
    assert "--references chair=FILE" in reasons["captions.json"].reason
    assert "--map response=said_output" in reasons["mine.json"].command
    page = (tmp_path / "out" / "overview.md").read_text()
    assert "captions.json" in page
    # Nothing of a reason or a command is cut.
    assert expected_message("sdk.archives.json_files:the-file-ends-in-the-middle-of") in page
    mine = reasons["mine.json"]
    told = f"not scored: {mine.archive}: {mine.reason}. Command: `{mine.command}`"
    assert told in overview.narrow_page().notes


def test_companions_of_a_table_do_not_count_as_not_scored(tmp_path: Path) -> None:
    path = QUESTION_LAYOUTS["VLMEvalKit json"](tmp_path / "logs", SCORED)
    path.with_name(f"{path.stem}_PREV.pkl").write_bytes(b"\x80\x04")
    path.with_name("status.json").write_text('{"POPE": {"infer": "done"}, "time": 3}')
    overview = overview_of(tmp_path / "logs", tmp_path / "out")
    assert (len(overview.runs), overview.left_out) == (1, ())
    assert [entry.reason for entry in overview.beside] == [
        "a pickle of VLMEvalKit, which repeats a table",
        "one object without an id and a response",
    ]
    notes = "\n".join(overview.page().notes)
    assert all(entry.archive in notes for entry in overview.beside)
    path.with_name("model_MME.pkl").write_bytes(b"\x80\x04")
    (left,) = overview_of(tmp_path / "logs", tmp_path / "out").left_out
    assert left.archive.endswith("model_MME.pkl")


def test_a_folder_of_summaries_only_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "results.json").write_text('{"results": {"a": {}}, "versions": {}}')
    (left,) = overview_of(tmp_path / "logs", tmp_path / "out").left_out
    assert expected_message("sdk.archives.layouts.harnesses:give-its-sample-files") in left.reason


def test_references_may_be_given(tree: Path, tmp_path: Path) -> None:
    CAPTION_LAYOUTS["caption list"][1](tree, CAPTIONS)
    objects = {str(c.image_id): list(c.objects) for c in CAPTIONS}
    overview = overview_of(tree, tmp_path / "out", references={"chair": objects})
    assert not overview.left_out
    assert ("captions", "chair") in {(run.model, run.name) for run in overview.runs}


def test_several_files_of_a_metric_are_named_apart(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for task in ("pope_adv", "pope_pop"):
        path = QUESTION_LAYOUTS["lmms-eval C"](tmp_path / task, SCORED)
        logs.mkdir(exist_ok=True)
        path.rename(logs / f"2025_samples_{task}.jsonl")
    for suffix in ("json", "tsv"):
        QUESTION_LAYOUTS[f"VLMEvalKit {suffix}"](logs, SCORED)
    overview = overview_of(logs, tmp_path / "out", runs="all")
    found = [(run.model, run.name) for run in overview.runs]
    assert len(set(found)) == len(found) == 4
    assert {name for _, name in found} >= {"pope POPE", "pope POPE 2"}


def test_one_bad_run_does_not_cost_the_overview_of_the_others(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    for model in ("good", "torn", "odd"):
        write_lines(logs / f"{model}.jsonl", asked("Yes", None))
    (torn,) = (r for r in overview_of(logs, out).runs if "torn" in r.archive)
    items = torn.folder / "items.jsonl"
    items.write_text(items.read_text().replace('"statistics":{"', '"statistics":{"no ', 1))
    with Client.embedded() as client, pytest.MonkeyPatch.context() as patch:
        score = client.score

        def failing(*args: Any, **more: Any) -> RunReport:
            if "odd" in str(more["responses"]):
                raise ValueError("a defect")
            return score(*args, **more)

        patch.setattr(client, "score", failing)
        overview = score_all(logs, out, client=client)
    assert [run.model for run in overview.runs] == ["good"]
    reasons = {Path(each.archive).stem: each.reason for each in overview.left_out}
    assert "not a line of items.jsonl" in reasons["torn"]
    assert "ValueError('a defect')" in reasons["odd"]
    assert "not a line of items.jsonl" in (out / "overview.md").read_text()


@pytest.fixture
def reruns(tmp_path: Path) -> Path:
    """Two whole runs of one model, a smoke run after them, and a run of another model."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for model, time, count in (
        ("llava", "20250101_090000", 12),
        ("llava", "20250301_090000", 12),
        ("llava", "20250302_090000", 2),
        ("qwen", "20250201_090000", 12),
    ):
        (logs / model).mkdir(exist_ok=True)
        rows = asked(*["Yes" if time < "202502" else "No"] * count)
        write_lines(logs / model / f"{time}_samples_pope.jsonl", rows)
    return logs


@pytest.mark.parametrize(
    ("runs", "scored"),
    [("newest", ["20250301"]), ("largest", ["20250301"]), ("all", ["20250101", "20250301"])],
)
def test_of_several_runs_of_a_task_one_is_in_the_table(
    reruns: Path, tmp_path: Path, runs: Any, scored: list[str]
) -> None:
    overview = overview_of(reruns, tmp_path / "out", runs=runs)
    sources = [Path(r.archive).name[:8] for r in overview.runs if r.model == "llava"]
    assert sorted(sources)[: len(scored)] == scored
    told = [note for note in overview.page().notes if note.startswith("not in the table: ")]
    if runs == "all":
        assert (len(overview.runs), told) == (4, [])
        return
    assert {run.name for run in overview.runs} == {"pope"}
    assert len(overview.runs) == 2
    assert overview.complete
    smoke, _ = sorted(overview.other_runs, key=lambda run: run.archive, reverse=True)
    assert "20250302" in smoke.archive
    assert "another run of llava, pope, with 2 records" in smoke.reason
    assert len(told) == 2
    stored = json.loads((tmp_path / "out" / "overview.json").read_text())
    assert len(stored["other_runs"]) == 2


def test_files_with_other_questions_are_no_reruns(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "llava"
    logs.mkdir(parents=True)
    for number, time in enumerate(("20250101_090000", "20250301_090000")):
        shard = [{**row, "question_id": row["question_id"] + 4 * number} for row in asked(*"abcd")]
        write_lines(logs / f"{time}_samples_pope.jsonl", shard)
    assert len(overview_of(tmp_path / "logs", tmp_path / "out").runs) == 2


def test_models_are_renamed_into_one_row(tree: Path, tmp_path: Path) -> None:
    names = {"kit/model": "llava", "qwen": "Qwen VL"}
    (tree / "llava" / next((tree / "llava").glob("*pope*.jsonl")).name).unlink()
    overview = overview_of(tree, tmp_path / "out", model_names=names)
    grid = overview.page().grids[0]
    assert [row[0] for row in grid.rows] == ["Qwen VL", "llava"]
    assert "–" not in grid.rows[1], "the model's answers and captions are in one row"
    with pytest.raises(InvalidInputError, match=r"no run is of the model 'gpt'.*kit/model, llava"):
        overview_of(tree, tmp_path / "out", model_names={"gpt": "GPT"})


def test_models_get_other_names_in_leaderboards_and_tables(reruns: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    overview_of(reruns, folder)
    options = CompareOptions(replicates=100, model_names={"llava": "LLaVA"})
    runs = [folder / "llava" / "pope", folder / "qwen" / "pope"]
    named = replace(options, names=("llava", "qwen"))
    for table in (
        leaderboards(folder, options=options),
        leaderboard(*runs, options=named),
        paper_table(folder, options=options),
        paper_table(*runs, options=named),
    ):
        grid = table.page().grids[0]
        place = next(at for at, key in enumerate(grid.keys) if key in ("run", "model"))
        assert {row[place] for row in grid.values} == {"LLaVA", "qwen"}
    both = replace(options, model_names={"llava": "qwen"})
    with pytest.raises(InvalidInputError, match="two runs of pope get the name 'qwen'"):
        leaderboards(folder, options=both)
    with pytest.raises(InvalidInputError, match="no run is of the model 'gpt'"):
        leaderboards(folder, options=replace(options, model_names={"gpt": "GPT"}))


def test_results_are_not_written_among_the_archives(tree: Path, tmp_path: Path) -> None:
    for out in (tree, tmp_path):
        with pytest.raises(InvalidInputError, match="another folder for the results"):
            overview_of(tree, out)
    assert not (tree / "overview.json").exists()


def test_a_missing_file_is_refused_before_anything_is_scored(tree: Path, tmp_path: Path) -> None:
    for given in (
        {"references": {"pope": [str(tmp_path / "no.json")]}},
        {"inputs": {"mmhal": {"reviews": str(tmp_path / "no.json")}}},
    ):
        with pytest.raises(InvalidInputError, match=r"no\.json: no such file"):
            overview_of(tree, tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_given_references_do_not_replace_labels_of_an_archive(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    rows = asked("Yes", "No")
    write_lines(logs / "own.jsonl", rows)
    bare = [{"question_id": row["question_id"], "text": row["answer"]} for row in rows]
    write_lines(logs / "bare.jsonl", bare)
    turned = [{**row, "label": "no" if row["label"] == "yes" else "yes"} for row in rows]
    labels = [
        {key: row[key] for key in ("question_id", "image", "question", "label")} for row in turned
    ]
    file = write_lines(tmp_path / "labels.jsonl", labels)
    overview = overview_of(logs, tmp_path / "out", references={"pope": [str(file)]})
    found = {run.model: run.report.scores["accuracy"].value for run in overview.runs}
    assert found == {"own": 1.0, "bare": 0.0}, overview.left_out


def test_runs_of_different_sizes_are_noted(tree: Path, tmp_path: Path) -> None:
    before = overview_of(tree, tmp_path / "out").narrow_page().notes
    assert all("Intervals are unreliable" in note for note in before)
    QUESTION_LAYOUTS["VLMEvalKit json"](tree / "short", SCORED[:5])
    (note, *_) = overview_of(tree, tmp_path / "out").narrow_page().notes
    assert (
        expected_message(
            "sdk.comparison.overview:pope-runs-have-different-numbers-of-items", len(SCORED)
        )
        in note
    )


def test_an_overview_within_its_folder_is_not_read_again(tree: Path) -> None:
    first = overview_of(tree, tree / "out")
    again = overview_of(tree, tree / "out")
    assert first.to_json() == again.to_json()


def test_a_folder_must_be_given(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="not a folder"):
        overview_of(tree / "notes.md", tmp_path / "out")


def test_the_command(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["score", "all", str(tree), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert (
        expected_message("sdk.archives.archive_files:runs-of-models-scored-archives-not-scored")
        in said.out
    )
    assert f"scored llava, pope: {len(SCORED)} items" in said.err
    failed = [replace(q, answer="Failed to obtain answer via API.") for q in SCORED[:1]]
    QUESTION_LAYOUTS["VLMEvalKit json"](tree / "failing", failed)
    assert main(["score", "all", str(tree), "-o", str(out), "-f", "markdown"]) == 3
    assert "failing/model" in capsys.readouterr().out


def test_the_command_chooses_and_renames_runs(
    reruns: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    renamed = ("--model-name", "llava=LLaVA 1.5")
    assert main(["score", "all", str(reruns), "-o", str(out), "--runs", "largest", *renamed]) == 0
    said = capsys.readouterr()
    assert "scored LLaVA 1.5, pope: 12 items" in said.err
    assert "not in the table: " in " ".join(said.out.split())
    assert main(["leaderboard", str(out), "--model-name", "qwen=Qwen", "-f", "csv"]) == 0
    assert {row["run"] for row in csv.DictReader(capsys.readouterr().out.splitlines())} == {
        "LLaVA 1.5",
        "Qwen",
    }
    for wrong, told in (
        (("--runs", "oldest"), "choose from newest, largest, all"),
        (("--model-name", "llava"), "an equals sign"),
        (("--references", "pope=no.json"), "pope=no.json: no such file"),
    ):
        assert main(["score", "all", str(reruns), "-o", str(out), *wrong]) == 2
        assert told in " ".join(capsys.readouterr().err.split())


class Recording:
    """A client that notes how many processes score, and scores nothing."""

    def __init__(self) -> None:
        self.workers: list[int] = []

    def score(self, metric: str, *, workers: int, **_: object) -> None:
        self.workers.append(workers)
        raise ArchiveError(f"{metric} is not scored")


def test_runs_are_spread_over_processes(tree: Path, tmp_path: Path) -> None:
    client = Recording()
    score_all(tree, tmp_path / "out", client=client, workers=2)  # type: ignore[arg-type]  # a stub
    assert client.workers == [2] * 5


def test_the_command_passes_workers_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {}

    def scored(*_: object, **more: object) -> Overview:
        given.update(more)
        return Overview(runs=(), left_out=())

    monkeypatch.setattr("hallujudge.sdk.comparison.overview.score_all", scored)
    command = ["score", "all", str(tmp_path), "-o", str(tmp_path / "out"), "--workers", "2"]
    assert main(command) == 1
    assert given["workers"] == 2
    assert main([*command, "--server", "a:1"]) == 2
    assert (
        expected_message("sdk.cli.archive_commands:workers-the-server-scores")
        in capsys.readouterr().err
    )


def test_the_command_says_when_nothing_was_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "model.pkl").write_bytes(b"\x80\x04")
    command = ["score", "all", str(tmp_path / "logs"), "-o", str(tmp_path / "out")]
    assert main(command) == 1
    assert main([*command, "-R", "nothing=x.json"]) == 2
    assert (
        expected_message("sdk.cli.archive_commands:write-metric-an-equals-sign-and-file")
        in capsys.readouterr().err
    )
    assert main([*command, "-f", "yaml"]) == 2


def test_a_tree_behind_a_url_is_scored_like_a_folder(
    tree: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    files = fsspec.filesystem("memory")
    request.addfinalizer(lambda: files.rm("/tree", recursive=True))
    for path in tree.rglob("*"):
        if path.is_file():
            files.pipe(f"/tree/{path.relative_to(tree).as_posix()}", path.read_bytes())
    files.pipe("/tree/bad/pope.jsonl", b'{"question_id": 1, "text": "yes", "label": "yes"}\n{')
    local = overview_of(tree, tmp_path / "local")
    remote = overview_of("memory://tree", tmp_path / "remote")
    assert [(run.model, run.name) for run in remote.runs] == [
        (run.model, run.name) for run in local.runs
    ]
    for here, there in zip(local.runs, remote.runs, strict=True):
        assert there.report.scores == here.report.scores
        assert there.archive == f"memory:///tree/{Path(here.archive).relative_to(tree).as_posix()}"
    assert [entry.archive for entry in remote.left_out] == ["memory:///tree/bad/pope.jsonl"]
    assert remote.left_out[0].reason.startswith("memory:///tree/bad/pope.jsonl")


def test_the_url_of_a_file_is_not_a_folder(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    files = fsspec.filesystem("memory")
    request.addfinalizer(lambda: files.rm("/one", recursive=True))
    files.pipe("/one/answers.jsonl", b"{}\n")
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.comparison.overview_plan:memory-one-answersjsonl-not-folder-the"
        ),
    ):
        overview_of("memory://one/answers.jsonl", tmp_path)
