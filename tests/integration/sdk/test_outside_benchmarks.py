"""Benchmarks from outside: in files that the user names, and in installed packages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy, copytree

import pytest
from msgspec.structs import replace
from support.running import ServerProcess, assert_refused, cli, here
from support.sizes import further

from hallujudge.asking.asked_benchmarks import protocols_of
from hallujudge.metrics.answers.choices import parse_as_labelled
from hallujudge.metrics.answers.closed_questions import AnswerVariant, ClosedQuestions, one_answer
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.errors import BenchmarkError
from hallujudge.metrics.families import FAMILIES, benchmarks_of, remove_benchmarks
from hallujudge.metrics.framework.asking import ONE_LETTER
from hallujudge.sdk import Client, add_benchmarks
from hallujudge.sdk.archives.example_files import usual_files
from hallujudge.sdk.report.report_text import definitions_of

FILE = Path(__file__).resolve().parents[3] / "examples" / "my_benchmark.py"
PAPER = FILE.with_name("my_sides.toml").read_text(encoding="utf-8")
ANSWERS = [
    {"id": 1, "image": "a.jpg", "answer": "Left.", "side": "left"},
    {"id": 2, "image": "b.jpg", "answer": "It is on the right.", "side": "right"},
    {"id": 3, "image": "c.jpg", "answer": "Perhaps.", "side": "left"},
]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in ANSWERS), encoding="utf-8")
    return path


@pytest.fixture
def added() -> Iterator[ClosedQuestions]:
    add_benchmarks([FILE])
    yield benchmarks_of("my_sides")[0]
    remove_benchmarks()


@contextmanager
def served(benchmarks: str, *arguments: str) -> Iterator[str]:
    """Serve some benchmarks from outside in another process."""
    server = ServerProcess(*arguments, HALLUJUDGE_BENCHMARKS=benchmarks)
    try:
        yield server.address
    finally:
        server.stop()


@pytest.mark.usefixtures("added")
def test_python_scores_a_benchmark_of_a_file() -> None:
    with Client.embedded() as client:
        report = client.score("my-sides", responses=ANSWERS)
        assert report.accuracy == pytest.approx(1 / 3)
        assert "word can parse 1 of 3" in report.notes[0]
        strict = client.score("my-sides", responses=ANSWERS, variant="word")
    assert (strict.accuracy, strict.coverage.unscored) == (1.0, 1)


def test_a_declaration_of_the_program_itself_is_added(added: ClosedQuestions) -> None:
    remove_benchmarks()
    assert "my_sides" not in FAMILIES
    add_benchmarks([added])
    with Client.embedded() as client:
        assert client.score("my-sides", responses=ANSWERS).coverage.items == 3


def test_letters_as_labels_are_scored_and_asked_with_their_options(
    added: ClosedQuestions,
) -> None:
    variant = AnswerVariant(name="letter", meaning="The letter.", parse=parse_as_labelled)
    trial = one_answer(id="1", response="B", label="B")
    letters = replace(
        added, name="my-letters", labels=("A", "B", "C", "D"), variants=(variant,), trial=trial
    )
    add_benchmarks([letters])
    [protocol] = protocols_of("my-letters")
    assert [step.prompt for step in protocol.steps] == [ONE_LETTER]
    record = {"id": 1, "image": "a.jpg", "answer": "It is green.", "side": "C"}
    with Client.embedded() as client:
        shown = {**record, "options": ["red", "blue", "green", "grey"]}
        assert client.score("my-letters", responses=[shown]).accuracy == 1
        assert client.score("my-letters", responses=[record]).accuracy == 0


def changed(old: str, new: str) -> str:
    """Return the example's text with one change."""
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("raise SystemExit(3)", "SystemExit"),
        (changed("labels=SIDES", 'labels="left"'), "labels is 'left'; give a tuple"),
        (changed('("answer", "response")', '"answer"'), "keys.response is 'answer'"),
        (changed('compared_by(exact, "exact")', "None"), "variants.parse is None; give a function"),
        (changed('"unscored"', '"unscord"'), "'wrong' or 'no' or 'unscored'"),
        (changed('name="my-sides"', "name=5"), "name is 5; give a text"),
        (changed("scores=(", "scores=(1, "), "scores is"),
        (changed("own=True),)", "own=True),) * 2"), "'accuracy' twice"),
        (changed('ranked_by=("accuracy",)', 'ranked_by=("acuracy",)'), "'acuracy'"),
        (changed('ranked_by=("accuracy",)', "ranked_by=()"), "ranked_by is empty; name the score"),
        (
            changed('ranked_by=("accuracy",)', 'main_score="accuracy"'),
            "no field 'main_score': write it in ranked_by",
        ),
        (
            changed("labels=SIDES", 'bounds="ratios", labels=SIDES'),
            "no field 'bounds': leave it out: the trial item says it",
        ),
        (
            changed("labels=SIDES", "papers=(), labels=SIDES"),
            "no field 'papers': write it in a file NAME.toml beside the module",
        ),
        (
            changed("labels=SIDES", "choices=True, labels=SIDES"),
            "no field 'choices': give the answers of trial their options",
        ),
        *(
            (
                changed('response=("answer"', f'{field}=(), response=("answer"'),
                f"'{field}': {instead}",
            )
            for field, instead in (
                ("question", "leave it out: its usual keys are read"),
                ("own_media", "give keys media=.., or name a key of the id in it too"),
                ("lists", "name its fields in optional, and let unfold or complete call"),
            )
        ),
        (
            changed("    title=", '    summary="What.",\n    title='),
            "no field 'summary': write it in title",
        ),
        (
            changed("labels=SIDES", 'named_files="part", labels=SIDES'),
            "no field 'named_files': give keys.values the field with FileNames",
        ),
        (
            changed("    Keys,", "    Keys,\n    each_record,"),
            "no field 'each_record': write EachRecord",
        ),
        (changed("own=True)", 'own=True, direction="neither")'), "'accuracy', which has no better"),
        (changed("labels=SIDES", 'labels=("up",)'), "not a label; choose from up"),
        (changed('response="Left."', 'response="Right."'), "accuracy of trial is 0.0, not 1.0"),
        (changed("    text = resp", "    1 / 0\n    text = resp"), "ZeroDivisionError"),
        (
            FILE.read_text(encoding="utf-8")
            + "from msgspec import structs\n"
            + "BENCHMARKS = (BENCHMARK, structs.replace(BENCHMARK, unit='x'))\n",
            "my-sides twice",
        ),
        (
            changed("labels=SIDES", "worst=None, labels=SIDES"),
            "no field 'worst': write the method ends",
        ),
        (
            changed("labels=SIDES", "group_by=('part',), labels=SIDES"),
            r"group_by names 'part', which is not a field of keys.fields; choose from nothing",
        ),
        (
            changed('media=("image",)', 'media=("image",), values={"part": {"a": "b"}}'),
            "keys.values names 'part', which is not a field",
        ),
        (
            changed('media=("image",)', 'media=("image",), fields={"part": ()}'),
            "keys.fields has no key for 'part'; give one at least",
        ),
        (
            changed("labels=SIDES", "unfold=lambda records: records, labels=SIDES"),
            "unfold is called with 2 values: too many positional arguments; let it take as many",
        ),
        (
            changed("labels=SIDES", "complete=lambda answer: answer, labels=SIDES"),
            "complete is called with 2 values",
        ),
        (
            changed('compared_by(exact, "exact")', "lambda: 1"),
            "the parse of variant exact is called",
        ),
        (
            changed("labels=SIDES", "labls=SIDES"),
            "line 31: TypeError: Unexpected keyword argument 'labls'; did you mean 'labels'",
        ),
        (changed("own=True", "ow=True"), "line 50: .* argument 'ow'; did you mean 'own'"),
        (changed("labels=SIDES", "labels=SIDS"), "line 36: .*'SIDS' .*; did you mean 'SIDES'"),
        (changed("import count,", "import cuont,"), "line 3: .*; did you mean 'count'"),
        (changed('="unscored"', '="unscord"'), "is 'unscord'; did you mean 'unscored'. Give"),
        (changed('("accuracy",)', '("acuracy",)'), "not a score; did you mean 'accuracy'"),
        (
            changed('unparsed="unscored"', "leaves_out=None"),
            "no field 'leaves_out': write the method leaves_out",
        ),
        ("", "name a ClosedQuestions BENCHMARK, or list several in BENCHMARKS"),
        ("import nothing_of_this_name", "nothing_of_this_name"),
        ("BENCHMARKS = ['pope']", "ClosedQuestions"),
        (FILE.read_text(encoding="utf-8").replace("my-sides", "pope"), "taken"),
        (FILE.read_text(encoding="utf-8").replace("my-sides", "../x"), "../x"),
    ],
)
def test_a_file_that_declares_no_benchmark_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text, encoding="utf-8")
    known = list(FAMILIES)
    with pytest.raises(BenchmarkError, match=problem) as caught:
        add_benchmarks([file])
    assert str(file) in str(caught.value)
    assert known == FAMILIES


