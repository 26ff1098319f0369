"""Roots for unknown keywords: by spelling, words, WordNet, meaning and a language model."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.wordnet_sample import NOUNS, write_wordnet

from hallujudge.synonym_graphs import GraphFormatError, load_graph, parse_graph
from hallujudge.synonym_graphs.tools import (
    WordNet,
    find_wordnet,
    open_wordnet,
    suggest_roots,
    wordnet_candidates,
)

OBJECTS = parse_graph('{"domestic dog": "dog", "couch": "sofa", "arm": "arm"}', name="g")
BEHAVIORS = parse_graph('{"stroll": "walk", "sprint": "run"}', name="g")


@pytest.fixture
def wordnet(tmp_path: Path) -> WordNet:
    return open_wordnet(write_wordnet(tmp_path / "wordnet"))


def test_spelling_and_shared_words() -> None:
    graph = load_graph("daily_life_objects")
    found = suggest_roots(graph, ["wooden chair", "trampolin", "qqqq", "boby", ""])
    assert (found["wooden chair"][0].root, found["wooden chair"][0].source) == ("chair", "words")
    assert (found["trampolin"][0].root, found["trampolin"][0].source) == ("trampoline", "spelling")
    assert found["qqqq"] == found["boby"] == found[""] == ()


def test_the_main_word_of_a_verb_is_its_first() -> None:
    found = suggest_roots(BEHAVIORS, ["stroll slowly"], kind="behaviors")
    assert [(c.root, c.source) for c in found["stroll slowly"]] == [("walk", "words")]


def test_meanings_that_are_close() -> None:
    graph = load_graph("daily_life_objects")
    found = suggest_roots(
        graph, ["gizmo"], similarity=lambda _, forms: [[float(f == "sofa") for f in forms]]
    )
    assert [(c.root, c.source) for c in found["gizmo"]] == [("sofa", "embedding")]


@pytest.mark.parametrize(
    ("word", "root", "form"),
    [
        ("fronk", "sofa", "couch"),  # a synonym of a form
        ("zibble", "dog", "dog"),  # a kind of it
        ("zibbles", "dog", "dog"),  # its plural
        ("Zibbling", "dog", "dog"),  # two steps up
        ("oxlingen", "dog", "dog"),  # an irregular plural
        ("red zibble", "dog", "dog"),  # the main word of a phrase
    ],
)
def test_synonyms_and_kinds_of_wordnet(wordnet: WordNet, word: str, root: str, form: str) -> None:
    found = wordnet_candidates(OBJECTS, [word], wordnet, kind="objects")[word]
    assert {candidate.root for candidate in found} == {root}
    assert (found[0].form, found[0].source) == (form, "wordnet")
    assert 0 < found[0].score < 1


def test_wordnet_scores_fall_with_steps_rare_senses_and_phrases(wordnet: WordNet) -> None:
    words = ["fronk", "zibble", "zibbling", "plonk"]
    found = wordnet_candidates(OBJECTS, words, wordnet, kind="objects")
    scores = [found[word][0].score for word in words]
    assert scores[0] > scores[1] > scores[2]
    assert scores[3] < scores[0], "an arm is a plonk only in its second sense"
    phrase = wordnet_candidates(OBJECTS, ["red zibble"], wordnet, kind="objects")
    assert phrase["red zibble"][0].score < scores[1]


def test_the_nearest_known_kind_ends_the_way_up(wordnet: WordNet) -> None:
    graph = parse_graph('{"zibble": "z", "dog": "d"}', name="g")
    (found,) = wordnet_candidates(graph, ["zibbling"], wordnet, kind="objects")["zibbling"]
    assert found.root == "z"


def test_verbs_go_two_steps_up_and_nouns_are_not_verbs(wordnet: WordNet) -> None:
    found = wordnet_candidates(
        BEHAVIORS, ["snorfling", "snorfle up", "trundlate", "zibble"], wordnet, kind="behaviors"
    )
    roots = {word: [c.root for c in candidates] for word, candidates in found.items()}
    assert roots == {"snorfling": ["walk"], "snorfle up": ["walk"], "trundlate": [], "zibble": []}


def test_a_circle_in_wordnet_ends(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path)
    data = (folder / "data.noun").read_text(encoding="latin-1")
    thing, glorp = (next(line for line in data.split("\n") if f" {w} " in line).split()[0]
                    for w in ("thing", "glorp"))  # fmt: skip
    (folder / "data.noun").write_text(data.replace(f"@ {thing}", f"@ {glorp}"), encoding="latin-1")
    found = wordnet_candidates(OBJECTS, ["glorp"], open_wordnet(folder), kind="objects")
    assert found == {"glorp": []}


@pytest.mark.parametrize("cut", [80, 150, 300])
def test_a_damaged_database_is_named(tmp_path: Path, cut: int) -> None:
    folder = write_wordnet(tmp_path)
    path = folder / "data.noun"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(GraphFormatError, match=r"data\.noun"):
        wordnet_candidates(OBJECTS, [w[0] for w, _ in NOUNS], open_wordnet(folder), kind="objects")
    (folder / "index.noun").write_text("zibble n x\n")
    with pytest.raises(GraphFormatError, match=r"index\.noun.*zibble"):
        wordnet_candidates(OBJECTS, ["zibble"], open_wordnet(folder), kind="objects")
    with pytest.raises(GraphFormatError, match="no WordNet"):
        open_wordnet(tmp_path / "nowhere")


def test_nltks_zip_file_is_a_database_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wordnet(tmp_path / "plain" / "wordnet")
    corpora = tmp_path / "nltk_data" / "corpora"
    corpora.mkdir(parents=True)
    (corpora / "wordnet").mkdir()
    shutil.make_archive(str(corpora / "wordnet"), "zip", tmp_path / "plain", "wordnet")
    monkeypatch.setattr("nltk.data.path", [str(tmp_path / "nltk_data")])
    found = find_wordnet(places=[tmp_path / "nowhere"])
    assert found is not None
    assert [sense.words for sense in found.senses("fronk", "objects")] == [("couch", "fronk")]
    assert found.senses("fronk", "objects") == open_wordnet(tmp_path / "plain" / "wordnet").senses(
        "fronk", "objects"
    )
    (corpora / "wordnet.zip").write_bytes(b"PK no zip")
    assert find_wordnet(places=[]) is None
    write_wordnet(tmp_path / "own")
    assert find_wordnet(places=[tmp_path / "nowhere", tmp_path / "own"]) is not None


def test_the_wordnet_of_this_machine() -> None:
    wordnet = find_wordnet()
    if wordnet is None:
        pytest.skip("no WordNet on this machine: apt-get install wordnet-base")
    objects, behaviors = load_graph("daily_life_objects"), load_graph("daily_life_behaviors")
    nouns = wordnet_candidates(objects, ["spaniel", "electricians", "qqq"], wordnet, kind="objects")
    assert [c.root for c in nouns["spaniel"]][:1] == ["dog"]
    assert "person" in {c.root for c in nouns["electricians"]}
    assert nouns["qqq"] == []
    verbs = wordnet_candidates(behaviors, ["amble"], wordnet, kind="behaviors")
    assert "walk" in {c.root for c in verbs["amble"]}


def test_sources_that_agree_are_all_named(wordnet: WordNet) -> None:
    found = suggest_roots(
        OBJECTS,
        ["zibble"],
        wordnet=wordnet,
        similarity=lambda _, forms: [[0.5 * (f == "dog") for f in forms]],
        choose=lambda _: {"zibble": "dog"},
    )
    assert [(c.root, c.source) for c in found["zibble"]] == [("dog", "wordnet+llm+embedding")]


def test_the_nearest_roots_are_offered_and_only_those_are_taken() -> None:
    graph = load_graph("daily_life_objects")
    offered: dict[str, Sequence[str]] = {}

    def choose(choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
        offered.update(choices)
        return {"wooden chair": "table", "gizmo": "no such root", "stranger": "person"}

    found = suggest_roots(graph, ["wooden chair", "gizmo"], choose=choose)
    assert offered["wooden chair"][0] == "chair"
    assert "person" in offered["gizmo"], "where nothing is near, the largest roots are offered"
    assert {len(roots) for roots in offered.values()} == {20}
    assert set(found) == {"wooden chair", "gizmo"}
    assert "llm" not in {c.source for c in found["gizmo"]}
    table = next((c for c in found["wooden chair"] if c.root == "table"), None)
    assert ("table" in offered["wooden chair"]) == (table is not None)
