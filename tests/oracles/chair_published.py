"""CHAIR's published matching as plain code: slow, without caches, and easy to review.

Tests compare the fast matcher with this code. It follows the procedure step by step
and shares no code with the package: lower-case, split into sentences and words (nltk), take the
singular of each word (textblob), join the two-word names, drop "seat" beside "toilet", look up.
"""

from __future__ import annotations

from textblob.en.inflect import singularize

ANIMALS = (
    "bird cat dog horse sheep cow elephant bear zebra giraffe animal cub".split()  # noqa: SIM905
)
VEHICLES = ("jet", "train")


def read_rows(table: str) -> list[list[str]]:
    """Return the rows of the table, with entries exactly as written."""
    return [line.strip().split(", ") for line in table.strip().split("\n")]


def roots_of(rows: list[list[str]]) -> dict[str, str]:
    """Return entry -> first entry of its row; later rows override earlier ones."""
    return {entry: row[0] for row in rows for entry in row}


def units_of(rows: list[list[str]]) -> dict[str, str]:
    """Return two adjacent words -> the word that replaces them."""
    names = [entry.strip() for row in rows for entry in row]
    units = {name: name for name in names if len(name.split()) == 2 and name != "dining table"}
    units["home plate"] = "home plate"
    units["train track"] = "train track"
    for animal in ANIMALS:
        units[f"baby {animal}"] = animal
        units[f"adult {animal}"] = animal
    for vehicle in VEHICLES:
        units[f"passenger {vehicle}"] = vehicle
    units["bow tie"] = "tie"
    units["toilet seat"] = "toilet"
    units["wine glas"] = "wine glass"
    return units


def words_of(caption: str) -> list[str]:
    """Return the singular words of a caption, as in the procedure."""
    from nltk.tokenize import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    tokenizer = NLTKWordTokenizer()
    words = []
    for sentence in PunktSentenceTokenizer().tokenize(caption.lower()):
        for token in tokenizer.tokenize(sentence):
            words.append(singularize(token))
    return words


def join_units(words: list[str], units: dict[str, str]) -> list[str]:
    """Walk from the left and replace each pair of words that is a unit."""
    joined = []
    i = 0
    while i < len(words):
        pair = " ".join(words[i : i + 2])
        if pair in units:
            joined.append(units[pair])
            i += 2
        else:
            joined.append(words[i])
            i += 1
    return joined


def mentions(caption: str, table: str) -> list[tuple[str, str]]:
    """Return every (word, object) that the caption mentions, in order, including repeats."""
    rows = read_rows(table)
    roots = roots_of(rows)
    joined = join_units(words_of(caption), units_of(rows))
    if "toilet" in joined and "seat" in joined:
        joined = [word for word in joined if word != "seat"]
    return [(word, roots[word]) for word in joined if word in roots]