NAMED = "test_a_command_takes_the_file_wherever_it_is_named"
PARSER = "test_an_error_of_its_parser_names_line_and_response"


@pytest.mark.parametrize("named", [(f"--benchmark={FILE}",), further(NAMED, ("--benchmark", FILE))])
def test_a_command_takes_the_file_wherever_it_is_named(
    answers: Path, tmp_path: Path, named: tuple[str | Path, ...]
) -> None:
    score = ("score", "my-sides", "-r", answers, "-o", tmp_path / "out")
    arguments = (*score, *named) if len(named) > 1 else (*named, *score, "--workers", "2")
    done = cli(*arguments, "--variant", "word", "--format", "table,html")
    assert done.returncode == 3, done.stderr
    assert "my-sides" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("error", "workers"),
    [
        ("OSError", "1"),
        ("SystemExit", "2"),
        *(further(PARSER, error, "1") for error in ("AssertionError", "SystemExit")),
        *(further(PARSER, error, "2") for error in ("AssertionError", "OSError")),
    ],
)
def test_an_error_of_its_parser_names_line_and_response(
    answers: Path, tmp_path: Path, error: str, workers: str
) -> None:
    file = tmp_path / "bad.py"
    line = "    text = response.strip"
    bad = f"    if response == 'Perhaps.': raise {error}('boom')"
    text = changed(line, f"{bad}\n{line}")
    file.write_text(text, encoding="utf-8")
    score = ("score", "my-sides", "-r", answers, "-o", tmp_path / "out", "--workers", workers)
    done = cli(*score, "--benchmark", file)
    assert done.returncode == 2, done.stderr
    place = text.splitlines().index(bad) + 1
    said = f"the parser of my-sides raised {error} (boom) for the response 'Perhaps.'"
    assert f"error: {file}:{place}: {said}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_count_of_fractions_is_declared_as_such_or_refused(answers: Path, tmp_path: Path) -> None:
    points = 'count("right", "points", lambda a: 1 if a.right else -0.25{})'
    file, whole = tmp_path / "points.py", 'count("right", "right answers", is_right)'
    score = ("score", "my-sides", "-r", answers, "--benchmark", file, "-o")
    file.write_text(changed(whole, points.format("")), encoding="utf-8")
    refused = cli(*score, tmp_path / "refused")
    assert refused.returncode == 2, refused.stderr
    assert "my-sides: the count right is -0.25" in refused.stderr
    assert "integral=False" in refused.stderr
    file.write_text(changed(whole, points.format(", integral=False")), encoding="utf-8")
    runs = [tmp_path / "one", tmp_path / "two"]
    assert cli(*score, runs[0]).returncode == 0
    copytree(runs[0], runs[1])
    compared = cli("compare", *runs, "--benchmark", file)
    assert (compared.returncode, "3 items are scored in both" in compared.stdout) == (0, True)


