"""Small files in the layout of nltk's data, with invented content."""

from __future__ import annotations

import json
from pathlib import Path

from support.wordnet_sample import write_wordnet

__all__ = ["write_nltk_data"]

NOUNS = ("man", "shoe", "puppy", "tree", "leaf")


def write_nltk_data(folder: Path) -> Path:
    """Write a sentence splitter, a tagger that knows some nouns, and a WordNet of them."""
    punkt = folder / "tokenizers" / "punkt_tab" / "english"
    punkt.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (punkt / name).write_text("")
    name = "averaged_perceptron_tagger_eng"
    tagger = folder / "taggers" / name
    tagger.mkdir(parents=True)
    tags = dict.fromkeys(NOUNS, "NN") | {"puppies": "NNS", "leaves": "NNS", "Man": "NNP"}
    parts = {"weights": {"bias": {"DT": 1.0}}, "tagdict": tags, "classes": ["DT", "NN", "NNP"]}
    for part, content in parts.items():
        (tagger / f"{name}.{part}.json").write_text(json.dumps(content))
    wordnet = write_wordnet(
        folder / "corpora" / "wordnet",
        nouns=[((word,), "") for word in NOUNS],
        irregular={"leaves": "leaf"},
    )
    for pos in ("adj", "adv"):
        (wordnet / f"index.{pos}").write_text("")
        (wordnet / f"data.{pos}").write_text("")
    (wordnet / "index.sense").write_text("")
    for pos in ("adj", "adv", "verb"):
        (wordnet / f"{pos}.exc").write_text("")
    (wordnet / "lexnames").write_text("".join(f"{at:02}\tfile.{at}\t1\n" for at in range(4)))
    return folder
