"""What ``hallujudge ask`` finds out before it pays for calls, and several benchmarks at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from support import scripted_llm as llm
from support.pictures import png
from support.qa_samples import write_lines
from support.running import assert_refused, here, read_rows

POPE = [
    {"question_id": n, "image": "0.png", "text": f"Is there a cat {n}?", "label": "yes"}
    for n in range(4)
]
CLOSED = "http://127.0.0.1:9/v1"  # the port of "discard", which nothing listens on


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "0.png").write_bytes(png(0))
    return folder


def changed(key: str, value: object) -> list[dict[str, Any]]:
    """Return POPE's questions, of which the third has another value, or none if it is ``...``."""
    third = {name: held for name, held in POPE[2].items() if name != key}
    return [*POPE[:2], third if value is ... else {**third, key: value}, POPE[3]]


def asked(
    server: llm.ScriptedLlm, folder: Path, records: list[dict[str, Any]], *more: str
) -> tuple[Any, Path]:
    out = folder / "answers.jsonl"
    questions = write_lines(folder / "questions.jsonl", records)
    files = ("-R", questions, "--images", folder / "images", "-o", out)
    return here(*llm.ask(server, "pope", *files), *more), out


@pytest.mark.parametrize("question", [..., None, 5, " "])
def test_one_record_without_a_question_does_not_stop_the_others(
    yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path, question: object
) -> None:
    assert images.is_dir()
    run, out = asked(yes_server, tmp_path, changed("text", question))
    assert run.returncode == 3, run.stderr
    assert "QUESTION_MISSING" in run.stderr
    assert "start the same command again to ask those again" not in run.stderr
    assert [row["response"] for row in read_rows(out)] == ["Yes.", "Yes.", None, "Yes."]
    scored = here("score", "pope", "-r", out, "-o", tmp_path / "scores", "-q")
    assert scored.returncode == 3, scored.stderr


def test_a_file_without_any_question_is_a_wrong_file(
    yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path
) -> None:
    assert images.is_dir()
    records = [{"question_id": 1, "image": "0.png", "label": "yes"}]
    run, _ = asked(yes_server, tmp_path, records)
    tried = "question, Question, query, prompt, text"
    assert_refused(run, f"line 1: no key for the question: tried {tried}; found")
    assert yes_server.chats == 0


@pytest.mark.parametrize(("label", "shown"), [("maybe", '2 ("maybe")'), (None, "2 (null)")])
def test_labels_are_checked_before_a_call_is_paid_for(
    yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path, label: object, shown: str
) -> None:
    assert images.is_dir()
    records = changed("label", label)
    run, out = asked(yes_server, tmp_path, records)
    said = f"labels are neither yes nor no: {shown} (1 in all). Correct these labels in the file"
    assert_refused(run, f"{said} of questions, or ask these questions too with --bad-labels")
    assert yes_server.chats == 0
    again, _ = asked(yes_server, tmp_path, records, "--bad-labels")
    assert again.returncode == 0, again.stderr
    scored = here("score", "pope", "-r", out, "-o", tmp_path / "scores", "-q", "--skip-bad")
    assert scored.returncode == 3, scored.stderr


def test_questions_that_scoring_would_refuse_are_named_before_a_call_is_paid_for(
    yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path
) -> None:
    assert images.is_dir()
    records = [*POPE, {**POPE[1], "label": "no"}]
    run, _ = asked(yes_server, tmp_path, records)
    said = "score would refuse the archive: questions are answered more than once: 1 (1 in all)"
    assert_refused(run, f"{said}. Correct the file of questions, or ask its questions anyway")
    assert yes_server.chats == 0
    again, _ = asked(yes_server, tmp_path, records, "--bad-labels")
    assert again.returncode == 0, again.stderr


def test_a_category_does_not_hide_a_wrong_label(
    yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path
) -> None:
    """CRPE's records have a category too, and other labels; POPE's questions are none of them."""
    assert images.is_dir()
    records = [{**each, "category": "random"} for each in changed("label", "maybe")]
    run, _ = asked(yes_server, tmp_path, records)
    assert_refused(run, 'labels are neither yes nor no: 2 ("maybe") (1 in all)')
    assert yes_server.chats == 0


