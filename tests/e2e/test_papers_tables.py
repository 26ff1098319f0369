"""Every command of the page "The papers' tables" makes its table from runs on generated input."""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.qa_samples import infact_lines, infact_questions, write_lines
from support.running import here
from support.wordnet_sample import write_wordnet

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "papers-tables.md"
OBJECTS = ("dining table", "cat", "dog", "car", "chair", "bowl", "cup", "fork")


class Row(NamedTuple):
    paper: str
    what: str
    commands: tuple[str, ...]
    tables: tuple[str, ...]


def page_rows() -> Iterator[Row]:
    paper = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            paper = line[3:].split(" ")[0]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and "hallujudge" in cells[2]:
            quoted = re.findall(r"`([^`]+)`", cells[2])
            commands = tuple(each for each in quoted if each.startswith("hallujudge "))
            tables = tuple(each for each in quoted if re.fullmatch("[a-z_]+", each))
            yield Row(paper, cells[0], commands, tables)


ROWS = [row for row in page_rows() if row.commands]


def scored(folder: Path, *arguments: str | Path) -> Path:
    ran = here("score", *arguments, "--out", folder)
    assert ran.returncode in (0, 3), ran.stderr
    return folder


def shown_objects(rng: random.Random) -> list[str]:
    return ["dining table", *rng.sample(OBJECTS[1:], 3)]


def chair_run(folder: Path, seed: int) -> Path:
    rng = random.Random(seed)
    images = {str(number): shown_objects(random.Random(number)) for number in range(40)}
    said = {
        image: f"A {rng.choice(objects)} and a {rng.choice(OBJECTS)} and a {rng.choice(OBJECTS)}."
        for image, objects in images.items()
    }
    answers = write_lines(
        folder / "captions.jsonl", [{"image_id": i, "caption": text} for i, text in said.items()]
    )
    objects = folder / "objects.json"
    objects.write_text(json.dumps(images))
    return scored(folder / "run", "chair", "-r", answers, "-R", objects)


def pope_run(folder: Path, seed: int) -> Path:
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(40):
        shown = shown_objects(random.Random(number))
        for category in ("random", "popular", "adversarial"):
            for name in (shown[1], next(each for each in OBJECTS if each not in shown)):
                rows.append(
                    {
                        "question_id": len(rows),
                        "image": str(number),
                        "text": f"Is there a {name} in the image?",
                        "label": "yes" if name in shown else "no",
                        "category": category,
                        "object": name,
                        "answer": rng.choice(("Yes", "No", "Yes, there is.")),
                    }
                )
    answers = write_lines(folder / "answers.jsonl", rows)
    groups = ("--group-by", "object", "--group-by", "category")
    return scored(folder / "run", "pope", "-r", answers, *groups)


def tri_he_run(folder: Path, seed: int) -> Path:
    rng = random.Random(seed)
    scene = [["dog", "near", "couch"], ["dog", "on", "couch"], ["couch", "is", "red"]]
    rows = [
        {
            "image_id": str(number),
            "question": "What?",
            "response": "A dog is near the couch. A cat sits on a red couch.",
            "human_score": [rng.randint(1, 5), rng.randint(1, 5)],
        }
        for number in range(8)
    ]
    graphs = [{"image_id": str(number), "triplets": scene[: 1 + number % 3]} for number in range(8)]
    return scored(
        folder / "run",
        "tri-he",
        "--responses",
        write_lines(folder / "answers.jsonl", rows),
        "--references",
        write_lines(folder / "graphs.jsonl", graphs),
    )


def mementos_run(folder: Path, seed: int) -> Path:
    rng = random.Random(seed)
    behaviors = ["run", "jump", "eat", "walk", "sit"]
    rows = []
    for number in range(30):
        true = rng.sample(behaviors, 2 + number % 3)
        rows.append(
            {
                "id": str(number),
                "domain": rng.choice(("daily_life", "robotics")),
                "reference_objects": ["man", "ball"],
                "predicted_objects": rng.sample(["man", "cat", "ball"], 2),
                "reference_behaviors": true,
                "predicted_behaviors": rng.sample(behaviors, 3),
            }
        )
    keywords = write_lines(folder / "keywords.jsonl", rows)
    return scored(folder / "run", "mementos", "--keywords", keywords)


