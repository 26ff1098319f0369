"""Sheets for a blind reading of claims: the protocol of docs/explanation/rule-extractor-quality.md.

``PYTHONPATH=tests python -m oracles.reading_sheet GOLDENS`` prints the sentences, for the obvious
claims that a reader lists first. With ``--claims`` it prints the claims of all extractors under
each sentence: without repeats, in random order and without their extractor. ``--pipeline`` adds
the extractor ``spacy``. ``--seed`` draws other sentences; texts that were read once must not be
read again after rules were changed by what was found: ``--apart-from`` leaves out the responses
that another seed draws.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from oracles.extraction_scores import Extractor

from hallujudge.judge_service.extractors.library_extractors import shared_extractor
from hallujudge.judge_service.extractors.rules.rule_extractors import RuleTripletExtractor

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?]+(?=\s|$)|(?=\n|$))")
_CONTEXT_CHARS = 160
_FEWEST_WORDS = 4


class Drawn(NamedTuple):
    """A sentence of a response."""

    text: str
    start: int
    end: int

    @property
    def sentence(self) -> str:
        """The sentence on one line."""
        return self.text[self.start : self.end].replace("\n", " ")

    @property
    def context(self) -> str:
        """The end of the text before it."""
        return self.text[max(0, self.start - _CONTEXT_CHARS) : self.start].replace("\n", " ")


def responses(goldens: Path) -> dict[str, list[tuple[str, Any]]]:
    """Source -> keys and texts of its responses."""
    answers = json.loads((goldens / "tri_he/tri-he.json").read_text(encoding="utf-8"))
    found = {"tri_he": [(key, i["answer"]) for key, e in answers.items() for i in e["instance"]]}
    for model in ("gemini", "video_llava"):
        path = goldens / f"event_hallusion/{model}.predictions.json"
        parts = json.loads(path.read_text(encoding="utf-8")).values()
        found[f"event_{model}"] = [
            (key, entry["desc"])
            for part in parts
            for key, entry in part.items()
            if entry.get("desc")
        ]
    for path in sorted((goldens / "chair").glob("pope_*.captions.json")):
        name = path.name.split("_")[-1].split(".")[0]
        rows = list(_records(path.read_text(encoding="utf-8")))
        found[f"pope_{name}"] = [(str(i), _caption(row)) for i, row in enumerate(rows)]
    sample = goldens / "hallusion_bench/released_sample.predictions.json"
    rows = json.loads(sample.read_text(encoding="utf-8"))
    found["hallusion_bench"] = [(str(i), row["model_prediction"]) for i, row in enumerate(rows)]
    return found


def _records(text: str) -> Iterator[Any]:
    """Yield the records of a JSON list, or of JSON values one after another."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text.rstrip()):
        place += len(text[place:]) - len(text[place:].lstrip(" \n\r\t,"))
        value, place = decoder.raw_decode(text, place)
        yield from value if isinstance(value, list) else (value,)


def _caption(row: Any) -> object:
    return row.get("caption") or row.get("text") or row.get("answer")


def draw(goldens: Path, seed: int, each: int, read: Collection[str] = frozenset()) -> list[Drawn]:
    """One sentence of each of some responses per source, of keys whose SHA-256 is odd.

    Responses that are in ``read`` are left out.
    """
    chance, drawn = random.Random(seed), []
    for _, rows in sorted(responses(goldens).items()):
        pool = [(key, text) for key, text in rows if isinstance(text, str) and _odd(key)]
        chance.shuffle(pool)
        fresh = [text for _, text in pool if text not in read and any(_sentences(text))]
        chosen = fresh[:each]
        drawn += [chance.choice(list(_sentences(text))) for text in chosen]
    return drawn


def _odd(key: str) -> bool:
    return int(hashlib.sha256(key.encode()).hexdigest(), 16) % 2 == 1


def _sentences(text: str) -> Iterator[Drawn]:
    for match in _SENTENCE.finditer(text):
        words = match.group()
        if len(words.split()) >= _FEWEST_WORDS:
            blanks = len(words) - len(words.lstrip())
            yield Drawn(text, match.start() + blanks, match.end())


def claims(drawn: Drawn, extractors: list[Extractor], chance: random.Random) -> list[str]:
    """Return the claims of all extractors whose object begins in the sentence, shuffled."""
    found = {
        " ~ ".join(claim.parts)
        for extractor in extractors
        for claim in extractor.extract(drawn.text)
        if drawn.start <= claim.object_span.start < drawn.end
    }
    ordered = sorted(found)
    chance.shuffle(ordered)
    return ordered


def main() -> None:
    """Print a sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("goldens", type=Path)
    parser.add_argument("--claims", action="store_true", help="Print the claims, too.")
    parser.add_argument("--pipeline", help="Installed spaCy pipeline.")
    parser.add_argument("--seed", type=int, default=20261122, help="Seed of the draw.")
    parser.add_argument("--each", type=int, default=10, help="Sentences of each source.")
    parser.add_argument(
        "--apart-from", type=int, nargs="*", default=[], help="Seeds whose responses were read."
    )
    given = parser.parse_args()
    extractors: list[Extractor] = [RuleTripletExtractor()]
    if given.pipeline:
        extractors.append(shared_extractor(given.pipeline))
    chance = random.Random(given.seed)
    read = {old.text for seed in given.apart_from for old in draw(given.goldens, seed, 10)}
    for number, drawn in enumerate(draw(given.goldens, given.seed, given.each, read)):
        print(f"[{number}] (... {drawn.context}) >>> {drawn.sentence}")
        for index, claim in enumerate(claims(drawn, extractors, chance) if given.claims else ()):
            print(f"    {index}: {claim}")


if __name__ == "__main__":
    main()