def test_questions_without_labels_are_noted_and_asked(
    yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path
) -> None:
    assert images.is_dir()
    records = [{name: each[name] for name in each if name != "label"} for each in POPE]
    run, _ = asked(yes_server, tmp_path, records)
    assert run.returncode == 0, run.stderr
    assert run.stderr.startswith("note: the questions have no labels; scoring needs them")


def test_an_address_that_nobody_serves_is_said_at_once(tmp_path: Path, images: Path) -> None:
    questions = write_lines(tmp_path / "questions.jsonl", POPE)
    out = tmp_path / "answers.jsonl"
    command = ("ask", "pope", "-R", questions, "--images", images, "-o", out, "--model", "m")
    one = here(*command, "--url", CLOSED)
    assert (one.returncode, one.stdout) == (1, "")
    assert one.stderr == (
        f"error: model m at {CLOSED} can't be reached: no connection to 127.0.0.1:9: Connection "
        "refused. Start its server, or correct --url; --wait waits for a server that is starting\n"
    )
    both = here(*command, "--url", CLOSED, "--url", CLOSED.replace(":9/", ":11/"))
    assert both.returncode == 1
    assert both.stderr.startswith(f"error: model m at {CLOSED}, http://127.0.0.1:11/v1 can't be")
    assert not list(tmp_path.glob("answers*"))


def test_refused_parameters_name_options_that_ask_has(tmp_path: Path, images: Path) -> None:
    assert images.is_dir()
    refusing = llm.ScriptedLlm(llm.always(llm.UNKNOWN_FIELDS_AT_TRANSFORMERS))
    stop = refusing.in_thread()
    try:
        run, _ = asked(refusing, tmp_path, POPE, "--dialect", "vllm")
    finally:
        stop()
    assert run.returncode == 2
    assert "set --dialect to what the server knows" in run.stderr
    assert "constraint" not in run.stderr


def test_a_server_that_starts_is_waited_for_where_that_is_asked(
    tmp_path: Path, images: Path
) -> None:
    questions = write_lines(tmp_path / "questions.jsonl", POPE)
    files = ("-R", questions, "--images", images, "-o", tmp_path / "answers.jsonl")
    stopped = llm.ScriptedLlm(llm.saying("Yes."))
    stopped.in_thread()()
    late = llm.ScriptedLlm(llm.saying("Yes."), port=int(stopped.root.rpartition(":")[2]))
    stops: list[Callable[[], None]] = []
    timer = Timer(0.3, lambda: stops.append(late.in_thread()))
    timer.start()
    try:
        run = here(*llm.ask(stopped, "pope", *files), "--wait", "60")
    finally:
        timer.join()
        stops.pop()()
    assert run.returncode == 0, run.stderr
    assert late.chats == len(POPE)


def test_a_condition_that_no_question_has_is_named(
    yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path
) -> None:
    questions = write_lines(
        tmp_path / "q.jsonl",
        [{"id": "1", "video": "a.mp4", "question": "Who?", "options": {"A": "x", "B": "y"}}],
    )
    files = ("-R", questions, "--images", images, "-o", tmp_path / "a.jsonl")
    run = here(*llm.ask(yes_server, "infact", *files), "--condition", "gausian_noise")
    assert_refused(
        run,
        "gausian_noise; did you mean 'gaussian_noise'? Choose from base, text_only",
    )


