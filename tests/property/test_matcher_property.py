"""The fast matcher says what the plain procedure says, on text made to disagree."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.chair_published import mentions
from oracles.plain_matching import plain_mentions
from support.sizes import examples

from hallujudge.synonym_graphs import (
    Mention,
    ObjectMatcher,
    compile_matcher,
    load_graph,
    parse_graph,
)
from hallujudge.synonym_graphs.object_lexicon import PUBLISHED_READS_AS
from hallujudge.synonym_graphs.word_forms import published_singular

TABLE = """\
person, man, woman, child, people, passenger, baby, player
tie, bow, bow tie
airplane, jet, plane
train, locomotive
traffic light, street light, stop light
motorcycle,  motor bike, motor cycle
cake,  cheesecake, cupcake
cell phone, phone, iPhone
oven, stove, stove top oven
chair, seat, stool
toilet, commode
dining table, table
dog, puppy
hot dog
wine glass
teddy bear, teddybear
bear, panda
knife, knive
scissors
baseball bat
"""
EXAMPLES = int(os.environ.get("HALLUJUDGE_EXAMPLES") or examples(300))
SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
WORDS = st.sampled_from(
    [
        "man", "men", "people", "child", "dogs", "dog", "hot", "hot-dog", "bow", "tie",
        "ties", "street", "lights", "traffic", "light", "stop", "toilet", "seat",
        "seats", "baby", "adult", "passenger", "jet", "train", "track", "tracks",
        "home", "plate", "wine", "glass", "glasses", "teddy", "bear", "motor", "bike",
        "cheesecake", "iPhone", "stove", "top", "oven", "dining", "table", "tables",
        "cannot", "gonna", "wanna", "gimme", "it's", "don't", "man's", "dogs'", "U.S.",
        "u.s.a.", "a", "b.", "c", "3", "3.", "10:30", "1,000", "50%", "$5", "#1",
        "the", "of", "knives", "scissors", "more'n", "e.g.", "Dr.", "o'clock", "dog's",
        "dog’s", "and/or", "t-shirt", "İdog", "ſeat", "ΣΑΣ", "café", "naïve", "狗",
        "dog狗", "bat_bat", "baseball", "bat", "baseball-bat", "'tis", "'dog'", "d'ye",
        "table.dog", "dog.the", "2-3.", "-5", "---", "dog--", "--dog", "(s)",
        "person(s)", "...", ":dog", "dog:dog", "dog,dog", "'seat'", "\"bow"
    ]
)  # fmt: skip
SIGNS = st.sampled_from(
    [*".,;:!?()[]{}<>\"'`-–—…“”‘’«»*/&%$#@|~+=_", "''", "``", "--", "...", "..", '."', '".', ".)"]
)
BLANKS = st.sampled_from(
    [" ", " ", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\x0b", "\x1c"]
)
PIECES = st.one_of(WORDS, WORDS, SIGNS, st.text(max_size=3))


@st.composite
def chunks(draw: st.DrawFn) -> str:
    """Put signs around a word."""
    before = "".join(draw(st.lists(SIGNS, max_size=1)))
    after = "".join(draw(st.lists(SIGNS, max_size=2)))
    return before + draw(WORDS) + after


# Shapes that the fast path takes, so that it is not left for one odd word in nearly every caption.
PLAIN = st.sampled_from(
    [
        "man", "men", "child", "dogs", "dog", "hot", "hot-dog", "bow", "tie", "street",
        "lights", "traffic", "light", "stop", "toilet", "seat", "baby", "adult",
        "passenger", "jet", "train", "track", "home", "plate", "wine", "glass",
        "glasses", "teddy", "bear", "motor", "bike", "dining", "table", "cannot",
        "gonna", "wanna", "it's", "don't", "man's", "dog’s", "a", "b", "3", "10:30",
        "1,000", "the", "of", "knives", "t-shirt", "and/or", "baseball", "bat", "café",
        "naïve", "x1", "1-x", "o'clock"
    ]
)  # fmt: skip
LEADS = st.sampled_from(["", "", "", "(", '"', "“"])
TAILS = st.sampled_from(
    [
        "", "", "", ".", ".", ",", ";", ":", "!", "?", ")", "\"", "”", "...", ").",
        "\".", "”.", "),", "\",", "”,", ".)", ".\"", ",\"", "!)", "?”", ",”",
        "'", "’"
    ]
)  # fmt: skip
ALONE = st.sampled_from(
    ["", "-", "–", "&", ".", ",", ":", "#", "*", "...", "3.", "$5", "50%", "1)"]
)
FAST = st.lists(
    st.one_of(st.tuples(LEADS, PLAIN, TAILS).map("".join), PLAIN, ALONE), max_size=12
).flatmap(
    lambda found: st.lists(
        st.sampled_from([" ", " ", "\n", "\t"]), min_size=len(found), max_size=len(found)
    ).map(lambda blanks: "".join(a + b for a, b in zip(found, blanks, strict=True)))
)

CAPTIONS = st.one_of(
    FAST,
    FAST,
    st.lists(st.one_of(WORDS, chunks()), max_size=12).map(" ".join),
    st.lists(st.tuples(st.one_of(PIECES, chunks()), BLANKS), max_size=12).map(
        lambda pairs: "".join(piece + blank for piece, blank in pairs)
    ),
    st.lists(PIECES, max_size=8).map("".join),
)


@pytest.fixture(scope="module")
def matcher() -> ObjectMatcher:
    graph = parse_graph(TABLE, layout="table", name="small")
    return compile_matcher(graph, variant="published")


def pairs(found: list[Mention]) -> list[tuple[str, str]]:
    return [(mention.word, mention.object) for mention in found]


@SETTINGS
@given(caption=CAPTIONS)
def test_fast_equals_the_published_procedure(matcher: ObjectMatcher, caption: str) -> None:
    assert pairs(matcher.find(caption)) == mentions(caption, TABLE)


@SETTINGS
@given(caption=CAPTIONS)
def test_spans_are_the_same_as_on_the_exact_path(matcher: ObjectMatcher, caption: str) -> None:
    assert matcher.find(caption) == plain_mentions(matcher, caption)


@SETTINGS
@given(caption=CAPTIONS)
def test_spans_slice_to_the_word(matcher: ObjectMatcher, caption: str) -> None:
    end = 0
    # A compound such as "toilet seat" reads as another word, and its span holds both.
    for mention in matcher.find(caption):
        surface = caption[mention.start : mention.end].lower()
        assert mention.start >= end
        end = mention.end
        words = [published_singular(word) for word in surface.split()]
        same = words[-1] == mention.word.split()[-1]
        assert same or PUBLISHED_READS_AS.get(" ".join(words)) == mention.word


@settings(SETTINGS, max_examples=max(20, EXAMPLES // 5))
@given(caption=CAPTIONS)
def test_corrected_spans_lie_in_the_caption_and_in_order(caption: str) -> None:
    graph = load_graph("coco")
    found = compile_matcher(graph, variant="corrected").find(caption)
    places = [place for mention in found for place in (mention.start, mention.end)]
    assert places == sorted(places)
    assert all(mention.object in graph.roots for mention in found)
    assert all(caption[mention.start : mention.end].strip() for mention in found)


@settings(SETTINGS, max_examples=max(20, EXAMPLES // 5))
@given(caption=CAPTIONS)
def test_a_cold_cache_changes_nothing(matcher: ObjectMatcher, caption: str) -> None:
    cold = ObjectMatcher(matcher.graph, "published")
    assert cold.find(caption) == matcher.find(caption) == cold.find(caption)
