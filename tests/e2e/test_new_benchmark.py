"""A benchmark of one's own, from `hallujudge new benchmark` to an installed package."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from os import utime
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from support import scripted_llm as llm
from support.choice_judge import blocks_of, scripted, step
from support.pictures import png
from support.qa_running import report_of
from support.running import BIN, ServerProcess, assert_refused, cli, here, unmeasured

from hallujudge.metrics.families import remove_benchmarks

NAME = "colour-scales"
SCORES = {"score": 2 / 3, "pair_accuracy": 0.0, "choice_accuracy": 1.0, "open_accuracy": 1.0}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work") / NAME
    assert here("new", "benchmark", NAME, "--out", folder).returncode == 0
    return folder


@pytest.fixture(scope="module")
def installed(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the package is installed in."""
    folder = tmp_path_factory.mktemp("packages")
    words = ("pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation")
    where = ("--python", sys.executable, "--target", folder)
    subprocess.run([BIN / "uv", *words, *where, package], check=True)
    return folder


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Forget what commands in this process added."""
    yield
    remove_benchmarks()


@pytest.fixture
def with_package(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(installed))


def file_of(package: Path) -> Path:
    return package / "colour_scales" / "benchmark.py"


@pytest.mark.usefixtures("with_package")
def test_an_installed_package_is_scored_by_name_and_its_own_test_passes(
    package: Path, tmp_path: Path
) -> None:
    answers = package / "examples" / "answers.jsonl"
    done = cli("score", NAME, "-r", answers, "-o", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    found = report_of(tmp_path / "results")["scores"]
    assert {name: found[name]["value"] for name in SCORES} == pytest.approx(SCORES)
    # The mean rests on the pair, the choice and the open question.
    assert [found[name]["n"] for name in SCORES] == [3, 1, 1, 1]
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", package / "tests"],
        cwd=package,
        env=unmeasured(),
        check=False,
        capture_output=True,
        text=True,
    )
    assert tested.returncode == 0, tested.stdout


@pytest.mark.parametrize(
    ("line", "label", "said"),
    [
        (0, "A", "line 1: the label of a pair is 'A', which is not one of yes, no."),
        (2, "F", "line 3: the label of a choice is 'F', which is not one of A, B, C, D."),
    ],
)
def test_a_label_that_its_part_can_not_have_is_refused(
    package: Path, tmp_path: Path, line: int, label: str, said: str
) -> None:
    lines = (package / "examples" / "answers.jsonl").read_text().splitlines()
    lines[line] = json.dumps(json.loads(lines[line]) | {"label": label})
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines))
    given = ("-r", path, "--benchmark", file_of(package), "-o", tmp_path / "out")
    assert_refused(here("score", NAME, *given), said)


@pytest.mark.usefixtures("with_package")
def test_a_judge_gives_the_verdict_with_the_package_s_prompt_here_and_at_a_server(
    package: Path, tmp_path: Path
) -> None:
    record = json.loads((package / "examples" / "answers.jsonl").read_text().splitlines()[-1])
    del record["judgement"]
    open_answers = [
        {**record, "id": str(n), "pair": str(n), "answer": a} for n, a in enumerate("ab")
    ]
    path = tmp_path / "open.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in open_answers))
    given = ("-r", path, "--judgements", "llm")
    with scripted(step({"a": "right", "b": "wrong"}, "RESPONSE")) as judge:
        model = ("--llm-url", judge.url, "--llm-model", "tiny")
        run = cli("score", NAME, *given, *model, "-o", tmp_path / "here")
        assert run.returncode == 0, run.stderr
        asked = list(judge.requests)
        server = ServerProcess("--benchmark", NAME, *model)
        try:
            run = cli("score", NAME, *given, "--server", server.address, "-o", tmp_path / "there")
            assert run.returncode == 0, run.stderr
        finally:
            server.stop()
    texts = [blocks_of(each) for each in asked]
    assert texts[0] == {"QUESTION": record["question"], "REFERENCE": "40 %", "RESPONSE": "a"}
    assert "a question about a chart" in asked[0]["messages"][0]["content"]
    report = report_of(tmp_path / "here")
    assert report["scores"]["open_accuracy"]["value"] == 0.5
    assert f"{NAME}@" in report["signature"], "the prompt is part of the signature"
    assert report_of(tmp_path / "there")["scores"] == report["scores"]


@pytest.mark.usefixtures("with_package")
def test_worker_processes_of_a_server_know_an_installed_benchmark(
    package: Path, tmp_path: Path
) -> None:
    server = ServerProcess("--benchmark", NAME, "--workers", "2")
    answers = package / "examples" / "answers.jsonl"
    try:
        run = cli("score", NAME, "-r", answers, "--server", server.address, "-o", tmp_path / "out")
    finally:
        server.stop()
    assert run.returncode == 0, run.stderr
    assert report_of(tmp_path / "out")["scores"]["score"]["value"] == pytest.approx(2 / 3)


def test_questions_are_asked_with_their_options(package: Path, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"{number}.png").write_bytes(png(number))
    with scripted(lambda _number, _body: llm.completion("Yes.")) as model:
        done = here(
            "ask", NAME, "--benchmark", file_of(package), "-o", tmp_path / "mine.jsonl",
            "-R", package / "examples" / "answers.jsonl", "--images", tmp_path,
            "--url", model.url, "--model", "tiny",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    asked = {llm.prompt_of(each) for each in model.requests}
    letter = "Answer with the letter of the right option only."
    assert f"Which line falls?\nA. red\nB. blue\nC. green\nD. grey\n{letter}" in asked
    assert "What share is green?" in asked
    # The verdict on the answer that the file has is none on the model's.
    assert "judgement" not in (tmp_path / "mine.jsonl").read_text()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"reference": "label", ', "", "a prompt of judged has the slot {{reference}}"),
        ('"reference": "label"', '"mine": "label"', "a prompt of judged lacks the slot {{mine}}"),
        ('prompts={"": ', 'prompts={"open": ', "judged.prompts needs one prompt"),
        ('prompts={"": ', 'counted="opens", prompts={"": ', "no field 'counted': leave it out"),
        (
            '"reference": "label"',
            '"reference": "lable"',
            "judged.slots has 'lable' for 'reference'",
        ),
        (
            'by=("pair",)',
            'by=("pairs",)',
            "bundle.by names 'pairs', which is not a field of keys.fields; did you mean 'pair'",
        ),
        (
            'name=("side",)',
            'name=("side",), partial=True',
            "no field 'partial': give places a name",
        ),
        (
            "places={",
            'places={"side": ("a", "b"), ',
            "has the name '1', which is not a name; choose from a, b",
        ),
        ('count("choices"', 'count("opens"', "two different counts are named 'opens'"),
        (
            'seen=("part",',
            'seen=("parts",',
            "seen names 'parts', which is not a field of keys.fields; did you mean 'part'",
        ),
        (
            'places={"part"',
            'places={"prt"',
            "places names 'prt', which is not a field of keys.fields; did you mean 'part'",
        ),
    ],
)
def test_a_mistake_is_a_sentence_when_it_is_loaded(
    package: Path, tmp_path: Path, old: str, new: str, problem: str
) -> None:
    assert_refused(
        here("metrics", "show", NAME, "--benchmark", changed(package, tmp_path, old, new)), problem
    )


def test_an_edit_within_the_second_runs_as_it_is(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    declared = changed(package, tmp_path, "", "")
    assert here("metrics", "show", NAME, "--benchmark", declared).returncode == 0
    assert not (declared.parent / "__pycache__").exists(), "the folder is as it was"
    remove_benchmarks()
    before = declared.stat()
    text = declared.read_text(encoding="utf-8")
    declared.write_text(text.replace('"reference": "label"', '"reference": "lable"'), "utf-8")
    utime(declared, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert_refused(here("metrics", "show", NAME, "--benchmark", declared), "has 'lable' for")


def changed(package: Path, folder: Path, old: str, new: str) -> Path:
    """Return a copy of the declaration with one change, beside its prompt."""
    original = file_of(package).parent
    copied = copytree(original, folder / "changed", ignore=ignore_patterns("__pycache__"))
    copied /= "benchmark.py"
    text = copied.read_text(encoding="utf-8")
    assert old in text
    copied.write_text(text.replace(old, new), encoding="utf-8")
    return copied


def test_a_prompt_that_we_do_not_have_is_named(package: Path, tmp_path: Path) -> None:
    text = 'Path(__file__).with_name("judge.txt").read_text(encoding="utf-8")'
    declared = changed(package, tmp_path, text, '"mine"')
    given = ("-r", package / "examples" / "answers.jsonl", "--judgements", "llm")
    model = ("--llm-url", "http://127.0.0.1:9/v1", "--llm-model", "tiny")
    done = here("score", NAME, "--benchmark", declared, *given, *model, "-o", tmp_path / "out")
    assert_refused(done, "no prompt is named 'mine'")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("benchmark",), "your benchmark needs a name"),
        (("benchmark", "pope"), "the name pope is taken"),
        (("benchmark", "Chart Pairs"), "small letters, digits and hyphens"),
        (("benchmark", "json"), "one of its modules"),
        (("benchmark", "class"), "a word of Python's own"),
        (("pope", "twice"), "one word too many"),
    ],
)
def test_names_that_can_t_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(here("new", *words), problem)
    assert not any(tmp_path.iterdir())


def test_files_of_the_user_s_own_stay(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    done = here("new", "benchmark", NAME, "--out", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "README.md exists already, with other content" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["README.md"]


def test_asking_for_an_unknown_benchmark_beside_one_of_one_s_own_is_a_sentence(
    package: Path, tmp_path: Path
) -> None:
    done = here(
        "ask", "nosuch", "--benchmark", file_of(package), "-R", tmp_path / "none.jsonl",
        "--images", tmp_path, "--url", "http://127.0.0.1:9/v1", "--model", "tiny",
        "-o", tmp_path / "mine.jsonl",
    )  # fmt: skip
    assert_refused(done, "benchmark 'nosuch' does not exist")
    assert NAME in done.stderr


def test_the_example_is_what_an_installation_checks(package: Path) -> None:
    checked = here("doctor", "--benchmark", file_of(package))
    assert f"ok  metric {NAME} here" in checked.stdout


def test_only_what_a_verdict_decides_is_judged(package: Path, tmp_path: Path) -> None:
    def record(part: str, number: int, answer: str | None, label: str) -> dict[str, object]:
        options = {"options": {"A": "red", "B": "blue"}} if part == "choice" else {}
        about = {"part": part, "pair": f"{part} {number}", "side": "a", "category": "bars"}
        asked = {"question": f"{part} {number}?", "label": label, "image": f"{number}.png"}
        return {**about, **asked, **options, "answer": answer}

    answers = [
        record("open", 1, "Forty.", "40"),
        record("open", 2, None, "40"),
        record("open", 3, "", "40"),
        record("choice", 4, "I can't tell.", "B"),
        record("pair", 5, "Perhaps.", "yes"),
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in answers))
    with scripted(step({"Forty.": "right"}, "RESPONSE")) as judge:
        run = here(
            "score", NAME, "--benchmark", file_of(package), "-r", path, "-o", tmp_path / "out",
            "--judgements", "llm", "--llm-url", judge.url, "--llm-model", "tiny",
        )  # fmt: skip
    assert run.returncode == 3, run.stderr
    assert [blocks_of(each)["RESPONSE"] for each in judge.requests] == ["Forty."]
    lines = (tmp_path / "out" / "items.jsonl").read_text().splitlines()
    found = {line["id"]: line.get("reason") for line in map(json.loads, lines)}
    assert {name: reason for name, reason in found.items() if reason} == {
        "open 2": "RESPONSE_MISSING",
        "open 3": "RESPONSE_EMPTY",
    }
    scores = report_of(tmp_path / "out")["scores"]
    assert (scores["open_accuracy"]["value"], scores["choice_accuracy"]["value"]) == (1.0, 0.0)


@pytest.mark.parametrize("verdict", [{}, {"judgement": None}])
def test_an_open_answer_without_a_verdict_is_unscored(
    package: Path, tmp_path: Path, verdict: dict[str, None]
) -> None:
    lines = (package / "examples" / "answers.jsonl").read_text().splitlines()
    records = [{k: v for k, v in json.loads(r).items() if k != "judgement"} for r in lines]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({**each, **verdict}) + "\n" for each in records))
    score = ("score", NAME, "-r", path, "-o", tmp_path / "out")
    done = here(*score, "--benchmark", file_of(package))
    assert done.returncode == 3, done.stderr
    assert "2 of 3 items scored; 1 unscored: VERDICT_NULL 1." in done.stdout