def test_its_plain_records_are_known_by_their_keys(answers: Path, tmp_path: Path) -> None:
    inspected = cli("archive", "inspect", answers, "--benchmark", FILE)
    assert f"score my-sides --responses {answers}" in inspected.stdout
    scored = cli("score", "all", tmp_path, "-o", tmp_path / "scores", "--benchmark", FILE)
    assert scored.returncode == 0, scored.stderr
    assert (tmp_path / "scores" / "answers" / "my-sides" / "report.json").is_file()


def test_a_file_is_never_found_by_itself(answers: Path) -> None:
    alone = cli("score", "my-sides", "-r", answers, cwd=FILE.parent)
    assert alone.returncode == 2
    assert "my-sides" in alone.stderr


@pytest.mark.usefixtures("added")
def test_runs_are_compared_and_shown_like_any_other(tmp_path: Path) -> None:
    runs = [tmp_path / "first", tmp_path / "second"]
    with Client.embedded() as client:
        for run in runs:
            client.score("my-sides", responses=ANSWERS, folder=run)
    compared = here("compare", *runs, "--benchmark", FILE)
    assert compared.returncode == 0, compared.stderr
    assert "accuracy" in compared.stdout
    assert "My sides" in here("--benchmark", FILE, "metrics", "show", "my-sides").stdout


