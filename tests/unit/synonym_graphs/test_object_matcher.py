"""The object matcher: mentions, their places, and absent objects."""

from __future__ import annotations

import threading

import pytest
from oracles.plain_matching import plain_mentions
from support.work import calls_of

from hallujudge.synonym_graphs import (
    Mention,
    ObjectMatcher,
    SynonymGraph,
    Variant,
    compile_matcher,
    load_graph,
    object_lexicon,
    parse_graph,
)
from hallujudge.synonym_graphs.object_lexicon import (
    NOTHING,
    ChunkCache,
    build_lexicon,
    is_chunkable,
)

TABLE = """\
person, man, passenger, baby
motorcycle,  motor bike, motorbike
cake,  cheesecake
cell phone, phone, iPhone
oven, stove, stove top oven
chair, seat
toilet, commode
dining table, table
tie, bow tie
train
elephant
wine glass
dog
"""


@pytest.fixture(scope="module")
def graph() -> SynonymGraph:
    return parse_graph(TABLE, layout="table", name="small")


def words(graph: SynonymGraph, variant: Variant, caption: str) -> list[tuple[str, str]]:
    found = compile_matcher(graph, variant=variant).find(caption)
    return [(m.word, m.object) for m in found]


@pytest.mark.parametrize(
    ("caption", "published", "corrected"),
    [
        ("a motor bike", [], ["motor bike"]),
        ("a cheesecake", [], ["cheesecake"]),
        ("an iPhone", [], ["iphone"]),
        ("a stove top oven", ["stove", "oven"], ["stove top oven"]),
        ("the dining tables", ["table"], ["dining table"]),
        ("two wine glasses", ["wine glass"], ["wine glass"]),
        ("a wine glass", ["wine glass"], ["wine glass"]),
        ("a baby elephant", ["elephant"], ["elephant"]),
        ("passenger trains", ["train"], ["train"]),
        ("train tracks", [], []),
        ("home plate", [], []),
        ("a bow tie", ["tie"], ["bow tie"]),
        ("a toilet and a seat", ["toilet"], ["toilet"]),
        ("a commode and a seat", ["commode", "seat"], ["commode"]),
        ("a toilet seat", ["toilet"], ["toilet"]),
        ("hot-dog dog-table", [], []),
        ("a wine, glass", [], []),
        ("wine\n\nglass", ["wine glass"], ["wine glass"]),
        ("", [], []),
        ("   \n", [], []),
    ],
)
def test_readings(
    graph: SynonymGraph, caption: str, published: list[str], corrected: list[str]
) -> None:
    assert [w for w, _ in words(graph, "published", caption)] == published
    assert [w for w, _ in words(graph, "corrected", caption)] == corrected


@pytest.mark.parametrize(
    ("caption", "surface"),
    [
        ('A "Dog".', ["Dog"]),
        ("İİ a dog\u00a0and (Wine  Glass)!", ["dog", "Wine  Glass"]),
        ("the dog's phone.", ["dog", "phone"]),
        ("dogs' ``tables''", ["dogs", "tables"]),
        ("x\n\nTRAIN\ttrain", ["TRAIN", "train"]),
        ('say "" dog "" \'\' dog', ["dog", "dog"]),
    ],
)
def test_spans_are_of_the_caption(graph: SynonymGraph, caption: str, surface: list[str]) -> None:
    found = compile_matcher(graph, variant="published").find(caption)
    assert [caption[m.start : m.end] for m in found] == surface


def test_shipped_graph_reads_compounds() -> None:
    graph = load_graph("coco")
    caption = "A tennis player near train tracks, a hot-dog, an orange cat and two oranges."
    assert words(graph, "corrected", caption) == [
        ("player", "person"),
        ("hot dog", "hot dog"),
        ("cat", "cat"),
        ("orange", "orange"),
    ]
    assert words(graph, "published", "a baby elephant") == [("elephant", "elephant")]


def test_an_unknown_variant_is_named(graph: SynonymGraph) -> None:
    with pytest.raises(ValueError, match="'best'"):
        compile_matcher(graph, variant="best")


def test_the_memory_of_chunks_is_bounded(
    graph: SynonymGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_lexicon, "MAX_CHUNKS", 50)
    chunks = ChunkCache(build_lexicon(graph, "published"))
    for number in range(200):
        assert chunks[f"dog{number}"] is NOTHING
        assert chunks["dog"]
        assert 0 < len(chunks) <= 50


def test_odd_tables_take_the_exact_path() -> None:
    graph = parse_graph("thing, u.s., dog", layout="table", name="odd")
    matcher = ObjectMatcher(graph, "published")
    assert not is_chunkable(build_lexicon(graph, "published"))
    assert [m.word for m in matcher.find("the dog")] == ["dog"]


