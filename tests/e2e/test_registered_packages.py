"""Layouts, judges and engines of another installed package, which the command line uses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.archive_samples import write_lines
from support.packages import install
from support.running import ServerProcess, cli

LAYOUT = """
from hallujudge.sdk.archives import ArchiveReader, converting

reader = ArchiveReader(
    name="an answer file of a lab",
    keys=("case", "said", "truth"),
    metrics=("pope",),
    convert=converting(
        lambda values: {"id": values["case"], "response": values["said"], "label": values["truth"]}
    ),
)
"""
JUDGE = """
from hallujudge.judge_service.judges import JudgedItem, JudgeIdentity, count_verdicts
from hallujudge.judge_service.llm.budget import Usage
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict


class Exact:
    name = "exact"
    identity = JudgeIdentity(kind="rule", model="exact-1")

    async def judge(self, items, *, has_fallback=False):
        return [JudgedItem.by(self.name, self.verdicts(item), Usage()) for item in items]

    def verdicts(self, item):
        count_verdicts(self.name, len(item.claims))
        known = {(subject, thing) for subject, _, thing in item.reference_triplets}
        return [
            ClaimVerdict(
                triplet=claim,
                judge=self.name,
                verdict=Verdict.SUPPORTED if claim[::2] in known else Verdict.NOT_SUPPORTED,
            )
            for claim in item.claims
        ]


class No(Exact):
    name = "no"

    def verdicts(self, item):
        none = Verdict.NOT_SUPPORTED
        return [ClaimVerdict(triplet=c, judge=self.name, verdict=none) for c in item.claims]


class Never(No):
    name = "never"


class Lazy(Exact):
    def verdicts(self, item):
        return []


class Broken(Exact):
    def verdicts(self, item):
        raise KeyError("weights")


class Other(Exact):
    name = "llm"


class Needs(Exact):
    def __init__(self, path):
        pass


class Nameless(Exact):
    identity = "exact-1"


class Hidden(Exact):
    @property
    def identity(self):
        raise OSError("no weights")


class Ends(Exact):
    def verdicts(self, item):
        raise SystemExit(3)


class Strange(Exact):
    def verdicts(self, item):
        supported = Verdict.SUPPORTED
        return [
            ClaimVerdict(triplet=("q", "q", "q"), judge=self.name, verdict=supported)
            for _ in item.claims
        ]


class Foreign(No):
    name = "exact"

    def verdicts(self, item):
        none = Verdict.NOT_SUPPORTED
        return [ClaimVerdict(triplet=c, judge="llm", verdict=none) for c in item.claims]
"""
ENGINE = """
from hallujudge.sdk.runs import PoolParts


def pool(settings, workers, address):
    print("the lab's pool")
    return PoolParts(settings, workers)


def broken(settings, workers, address):
    raise OSError("no queue")