def test_the_page_has_the_example_that_runs_here() -> None:
    page = (FILE.parents[1] / "docs/how-to/benchmark-of-your-own.md").read_text(encoding="utf-8")
    assert f"```python\n{FILE.read_text(encoding='utf-8')}```" in page


def test_a_server_scores_what_its_owner_names(answers: Path, tmp_path: Path, server: str) -> None:
    score = ("score", "my-sides", "-r", answers, "--benchmark", FILE)
    refused = cli(*score, "--server", server, "-o", tmp_path / "refused")
    assert refused.returncode == 2
    assert "my-sides" in refused.stderr
    assert "by its owner's setting 'benchmarks'" in refused.stderr
    with served(str(FILE)) as owner:
        remote = cli(*score, "--server", owner, "-o", tmp_path / "remote")
    assert remote.returncode == 0, remote.stderr
    assert cli(*score, "-o", tmp_path / "embedded").returncode == 0
    for file in ("report.json", "items.jsonl"):
        one, other = ((tmp_path / name / file).read_bytes() for name in ("remote", "embedded"))
        assert one == other


@pytest.fixture
def other_file(tmp_path: Path) -> Path:
    """Another declaration under the same name, which counts more answers as right."""
    text = FILE.read_text(encoding="utf-8").replace('strip(" .")', 'strip(" .!")')
    path = tmp_path / "other" / "my_benchmark.py"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path


def test_a_server_refuses_a_caller_with_another_declaration(
    answers: Path, tmp_path: Path, other_file: Path
) -> None:
    score = ("score", "my-sides", "-r", answers)
    with served("", "--benchmark", str(FILE)) as owner:
        at = ("--server", owner, "--benchmark")
        refused = cli(*score, "-o", tmp_path / "out", *at, other_file)
        assert cli(*score, "-o", tmp_path / "same", *at, FILE).returncode == 0
    assert refused.returncode == 2
    assert "my-sides is declared in another way here" in refused.stderr
    assert not (tmp_path / "out" / "report.json").exists()


def test_two_files_with_one_name_are_refused_and_a_copy_is_not(
    tmp_path: Path, other_file: Path, added: ClosedQuestions
) -> None:
    copy = tmp_path / "copy.py"
    copy.write_bytes(FILE.read_bytes().replace(b"\n", b"\r\n"))
    add_benchmarks([copy])
    assert benchmarks_of("my_sides") == (added,)
    with pytest.raises(BenchmarkError, match="in another way than") as caught:
        add_benchmarks([other_file])
    assert str(other_file) in str(caught.value)
    assert str(FILE) in str(caught.value)


def test_runs_by_two_declarations_are_not_compared(
    answers: Path, tmp_path: Path, other_file: Path
) -> None:
    for name, file in (("one", FILE), ("two", other_file)):
        done = cli("score", "my-sides", "-r", answers, "-o", tmp_path / name, "--benchmark", file)
        assert done.returncode == 0, done.stderr
    refused = cli("compare", tmp_path / "one", tmp_path / "two", "--benchmark", FILE)
    assert refused.returncode == 2
    assert "decl" in refused.stderr


@pytest.mark.parametrize(("named", "code"), [("", 2), ("my-sides", 0)])
def test_an_installed_benchmark_is_found_but_not_served_unasked(
    answers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, code: int
) -> None:
    package = tmp_path / "site"
    info = package / "sides-1.0.dist-info"
    info.mkdir(parents=True)
    (package / "sides.py").write_text(FILE.read_text(encoding="utf-8"), encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sides\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hallujudge.benchmarks]\nmy-sides = sides\n")
    monkeypatch.setenv("PYTHONPATH", str(package))
    score = ("score", "my-sides", "-r", answers)
    with served(named) as owner:
        remote = cli(*score, "--server", owner, "-o", tmp_path / "remote")
    assert remote.returncode == code, remote.stderr
    assert not code or "my-sides" in remote.stderr


@pytest.fixture
def declared(tmp_path: Path) -> Iterator[Path]:
    """Return a copy of the declaration without the file of a paper beside it."""
    path = tmp_path / "mine.py"
    path.write_text(FILE.read_text(encoding="utf-8"), encoding="utf-8")
    yield path
    remove_benchmarks()


