"""The short cut around textblob's rules takes nothing from them."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.sizes import examples
from textblob.en import inflect

from hallujudge.synonym_graphs.word_forms import CHANGED_ENDINGS, published_singular


def test_every_irregular_word_has_a_known_ending() -> None:
    assert all(word.endswith(CHANGED_ENDINGS) for word in inflect.singular_irregular)
    assert all(f"{word}s".endswith(CHANGED_ENDINGS) for word in inflect.singular_ie)


def test_every_rule_ends_in_a_known_ending() -> None:
    for pattern, inflection in inflect.singular_rules:
        ending = re.sub(r".*[)\]]", "", pattern.pattern).removesuffix("$")
        # ^(ox)en is met by its beginning; (…)ose$ writes back what it finds.
        assert (
            ending.endswith(CHANGED_ENDINGS)
            or pattern.pattern.endswith("(ox)en")
            or inflection == "\\1ose"
        ), pattern.pattern


endings = st.sampled_from(
    [*CHANGED_ENDINGS, "ox", "en", "es", "ies", "oxen", "ose", "ta", "x", "e", ""]
)


@settings(max_examples=examples(2000))
@given(st.builds("".join, st.tuples(endings, st.text("abcdeilmnoprstux'-", max_size=6), endings)))
@example("oxenford")
@example("people's")
@example("mothers-in-law")
def test_singulars_equal_textblobs(word: str) -> None:
    assert published_singular(word) == inflect.singularize(word)