@pytest.mark.parametrize(
    ("piece", "mentions"),
    [("a", 0), ("dog.", 0), ("dog. ", 1), ('"', 0), ("' ", 0), ("A dog's dog, ", 2)],
)
def test_work_grows_with_the_caption_and_no_faster(
    graph: SynonymGraph, piece: str, mentions: int
) -> None:
    matcher = compile_matcher(graph, variant="published")
    found: list[int] = []

    def calls(size: int) -> int:
        text = piece * size
        return calls_of(lambda: found.append(len(matcher.find(text))))

    small, large = calls(2_000), calls(16_000)
    assert found == [2_000 * mentions, 16_000 * mentions]
    assert large <= 8 * small + 1_000


def test_threads_agree(graph: SynonymGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_lexicon, "MAX_CHUNKS", 20)
    matcher = ObjectMatcher(graph, "published")
    captions = [f"dog{n} and a dog, a table{n % 7} by the wine glass {n}." for n in range(300)]
    expected = [matcher.find(caption) for caption in captions]
    results: list[object] = []

    def run() -> None:
        results.append([matcher.find(caption) for caption in captions])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


CORRECTED = compile_matcher(load_graph("coco"), variant="corrected")


PUBLISHED = compile_matcher(load_graph("coco-published"), variant="published")


def denied_in(caption: str) -> list[Mention]:
    """Return the mentions that the matcher leaves out."""
    claimed = CORRECTED.find(caption)
    return [each for each in plain_mentions(CORRECTED, caption) if each not in claimed]


@pytest.mark.parametrize(
    ("caption", "claimed", "denied"),
    [
        ("There is no dog.", [], ["dog"]),
        ("There is no dog on the bench.", ["bench"], ["dog"]),
        ("There isn't a person in sight.", [], ["person"]),
        ("There isn’t any car.", [], ["car"]),
        ("The image does not show a dog.", [], ["dog"]),
        ("There does not appear to be a person.", [], ["person"]),
        ("It is not a cat but a dog.", ["dog"], ["cat"]),
        ("A street without any cars or people.", [], ["car", "people"]),
        ("no cars, buses, or trucks, but a dog", ["dog"], ["car", "bus", "truck"]),
        ("Neither a dog nor a cat.", [], ["dog", "cat"]),
        ("There's not a single dog. A cat sleeps.", ["cat"], ["dog"]),
        ("There are no other animals or people.", [], ["people"]),
        ("A road free of cars.", [], ["car"]),
        ("The room lacks a chair.", [], ["chair"]),
        ("A table without a bowl/cup, but a fork.", ["table", "fork"], ["bowl", "cup"]),
    ],
)
def test_a_denied_object_is_not_claimed(
    caption: str, claimed: list[str], denied: list[str]
) -> None:
    assert [mention.word for mention in CORRECTED.find(caption)] == claimed
    assert [mention.word for mention in denied_in(caption)] == denied


@pytest.mark.parametrize(
    ("caption", "claimed"),
    [
        ("No one is on the bench.", ["bench"]),
        ("There is no room for more motorcycles.", ["motorcycle"]),
        ("Not only a dog but a cat.", ["dog", "cat"]),
        ("The dog is not wearing a tie.", ["dog", "tie"]),
        ("No doubt a dog.", ["dog"]),
        ("No dog, a cat.", ["cat"]),
        ("The bench is not far from the bus.", ["bench", "bus"]),
    ],
)
def test_other_negations_are_left_alone(caption: str, claimed: list[str]) -> None:
    assert [mention.word for mention in CORRECTED.find(caption)] == claimed


@pytest.mark.parametrize(
    ("caption", "surface"),
    [
        ("A bowl/cup on it.", ["bowl", "cup"]),
        ("Two cars/trucks.", ["cars", "trucks"]),
        ("A fire-hydrant/traffic-light", ["fire-hydrant", "traffic-light"]),
        ("A cat|dog, a cat+dog, a cat\\dog", ["cat", "dog"] * 3),
        ("Cats…dogs • a cat•dog", ["Cats", "dogs", "cat", "dog"]),
        ("A hot\u2010dog and a stop\u2011sign", ["hot\u2010dog", "stop\u2011sign"]),
        ("A cat w/ a hot/dog.", ["cat", "dog"]),
    ],
)
def test_words_beside_signs_are_found(caption: str, surface: list[str]) -> None:
    found = CORRECTED.find(caption)
    assert [caption[each.start : each.end] for each in found] == surface


def test_the_published_variant_counts_every_mention() -> None:
    assert [mention.word for mention in PUBLISHED.find("There is no dog.")] == ["dog"]


def test_a_long_list_is_read_once() -> None:
    """The work grows with the length of the caption, not with its square."""
    caption = "no " + "dog, " * 20_000 + "or cat"
    assert CORRECTED.find(caption) == []


def test_places_are_those_of_the_caption() -> None:
    caption = "A CAT, and no DOGS."
    (cat,), (dog,) = CORRECTED.find(caption), denied_in(caption)
    assert (caption[cat.start : cat.end], caption[dog.start : dog.end]) == ("CAT", "DOGS")