def test_a_paper_is_in_a_file_beside_the_module(declared: Path) -> None:
    shown = here("metrics", "show", "my-sides", "--benchmark", declared).stdout
    assert "No source is declared." in shown
    cited = here("metrics", "cite", "my-sides", "--benchmark", declared)
    assert (cited.returncode, cited.stdout) == (0, "")
    assert "my-sides has no paper; write my_sides.toml beside its module" in cited.stderr
    remove_benchmarks()
    copy(FILE.with_name("my_sides.toml"), declared.parent)
    shown = here("metrics", "show", "my-sides", "--benchmark", declared).stdout
    assert "Us, My sides, 2026; section 3" in shown
    assert "Table 2 ranks models by it." in shown
    found = here("metrics", "cite", "my-sides", "--benchmark", declared).stdout
    assert "title = {{My sides}}" in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("title = My sides", "my_sides.toml can't be read (TOMLDecodeError"),
        ('title = "My sides"', "give it the title, authors and year of a paper"),
        (PAPER.replace("2026", '"then"'), "`$.papers[0].year`); give it the title"),
        (PAPER.replace('"Us"', '["Us"]'), "`$.papers[0].authors`); give it the title"),
        (PAPER.replace("year", "yaer"), "it has 'yaer', which nothing reads; did you mean 'year'?"),
        (PAPER.replace('["accuracy"]', '"accuracy"'), "`$.headline`); give it the title"),
        (
            PAPER.replace("headline", "headlin"),
            "reads; did you mean 'headline'? Choose from papers",
        ),
        (
            PAPER.replace("[metrics.my-", "[metrics.our-"),
            "[metrics] has 'our-sides', which nothing",
        ),
        (PAPER.replace("[metrics.", "[metric."), "it has 'metric', which nothing reads"),
        (PAPER.replace('"Table 2 ranks models by it."', "2"), "`$.ranking_source`"),
        (
            PAPER.replace("accuracy", "f1"),
            "headline is 'f1', which is not a score; choose from accuracy",
        ),
    ],
)
def test_a_mistake_in_the_file_of_a_paper_is_a_sentence(
    declared: Path, text: str, problem: str
) -> None:
    declared.with_name("my_sides.toml").write_text(text, encoding="utf-8")
    assert_refused(here("metrics", "show", "my-sides", "--benchmark", declared), problem)


def test_an_edited_file_is_read_anew(declared: Path) -> None:
    text = declared.read_text(encoding="utf-8")
    edited = text.replace("right answers / answers", "edited").replace(
        "labels=SIDES", 'labels=SIDES, question_files="mine.jsonl"'
    )
    for source, meaning, files in ((text, "right", ()), (edited, "edited", ("mine.jsonl",))):
        declared.write_text(source, encoding="utf-8")
        add_benchmarks([declared])
        assert definitions_of("my-sides")["accuracy"].meaning.startswith(meaning)
        assert usual_files("my-sides").get("references", ()) == files
        remove_benchmarks()


def test_the_options_of_an_edited_file_are_those_of_its_new_text(declared: Path) -> None:
    text = declared.read_text(encoding="utf-8")
    edited = text.replace("labels=SIDES", 'labels=SIDES, question_files="mine.jsonl"')
    for source, has in ((text, False), (edited, True), (text, False)):
        declared.write_text(source, encoding="utf-8")
        shown = here("score", "my-sides", "--help", "--benchmark", declared).stdout
        assert ("--references" in shown) is has
        remove_benchmarks()


def test_a_refused_file_leaves_nothing(added: ClosedQuestions, declared: Path) -> None:
    remove_benchmarks()
    paper = declared.with_name("my_sides.toml")
    paper.write_text('title = "My sides"', encoding="utf-8")
    with pytest.raises(BenchmarkError, match="authors"):
        add_benchmarks([declared])
    paper.write_text(PAPER, encoding="utf-8")
    second = "BENCHMARKS = (BENCHMARK, structs.replace(BENCHMARK, name='pope'))\n"
    declared.write_text(
        f"from msgspec import structs\n{FILE.read_text(encoding='utf-8')}{second}", "utf-8"
    )
    with pytest.raises(BenchmarkError, match="taken"):
        add_benchmarks([declared])
    assert "my_sides" not in FAMILIES
    add_benchmarks([replace(added, title="Sides of a program")])
    assert metric_of(benchmarks_of("my_sides")[0]).papers == ()
