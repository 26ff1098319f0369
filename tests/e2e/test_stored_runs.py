"""Complete runs: printed in other formats, merged, and scored by another variant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.messages import expected_message
from support.pages import Page
from support.running import here
from support.tri_he_samples import FALSE, TRUE, answer, score

from hallujudge.sdk.errors import OutputError
from hallujudge.sdk.runs.manifest import partial
from hallujudge.sdk.runs.stored_runs import read_run

BEGIN = {
    "json": '{\n "schema": "hallujudge.report/1"',
    "markdown": "### chair (published)\n",
    "csv": "group_by,group,score,value,",
    "latex": "% Needs \\usepackage{booktabs,threeparttable}.\n",
}
"""Format -> how its text begins."""
CORRECTED = ("--variant", "corrected")


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    rows = [{"image_id": n, "caption": "A dog and no cat."} for n in range(5)]
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "objects.json").write_text(json.dumps({str(n): ["dog"] for n in range(5)}))
    return tmp_path


def chair(folder: Path, name: str, *more: str) -> Path:
    given = ("-r", folder / "captions.jsonl", "-R", folder / "objects.json", "-o", folder / name)
    run = here("score", "chair", *given, *more)
    assert run.returncode == 0, run.stderr
    return folder / name


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Returns the content of all files below a folder, and when they were written."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in files
    }


def test_a_run_is_printed_in_any_format(captions: Path) -> None:
    run = chair(captions, "run", "-f", "html")
    page = Page((run / "report.html").read_text(encoding="utf-8"))
    (run / "report.html").unlink()
    for name, begin in BEGIN.items():
        printed = here("report", run, "--format", name)
        assert printed.stdout.startswith(begin)
        scored = here(
            *("score", "chair", "-r", captions / "captions.jsonl"),
            *("-R", captions / "objects.json", "-o", captions / "again", "-f", name),
        )
        assert printed.stdout == scored.stdout
    assert here("report", run, "-f", "html").returncode == 0
    again = Page((run / "report.html").read_text(encoding="utf-8"))
    assert (again.head, again.columns, again.items()) == (page.head, page.columns, page.items())
    table = here("report", run, "-f", "parquet")
    assert (table.returncode, table.stderr) == (0, f"written to {run / 'items.parquet'}\n")
    with pytest.raises(
        OutputError,
        match=expected_message("sdk.runs.folder:reportjson-is-not-folder-give-another-path"),
    ):
        read_run(run).items_to_parquet(run / "report.json" / "items.parquet")
    refused = here("report", run, "-f", "pdf")
    assert refused.returncode == 2
    assert "choose from table, json" in refused.stderr


ODD: tuple[tuple[str, tuple[str | int, ...], str, str], ...] = (
    ("report.json", ("scores", "chair_i", "value"), "NaN", "report"),
    ("report.json", ("coverage", "items"), "-5", "leaderboard"),
    ("items.jsonl", ("statistics", "mentioned"), "-1", "leaderboard"),
    ("items.jsonl", ("statistics", "mentioned"), "Infinity", "leaderboard"),
    ("items.jsonl", ("statistics", "hallucinated"), "1000000000", "leaderboard"),
    ("items.jsonl", ("statistics", "hallucinated"), "1000000000", "table"),
    ("items.jsonl", ("statistics",), "{}", "table"),
    ("items.jsonl", ("outcome",), "[]", "analyze"),
    ("items.jsonl", ("outcome",), "{}", "compare"),
    ("items.jsonl", ("evidence", "mentioned_spans", 0, 0), "-Infinity", "label plan"),
    ("manifest.json", ("inputs", "responses"), '"x"', "rescore"),
    ("manifest.json", ("settings", "group_by"), "5", "merge"),
    ("manifest.json", ("items",), "-5", "merge"),
    ("manifest.json", ("run", "metric"), "{}", "rescore"),
    ("manifest.json", ("run", "graph"), "-1", "rescore"),
    ("manifest.json", ("run", "options"), "1e308", "rescore"),
    ("manifest.json", ("run", "confidence"), "NaN", "rescore"),
    ("manifest.json", ("run", "responses"), "null", "rescore"),
)
"""File, place, what stands there, and a command that reads it."""


@pytest.mark.parametrize(("file", "place", "odd", "command"), ODD)
def test_odd_values_in_stored_files_are_named(
    captions: Path, file: str, place: tuple[str | int, ...], odd: str, command: str
) -> None:
    runs = chair(captions, "a"), chair(captions, "b")
    more = {
        "analyze": (runs[0],),
        "compare": runs,
        "label plan": (runs[0], "-n", "2"),
        "leaderboard": runs,
        "merge": (*runs, "-o", captions / "merged"),
        "report": (runs[0],),
        "rescore": (runs[0], "--variant", "corrected", "-o", captions / "corrected"),
        "table": runs,
    }
    path = runs[0] / file
    first, *others = path.read_text().splitlines() if file == "items.jsonl" else [path.read_text()]
    held = value = json.loads(first)
    for key in place[:-1]:
        held = held[key]
    held[place[-1]] = "odd"
    path.write_text("\n".join([json.dumps(value).replace('"odd"', odd), *others]))
    done = here(*command.split(), *more[command])
    assert done.returncode in (1, 2), done.stdout
    assert done.stderr.startswith(f"error: {path}"), done.stderr
    assert done.stderr.count("\n") == 1


def test_formats_are_printed_in_the_order_given(captions: Path) -> None:
    run = chair(captions, "run")
    alone = {name: here("report", run, "--format", name).stdout for name in ("table", *BEGIN)}
    alone["table"] += f"written to {run}\n"
    for names in (("csv", "latex", "markdown", "json"), ("json", "table"), ("table", "csv")):
        given = ("-r", captions / "captions.jsonl", "-R", captions / "objects.json", "-o", run)
        printed = here("score", "chair", *given, "--overwrite", "--format", ",".join(names))
        assert printed.stdout == "".join(alone[name] for name in names)


def test_shards_are_merged(captions: Path) -> None:
    run = chair(captions, "run")
    merged = here("merge", run, "-o", captions / "merged", "--html")
    assert merged.returncode == 0, merged.stderr
    for name in ("items.jsonl", "report.json"):
        assert (captions / "merged" / name).read_bytes() == (run / name).read_bytes()
    assert (captions / "merged" / "report.html").exists()


def test_a_run_is_scored_by_another_variant(captions: Path) -> None:
    run = chair(captions, "run")
    direct = chair(captions, "direct", "--variant", "corrected")
    other = here("rescore", run, "--variant", "corrected", "-o", captions / "other")
    assert other.returncode == 0, other.stderr
    for name in ("items.jsonl", "report.json"):
        assert (captions / "other" / name).read_bytes() == (direct / name).read_bytes()
    refused = here("rescore", run, "--variant", "corrected", "-o", run)
    assert refused.returncode == 2
    assert expected_message("sdk.derived_runs:holds-the-run-itself") in refused.stderr


def test_merged_runs_are_scored_again_one_by_one(captions: Path) -> None:
    lines = (captions / "captions.jsonl").read_text().splitlines(keepends=True)
    for name, part in (("first", lines[:2]), ("second", lines[2:])):
        (captions / f"{name}.jsonl").write_text("".join(part))
        given = ("-r", captions / f"{name}.jsonl", "-R", captions / "objects.json")
        assert here("score", "chair", *given, "-o", captions / name).returncode == 0
        again = here("rescore", captions / name, "-o", captions / f"{name}-2", *CORRECTED)
        assert again.returncode == 0, again.stderr
    for suffix in ("", "-2"):
        shards = (captions / f"first{suffix}", captions / f"second{suffix}")
        assert here("merge", *shards, "-o", captions / f"merged{suffix}").returncode == 0
    refused = here("rescore", captions / "merged", "-o", captions / "other", *CORRECTED)
    assert refused.returncode == 2
    assert (
        expected_message("sdk.derived_runs:merged-was-merged-from-runs-rescore-each")
        in refused.stderr
    )
    direct = chair(captions, "direct", *CORRECTED)
    for name in ("items.jsonl", "report.json"):
        assert (captions / "merged-2" / name).read_bytes() == (direct / name).read_bytes()


def test_changed_inputs_are_not_scored_again(captions: Path) -> None:
    run = chair(captions, "run")
    with (captions / "captions.jsonl").open("a") as stream:
        stream.write("\n")
    rescore = ("rescore", run, "--variant", "corrected", "-o", captions / "other")
    changed = here(*rescore)
    assert changed.returncode == 2
    assert (
        expected_message("sdk.derived_runs:the-responses-have-changed-since-the-run")
        in changed.stderr
    )
    (captions / "captions.jsonl").unlink()
    gone = here(*rescore)
    assert gone.returncode == 2
    assert expected_message("sdk.derived_runs:the-responses-of-the-run-are-gone") in gone.stderr


def test_a_run_over_a_pattern_is_scored_again(captions: Path) -> None:
    for number, line in enumerate((captions / "captions.jsonl").read_text().splitlines()):
        (captions / f"part-{number}.jsonl").write_text(f"{line}\n")
    pattern = ("-r", captions / "part-*.jsonl", "-R", captions / "objects.json")
    given = ("score", "chair", *pattern, "-o", captions / "run")
    assert here(*given).returncode == 0
    resumed = here(*given, "--resume")
    assert (
        expected_message("sdk.runs.folder:the-run-was-complete-nothing-is-scored") in resumed.stderr
    )
    rescore = ("rescore", captions / "run", "--variant", "corrected", "-o", captions / "other")
    again = here(*rescore)
    assert again.returncode == 0, again.stderr
    (captions / "part-0.jsonl").unlink()
    changed = here(*rescore)
    assert changed.returncode == 2
    assert (
        expected_message("sdk.derived_runs:the-responses-have-changed-since-the-run")
        in changed.stderr
    )


@pytest.fixture
def model() -> Iterator[llm.ScriptedLlm]:
    server = llm.ScriptedLlm(llm.by_scene_graph)
    stop = server.in_thread()
    yield server
    stop()


def test_verdicts_are_reused(tmp_path: Path, model: llm.ScriptedLlm) -> None:
    answers = [answer("1", TRUE, FALSE, question=f"{n}?") for n in range(3)]
    judged = score(tmp_path, answers, "--judge", "llm", "--llm-url", model.url, "--llm-model", "m")
    assert judged.returncode == 0, judged.stderr
    calls = model.chats
    rescore = ("rescore", tmp_path / "out", "--variant", "corrected", "-o", tmp_path / "other")
    other = here(*rescore)
    assert other.returncode == 0, other.stderr
    assert model.chats == calls
    report = json.loads((tmp_path / "other" / "report.json").read_text())
    assert report["variant"] == "corrected"
    assert report["coverage"]["scored"] == 3
    (tmp_path / "out" / "verdicts.sqlite").unlink()
    missing = here(*rescore)
    assert missing.returncode == 2
    assert expected_message("sdk.derived_runs:llm-would-be-called-times") in missing.stderr
    assert model.chats == calls


def test_a_finished_run_is_replaced_only_if_that_is_asked_for(captions: Path) -> None:
    first, second = chair(captions, "a"), chair(captions, "b", *CORRECTED)
    score = ("score", "chair", "-r", captions / "captions.jsonl", "-R", captions / "objects.json")
    out = captions / "out"
    before: dict[str, tuple[bytes, int]] = {}
    for command in (
        *(score, (*score, *CORRECTED), ("merge", first), ("rescore", first, *CORRECTED)),
        *(("merge", first), ("merge", second), score),
    ):
        if before:
            refused = here(*command, "-o", out)
            assert refused.returncode == 2
            assert "--overwrite" in refused.stderr
            assert state(out) == before
        written = here(*command, "-o", out, "--overwrite")
        assert written.returncode == 0, written.stderr
        assert f"written to {out}\n" in written.stdout
        before = state(out)
        again = here(*command, "-o", out)
        assert again.returncode == 0, again.stderr
        assert (
            f"{out} holds this run already; nothing was written (--overwrite replaces it)\n"
            in again.stdout
        )
        assert state(out) == before


def test_a_page_that_is_added_to_a_finished_run_is_said_to_be_written(captions: Path) -> None:
    files = ("-r", captions / "captions.jsonl", "-R", captions / "objects.json")
    command = ("score", "chair", *files, "-o", captions / "out")
    assert here(*command).returncode == 0
    added = here(*command, "--format", "html")
    assert (captions / "out" / "report.html").exists()
    said = "holds this run already; only report.html was written (--overwrite replaces it)\n"
    assert f"{captions / 'out'} {said}" in added.stdout
    assert added.stderr == "note: the run is there already; nothing is scored\n"


def test_a_tree_whose_scoring_stopped_goes_on(captions: Path) -> None:
    logs = captions / "logs" / "model"
    logs.mkdir(parents=True)
    (captions / "captions.jsonl").rename(logs / "captions.jsonl")
    command = ("score", "all", captions / "logs", "-R", f"chair={captions / 'objects.json'}")
    out = captions / "out"
    assert here(*command, "-o", out).returncode == 0
    [run] = [path.parent for path in out.rglob("report.json")]
    before = (run / "report.json").read_bytes()
    # What a run leaves that was stopped before its report was written, with a mark in an item.
    (run / "report.json").unlink()
    for name in ("items.jsonl", "journal.bin", "manifest.json"):
        if (run / name).exists():
            (run / name).rename(partial(run, name))
    lines = partial(run, "items.jsonl")
    lines.write_bytes(lines.read_bytes().replace(b'"outcome"', b'"outcomE"', 1))
    resumed = here(*command, "-o", out, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert (run / "report.json").read_bytes() == before
    assert b'"outcomE"' in (run / "items.jsonl").read_bytes()
    again = here(*command, "-o", out, "--resume")
    assert again.returncode == 0, again.stderr


def test_runs_of_a_tree_are_replaced_only_if_that_is_asked_for(captions: Path) -> None:
    logs = captions / "logs" / "model"
    logs.mkdir(parents=True)
    log = (captions / "captions.jsonl").rename(logs / "captions.jsonl")
    command = ("score", "all", captions / "logs", "-R", f"chair={captions / 'objects.json'}")
    scored = here(*command, "-o", captions / "out")
    assert scored.returncode == 0, scored.stderr
    before = state(captions / "out")
    again = here(*command, "-o", captions / "out")
    assert (again.returncode, again.stdout) == (0, scored.stdout)
    reports = [path for path in before if path.endswith("report.json")]
    assert reports
    assert all(state(captions / "out")[path] == before[path] for path in reports)
    log.write_text(log.read_text().replace("no cat", "a cat"))
    refused = here(*command, "-o", captions / "out")
    assert refused.returncode != 0
    assert "--overwrite" in refused.stderr
    assert all(state(captions / "out")[path] == before[path] for path in reports)
    assert here(*command, "-o", captions / "out", "--overwrite").returncode == 0
