"""Pack WordNet 3.0 into the lexicon of the rule extractors.

Debian has the database: ``apt-get install wordnet-base wordnet-sense-index``. Then

    python tools/build_lexicon.py [--wordnet /usr/share/wordnet] [--out FOLDER]

writes ``lexicon.txt.gz`` and ``LICENSE.wordnet`` into the extractors' data folder. The same
database gives the same bytes. ``--check`` builds into memory and compares the content.

Layout of the text inside: a header line, then one entry per line, sorted, in two sections that an
empty line parts.

1. ``LEMMA CODE``: spaces in a lemma are underscores. CODE has a letter for each part of speech:
noun,
   verb, adjective and adverb, ``-`` for none (trailing ones left out): a digit of base 36 that
   grows with the logarithm of how often WordNet's tagged corpus has the reading. A noun has two
   more characters after a colon: the lexicographer file of its commonest sense (a letter from
   ``a``) and the share of its tangible senses in ninths. An adjective that names something visible
   (colour, size, shape, ...) ends with ``!``.
2. ``FORM POS LEMMA...``: irregular forms.
"""

from __future__ import annotations

import argparse
import gzip
import math
import sys
from collections import defaultdict
from pathlib import Path

HEADER = "hallujudge lexicon 1, made from WordNet 3.0 (see LICENSE.wordnet)"
DATA = (
    Path(__file__).resolve().parent.parent
    / "judge_service/hallujudge/judge_service/extractors/rules/data"
)
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
POS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}

# Lexicographer files whose senses can be touched: animal, artifact, body, food, location, object,
# person, plant, substance.
TANGIBLE = frozenset({5, 6, 8, 13, 15, 17, 18, 20, 27})

# Attributes that can be seen in a picture; WordNet's adjectives of these are "visible".
VISIBLE = frozenset(
    [
        "age",
        "beauty",
        "body_weight",
        "cleanness",
        "color",
        "complexion",
        "curliness",
        "depth",
        "evenness",
        "fullness",
        "hardness",
        "height",
        "hue",
        "length",
        "light",
        "luminosity",
        "opacity",
        "shape",
        "size",
        "solidity",
        "stature",
        "temperature",
        "texture",
        "thickness",
        "value",
        "wetness",
        "width",
        "integrity",
    ]
)


class Entry:
    """The senses of a lemma, collected from the files."""

    __slots__ = ("files", "tangible", "visible", "weight")

    def __init__(self) -> None:
        self.weight: dict[str, float] = defaultdict(float)
        self.files: dict[int, float] = defaultdict(float)
        self.tangible = 0.0
        self.visible = 0.0

    def code(self) -> str:
        """Return the lemma's line of the lexicon file."""
        digits = "".join(_digit(self.weight.get(pos, 0.0)) for pos in "nvar").rstrip("-")
        if "n" in self.weight:
            share = round(9 * self.tangible / self.weight["n"])
            commonest = max(self.files, key=lambda file: (self.files[file], -file))
            digits += f":{chr(ord('a') + commonest)}{share}"
        if self.visible * 2 >= self.weight.get("a", math.inf):
            digits += "!"
        return digits


def _digit(weight: float) -> str:
    if not weight:
        return "-"
    return DIGITS[min(len(DIGITS) - 1, round(2.5 * math.log2(1 + 2 * weight)))]


def _data_lines(path: Path) -> list[list[str]]:
    with path.open(encoding="latin-1") as lines:
        return [line.split("|")[0].split() for line in lines if not line.startswith(" ")]


def _words(fields: list[str]) -> list[str]:
    return [fields[4 + 2 * i] for i in range(int(fields[3], 16))]


def _pointers(fields: list[str]) -> list[list[str]]:
    first = 5 + 2 * int(fields[3], 16)
    count = int(fields[first - 1])
    return [fields[first + 4 * i : first + 4 * i + 4] for i in range(count)]


def capitalised(wordnet: Path) -> set[tuple[str, str]]:
    """Return (lemma, synset) pairs with a capital letter: mostly names of people and places."""
    names = set()
    for fields in _data_lines(wordnet / "data.noun"):
        names |= {(word.lower(), fields[0]) for word in _words(fields) if word != word.lower()}
    return names