def vidhal_run(folder: Path, seed: int) -> Path:
    rng = random.Random(seed)
    return of_vidhal(folder, "vidhal-mcqa", lambda: rng.choice("ABC"))


def ordering_run(folder: Path, seed: int) -> Path:
    rng = random.Random(seed)
    return of_vidhal(folder, "vidhal-ordering", lambda: rng.sample("ABC", 3))


def of_vidhal(folder: Path, metric: str, answer: Callable[[], object]) -> Path:
    annotations = [
        {
            "video": f"v{number}",
            "captions": {"1": "one", "2": "two", "3": "three"},
            "aspect": "attribute",
            "subaspect": ("size", "shape")[number % 2],
        }
        for number in range(20)
    ]
    orders = {f"v{number}": {"A": "2", "B": "1", "C": "3"} for number in range(20)}
    names = ("answers.json", "annotations.json", "options.json")
    answers = {f"v{number}": answer() for number in range(20)}
    for name, content in zip(names, (answers, annotations, orders), strict=True):
        (folder / name).write_text(json.dumps(content))
    given = [folder / name for name in names]
    return scored(
        folder / "run",
        *(metric, "-r", given[0], "-R", given[1], "--options", given[2]),
        *("--group-by", "subaspect"),
    )


def infact_run(folder: Path, seed: int) -> Path:
    lines = infact_lines(infact_questions(60, seed), seed)
    return scored(folder / "run", "infact", "-r", write_lines(folder / "runs.jsonl", lines))


def vqa_run(folder: Path, seed: int) -> Path:
    rng = random.Random(seed)
    rows = [
        {
            "question_id": number,
            "image": str(number),
            "response": "It is red.",
            "direct_answers": ["red", "red", "dark red"],
            "judgement": rng.choice(("red", "dark red", "<NAN>")),
        }
        for number in range(20)
    ]
    return scored(folder / "run", "vqa", "-r", write_lines(folder / "answers.jsonl", rows))


MAKERS: Mapping[str, Callable[[Path, int], Path]] = {
    "POPE": pope_run,
    "Tri-HE": tri_he_run,
    "Mementos": mementos_run,
    "VidHal": vidhal_run,
    "INFACT": infact_run,
    "captions": chair_run,
    "VQA": vqa_run,
    "orders": ordering_run,
}
# What stands for a run of some kind on the page.
KINDS = {
    "POPE_RUN": "POPE",
    "CHAIR_RUN": "captions",
    "VQA_RUN": "VQA",
    "MCQA_RUN": "VidHal",
    **dict.fromkeys(("NAIVE_RUN", "RELATIVE_RUN", "ORDERING_RUN"), "orders"),
}
# Rows of POPE's paper that analyze captions.
OF_CAPTIONS = {"instructions", "hit_ratio", "accumulated", "frequent_objects", "by_length"}
# A table of these needs what the runs of this test do not have; its own tests make it.
MADE_ELSEWHERE = {
    *("label_scores", "label_changes", "changed_labels"),
    *("judge_agreement", "judge_correlation"),
}
# The tables and figures of each paper: the last number of its tables, of its figures and of the
# tables of its appendix.
OF_PAPERS = {
    "POPE": (12, 3, 0),
    "Tri-HE": (10, 8, 0),
    "Mementos": (6, 23, 0),
    "VidHal": (4, 36, 0),
    "INFACT": (3, 6, 5),
}


def pairs_file(path: Path) -> None:
    pairs = [(f"v{number}", pair) for number in range(20) for pair in ("AB", "AC", "BC")]
    write_lines(path, [{"video": v, "pair": [*pair], "chosen": pair[0]} for v, pair in pairs])


