"""``hallujudge build infact``: files made twice, resumed, made from manifests, and audited."""

from __future__ import annotations

import csv
import json
import re
import resource
import subprocess
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from support import scripted_llm
from support.running import BIN, here, read_rows, unmeasured
from support.sizes import sized
from support.video_clips import clip, counted, shown, write_clip

COMMAND = (BIN / "hallujudge", "build", "infact")
SRT = "1\n00:00:00,200 --> 00:00:01,500\nThe man opens the door.\n"


def videos(folder: Path, count: int = 2, frames: int = 30) -> Path:
    for number in range(count):
        clip(folder / "videos" / f"clip{number}.mp4", frames)
    (folder / "videos" / "clip0.srt").write_text(SRT)
    return folder / "videos"


def build(out: Path, *arguments: object, code: int = 0) -> Any:
    run = here("build", "infact", *map(str, arguments), "-o", str(out), "--workers", "1")
    assert run.returncode == code, run.stdout + run.stderr
    return run


def hashes(folder: Path) -> dict[str, str]:
    """Return the hash of every file but manifests, which name sources."""
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".jsonl"
    }


def manifest(out: Path, operator: str) -> Sequence[Mapping[str, Any]]:
    return read_rows(out / operator / "manifest.jsonl")


def steps_file(folder: Path) -> Path:
    path = folder / "steps.json"
    given = {"clip1": {"task": "Replace Light Socket", "steps": [[0, 0.4], [0.4, 0.8], [0.8, 1.2]]}}
    path.write_text(json.dumps(given))
    return path


def test_the_same_seed_makes_equal_bytes_and_so_does_the_manifest_alone(tmp_path: Path) -> None:
    source = videos(tmp_path)
    given = (source, "--steps", steps_file(tmp_path), "--seed", "5")
    for name in ("one", "two"):
        build(tmp_path / name, *given)
    made = hashes(tmp_path / "one")
    assert made == hashes(tmp_path / "two")
    operators = {name.split("/")[0] for name in made}
    assert operators == {
        "base",
        "gaussian_noise",
        "motion_blur",
        "compression",
        "caption_injection",
        "subtitle_corruption",
        "shuffle",
        "reverse",
        "procedural_counterfactual",
    }
    build(tmp_path / "other", *given[:-1], "6")
    others = hashes(tmp_path / "other")
    same = {name for name in made if made[name] == others[name]}
    fixed = {"base", "compression", "reverse"}
    # The order of three steps may be drawn twice.
    assert {name.split("/")[0] for name in same} - {"procedural_counterfactual"} == fixed
    # Neither options nor the seed are given again, only the manifests.
    manifests = sorted((tmp_path / "one").glob("*/manifest.jsonl"))
    again = build(
        tmp_path / "again", *(part for path in manifests for part in ("--manifest", path))
    )
    assert "differ" not in again.stderr
    assert hashes(tmp_path / "again") == made
    assert [manifest(tmp_path / "again", name) for name in operators - {"base"}] == [
        manifest(tmp_path / "one", name) for name in operators - {"base"}
    ]


def test_the_manifest_finds_moved_videos_by_name_and_refuses_others(tmp_path: Path) -> None:
    source = videos(tmp_path, 1)
    build(tmp_path / "one", source, "--operator", "motion blur")
    moved = source.rename(tmp_path / "moved")
    listed = tmp_path / "one" / "motion_blur" / "manifest.jsonl"
    failed = build(tmp_path / "two", "--manifest", listed, code=1)
    assert "is not a file" in failed.stderr
    build(tmp_path / "two", moved, "--manifest", listed)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    clip(moved / "clip0.mp4", 20)
    failed = build(tmp_path / "three", moved, "--manifest", listed, code=1)
    assert "is not the video that the manifest names" in failed.stderr