def visible_synsets(wordnet: Path) -> set[str]:
    """Return the adjective synsets of visible attributes, and their satellites."""
    nouns = {fields[0]: fields[4] for fields in _data_lines(wordnet / "data.noun")}
    heads: set[str] = set()
    satellites: dict[str, list[str]] = defaultdict(list)
    for fields in _data_lines(wordnet / "data.adj"):
        for symbol, target, *_ in _pointers(fields):
            if symbol == "=" and nouns.get(target) in VISIBLE:
                heads.add(fields[0])
            elif symbol == "&" and fields[2] == "s":
                satellites[target].append(fields[0])
    return heads | {synset for head in heads for synset in satellites[head]}


def read_entries(wordnet: Path) -> dict[str, Entry]:
    """Return every lemma of the lexicon with its weights."""
    names, visible = capitalised(wordnet), visible_synsets(wordnet)
    entries: dict[str, Entry] = defaultdict(Entry)
    with (wordnet / "index.sense").open(encoding="latin-1") as lines:
        for line in lines:
            key, synset, _, count = line.split()
            lemma, rest = key.split("%")
            kind, file, *_ = rest.split(":")
            named = kind == "1" and (lemma, synset) in names
            if not _worth(lemma, POS[kind], int(file), named):
                continue
            _add(entries[lemma], POS[kind], int(file), int(count) + 0.3, synset in visible)
    return dict(entries)


def _worth(lemma: str, pos: str, file: int, named: bool) -> bool:
    if not all(part.replace("'", "").isalpha() for part in lemma.replace("-", "_").split("_")):
        return False
    words = lemma.count("_") + 1
    if words > 3 or (words == 3 and pos != "v"):
        return False
    if pos == "n" and named:
        return words == 1 and file in {5, 6, 13, 28}
    return pos in "nv" or words == 1


def _add(entry: Entry, pos: str, file: int, weight: float, visible: bool) -> None:
    entry.weight[pos] += weight
    if pos == "n":
        entry.files[file] += weight
        entry.tangible += weight if file in TANGIBLE else 0.0
    if pos == "a" and visible:
        entry.visible += weight


def read_irregular(wordnet: Path) -> list[str]:
    """Return irregular forms of single words: form, part of speech, lemmas."""
    lines = []
    for name, pos in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r")):
        for line in (wordnet / f"{name}.exc").read_text(encoding="latin-1").splitlines():
            form, *lemmas = line.split()
            if form.isalpha() and all(lemma.isalpha() for lemma in lemmas):
                lines.append(f"{form} {pos} {' '.join(lemmas)}")
    return sorted(set(lines))


def build_text(wordnet: Path) -> str:
    """Return the lexicon as text."""
    entries = read_entries(wordnet)
    lines = [HEADER]
    lines += [f"{lemma} {entry.code()}" for lemma, entry in sorted(entries.items())]
    lines += ["", *read_irregular(wordnet)]
    return "\n".join(lines) + "\n"


def licence_text() -> str:
    """Return WordNet's licence, as Debian's package states it."""
    lines = Path("/usr/share/doc/wordnet-base/copyright").read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("License: WordNet"))
    taken = []
    for line in lines[first + 1 :]:
        if not line.startswith(" "):
            break
        taken.append("" if line.strip() == "." else line.strip())
    note = (
        "lexicon.txt.gz beside this file is derived from WordNet 3.0 by tools/build_lexicon.py:\n"
        "counts, lemmas and irregular forms, repacked. It is distributed under WordNet's licence.\n"
    )
    return note + "\n" + "\n".join(taken) + "\n"


def main() -> int:
    """Build the lexicon, or check the committed one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"))
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not (options.wordnet / "index.sense").is_file():
        print(
            f"{options.wordnet}/index.sense is not there: "
            "apt-get install wordnet-base wordnet-sense-index, or name the folder with --wordnet",
            file=sys.stderr,
        )
        return 2
    text = build_text(options.wordnet)
    target = options.out / "lexicon.txt.gz"
    if options.check:
        same = target.is_file() and gzip.decompress(target.read_bytes()).decode() == text
        print(f"{target}: {'as built' if same else 'differs: run tools/build_lexicon.py'}")
        return 0 if same else 1
    options.out.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    (options.out / "LICENSE.wordnet").write_text(licence_text(), encoding="utf-8")
    print(f"{target}: {text.count(chr(10)):,} lines, {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
