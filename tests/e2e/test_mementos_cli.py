"""``hallujudge score mementos`` and ``hallujudge graph``, as a user runs them."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.running import assert_refused, here, read_rows

ROWS = [
    ("a.png", "A man picks up a ball and throws it to a dog.", "A man throws a ball to a cat."),
    ("b.png", "A robot arm opens a drawer.", "The robotic arm closes the drawer."),
    ("c.png", "A girl rides a bike. She falls.", "Nothing."),
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    references, responses = tmp_path / "human.csv", tmp_path / "model.jsonl"
    lines = ["image_name,description", *(f'{image},"{human}"' for image, human, _ in ROWS)]
    references.write_text("\n".join(lines) + "\n")
    responses.write_text(
        "".join(
            json.dumps({"image": image, "description": model, "model": "m", "domain": "general"})
            + "\n"
            for image, _, model in ROWS
        )
    )
    return responses, references


def score(responses: Path, references: Path | None, out: Path, *more: str) -> dict[str, Any]:
    given = () if references is None else ("--references", references)
    run = here("score", "mementos", "--responses", responses, *given, "--out", out, *more)
    assert run.returncode == 0, run.stderr
    report: dict[str, Any] = json.loads((out / "report.json").read_text())
    return report


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_embedded_equals_remote(
    files: tuple[Path, Path], server: str, tmp_path: Path, variant: str
) -> None:
    outputs = []
    for name, where in (("here", ()), ("there", ("--server", server))):
        score(*files, tmp_path / name, "--variant", variant, "--format", "html",
              "--group-by", "model", *where)  # fmt: skip
        outputs.append(
            [
                (tmp_path / name / file).read_bytes()
                for file in ("report.json", "items.jsonl", "report.html")
            ]
        )
    assert outputs[0] == outputs[1]
    report = json.loads(outputs[0][0])
    assert set(report["groups"]) == {"domain", "model"}
    assert set(report["scores"]) == {
        f"{kind}_{name}"
        for kind in ("object", "behavior")
        for name in ("recall", "precision", "f1")
    }


RELEASED = {"man": {"": ["man"]}, "ball": {"": ["ball"]}, "sofa": {"": ["couch"]}}


@pytest.mark.parametrize(
    ("graphs", "variant", "mapped", "noted"),
    [
        ((), "published", "both", True),
        ((), "corrected", "both", False),
        (("objects",), "published", "both+responses", True),
        (("objects", "behaviors"), "published", "responses", False),
        (("objects", "behaviors"), "corrected", "both", False),
    ],
)
def test_the_signature_and_a_note_say_whose_words_are_mapped(
    files: tuple[Path, Path],
    tmp_path: Path,
    graphs: tuple[str, ...],
    variant: str,
    mapped: str,
    noted: bool,
) -> None:
    released = tmp_path / "released.json"
    released.write_text(json.dumps(RELEASED))
    flags = {"objects": "--object-graph", "behaviors": "--behavior-graph"}
    given = [text for kind in graphs for text in (flags[kind], str(released))]
    report = score(*files, tmp_path / "out", "--variant", variant, *given)
    assert f"|match:keywords-1,map={mapped}|" in report["signature"]
    told = expected_message("judge_service.engine.families.mementos:human-keywords-are-mapped-too")
    assert any(told in note for note in report["notes"]) == noted


def test_extract_and_normalize_are_the_same_at_a_server(server: str) -> None:
    from hallujudge.sdk import Client
    from hallujudge.sdk.errors import InvalidInputError

    with Client.embedded() as here, Client(server) as there:
        texts = ["A man picks up two red balls.", "", "Çà"]
        found = here.extract("mementos", texts)
        assert found == there.extract("mementos", texts)
        assert {(claim.claim, claim.kind) for claim in found[0]} >= {
            ("man", "objects"),
            ("pick up", "behaviors"),
        }
        for client in (here, there):
            with pytest.raises(
                InvalidInputError,
                match=expected_message(
                    "judge_service.engine.families.mementos:option-extractor-is-other"
                ),
            ):
                client.extract("mementos", texts, options={"extractor": "other"})
        words = ["toddler", "Couches", "zzz"]
        roots = here.normalize(words, graph="daily_life_objects")
        assert roots == there.normalize(words, graph="daily_life_objects")
        assert roots["toddler"] == ("baby", "child", "person")


def test_kept_keywords_are_scored_again_with_another_graph(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    """The way of docs/how-to/grow-a-synonym-graph.md: run, suggest, accept, merge, score again."""
    first = score(*files, tmp_path / "one")
    items = tmp_path / "one" / "items.jsonl"
    rows = read_rows(items)
    assert rows[0]["evidence"]["predicted_objects"] == ["man", "ball", "cat"]
    patch, graph = tmp_path / "patch.json", tmp_path / "mine.json"
    run = here(
        *("graph", "suggest", "general_objects", "--items", items, "--kind", "objects"),
        *("--out", patch, "--accept", "robotic arm=robot arm"),
    )
    assert run.returncode == 0, run.stderr
    assert "robotic arm = robot arm" in run.stdout
    run = here("graph", "merge", "general_objects", patch, "--out", graph, "--name", "mine")
    assert run.returncode == 0, run.stderr
    outs = []
    for name, more in (("again", ()), ("grown", ("--object-graph", str(graph)))):
        run = here("score", "mementos", "--keywords", items, "--out", tmp_path / name, *more)
        assert run.returncode == 0, run.stderr
        outs.append(json.loads((tmp_path / name / "report.json").read_text()))
    again, grown = outs
    assert again["scores"] == first["scores"]
    assert grown["scores"]["object_recall"]["value"] > again["scores"]["object_recall"]["value"]
    assert grown["signature"] != again["signature"]
    assert "objects:mine-2@" in grown["signature"]


def test_graph_commands(tmp_path: Path) -> None:
    shown = here("graph", "show", "daily_life_objects", "couch")
    assert "couch: leads to sofa" in shown.stdout
    assert here("graph", "show", "daily_life_objects", "zzz").returncode == 1
    assert "sound" in here("graph", "validate", "robotics_behaviors").stdout
    assert "forms" in here("graph", "stats", "comics_objects").stdout
    compared = here("graph", "diff", "general_objects", "comics_objects").stdout
    assert "+ root garfield" in compared
    picture = tmp_path / "arm.svg"
    run = here("graph", "draw", "robotics_objects", "--word", "robot arm", "--out", picture)
    assert run.returncode == 0, run.stderr
    assert picture.read_text().startswith("<svg")
    said = expected_message("studies.graph_commands:see-its-words")
    assert_refused(here("graph", "draw", "coco", "--word", "zzz", "--out", picture), said)
    png = here("graph", "draw", "robotics_objects", "--out", tmp_path / "all.png")
    if importlib.util.find_spec("resvg_py"):
        assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    else:
        assert (png.returncode, "resvg-py" in png.stderr) == (1, True)


def test_released_files(tmp_path: Path) -> None:
    keywords = tmp_path / "keywords"
    keywords.mkdir()
    (keywords / "rw_1.txt").write_bytes(
        b"Object list 1: [sofa, dog]\r\nAction list 1: [take]\r\n"
        b"Object list 2: [couch, cat, owl]\r\nAction list 2: []\r\n"
    )
    words = {"couch": {"": ["sofa"]}, "dog": {"": ["dog"]}}
    graph = tmp_path / "g.pkl"
    graph.write_bytes(pickle.dumps(words))
    (tmp_path / "g.json").write_text(json.dumps(words))
    outs = []
    for suffix in ("pkl", "json"):
        out = tmp_path / suffix
        name = str(tmp_path / f"g.{suffix}")
        run = here(
            *("score", "mementos", "--keywords", keywords, "--out", out, "--domain", "anything"),
            *("--object-graph", name, "--behavior-graph", name),
        )
        assert run.returncode == 0, run.stderr
        outs.append((out / "report.json").read_bytes())
    assert outs[0] == outs[1]
    report = json.loads(outs[0])
    assert report["scores"]["object_recall"]["value"] == 0.5
    assert report["scores"]["object_precision"]["value"] == pytest.approx(1 / 3)
    assert list(report["groups"]["domain"]) == ["anything"]


def keyword_line(**changes: Any) -> str:
    line: dict[str, Any] = {
        "id": "a", "reference_objects": ["dog"], "predicted_objects": ["dog"],
        "reference_behaviors": ["run"], "predicted_behaviors": ["run"],
    }  # fmt: skip
    return json.dumps(line | changes) + "\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (keyword_line(domain="underwater"), "DOMAIN_UNKNOWN"),
        (keyword_line(predicted_objects=["x" * 10_000]), "KEYWORD_TOO_LONG"),
        (keyword_line(predicted_objects=["x"] * 3_000), "TOO_MANY_KEYWORDS"),
    ],
)
def test_what_is_unscored_and_why(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "k.jsonl"
    path.write_text(line)
    run = here("score", "mementos", "--keywords", path, "--out", tmp_path / "out")
    assert run.returncode == 3, run.stderr
    assert reason in run.stdout
    assert read_rows(tmp_path / "out" / "items.jsonl")[0]["reason"] == reason


def test_a_reference_without_a_description_is_unscored(tmp_path: Path) -> None:
    references = tmp_path / "r.csv"
    references.write_text('image_name,description\na,\nb,"A dog runs."\n')
    responses = tmp_path / "m.jsonl"
    responses.write_text(
        '{"image": "a", "description": "A dog."}\n{"image": "b", "description": null}\n'
    )
    run = here(
        *("score", "mementos", "--responses", responses, "--references", references),
        *("--out", tmp_path / "out"),
    )
    assert run.returncode == 3
    reasons = [row["reason"] for row in read_rows(tmp_path / "out" / "items.jsonl")]
    assert reasons == ["REFERENCE_MISSING", "RESPONSE_MISSING"]


def bad_graph(tmp_path: Path, content: bytes, suffix: str = "json") -> str:
    path = tmp_path / f"bad.{suffix}"
    path.write_bytes(content)
    return str(path)


class Hostile:
    """Unpickling it would make a file."""

    def __reduce__(self) -> Any:
        return (os.system, ("touch hallujudge-was-here",))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--domain", "underwater"], "no objects graphs for domain 'underwater'"),
        (["--variant", "other"], "--variant is 'other'; choose from published, corrected, both"),
        (["--average", "median"], "is 'median'"),
        (["--object-graph", "nowhere.json"], "neither a shipped graph"),
        (
            ["--object-graph", "nowhere=general_objects"],
            "'nowhere' is neither a domain",
        ),
        (["--object-graph", "coco", "--object-graph", "coco"], "two graphs for objects"),
        (["--responses", "x.jsonl"], "give either --responses or --keywords"),
        (["--references", "nowhere.csv"], "No such file"),
    ],
)
def test_bad_options(tmp_path: Path, arguments: list[str], says: str) -> None:
    path = tmp_path / "k.jsonl"
    path.write_text(keyword_line())
    run = here(
        "score", "mementos", "--keywords", path, "--out", tmp_path / "out", *arguments, cwd=tmp_path
    )
    assert run.returncode == 2, (run.stdout, run.stderr)
    assert says in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("content", "suffix", "says"),
    [
        (pickle.dumps(Hostile()), "pkl", "system, which is refused"),
        (pickle.dumps({"a": {"": [Hostile()]}}, protocol=2), "pkl", "system, which is refused"),
        (pickle.dumps(Hostile(), protocol=0), "pkl", "system, which is refused"),
        (b"not a graph", "pkl", "pickle"),
        (pickle.dumps(Hostile(), protocol=0), "json", "system, which is refused"),
        (pickle.dumps(Hostile(), protocol=1), "txt", "system, which is refused"),
        (b"not JSON", "json", "line 1, column 1"),
        (b'{"a": "b", "a": "c"}', "json", "'a' appears twice"),
        (b'{"a": "b", "b": "a"}', "json", "c"),
        (
            b'{"format": "hallujudge-synonyms/1", "name": "g", "version": "1", "categories": '
            b'[{"root": "a", "forms": ["b"]}, {"root": "b", "forms": ["a"]}], '
            b'"ambiguous": ["a", "b"]}',
            "json", "cycle",
        ),
        (
            b'{"format": "hallujudge-synonyms/1", "name": "g", "version": "1", "categories": '
            b'[{"root": "a", "forms": ["c"]}, {"root": "b", "forms": ["c"]}]}',
            "json", "declare it ambiguous",
        ),
    ],
)  # fmt: skip
def test_bad_graphs(tmp_path: Path, content: bytes, suffix: str, says: str) -> None:
    graph = bad_graph(tmp_path, content, suffix)
    path = tmp_path / "k.jsonl"
    path.write_text(keyword_line())
    for command in (
        ["score", "mementos", "--keywords", path, "--object-graph", graph, "--out", "out"],
        ["graph", "validate", graph],
    ):
        run = here(*command, cwd=tmp_path)
        assert run.returncode == 2, run.stdout
        assert says in run.stderr
        assert "Traceback" not in run.stderr
    assert not (tmp_path / "hallujudge-was-here").exists()


def test_every_problem_of_a_graph_is_named(tmp_path: Path) -> None:
    path = tmp_path / "many.json"
    words = [f"word {number}" for number in range(30)]
    path.write_text(json.dumps({"a": words, "b": words}))
    run = here("graph", "validate", path)
    assert run.returncode == 2
    assert all(
        expected_message("synonym_graphs.graph:has-the-roots-a-b", word) in run.stdout
        for word in words
    )


def test_a_graph_of_the_general_domain_alone(tmp_path: Path) -> None:
    keywords, graph = tmp_path / "k.jsonl", tmp_path / "mine.json"
    keywords.write_text(keyword_line(reference_objects=["zorb"], predicted_objects=["zorblet"]))
    graph.write_text('{"zorb": ["zorblet"]}')
    run = here(
        *("score", "mementos", "--keywords", keywords, "--out", tmp_path / "out"),
        *("--object-graph", f"general={graph}"),
    )
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["scores"]["object_recall"]["value"] == 1.0


def test_duplicate_image_names_are_named(tmp_path: Path) -> None:
    path = tmp_path / "k.jsonl"
    path.write_text(keyword_line() * 2)
    run = here("score", "mementos", "--keywords", path, "--out", tmp_path / "out")
    assert run.returncode == 2
    assert "more than once: a" in run.stderr
