"""The matcher's mentions by tokenising the whole caption, several times slower than the matcher."""

from __future__ import annotations

import re
from functools import cache

from hallujudge.synonym_graphs import Mention, ObjectMatcher
from hallujudge.synonym_graphs.object_lexicon import Lexicon, build_lexicon, known_words, walk
from hallujudge.synonym_graphs.word_forms import tokens_of


@cache
def _lexicon_of(matcher: ObjectMatcher) -> Lexicon:
    return build_lexicon(matcher.graph, matcher.variant)


def plain_mentions(matcher: ObjectMatcher, caption: str) -> list[Mention]:
    """Return all mentions with their places, those of absent objects included."""
    lexicon = _lexicon_of(matcher)
    low = caption.lower()
    if matcher.variant == "corrected":
        low = re.sub(r"[/\\|+•·…⁄∕／]", ",", low)
        low = re.sub("[\u2010\u2011\u2012\u2212\ufe63\uff0d]", "-", low)
    hits = walk(known_words(tokens_of(low), lexicon), lexicon)
    for form, beside, by_object in lexicon.suppress:
        if beside in [hit[by_object] for hit in hits]:
            hits = [hit for hit in hits if hit[0] != form]
    # Lower-casing may add characters.
    places = [place for place, letter in enumerate(caption) for _ in letter.lower()]
    places.append(len(caption))
    return [
        Mention(word, name, places[start], places[end])
        for word, name, start, end in hits
        if name is not None
    ]
