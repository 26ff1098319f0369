"""A small database in WordNet's layout, with invented content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["NOUNS", "VERBS", "write_wordnet"]

# Words of a synset, the commonest sense of each first in the list -> the synset's kind, by its
# first word.
NOUNS: Sequence[tuple[tuple[str, ...], str]] = (
    (("thing",), ""),
    (("glorp",), "thing"),
    (("dog", "domestic_dog"), "glorp"),
    (("zibble",), "dog"),
    (("zibbling",), "zibble"),
    (("couch", "fronk"), "thing"),
    (("arm",), "thing"),
    (("plonk", "arm"), "thing"),
    (("oxling",), "dog"),
)
VERBS: Sequence[tuple[tuple[str, ...], str]] = (
    (("walk",), ""),
    (("snorfle",), "walk"),
    (("snorfle_up",), "snorfle"),
    (("trundlate",), "snorfle_up"),
)
_LICENSE = "  1 This is no WordNet.  \n  2 It only looks like it.  \n"


def write_wordnet(
    folder: Path,
    nouns: Sequence[tuple[tuple[str, ...], str]] = NOUNS,
    verbs: Sequence[tuple[tuple[str, ...], str]] = VERBS,
    irregular: Mapping[str, str] | None = None,
) -> Path:
    """Write index, data and exception files of nouns and verbs."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, letter, synsets in (("noun", "n", nouns), ("verb", "v", verbs)):
        data, senses = _data(letter, synsets)
        (folder / f"data.{name}").write_text(data, encoding="latin-1", newline="\n")
        lines = (
            f"{word} {letter} {len(offsets)} 1 @ {len(offsets)} 0 "
            + " ".join(f"{offset:08}" for offset in offsets)
            + "  \n"
            for word, offsets in sorted(senses.items())
        )
        index = _LICENSE + "".join(lines)
        (folder / f"index.{name}").write_text(index, encoding="latin-1", newline="\n")
    forms = {"oxlingen": "oxling"} if irregular is None else irregular
    text = "".join(f"{form} {base}\n" for form, base in forms.items())
    (folder / "noun.exc").write_text(text, encoding="latin-1")
    return folder


def _data(
    letter: str, synsets: Sequence[tuple[tuple[str, ...], str]]
) -> tuple[str, dict[str, list[int]]]:
    offsets: dict[str, int] = {}
    senses: dict[str, list[int]] = defaultdict(list)
    text = _LICENSE
    for words, kind in synsets:
        offset = len(text)
        offsets[words[0]] = offset
        for word in words:
            senses[word].append(offset)
        pointers = f"001 @ {offsets[kind]:08} {letter} 0000 " if kind else "000 "
        listed = " ".join(f"{word} 0" for word in words)
        text += f"{offset:08} 03 {letter} {len(words):02x} {listed} {pointers}| says nothing  \n"
    return text, senses
