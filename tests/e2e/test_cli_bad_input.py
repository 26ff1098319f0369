"""A user's mistake: one clear line, the right exit code, no traceback, nothing lost."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.messages import expected_message
from support.running import BIN, errors_of, here, read_rows

from hallujudge.sdk.runs import RunFolder

REFERENCES = {str(n): ["dog", "couch"] for n in range(30)}
GOOD = [{"image_id": n, "caption": "A dog on a couch next to a cat."} for n in range(30)]


def lines(rows: Sequence[object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "references.json").write_text(json.dumps(REFERENCES))
    (tmp_path / "good.jsonl").write_text(lines(GOOD))
    return tmp_path


def score(folder: Path, responses: str, *more: str | Path) -> subprocess.CompletedProcess[str]:
    given: list[str | Path] = [
        "score",
        "chair",
        "--responses",
        folder / responses,
        "--out",
        folder / "out",
    ]
    if "--references" not in more:
        given += ["--references", folder / "references.json"]
    return here(*given, *more)


def assert_refused(run: subprocess.CompletedProcess[str], *said: str, code: int = 2) -> None:
    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr
    assert run.stderr.startswith("error: ")
    for part in said:
        assert part in run.stderr, run.stderr


BAD_FILES = {
    "empty": ("", ["bad.jsonl", "empty"]),
    "blank": ("\n  \n", ["bad.jsonl", "empty"]),
    "truncated list": ('[{"image_id": 1, "caption": "a"}, {"image_id": 2, "cap', ["truncated"]),
    "truncated line": (
        '{"image_id": 1, "caption": "a"}\n{"image_id": 2, "caption": "b',
        ["line 2", "truncated"],
    ),
    "list without end": ('[{"image_id": 1, "caption": "a"}', ["truncated"]),
    "garbage": ("image,caption\n1,a dog\n", ["line 1"]),
    "garbage in the middle": (
        '{"image_id": 1, "caption": "a"}\n{"image_id": 2 "caption": "b"}\n',
        ["line 2"],
    ),
    "NaN": ('{"image_id": NaN, "caption": "a"}', ["NaN is not an id"]),
    "no records": ("[]", ["no records"]),
    "numbers": ("[1, 2]", ["JSON object"]),
    "wrong keys": (lines([{"img": 1, "txt": "a"}]), ["img, txt", "--text-key"]),
    "no id key": (lines([{"img": 1, "caption": "a"}]), ["caption, img", "--id-key"]),
    "id missing in a later row": (
        lines([GOOD[0], {"caption": "b"}]),
        ["line 2", "image id is missing"],
    ),
    "id null": (lines([GOOD[0], {"image_id": None, "caption": "b"}]), ["line 2", "null"]),
    "id a list": (lines([{"image_id": [1], "caption": "b"}]), ["line 1", "[1]"]),
    "id a truth value": (lines([{"image_id": True, "caption": "b"}]), ["line 1", "true"]),
    "caption a number": (lines([{"image_id": 1, "caption": 3}]), ["line 1", "caption"]),
    "unknown id": (lines([*GOOD, {"image_id": 777, "caption": "b"}]), ["777", "--allow-unknown"]),
    "many unknown ids": (
        lines([GOOD[0], *({"image_id": n, "caption": "b"} for n in range(100, 125))]),
        ["(25 in all)", "100, 101, 102, 103, 104, 105, 106, 107, 108, 109 and 15 more"],
    ),
    "duplicate id": (
        lines([*GOOD, {"image_id": 3, "caption": "b"}]),
        ["duplicate image ids: 3 (1 in all)", "--allow-duplicates"],
    ),
    "42 and '42' are one id": (
        lines([{"image_id": 4, "caption": "b"}, {"image_id": "4", "caption": "b"}]),
        ["duplicate image ids: 4 (1 in all)"],
    ),
    "deep nesting": ("[" * 200_000, ["nested too deeply"]),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_responses(folder: Path, case: str) -> None:
    text, said = BAD_FILES[case]
    (folder / "bad.jsonl").write_text(text)
    assert_refused(score(folder, "bad.jsonl"), *said)
    assert not (folder / "out" / "report.json").exists()


def test_not_utf8(folder: Path) -> None:
    (folder / "bad.jsonl").write_bytes(b'{"image_id": 1, "caption": "caf\xe9"}')
    assert_refused(score(folder, "bad.jsonl"), "UTF-8")


def test_a_missing_file_and_a_folder(folder: Path) -> None:
    assert_refused(score(folder, "nowhere.jsonl"), "nowhere.jsonl", "No such file")
    (folder / "empty").mkdir()
    assert_refused(score(folder, "empty"), "empty: the folder has no file")


def test_references_of_other_images(folder: Path) -> None:
    (folder / "other.json").write_text(json.dumps({"9001": ["dog"]}))
    run = score(folder, "good.jsonl", "--references", folder / "other.json")
    assert_refused(run, "ids without a reference", "(30 in all)", "9001", "of these images")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("{}", "bad.json: there are no images"),
        ('{"1": "dog"}', "bad.json, image '1': expected a list of object names, found \"dog\""),
        ('{"1": ["dog", 3]}', "bad.json, image '1': expected a list of object names"),
        (
            '[{"image_id": 1, "objects": ["dog"]}, {"image_id": "1", "objects": []}]',
            "duplicate image",
        ),
        ('{"1": ["dog"', "truncated"),
    ],
)
def test_bad_references(folder: Path, text: str, said: str) -> None:
    (folder / "bad.json").write_text(text)
    assert_refused(score(folder, "good.jsonl", "--references", folder / "bad.json"), said)


def test_missing_references_are_named_in_a_note(folder: Path) -> None:
    (folder / "few.jsonl").write_text(lines(GOOD[:10]))
    run = score(folder, "few.jsonl")
    assert run.returncode == 0
    assert expected_message("sdk.archives.chair:of-reference-images-have-no-caption") in run.stderr
    assert "and 10 more" in run.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "list of image ids"),
        ('["a", null]', "entry 1"),
        ("[1, 2]", "entries 0 to 1"),
    ],
)
def test_bad_id_maps(folder: Path, text: str, said: str) -> None:
    (folder / "map.json").write_text(text)
    assert_refused(score(folder, "good.jsonl", "--id-map", folder / "map.json"), said)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none", None, "neither a shipped graph"),
        ("circle.json", '{"puppy": "dog", "dog": "puppy"}', "a cycle: dog -> puppy"),
        ("circle.txt", "dog, puppy\npuppy, dog\n", "a cycle: dog -> puppy"),
        ("two.json", '{"dog": ["pup"], "seal": ["pup"]}', "'pup' has the roots"),
        ("other.json", '{"name": "x", "a": 1}', "unknown key 'a'"),
        ("broken.json", "{", "not JSON"),
        ("empty.txt", "", "no rows"),
        ("binary.txt", "\x00\x01", "text file"),
    ],
)
def test_bad_graphs(folder: Path, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (folder / name).write_text(text)
    assert_refused(score(folder, "good.jsonl", "--graph", folder / name), said, Path(name).stem)


@pytest.mark.parametrize(
    ("target", "said"),
    [("a.json", "Too many levels of symbolic links"), ("gone.json", "No such file or directory")],
)
def test_graphs_that_are_links_to_nothing(folder: Path, target: str, said: str) -> None:
    (folder / "a.json").symlink_to(target)
    assert_refused(score(folder, "good.jsonl", "--graph", folder / "a.json"), said, "a.json")


def test_usage_errors(folder: Path) -> None:
    assert_refused(score(folder, "good.jsonl", "--variant", "best"), "published, corrected")
    assert_refused(
        score(folder, "good.jsonl", "--count", "things"),
        "error: --count is 'things'; choose from mentions, objects",
    )
    assert_refused(
        score(folder, "good.jsonl", "--format", "pdf"), "table, json, markdown, csv, latex, html"
    )
    assert_refused(
        score(folder, "good.jsonl", "--confidence", "2"), "error: --confidence is 2.0; give"
    )
    assert_refused(
        score(folder, "good.jsonl", "--workers", "many"),
        "error: --workers is 'many'; give a whole number (--help",
    )
    assert_refused(
        score(folder, "good.jsonl", "--workers", "-1"), "error: --workers is '-1'; give 0 or more"
    )
    assert_refused(
        score(folder, "good.jsonl", "--confidence", "high"),
        "error: --confidence is 'high'; give a number",
    )
    assert_refused(here("score", "chair"), "--responses")
    assert_refused(here("score", "unheard-of"), "unheard-of")
    assert_refused(here("nothing"), "nothing")


def test_null_and_huge_captions_are_unscored_not_wrong(folder: Path) -> None:
    rows = [
        *GOOD[:8],
        {"image_id": 8, "caption": None},
        {"image_id": 9, "caption": "dog " * 250_000},
    ]
    (folder / "odd.jsonl").write_text(lines(rows))
    run = score(folder, "odd.jsonl")
    assert run.returncode == 3, run.stderr
    report = json.loads((folder / "out" / "report.json").read_text())
    coverage = report["coverage"]
    assert coverage["reasons"] == {"RESPONSE_MISSING": 1, "RESPONSE_TOO_LONG": 1}
    assert (coverage["items"], coverage["scored"]) == (10, 8)
    assert report["scores"]["chair_s"]["value"] == 1.0
    assert coverage["bounds"]["chair_s"] == {"best": 0.8, "worst": 1.0}
    odd = read_rows(folder / "out" / "items.jsonl")[-2:]
    assert [row["outcome"] for row in odd] == ["unscored", "unscored"]
    assert "1000000 characters" in odd[1]["detail"]


def test_allowed_unknown_and_duplicate_ids(folder: Path) -> None:
    rows = [*GOOD[:5], GOOD[0], {"image_id": "x", "caption": "A dog."}]
    (folder / "odd.jsonl").write_text(lines(rows))
    run = score(folder, "odd.jsonl", "--allow-unknown", "--allow-duplicates")
    assert run.returncode == 3, run.stderr
    items = read_rows(folder / "out" / "items.jsonl")
    assert [row["id"] for row in items] == ["0", "1", "2", "3", "4", "0#2", "x"]
    assert items[5]["group_id"] == "0"
    assert items[6]["reason"] == "REFERENCE_MISSING"


def test_an_unreachable_server(folder: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run = score(folder, "good.jsonl", "--server", f"127.0.0.1:{port}")
    assert_refused(run, f"127.0.0.1:{port}", "hallujudge serve", code=1)
    assert_refused(score(folder, "good.jsonl", "--server", "no.such.host.invalid:1"), code=1)


def test_something_else_listens_there(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        process = subprocess.Popen(
            [
                *(BIN / "hallujudge", "score", "chair", "--responses", folder / "good.jsonl"),
                *("--references", folder / "references.json", "--out", folder / "out"),
                *("--server", f"127.0.0.1:{other.getsockname()[1]}"),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = other.accept()
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.close()
        other.close()
        errors = errors_of(process)
    assert process.returncode == 1, errors
    assert "Traceback" not in errors


def test_a_full_disk(folder: Path) -> None:
    out = folder / "out"
    out.mkdir()
    (out / "items.partial.jsonl").symlink_to("/dev/full")
    said = ("items.partial.jsonl", "No space left", "another folder")
    assert_refused(score(folder, "good.jsonl"), *said, code=1)


def test_an_output_folder_that_is_a_file(folder: Path) -> None:
    (folder / "out").write_text("mine")
    run = score(folder, "good.jsonl")
    assert_refused(run, "out is not a folder; give another folder")
    assert "Make room" not in run.stderr
    assert (folder / "out").read_text() == "mine"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--responses", "other.jsonl"], "--responses is given more than once; give one value"),
        (["--id-key", "a", "--id-key", "b"], "--id-key is given more than once"),
        (["--references", ""], "--references is empty; give a value"),
        (["--out", ""], "--out is empty; give a value"),
        (["--server", ""], "--server is empty; give a value"),
        (["--confidence", "0.9", "--confidence", "0.8"], "--confidence is given more than once"),
    ],
)
def test_no_file_is_ignored_and_no_name_is_empty(folder: Path, more: list[str], said: str) -> None:
    assert_refused(score(folder, "good.jsonl", *more), said)


def test_swapped_files_are_told_in_a_sentence_each(folder: Path) -> None:
    run = here(
        "score", "chair", "-r", folder / "references.json", "-R", folder / "good.jsonl", "-o", "out"
    )
    assert_refused(run, "give it as references. ", "give it as responses")
    assert "no key" not in run.stderr


def test_references_without_any_object_are_noted(folder: Path) -> None:
    (folder / "none.json").write_text(json.dumps({str(number): [] for number in range(30)}))
    run = here(
        "score", "chair", "-r", folder / "good.jsonl", "-R", folder / "none.json", "-o",
        folder / "out",
    )  # fmt: skip
    assert (
        expected_message("sdk.archives.chair:note-no-reference-image-has-an-object") in run.stderr
    )


def test_a_run_that_never_begins_costs_no_earlier_results(folder: Path) -> None:
    assert score(folder, "good.jsonl").returncode == 0
    names = ("report.json", "items.jsonl")
    before = [(folder / "out" / name).read_bytes() for name in names]
    assert score(folder, "good.jsonl", "--server", "127.0.0.1:1").returncode == 1
    assert [(folder / "out" / name).read_bytes() for name in names] == before


RUN_FILES = ("items.jsonl", "journal.bin", "manifest.json")


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def test_a_run_that_fails_leaves_earlier_results_as_they_are(folder: Path) -> None:
    """The disk is full after the first batch."""
    assert score(folder, "good.jsonl", "--format", "html").returncode == 0
    out = folder / "out"
    before = contents(out)
    assert sorted(before) == [*RUN_FILES, "report.html", "report.json"]
    (out / "items.partial.jsonl").symlink_to("/dev/full")
    assert score(folder, "good.jsonl", "--overwrite").returncode == 1
    (out / "items.partial.jsonl").unlink()
    assert before.items() <= contents(out).items()
    assert score(folder, "good.jsonl", "--format", "html", "--resume").returncode == 0
    assert contents(out) == before


def test_new_results_take_the_place_of_all_earlier_ones(folder: Path) -> None:
    assert score(folder, "good.jsonl", "--format", "html").returncode == 0
    assert score(folder, "good.jsonl", "--confidence", "0.9", "--overwrite").returncode == 0
    assert sorted(contents(folder / "out")) == [*RUN_FILES, "report.json"]


@pytest.mark.parametrize("name", [*RUN_FILES, "report.json", "items.partial.jsonl"])
def test_a_run_never_overwrites_its_input(folder: Path, name: str) -> None:
    out = folder / "out"
    out.mkdir()
    (folder / "good.jsonl").rename(out / name)
    before = contents(out)
    run = score(folder, f"out/../out/{name}")
    assert_refused(run, f"{name} is read by this run and would be overwritten")
    assert contents(out) == before


def test_a_run_never_overwrites_its_references(folder: Path) -> None:
    out = folder / "out"
    out.mkdir()
    references = (folder / "references.json").rename(out / "report.json")
    before = contents(out)
    run = score(folder, "good.jsonl", "--references", references)
    assert_refused(run, "report.json is read by this run and would be overwritten")
    assert contents(out) == before


def test_one_run_at_a_time_writes_to_a_folder(folder: Path) -> None:
    out = folder / "out"
    with RunFolder(out):
        assert_refused(score(folder, "good.jsonl"), f"another run writes to {out}", code=1)
    assert score(folder, "good.jsonl").returncode == 0
