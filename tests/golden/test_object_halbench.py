"""Object HalBench on 300 answers: the released script's numbers to the last digit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.running import here, read_rows

from hallujudge.judge_service.extractors.rules.lexicon import wordnet_noun_lemma
from hallujudge.synonym_graphs import SynonymGraph, load_graph, parse_graph
from hallujudge.synonym_graphs.object_lexicon import build_lexicon

MODES = {"given_objects": "given", "caption_words": "words"}
SCORES = {
    "chair_s": "CHAIRs",
    "chair_s_refined": "CHAIRs_refine",
    "chair_i": "CHAIRi",
    "recall": "obj_rec",
}
# The script's "coco_word_count" is the number of right objects, not of words.
TOTALS = {
    "answers": "sentence_num",
    "answers_with_objects": "coco_sentence_num",
    "recalled_objects": "coco_word_count",
    "reference_objects": "gt_word_count",
    "hallucinated": "hallucinated_word_count",
    "mentioned": "mentioned_word_count",
}


@pytest.fixture(scope="module")
def files(goldens: Path) -> Path:
    return goldens / "object_halbench"


@pytest.fixture(scope="module")
def table(files: Path) -> SynonymGraph:
    text = (files / "synonyms_refine.txt").read_text("utf-8")
    return parse_graph(text, layout="table", name="refined")


def runs(files: Path) -> list[str]:
    found: dict[str, Any] = json.loads((files / "expected.json").read_text())
    return sorted(found)


def score(files: Path, name: str, mode: str, out: Path, *more: str | Path) -> dict[str, Any]:
    run = here(
        *("score", "object-halbench", "--objects", MODES[mode], "--out", out),
        *("--responses", files / f"{name}.items.jsonl"),
        *("--references", files / f"{name}.image_objects.json", *more),
    )
    assert run.returncode == 0, run.stderr
    report: dict[str, Any] = json.loads((out / "report.json").read_text())
    return report


def check(files: Path, name: str, mode: str, report: dict[str, Any], out: Path) -> None:
    wanted = json.loads((files / "expected.json").read_text())[name][mode]
    values = {score: held["value"] for score, held in report["scores"].items()}
    assert values == {score: wanted[key] for score, key in SCORES.items()}
    totals = report["totals"]
    assert {total: totals[total] for total in TOTALS} == {
        total: wanted[key] for total, key in TOTALS.items()
    }
    assert totals["words"] / totals["answers"] == pytest.approx(wanted["avg_word_len"], abs=1e-9)
    right, recall = 1 - values["chair_i"], values["recall"]
    object_f1 = 200 * right * recall / (right + recall)
    assert object_f1 == pytest.approx(wanted["summary_percent"]["object_f1"], abs=1e-9)
    expected = read_rows(files / f"{name}.expected.jsonl")
    for row, want in zip(read_rows(out / "items.jsonl"), expected, strict=True):
        assert row["evidence"]["mentioned"] == want[mode]["mentioned"], row["id"]
        wrong = [word for word, _ in row["evidence"]["hallucinated"]]
        assert wrong == [_word(entry) for entry in want[mode]["hallucinated"]], row["id"]


def _word(entry: str | list[str]) -> str:
    return entry if isinstance(entry, str) else entry[0]


@pytest.mark.parametrize("mode", MODES)
def test_published_equals_the_released_script(files: Path, tmp_path: Path, mode: str) -> None:
    for name in runs(files):
        report = score(files, name, mode, tmp_path / name)
        assert report["notes"] == []
        check(files, name, mode, report, tmp_path / name)


@pytest.mark.parametrize("mode", MODES)
def test_a_server_and_the_released_table_give_equal_numbers(
    files: Path, tmp_path: Path, server: str, mode: str
) -> None:
    graph = ("--graph", files / "synonyms_refine.txt", "--server", server)
    report = score(files, "drawn_1", mode, tmp_path, *graph)
    check(files, "drawn_1", mode, report, tmp_path)


def test_the_shipped_graph_is_the_released_table(table: SynonymGraph) -> None:
    ours = load_graph("coco-refined")
    stripped = {entry.strip(): root for entry, root in table.table_entries.items()}
    assert ours.table_entries == stripped
    lexicons = [build_lexicon(each, "published", str.lower) for each in (ours, table)]
    assert lexicons[0].singles == lexicons[1].singles
    assert lexicons[0].units == lexicons[1].units


def test_it_differs_from_the_graph_of_chair_by_four_words_and_two_blanks() -> None:
    refined, published = (
        Counter(load_graph(name).table_entries.items())
        for name in ("coco-refined", "coco-published")
    )
    assert {entry for entry, _ in refined - published} == {
        *("brother", "pedestrian", "coffee table", "remote control"),
        *("motor bike", "cheesecake"),
    }
    assert {entry for entry, _ in published - refined} == {" motor bike", " cheesecake"}


def test_corrected_reads_the_same_answers_otherwise(files: Path, tmp_path: Path) -> None:
    report = score(files, "drawn_1", "given_objects", tmp_path, "--variant", "corrected")
    assert "|graph:coco-4@" in report["signature"] or "|graph:coco-" in report["signature"]
    assert report["totals"]["mentioned"] != report["totals"]["hallucinated"] > 0


WORDNET = Path("/usr/share/wordnet")
_SUFFIXES = ("", "s", "es", "ses", "xes", "zes", "ches", "shes", "ies", "ves", "men", "ss")


def test_lemmas_of_table_words_are_those_of_wordnet() -> None:
    """The packed lexicon lacks most names; no form of a table's word may depend on them."""
    if not (WORDNET / "index.noun").is_file():
        pytest.skip("WordNet's files are not installed (apt-get install wordnet-base)")
    nouns, irregular = _wordnet()
    words = {part for entry in load_graph("coco-refined").table_entries for part in entry.split()}
    stems = {word[: len(word) - cut] for word in words for cut in range(4)}
    forms = {stem + suffix for stem in stems for suffix in _SUFFIXES} | irregular.keys()
    wrong = {
        form: (found, wanted)
        for form in forms
        if (found := wordnet_noun_lemma(form)) != (wanted := _lemma(form, nouns, irregular))
        and {found, wanted} & words
    }
    assert wrong == {}


def _wordnet() -> tuple[set[str], dict[str, list[str]]]:
    lines = (WORDNET / "index.noun").read_text("latin-1").splitlines()
    nouns = {line.split()[0] for line in lines if not line.startswith(" ")}
    pairs = (line.split() for line in (WORDNET / "noun.exc").read_text("latin-1").splitlines())
    return nouns, {form: lemmas for form, *lemmas in pairs}


def _lemma(word: str, nouns: set[str], irregular: dict[str, list[str]]) -> str:
    """Return the lemma by nltk's procedure (WordNetLemmatizer.lemmatize), written plainly."""
    rules = [("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch")]
    rules += [("shes", "sh"), ("men", "man"), ("ies", "y")]
    if word in irregular:
        found = [form for form in [word, *irregular[word]] if form in nouns]
        return min(found, key=len) if found else word
    forms = [word]
    while True:
        made = [f[: len(f) - len(a)] + b for f in forms for a, b in rules if f.endswith(a)]
        tried = [word, *made] if forms == [word] else made
        found = [form for form in tried if form in nouns]
        if found or not made:
            return min(found, key=len) if found else word
        forms = made
