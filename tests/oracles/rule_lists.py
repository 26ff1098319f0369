"""What each word list and number of the rule extractors is for: how many texts it changes.

A list is left out, a number is halved and doubled, and texts that then have other claims count.
The table is in docs/explanation/rule-extractor-quality.md.
``PYTHONPATH=tests python -m oracles.rule_lists GOLDENS`` prints it, in some ten minutes.
"""

from __future__ import annotations

import json
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeGuard

from hallujudge.judge_service.extractors import rules
from hallujudge.judge_service.extractors.rules.lexicon import load_lexicon
from hallujudge.judge_service.extractors.rules.rule_extractors import (
    Analyser,
    RuleKeywordExtractor,
    RuleTripletExtractor,
)

from .claim_reading import HALVES, labelled

Texts = Sequence[tuple[str, str]]
"""Texts with the questions that they answer."""
Words = frozenset[str] | dict[str, frozenset[str]]
"""A list, or several by a word before them."""
Lists = dict[str, Words]


def modules() -> list[ModuleType]:
    """Return the modules of the rules."""
    names = sorted(found.name for found in pkgutil.iter_modules(rules.__path__))
    return [import_module(f"{rules.__name__}.{name}") for name in names]


def lists() -> Lists:
    """Return the word lists by module and name."""
    found: Lists = {}
    seen: set[int] = set()
    for module in modules():
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        for name, value in vars(module).items():
            if is_list(value) and f"\n{name} = " in source and id(value) not in seen:
                seen.add(id(value))
                found[f"{module.__name__.rpartition('.')[2]}.{name}"] = value
    return found


def is_list(value: object) -> TypeGuard[Words]:
    """Return whether a constant is a word list, or has several."""
    parts = value.values() if isinstance(value, dict) else [value]
    return bool(parts) and all(isinstance(each, frozenset) for each in parts)


def numbers() -> Iterator[tuple[ModuleType, str, int]]:
    """Yield the numbers of the rules, each with its module and name."""
    for module in modules():
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        for name, value in list(vars(module).items()):
            if type(value) is int and f"\n{name} = " in source:
                yield module, name, value


def size(words: Words) -> int:
    """Return the number of words."""
    return sum(map(len, words.values())) if isinstance(words, dict) else len(words)


def put(old: Words, new: Words) -> None:
    """Put a list in the place of another, in every module that has it."""
    for module in modules():
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new)


def extracted(texts: Texts) -> list[object]:
    """Return the claims and keywords of texts, by extractors that know nothing of earlier ones."""
    # It keeps what it looked up.
    load_lexicon.cache_clear()
    analyser = Analyser(load_lexicon())
    triplets, keywords = RuleTripletExtractor(analyser), RuleKeywordExtractor(analyser)
    return [(triplets.extract(text, asked), keywords.extract(text)) for text, asked in texts]


def sentences() -> Texts:
    """Return the labelled sentences, each with the text before it."""
    rows = [row for half in HALVES for row in labelled(half)]
    return [(f"{row['before']} {row['sentence']}".strip(), row["question"]) for row in rows]


def answers(goldens: Path) -> Texts:
    """Return Tri-HE's answers with their questions."""
    data = json.loads((goldens / "tri_he/tri-he.json").read_text(encoding="utf-8"))
    return [(pair["answer"], pair["question"]) for pair in pairs(data)]


def pairs(data: object) -> Iterator[dict[str, str]]:
    """Yield the objects with a question and an answer, at any depth."""
    if isinstance(data, dict) and {"question", "answer"} <= data.keys():
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from pairs(value)


def changed(samples: Sequence[Texts], usual: Sequence[list[object]]) -> list[int]:
    """Return how many texts of each sample have other claims or keywords than usual."""
    return [
        sum(one != other for one, other in zip(before, extracted(texts), strict=True))
        for before, texts in zip(usual, samples, strict=True)
    ]


def main() -> None:
    """Print the tables."""
    samples = [sentences(), answers(Path(sys.argv[1]))]
    usual = [extracted(texts) for texts in samples]
    print(f"| list | words | of {len(usual[0])} sentences | of {len(usual[1]):,} answers |")
    print("|---|---|---|---|")
    for name, words in lists().items():
        # An object of its own, which can be put back.
        empty: Words = {} if isinstance(words, dict) else frozenset([""])
        put(words, empty)
        few, many = changed(samples, usual)
        put(empty, words)
        print(f"| `{name}` | {size(words)} | {few} | {many} |", flush=True)
    print("\n| number | value | half | twice |\n|---|---|---|---|")
    for module, name, value in numbers():
        found = []
        for other in (value // 2, value * 2):
            setattr(module, name, other)
            found.append("{} and {}".format(*changed(samples, usual)))
        setattr(module, name, value)
        shown = f"{module.__name__.rpartition('.')[2]}.{name}"
        print(f"| `{shown}` | {value} | {found[0]} | {found[1]} |", flush=True)


if __name__ == "__main__":
    main()