def people_file(path: Path) -> None:
    choices = [[True, True, number % 4 > 0] for number in range(19)] + [[False, False, True]]
    write_lines(path, [{"video": f"v{n}", "choices": each} for n, each in enumerate(choices)])


def votes_file(path: Path) -> None:
    vote = {"video": "v1", "judge": "llama", "prompt": "1", "answer": "yes"}
    write_lines(path, [{**vote, "criterion": c} for c in ("realism", "ordering", "relevance")])


def audit_file(path: Path) -> None:
    case = {"question_id": "q1", "subtype": "misleading", "choices": ["A", "A", None]}
    write_lines(path, [{**case, "operator": name} for name in ("compression", "motion_blur")])


def sheet_file(path: Path) -> None:
    """Fill the sheet that the command before wrote; that one gets the path alone."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as sheet:
        rows = [*csv.DictReader(sheet)]
    with path.open("w", encoding="utf-8", newline="") as sheet:
        writer = csv.DictWriter(sheet, [*rows[0]])
        writer.writeheader()
        for number, row in enumerate(rows):
            writer.writerow({**row, "score": 1 + number % 5, "annotator": "someone"})


FILES: Mapping[str, Callable[[Path], None]] = {
    "--pairs": pairs_file,
    "--people": people_file,
    "--votes": votes_file,
    "--audit": audit_file,
    "--sheet": sheet_file,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Path]]:
    made: dict[str, list[Path]] = {}

    def of(kind: str) -> list[Path]:
        if kind not in made:
            folders = [tmp_path_factory.mktemp(f"{kind.lower()}{seed}") for seed in range(4)]
            made[kind] = [MAKERS[kind](folder, seed) for seed, folder in enumerate(folders)]
        return made[kind]

    return of


def filled(command: str, found: Sequence[Path], folder: Path) -> list[str | Path]:
    """Return a command of the page with runs and files for its placeholders, and names for runs."""
    words = shlex.split(command)[1:]
    several = "RUN…" in words
    used = found if several else found[: words.count("RUN")]
    names = [words[at + 1] for at, word in enumerate(words) if word == "--name"]
    made: list[str | Path] = []
    left = iter(used)
    for before, word in zip(("", *words), words, strict=False):
        if "--name" in (before, word) or word == "…":
            continue
        if word == "FILE":
            made.append(folder / f"given{before}")
            FILES[before](folder / f"given{before}")
        elif word == "DIR":
            made.append(folder / "made")
        elif word == "auto":
            made.append(write_wordnet(folder / "wordnet"))
        elif word in ("RUN", "RUN…"):
            made += left if several else [next(left)]
        else:
            made.append(word)
    return [*made, *_named(names, used)]


def _named(names: Sequence[str], used: Sequence[Path]) -> Iterator[str]:
    """Yield a name for each run: those that are given, else ones that cross two models."""
    if not names:
        return
    keys = [part.partition("=")[0] for part in names[0].split(",")]
    for number in range(len(used)):
        if len(names) > 1:
            name = names[number]
        else:
            values = (f"{key}={(number // 2, number % 2)[place]}" for place, key in enumerate(keys))
            name = ",".join(values)
        yield from ("--name", name)


def objects_of_images(folder: Path) -> list[str | Path]:
    images = {str(number): shown_objects(random.Random(number)) for number in range(20)}
    path = folder / "objects.json"
    path.write_text(json.dumps(images))
    return ["--objects", path, "--sampling", "adversarial", "--images", "5", "-o", folder / "made"]


def kept_keywords(folder: Path) -> list[str | Path]:
    row = {f"{side}_{kind}": ["run"] for side in ("reference", "predicted") for kind in KEYWORDS}
    rows = [{"id": str(n), "domain": "comics", "frames": 4 + n % 3, **row} for n in range(9)]
    path = write_lines(folder / "keywords.jsonl", rows)
    return ["--keywords", path, "-o", folder / "made"]


KEYWORDS = ("objects", "behaviors")
# Commands that begin with no run: their page names the first words alone.
FROM_FILES: Mapping[str, Callable[[Path], list[str | Path]]] = {
    "hallujudge build pope --objects FILE": objects_of_images,
    "hallujudge score mementos --group-by frames": kept_keywords,
    "hallujudge score mementos --keywords": kept_keywords,
}
# Each has tests of its own, with the servers of models that it needs.
NEEDS_A_MODEL = {
    "hallujudge score vqa",
    "hallujudge build vidhal",
    "hallujudge build vidhal-best",
    "hallujudge ask vidhal-ordering",
    "hallujudge ask vidhal-ordering --protocol relative-ends",
}


@pytest.mark.parametrize("command", FROM_FILES)
def test_the_command_makes_it_from_files(command: str, tmp_path: Path) -> None:
    words = command.removesuffix(" --objects FILE").removesuffix(" --keywords").split()[1:]
    ran = here(*words, *map(str, FROM_FILES[command](tmp_path)))
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "made").exists()
    if "frames" in command:
        groups = json.loads((tmp_path / "made" / "report.json").read_text())["groups"]
        assert {*groups["frames"]} == {"4", "5", "6"}


def test_every_command_of_the_page_is_run() -> None:
    others = {each for row in ROWS for each in row.commands if "RUN" not in each}
    assert others == {*FROM_FILES} | NEEDS_A_MODEL


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.paper}: {row.what}")
def test_the_command_makes_the_table(
    row: Row, runs: Callable[[str], list[Path]], tmp_path: Path
) -> None:
    captions = bool(OF_CAPTIONS & {*row.tables})
    for command in row.commands:
        if "RUN" not in command:
            continue
        found = runs("captions" if captions else row.paper)
        if kinds := re.findall(r"\b[A-Z]+_RUN\b", command):
            command = re.sub(r"\b[A-Z]+_RUN\b", "RUN", command)
            found = [runs(KINDS[kind])[0] for kind in kinds]
        prints = not any(word in command for word in (" label ", " rescore "))
        in_json = ("--format", "json") if prints else ()
        ran = here(*filled(command, found, tmp_path), *in_json)
        assert ran.returncode == 0, ran.stderr
        if command.startswith("hallujudge analyze"):
            made: dict[str, Any] = json.loads(ran.stdout)["analyses"]
            expected = {*row.tables} - MADE_ELSEWHERE
            assert expected <= made.keys(), (expected, ran.stderr)
            assert all(made[name]["rows"] for name in expected)


def numbered(cell: str) -> Iterator[tuple[str, str]]:
    """Yield the tables and figures that a cell names, such as ``Tables 2, 9`` or ``5 to 7``."""
    for kind, numbers in re.findall(r"(Table|Figure)s? ((?:A?\d+(?:, | to |\b))+)", cell):
        for part in numbers.strip(", ").split(", "):
            first, _, last = part.partition(" to ")
            if not last:
                yield kind, first
                continue
            for number in range(int(first), int(last) + 1):
                yield kind, str(number)


def test_every_table_and_figure_of_the_papers_is_on_the_page() -> None:
    named: dict[str, set[tuple[str, str]]] = {}
    paper = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            paper = line[3:].split(" ")[0]
        elif line.startswith("| "):
            named.setdefault(paper, set()).update(numbered(line.split("|")[1]))
    for paper, (tables, figures, appendix) in OF_PAPERS.items():
        every = {("Table", str(number)) for number in range(1, tables + 1)}
        every |= {("Figure", str(number)) for number in range(1, figures + 1)}
        every |= {("Table", f"A{number}") for number in range(1, appendix + 1)}
        assert named[paper] == every, paper


def test_every_analysis_is_on_the_page() -> None:
    source = Path(__file__).parents[2] / "studies" / "hallujudge" / "studies" / "analysis"
    own = {"pairs", "prediction_errors", "krippendorff_alpha"}
    for path in source.glob("*.py"):
        if path.stem == "agreement":
            continue
        for name in re.findall(r'AnalysisTable\(\s*name="([a-z_]+)"', path.read_text()):
            assert name in own or any(name in row.tables for row in ROWS), (path.name, name)