def test_a_resumed_folder_keeps_what_is_made(tmp_path: Path) -> None:
    source = videos(tmp_path)
    out = tmp_path / "out"
    build(out, source, "--operator", "reverse")
    first = hashes(out)
    assert "--resume" in build(out, source, "--operator", "reverse", code=2).stderr
    listed = out / "reverse" / "manifest.jsonl"
    # As after a kill: one line is cut off, and its video is not complete.
    lines = listed.read_text().splitlines()
    listed.write_text(lines[0] + "\n" + lines[1][:100])
    (out / "reverse" / "clip1.mp4").write_bytes(b"partial")
    kept = (out / "reverse" / "clip0.mp4").stat().st_mtime_ns
    run = build(out, source, "--operator", "reverse", "--resume")
    assert "1 videos written" in run.stdout
    assert "1 kept" in run.stdout
    assert hashes(out) == first
    assert (out / "reverse" / "clip0.mp4").stat().st_mtime_ns == kept
    assert [line["video"] for line in manifest(out, "reverse")] == ["clip0.mp4", "clip1.mp4"]
    other = build(out, source, "--operator", "reverse", "--resume", "--seed", "9", code=2)
    assert "other settings" in other.stderr
    build(out, source, "--operator", "reverse", "--overwrite", "--seed", "9")
    assert [line["settings"]["seed"] for line in manifest(out, "reverse")] == [9, 9]