def test_a_missing_folder_of_images_is_named_once(
    yes_server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    questions = write_lines(tmp_path / "questions.jsonl", POPE)
    files = ("-R", questions, "--images", tmp_path / "gone", "-o", tmp_path / "a.jsonl")
    run = here(*llm.ask(yes_server, "pope", *files))
    assert_refused(run, f"images {tmp_path / 'gone'} can't be read: No such file or directory; ch")


class TestSeveralBenchmarks:
    """``ask pope vqa --out FOLDER``, then ``score all FOLDER``."""

    @pytest.fixture
    def command(self, yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path) -> tuple[Any, ...]:
        pope = write_lines(tmp_path / "q.jsonl", POPE)
        repope = [{**each, "image": "0.png", "label": "no"} for each in POPE]
        dash = write_lines(tmp_path / "d.jsonl", [{**r, "object": "cat"} for r in repope])
        files = ("-R", f"pope={pope}", "-R", f"vqa={dash}", "--images", images)
        return llm.ask(yes_server, "pope", "vqa", *files, "-o", tmp_path / "asked")

    def test_each_has_its_archive_and_all_are_scored_at_once(
        self, command: tuple[Any, ...], yes_server: llm.ScriptedLlm, tmp_path: Path
    ) -> None:
        run = here(*command)
        assert run.returncode == 0, run.stderr
        assert run.stdout == "".join(
            f"4 of 4 answers written to {tmp_path / 'asked' / name}.jsonl\n"
            for name in ("pope", "vqa")
        )
        assert yes_server.chats == 8
        again = here(*command)
        assert again.returncode == 0, again.stderr
        assert yes_server.chats == 8
        scored = here("score", "all", tmp_path / "asked", "-o", tmp_path / "scores")
        assert "scored m, pope: 4 items" in scored.stderr
        assert ".sqlite" not in scored.stderr
        assert ".sqlite" not in scored.stdout

    def test_captions_are_scored_with_the_objects_that_are_given(
        self, yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path
    ) -> None:
        objects = tmp_path / "objects.json"
        objects.write_text('{"0": ["cat"]}', encoding="utf-8")
        out = tmp_path / "asked" / "chair.jsonl"
        run = here(*llm.ask(yes_server, "chair", "-R", objects, "--images", images, "-o", out))
        assert run.returncode == 0, run.stderr
        command = ("score", "all", out.parent, "-o", tmp_path / "scores")
        # Lines of terminals end elsewhere for other lengths of paths.
        assert "give them with --references" in " ".join(here(*command).stdout.split())
        scored = here(*command, "-R", f"chair={objects}", "--overwrite")
        assert scored.returncode == 0, scored.stderr
        assert "scored m, chair: 1 item" in scored.stderr

    def test_a_file_of_no_benchmark_is_told_one(self, tmp_path: Path, images: Path) -> None:
        questions = write_lines(tmp_path / "q.jsonl", POPE)
        files = ("-R", f"popes={questions}", "--images", images, "-o", tmp_path / "asked")
        run = here("ask", "pope", "vqa", *files, "--url", CLOSED, "--model", "m")
        assert_refused(run, f"several benchmarks are asked; name its own, such as pope={questions}")

    def test_a_budget_is_that_of_all(
        self, command: tuple[Any, ...], yes_server: llm.ScriptedLlm
    ) -> None:
        run = here(*command, "--max-calls", "6")
        assert run.returncode == 3, run.stderr
        assert yes_server.chats == 6

    def test_mistakes_in_the_last_one_come_before_the_first_is_paid_for(
        self, command: tuple[Any, ...], yes_server: llm.ScriptedLlm, tmp_path: Path
    ) -> None:
        write_lines(tmp_path / "d.jsonl", [{"question_id": 1, "image": "0.png"}])
        run = here(*command)
        assert run.returncode == 2
        assert "no key for the question" in run.stderr
        assert yes_server.chats == 0

    def test_files_of_several_name_their_benchmark(
        self, yes_server: llm.ScriptedLlm, tmp_path: Path, images: Path
    ) -> None:
        questions = write_lines(tmp_path / "q.jsonl", POPE)
        files = ("-R", questions, "--images", images)
        shared = here(*llm.ask(yes_server, "pope", "vqa", *files, "-o", tmp_path / "asked"))
        assert_refused(shared, f"name its own, such as pope={questions}")
        own = ("-R", f"pope={questions}", "-R", f"vqa={questions}", "--images", images)
        file = here(*llm.ask(yes_server, "pope", "vqa", *own, "-o", tmp_path / "a.jsonl"))
        assert_refused(file, "each gets an archive of its own; give a folder")
