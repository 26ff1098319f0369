"""Every command of the page "The papers' tables" makes its table from runs on generated input."""

from __future__ import annotations

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
    answers = {f"v{number}": rng.choice("ABC") for number in range(20)}
    for name, content in zip(names, (answers, annotations, orders), strict=True):
        (folder / name).write_text(json.dumps(content))
    given = [folder / name for name in names]
    return scored(
        folder / "run",
        *("vidhal-mcqa", "-r", given[0], "-R", given[1], "--options", given[2]),
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
}
# What stands for a run of some kind on the page.
KINDS = {"POPE_RUN": "POPE", "CHAIR_RUN": "captions", "VQA_RUN": "VQA"}
# Rows of POPE's paper that analyze captions.
OF_CAPTIONS = {"instructions", "hit_ratio", "accumulated", "frequent_objects", "by_length"}
# A table of these needs what the runs of this test do not have; its own tests make it.
MADE_ELSEWHERE = {
    *("misalignment", "display_order"),
    *("label_scores", "label_changes", "changed_labels"),
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


def filled(command: str, found: Sequence[Path], wordnet: Path) -> list[str | Path]:
    """Return a command of the page with runs for its placeholders, and names for all of them."""
    words = shlex.split(command)[1:]
    several = "RUN…" in words
    used = found if several else found[: words.count("RUN")]
    names = [words[at + 1] for at, word in enumerate(words) if word == "--name"]
    plain, skip = [], False
    for word in words:
        if skip or word in ("RUN", "RUN…", "…", "--name"):
            skip = word == "--name"
            continue
        plain.append(str(wordnet) if word == "auto" else word)
    return [plain[0], *used, *plain[1:], *_named(names, used)]


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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.paper}: {row.what}")
def test_the_command_makes_the_table(
    row: Row, runs: Callable[[str], list[Path]], tmp_path: Path
) -> None:
    wordnet = write_wordnet(tmp_path / "wordnet")
    captions = bool(OF_CAPTIONS & {*row.tables})
    for command in row.commands:
        if "FILE" in command or "RUN" not in command:
            continue
        found = runs("captions" if captions else row.paper)
        if kinds := re.findall(r"\b[A-Z]+_RUN\b", command):
            command = re.sub(r"\b[A-Z]+_RUN\b", "RUN", command)
            found = [runs(KINDS[kind])[0] for kind in kinds]
        ran = here(*filled(command, found, wordnet), "--format", "json")
        assert ran.returncode == 0, ran.stderr
        if command.startswith("hallujudge analyze"):
            made: dict[str, Any] = json.loads(ran.stdout)["analyses"]
            expected = {*row.tables} - MADE_ELSEWHERE
            assert expected <= made.keys(), (expected, ran.stderr)
            assert all(made[name]["rows"] for name in expected)


def test_every_analysis_is_on_the_page() -> None:
    source = Path(__file__).parents[2] / "sdk" / "hallujudge" / "sdk" / "analysis"
    own = {"pairs", "prediction_errors", "krippendorff_alpha"}
    for path in source.glob("*.py"):
        if path.stem == "given_judgements":
            continue
        for name in re.findall(r'AnalysisTable\(\s*name="([a-z_]+)"', path.read_text()):
            assert name in own or any(name in row.tables for row in ROWS), (path.name, name)