@pytest.mark.slow
def test_processes_make_the_same_files(tmp_path: Path) -> None:
    source = videos(tmp_path, 3)
    chosen = ("--operator", "shuffle", "--operator", "gaussian_noise")
    build(tmp_path / "one", source, *chosen)
    run = subprocess.run(
        [
            BIN / "hallujudge",
            "build",
            "infact",
            source,
            *chosen,
            "-o",
            tmp_path / "two",
            "--workers",
            "2",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")


def test_bad_videos_are_named_and_others_are_made(tmp_path: Path) -> None:
    source = videos(tmp_path, 1)
    (source / "text.mp4").write_text("no video")
    run = build(tmp_path / "out", source, "--operator", "reverse", code=3)
    assert "not made: reverse: " in run.stderr
    assert "text.mp4" in run.stderr
    whole = clip(tmp_path / "whole.mkv", 80).read_bytes()
    (source / "damaged.mkv").write_bytes(whole[:30_000] + bytes(600) + whole[30_600:])
    damaged = build(tmp_path / "damaged", source, "--operator", "reverse", code=3)
    assert re.search(r"damaged.mkv: .* about \d+ of \d+ frames can't be read", damaged.stderr)
    (source / "damaged.mkv").unlink()
    assert [line["video"] for line in manifest(tmp_path / "out", "reverse")] == ["clip0.mp4"]
    # A video that can't be read fails under each operator for one reason.
    (source / "more.mp4").write_text("no video")
    both = ("--operator", "reverse", "--operator", "shuffle")
    more = build(tmp_path / "more", source, *both, code=3)
    said = [line for line in more.stderr.splitlines() if line.startswith("not made")]
    assert len(said) == 2
    assert all(line.startswith("not made: reverse, shuffle: ") for line in said)
    left = sorted(path.name for path in (tmp_path / "out" / "reverse").iterdir())
    assert left == ["clip0.mp4", "manifest.jsonl"], "something half written"


def build_with_at_most(size: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command where the system writes no larger files, as on a full disk."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments), "--workers", "1"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        env=unmeasured() | {"PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_a_clean_video_that_does_not_fit_leaves_nothing_half_written(tmp_path: Path) -> None:
    """It is copied, not linked, from another file system."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system only")
    out = tmp_path / "out"
    with TemporaryDirectory(dir=memory) as name:
        source = clip(Path(name) / "clip0.mp4", 60, crf=1)
        given = (source, "--operator", "compression", "-o", out)
        run = build_with_at_most(source.stat().st_size - 1, *given)
        assert run.returncode == 1, run.stdout + run.stderr
        (line,) = run.stderr.strip().splitlines()
        assert line.startswith(f"error: can't write {out / 'base' / 'clip0.mp4'}: ")
        assert list((out / "base").iterdir()) == []
        # What has no clean video is made again.
        assert not (out / "compression" / "manifest.jsonl").exists()
        build(out, *given[:3], "--resume")
        assert (out / "base" / "clip0.mp4").read_bytes() == source.read_bytes()


def test_a_full_disk_for_temporary_files_is_no_fault_of_the_video(tmp_path: Path) -> None:
    """The encoder measures frames into a file, and does not look whether that succeeds."""
    source = videos(tmp_path, 1, frames=300)
    run = build_with_at_most(30_000, source, "--operator", "compression", "-o", tmp_path / "out")
    assert run.returncode == 1, run.stdout + run.stderr
    (line,) = run.stderr.strip().splitlines()
    assert line.startswith("error: can't write ")
    assert "TMPDIR" in line
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_a_full_disk_ends_with_one_sentence_and_nothing_half_written(tmp_path: Path) -> None:
    source = videos(tmp_path, 1, frames=60)
    for operator in sized(("shuffle",), ("gaussian_noise", "shuffle")):
        out = tmp_path / operator
        run = build_with_at_most(20_000, source, "--operator", operator, "-o", out)
        assert run.returncode == 1, run.stdout + run.stderr
        (line,) = run.stderr.strip().splitlines()
        assert line.startswith("error: can't write ")
        assert "File too large" in line
        assert [path for path in out.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--operator", "blurr"], "choose from gaussian_noise"),
        (["--operator", "adversarial_noise"], "--encoder"),
        (["--operator", "procedural_counterfactual"], "--steps"),
        (["--captions", "all"], "mixed, irrelevant, misleading"),
        (["--blur-shortest", "30"], "--blur-longest 21 is less"),
        (["--font", "absent.ttf"], "absent.ttf is not a file"),
        (["--resume", "--overwrite"], "exclude each other"),
        (["--subtitles", "absent"], "is not a folder"),
        (["absent.mp4"], "absent.mp4 does not exist"),
    ],
)
def test_mistakes_have_a_sentence_each(tmp_path: Path, arguments: list[str], said: str) -> None:
    source = videos(tmp_path, 1, frames=3)
    run = build(tmp_path / "out", source, *arguments, code=2)
    assert said in run.stderr
    assert not (tmp_path / "out").exists()


def test_files_that_name_other_videos_are_refused(tmp_path: Path) -> None:
    source = videos(tmp_path, 1, frames=3)
    given = tmp_path / "given.json"
    given.write_text('{"other": ["It closes."]}')
    run = build(tmp_path / "out", source, "--misleading", given, code=2)
    assert "names none of the videos (found 'other')" in run.stderr
    given.write_text('{"clip0": [[1, "x"]]}')
    assert "[start, end]" in build(tmp_path / "out", source, "--steps", given, code=2).stderr
    clip(source / "clip0.mkv", 3)
    assert "the same file" in build(tmp_path / "out", source, code=2).stderr


@pytest.mark.slow
def test_adversarial_noise_survives_encoding_and_is_made_twice(tmp_path: Path) -> None:
    tiny_encoders = pytest.importorskip("support.tiny_encoders")
    encoders = tiny_encoders.write_encoders(tmp_path)
    source = videos(tmp_path, 1, frames=20)
    given = [part for folder in encoders for part in ("--encoder", folder)]
    chosen = ("--operator", "adversarial_noise", *given)
    build(tmp_path / "one", source, *chosen)
    build(tmp_path / "two", source, *chosen)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    listed = tmp_path / "one" / "adversarial_noise" / "manifest.jsonl"
    build(tmp_path / "three", "--manifest", listed)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "three")
    build(tmp_path / "noise", source, "--operator", "gaussian_noise", "--sigma", "8")
    clean, attacked, noisy = (
        np.stack(shown(tmp_path / folder / "clip0.mp4")[:8])
        for folder in ("one/base", "one/adversarial_noise", "noise/gaussian_noise")
    )
    assert np.abs(attacked.astype(int) - clean).mean() < 8
    for folder in encoders:
        far = tiny_encoders.moved(folder, clean, attacked)
        assert far > 1.5 * tiny_encoders.moved(folder, clean, noisy), folder.name


def test_procedures_come_with_questions(tmp_path: Path) -> None:
    source = videos(tmp_path)
    out = tmp_path / "out"
    chosen = ("--operator", "procedural_counterfactual", "--steps", steps_file(tmp_path))
    build(out, source, *chosen)
    rows = read_rows(out / "procedural_counterfactual" / "questions.jsonl")
    assert [row["label"] for row in rows] == ["A", "B"]
    assert "<Replace Light Socket>" in rows[0]["question"]
    order = [[counted(frame) for frame in shown(out / row["video"])] for row in rows]
    assert order[0] == list(range(30)) == sorted(order[1])
    assert order[1] != order[0]


QUESTIONS = [
    {"question_id": f"q{n}", "video": f"clip{n % 2}", "question": f"What {n}?", "label": "A"}
    | {"options": ["opening", "closing"], "dimension": "faithfulness"}
    for n in range(4)
]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_questions_that_text_alone_solves_are_left_out(tmp_path: Path) -> None:
    questions = write_rows(tmp_path / "questions.jsonl", QUESTIONS)
    said = {"one": "AABB", "two": "ABAB", "three": "A???"}
    files = [
        write_rows(
            tmp_path / f"{model}.jsonl",
            [
                {"question_id": f"q{n}", "operator": operator, "response": text}
                for n, text in enumerate(answers)
                if text != "?"
                for operator in ("text_only", "base")
            ],
        )
        for model, answers in said.items()
    ]
    given = [part for path in files for part in ("--text-only", path)]
    out = tmp_path / "kept.jsonl"
    run = here("build", "infact-questions", "-R", questions, *given, "-o", out)
    assert run.returncode == 0, run.stderr
    # q0: three of three; q1 and q2: one of two, which is not more than half.
    assert [row["question_id"] for row in read_rows(out)] == ["q1", "q2", "q3"]
    assert read_rows(out)[0] == QUESTIONS[1]
    run = here("build", "infact-questions", "-R", questions, *given, "--solved-by", "1", "-o", out)
    assert [row["question_id"] for row in read_rows(out)] == ["q3"]
    other = write_rows(tmp_path / "other.jsonl", [{"question_id": "x", "response": "A"}])
    run = here("build", "infact-questions", "-R", questions, "--text-only", other, "-o", out)
    assert run.returncode == 2
    assert "answers none of the questions" in run.stderr


def test_an_audit_goes_from_videos_to_the_table_of_the_paper(tmp_path: Path) -> None:
    out = tmp_path / "degraded"
    kept = ("--operator", "motion_blur", "--operator", "caption_injection")
    build(out, videos(tmp_path, 2, frames=5), *kept)
    questions = write_rows(tmp_path / "questions.jsonl", QUESTIONS)
    sheets = tmp_path / "audit"
    run = here("build", "infact-audit", out, "-R", questions, "--cases", "3", "-o", sheets)
    assert run.returncode == 0, run.stderr
    assert "3 sheets of 6 questions" in run.stdout
    files = sorted(sheets.iterdir())
    assert len(files) == 3
    tables = [list(csv.DictReader(path.read_text().splitlines(keepends=True))) for path in files]
    assert [len(table) for table in tables] == [6, 6, 6]
    keys = [[(row["operator"], row["question_id"]) for row in table] for table in tables]
    assert sorted(keys[0]) == sorted(keys[1]) == sorted(keys[2])
    assert len({tuple(each) for each in keys}) > 1, "all sheets have one order"
    assert "label" not in tables[0][0], "people must not see the label"
    assert (out / tables[0][0]["video"]).is_file()
    assert {row["subtype"] for row in tables[0]} == {"", "irrelevant"}
    # Two of three people say A; one question under blur can't be answered.
    lost = next(row["question_id"] for row in tables[0] if row["operator"] == "motion_blur")
    for number, (path, table) in enumerate(zip(files, tables, strict=True)):
        for row in table:
            unclear = (row["operator"], row["question_id"]) == ("motion_blur", lost)
            row["choice"] = "none" if unclear else "AAB"[number]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, table[0])
            writer.writeheader()
            writer.writerows(table)
    people = tmp_path / "people.jsonl"
    run = here("build", "infact-audit", *files, "-o", people)
    assert run.returncode == 0, run.stderr
    answers = [{**row, "operator": "base", "response": "A", "category": ""} for row in QUESTIONS]
    responses = write_rows(tmp_path / "answers.jsonl", answers)
    assert here("score", "infact", "-r", responses, "-o", tmp_path / "run").returncode == 0
    run = here(
        "analyze", tmp_path / "run", "--audit", people, "--table", "audit", "--format", "json"
    )
    assert run.returncode == 0, run.stderr
    rows = {row["operator"]: row for row in json.loads(run.stdout)["analyses"]["audit"]["rows"]}
    assert rows["caption_injection"]["answerability"] == 1
    assert rows["caption_injection"]["label_preservation"] == 1
    assert rows["motion_blur"]["answerability"] == pytest.approx(2 / 3)


def test_sheets_that_are_not_filled_in_are_refused(tmp_path: Path) -> None:
    sheet = tmp_path / "a.csv"
    head = "operator,subtype,question_id,video,question,options,choice\n"
    sheet.write_text(f"{head}motion_blur,,q1,a.mp4,What?,,\n")
    run = here("build", "infact-audit", sheet, "-o", tmp_path / "people.jsonl")
    assert run.returncode == 2
    assert "a.csv:2" in run.stderr
    assert "there is no choice" in run.stderr
    sheet.write_text(f"{head}motion_blur,,q1,a.mp4,What?,,A\n")
    other = tmp_path / "b.csv"
    other.write_text(f"{head}motion_blur,,q2,a.mp4,What?,,A\n")
    run = here("build", "infact-audit", sheet, other, "-o", tmp_path / "people.jsonl")
    assert "have other rows" in run.stderr


def test_a_folder_is_asked_and_scored_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "degraded"
    build(out, videos(tmp_path, 2, frames=20), "--operator", "reverse", "--operator", "compression")
    rows = [{**row, "order_sensitive": row["question_id"] == "q0"} for row in QUESTIONS]
    questions = write_rows(tmp_path / "questions.jsonl", rows)
    server = scripted_llm.ScriptedLlm(scripted_llm.saying("A"))
    stop = server.in_thread()
    try:
        asked = here(
            *("ask", "infact", "-R", questions, "--images", out, "--url", server.url),
            *("--model", "m", "--frames", "uniform:4", "-o", tmp_path / "answers.jsonl"),
        )
    finally:
        stop()
    assert asked.returncode == 0, asked.stderr
    answers = read_rows(tmp_path / "answers.jsonl")
    assert {row["operator"] for row in answers} >= {"base", "compression", "reverse"}
    assert [row["question_id"] for row in answers if row["operator"] == "reverse"] == ["q0"]
    run = here("score", "infact", "-r", tmp_path / "answers.jsonl", "-o", tmp_path / "run")
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["scores"]["rr_compression"]["value"] == 1
    assert report["scores"]["tss_reverse"]["value"] == 0


def test_a_video_that_the_encoder_refuses_stops_no_other(tmp_path: Path) -> None:
    # Nothing moves, so that a share of its bitrate is less than the encoder can reach.
    still = np.full((120, 160, 3), 128, np.uint8)
    write_clip(tmp_path / "videos" / "a_still.mp4", [still] * 40, crf=30)
    clip(tmp_path / "videos" / "b_moves.mp4", 30)
    run = build(tmp_path / "out", tmp_path / "videos", "--operator", "compression", code=3)
    assert "the encoder refuses a_still.mp4" in run.stderr
    made = sorted(path.name for path in (tmp_path / "out" / "compression").iterdir())
    assert made == ["b_moves.mp4", "manifest.jsonl"]