"""
ANSWERS = [
    {"image_id": 1, "question": "What is there?", "response": "A cup is on the table."},
    {"image_id": 2, "question": "What is there?", "response": "A dog is on the grass."},
]
GRAPHS = {"1": [["cup", "is on", "table"]], "2": [["cat", "is on", "grass"]]}
SCORED = ("score", "tri-he", "-r", "answers.jsonl", "-R", "graphs.json", "-o", "out", "--judge")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path of the processes that the test starts."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "lab_layout.py").write_text(LAYOUT)
    (folder / "lab_judge.py").write_text(JUDGE)
    (folder / "lab_engine.py").write_text(ENGINE)
    others = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), others])))
    write_lines(tmp_path / "answers.jsonl", ANSWERS)
    (tmp_path / "graphs.json").write_text(json.dumps(GRAPHS))
    return folder


def test_a_layout_is_recognised_and_scored(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(package, monkeypatch, "hallujudge.archive_readers", "lab = lab_layout:reader")
    rows = [{"case": n, "said": "Yes.", "truth": truth} for n, truth in enumerate(("yes", "no"))]
    table = write_lines(tmp_path / "cases.jsonl", rows)
    assert "an answer file of a lab" in cli("archive", "inspect", table).stdout
    run = cli("score", "pope", "-r", table, "-o", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["scores"]["accuracy"]["value"] == 0.5


def test_a_judge_decides_and_is_named(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(package, monkeypatch, "hallujudge.judges", "exact = lab_judge:Exact")
    run = cli(*SCORED, "exact", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["scores"]["hallu_i"]["value"] == 0.5
    assert "|judge:exact-1|" in f"{report['signature']}|"
    lines = (tmp_path / "out/items.jsonl").read_text().splitlines()
    asked = [part for line in lines for part in json.loads(line)["evidence"]["judging"]]
    assert [(part["judge"], part["answered"]) for part in asked] == [("exact", 1)] * 2
    assert " exact" in cli("metrics", "show", "tri-he").stdout


def test_such_judges_vote_and_take_their_turn(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"exact": "Exact", "no": "No", "never": "Never"}
    entries = [f"{name} = lab_judge:{made}" for name, made in names.items()]
    install(package, monkeypatch, "hallujudge.judges", *entries)
    run = cli(*SCORED[:-1], "--panel", "exact,no,never", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["scores"]["hallu_i"]["value"] == 1.0
    monkeypatch.setenv("HALLUJUDGE_JUDGE_ORDER", "exact,no")
    run = cli(*SCORED, "router", "--overwrite", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["scores"]["hallu_i"]["value"] == 0.5


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("lab_judge:Lazy", "the judge exact did not return one verdict for each claim"),
        (
            "lab_judge:Broken",
            "the judge exact (lab_judge:Broken) failed (KeyError: 'weights'); correct it",
        ),
        ("lab_judge:Other", "the judge exact (lab_judge:Other) is Other, not a Judge with this"),
        ("lab_judge:Needs", "the judge exact (lab_judge:Needs) failed (TypeError: "),
        ("lab_judge:Nameless", "the judge exact (lab_judge:Nameless) is Nameless, not a Judge"),
        ("lab_judge:Hidden", "the judge exact (lab_judge:Hidden) failed (OSError: no weights"),
        ("lab_judge:Ends", "the judge exact (lab_judge:Ends) failed (SystemExit: 3); correct it"),
        ("lab_judge:Strange", "the judge exact did not return one verdict for each claim"),
        ("lab_judge:Foreign", "the judge exact returned verdicts of another name"),
        ("lab_judge:JUDGED", "the judge exact (lab_judge:JUDGED) can't be loaded"),
    ],
)
def test_a_judge_that_fails_is_named(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    install(package, monkeypatch, "hallujudge.judges", f"exact = {value}")
    run = cli(*SCORED, "exact", cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    assert said in run.stderr


def test_a_name_that_two_packages_register_is_refused(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lab", "shop"):
        install(package, monkeypatch, "hallujudge.judges", "exact = lab_judge:Exact", name=name)
    run = cli(*SCORED, "exact", cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    packages = "lab (lab_judge:Exact) and shop (lab_judge:Exact)"
    assert f"the judge exact is registered by {packages}; uninstall all but one" in run.stderr


def test_workers_run_on_an_engine(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [f"{name} = lab_engine:{name}" for name in ("pool", "broken", "gone")]
    install(package, monkeypatch, "hallujudge.engines", *entries)
    rows = [{"id": n, "answer": "Yes.", "label": "yes", "image": n} for n in range(2)]
    table = write_lines(tmp_path / "cases.jsonl", rows)
    command = ("score", "pope", "-r", table, "-o", tmp_path / "out", "--workers", "2", "--engine")
    scored = cli(*command, "pool")
    assert scored.returncode == 0, scored.stderr
    assert "the lab's pool" in scored.stdout
    for name, problem in {
        "broken": "the engine broken (lab_engine:broken) failed (OSError: no queue); correct it",
        "gone": "the engine gone (lab_engine:gone) can't be loaded: module 'lab_engine' has no",
        "slurm": "--engine is 'slurm'; choose from local, broken, gone, pool, ray",
    }.items():
        refused = cli(*command, name, "--overwrite")
        assert refused.returncode == 2, refused.stderr
        assert problem in refused.stderr


def test_callers_of_a_server_can_not_name_it(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(package, monkeypatch, "hallujudge.judges", "exact = lab_judge:Exact")
    server = ServerProcess()
    try:
        run = cli(*SCORED, "exact", "--server", server.address, cwd=tmp_path)
    finally:
        server.stop()
    assert run.returncode == 2, run.stderr
    assert "--judge names something that this server does not offer" in run.stderr


def test_no_judge_of_another_package_takes_the_name_of_ours(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(package, monkeypatch, "hallujudge.judges", "llm = lab_judge:Other")
    run = cli(*SCORED, "llm", cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    said = (
        "the judge llm of the package added (lab_judge:Other) is not used, because Hallujudge has"
    )
    assert run.stderr.count(said) == 1
    assert not (tmp_path / "out" / "report.json").exists()


@pytest.mark.parametrize(
    ("tracker", "said"),
    [
        ("def at(place, *, model, dataset):\n    raise OSError('no place')", "OSError: no place"),
        ("def at(place):\n    return print", "TypeError: "),
        ("def at(place, **_):\n    return lambda report: 1 / 0", "ZeroDivisionError: division by"),
    ],
)
def test_a_tracker_that_fails_is_named(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracker: str, said: str
) -> None:
    (package / "lab_tracker.py").write_text(tracker)
    install(package, monkeypatch, "hallujudge.trackers", "mine = lab_tracker:at")
    rows = [{"id": 1, "response": "Yes.", "label": "yes"}]
    table = write_lines(tmp_path / "cases.jsonl", rows)
    assert cli("score", "pope", "-r", table, "-o", tmp_path / "out").returncode == 0
    run = cli("report", tmp_path / "out", "--to", "mine:x")
    assert run.returncode == 2, run.stderr
    assert f"the tracker mine (lab_tracker:at) failed ({said}" in run.stderr
    assert "Traceback" not in run.stderr


def test_layouts_that_fail_while_they_are_listed_are_named(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "lab_lazy.py").write_text("readers = (1 / 0\n for _ in 'a')")
    install(package, monkeypatch, "hallujudge.archive_readers", "lab = lab_lazy:readers")
    table = write_lines(tmp_path / "cases.jsonl", [{"id": 1, "response": "Yes.", "label": "yes"}])
    run = cli("score", "pope", "-r", table, "-o", tmp_path / "out")
    assert run.returncode == 2, run.stderr
    said = "the archive reader lab (lab_lazy:readers) failed (ZeroDivisionError: division by zero)"
    assert said in run.stderr


def test_an_error_of_several_lines_is_one(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "lab_loud.py").write_text("raise RuntimeError('at import\\nsecond line')")
    install(package, monkeypatch, "hallujudge.judges", "exact = lab_loud:Judge")
    run = cli(*SCORED, "exact", cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    assert "can't be loaded: at import second line. Update or" in run.stderr


def test_a_broken_package_of_benchmarks_keeps_no_other_from_being_scored(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "lab_pairs.py").write_text("BENCHMARK = 1 / 0")
    install(package, monkeypatch, "hallujudge.benchmarks", "lab-pairs = lab_pairs")
    said = "the benchmark lab-pairs can't be loaded: ZeroDivisionError: division by zero"
    table = write_lines(tmp_path / "cases.jsonl", [{"id": 1, "response": "Yes.", "label": "yes"}])
    assert cli("score", "pope", "-r", table, "-o", tmp_path / "out").returncode == 0
    assert "pope" in cli("score", "--help").stdout
    listed = cli("metrics", "list")
    assert listed.returncode == 0
    assert said in listed.stderr
    checked = cli("doctor")
    assert said in checked.stdout
    for command in (("score", "lab-pairs", "-r", table), ("metrics", "show", "lab-pairs")):
        missed = cli(*command)
        assert missed.returncode == 2, missed.stderr
        assert said in missed.stderr
