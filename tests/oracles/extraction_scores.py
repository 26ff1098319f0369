"""Precision and recall of the rule extractors on human annotations, as in the docs.

Run it: ``PYTHONPATH=tests python -m oracles.extraction_scores GOLDENS`` prints every table of
docs/explanation/rule-extractor-quality.md; with ``PIPELINE`` after it, an installed spaCy pipeline,
those of the extractor ``spacy``. The docstrings of the functions define each figure.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hallujudge.judge_service.extractors import ExtractedTriplet, Keywords
from hallujudge.judge_service.extractors.library_extractors import shared_extractor
from hallujudge.judge_service.extractors.rules.lexicon import Morphology, load_lexicon
from hallujudge.judge_service.extractors.rules.rule_extractors import (
    Analyser,
    RuleKeywordExtractor,
    RuleTripletExtractor,
    shared_analyser,
)
from hallujudge.judge_service.extractors.rules.tagger import Tagger
from hallujudge.judge_service.extractors.rules.words import Word

DOMAINS = ("daily_life", "robotics", "comics")
_EMPTY = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "in",
        "on",
        "at",
        "is",
        "are",
        "be",
        "with",
        "his",
        "her",
        "their",
        "its",
        "and",
    ]
)
_MORPHOLOGY = Morphology(load_lexicon())


def half_of(key: str) -> str:
    """The half an image or sequence belongs to: rules were written looking at "dev" alone."""
    even = int(hashlib.sha256(key.encode()).hexdigest(), 16) % 2 == 0
    return "dev" if even else "held_out"


def lemmas(text: str) -> tuple[str, ...]:
    """Return the content words of a phrase as lemmas, in order."""
    words = re.findall(r"[^\W_]+(?:[-'][^\W_]+)*", text.lower())
    return tuple(_lemma(word) for word in words if word not in _EMPTY)


def _lemma(word: str) -> str:
    word = word.removesuffix("'s")
    noun, weight, _ = _MORPHOLOGY.noun(word)
    verb, verb_weight, form = _MORPHOLOGY.verb(word)
    return verb if form in ("g", "d", "p", "e") and verb_weight > weight else noun


def same_end(first: str, second: str) -> bool:
    """Soft match of two phrases: the same last lemma, or one's lemmas all among the other's."""
    a, b = lemmas(first), lemmas(second)
    if not a or not b:
        return first.strip().lower() == second.strip().lower()
    return a[-1] == b[-1] or set(a) <= set(b) or set(b) <= set(a)


def stated(phrase: str, text: str) -> bool:
    """Return whether the text has the phrase word for word, ignoring case."""
    pattern = r"(?<!\w)" + re.escape(phrase.strip().lower()) + r"(?!\w)"
    return bool(phrase.strip()) and re.search(pattern, text.lower()) is not None


@dataclass(slots=True)
class Hits:
    """Counts of correct, expected and extracted values."""

    right: int = 0
    wanted: int = 0
    given: int = 0

    @property
    def recall(self) -> float:
        """The share of expected values that were extracted."""
        return self.right / self.wanted if self.wanted else float("nan")

    @property
    def precision(self) -> float:
        """The share of extracted values that were expected."""
        return self.right / self.given if self.given else float("nan")

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.wanted + self.given
        return 2 * self.right / both if both else float("nan")


class Extractor(Protocol):
    """Extracts triplets from one text."""

    def extract(self, text: str) -> list[ExtractedTriplet]:
        """Return the claims of a text."""
        ...


@dataclass(slots=True)
class TripletScores:
    """The scores of the triplet extractor on Tri-HE's answers."""

    ends: Hits = field(default_factory=Hits)
    ends_exact: Hits = field(default_factory=Hits)
    image_objects: Hits = field(default_factory=Hits)
    triplets: Hits = field(default_factory=Hits)
    stated_triplets: Hits = field(default_factory=Hits)
    pairs: Hits = field(default_factory=Hits)
    outcomes: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    empty: int = 0
    missed: list[tuple[str, str]] = field(default_factory=list)


def parse_triplet(text: str) -> tuple[str, str, str] | None:
    """ "(a, b, c)" as three parts; None where it has more or fewer."""
    parts = [part.strip() for part in text.strip().strip("()").split(",")]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None


def triplet_scores(
    data: Mapping[str, Mapping[str, object]], half: str | None, extractor: Extractor
) -> TripletScores:
    """Scores over the answers of the images of one half, or of all."""
    scores = TripletScores()
    for image, entry in data.items():
        if half is not None and half_of(image) != half:
            continue
        names = _image_names(entry)
        for instance in entry["instance"]:  # type: ignore[attr-defined]  # plain JSON
            gold = [t for t in map(parse_triplet, instance["triplet"]) if t is not None]
            _score_answer(scores, instance["answer"], gold, names, extractor)
    return scores


def _image_names(entry: Mapping[str, object]) -> set[str]:
    listed = [*entry["all_object"], *entry["object"]]  # type: ignore[misc]  # plain JSON
    return {str(name).lower() for name in listed}


def _score_answer(
    scores: TripletScores,
    answer: str,
    gold: Sequence[tuple[str, str, str]],
    names: set[str],
    extractor: Extractor,
) -> None:
    found = extractor.extract(answer)
    scores.answers += 1
    scores.empty += not found
    ends = {end for triplet in found for end in named_by(triplet)}
    for wanted in sorted({end.lower() for t in gold for end in (t[0], t[2])}):
        if stated(wanted, answer):
            _score_end(scores, wanted, ends, answer)
    for name in names:
        if stated(name, answer):
            scores.image_objects.wanted += 1
            scores.image_objects.right += any(same_end(name, end) for end in ends)
    _score_triplets(scores, answer, gold, found)


def named_by(triplet: ExtractedTriplet) -> set[str]:
    """Return a claim's subject and object, and the names inside them, such as "zoo or park"."""
    ends = {triplet.subject, triplet.object}
    return ends | {part for end in ends for part in re.split(r", | or | of | between ", end)}


def _score_end(scores: TripletScores, wanted: str, ends: set[str], answer: str) -> None:
    exact = {lemmas(end) for end in ends}
    scores.ends.wanted += 1
    scores.ends_exact.wanted += 1
    scores.ends_exact.right += lemmas(wanted) in exact
    if any(same_end(wanted, end) for end in ends):
        scores.ends.right += 1
    else:
        scores.missed.append((wanted, answer))


def _score_triplets(
    scores: TripletScores,
    answer: str,
    gold: Sequence[tuple[str, str, str]],
    found: Sequence[ExtractedTriplet],
) -> None:
    free = list(found)
    scores.triplets.given += len(found)
    scores.pairs.given += len(found)
    for triplet in gold:
        scores.triplets.wanted += 1
        scores.pairs.wanted += 1
        is_stated = stated(triplet[0], answer) and stated(triplet[2], answer)
        scores.stated_triplets.wanted += is_stated
        outcome, match = _outcome(triplet, free, found)
        if outcome in ("right", "relation differs"):
            scores.pairs.right += 1
        if outcome == "right" and match is not None:
            scores.triplets.right += 1
            scores.stated_triplets.right += is_stated
            free.remove(match)
            outcome = "found" if is_stated else "found in other words"
        elif not is_stated:
            outcome = "not stated, not found"
        scores.outcomes[outcome] += 1


def _outcome(
    gold: tuple[str, str, str], free: list[ExtractedTriplet], found: Sequence[ExtractedTriplet]
) -> tuple[str, ExtractedTriplet | None]:
    subject, relation, target = gold
    pairs = [t for t in free if same_end(t.subject, subject) and same_end(t.object, target)]
    for triplet in pairs:
        if _same_relation(relation, triplet.relation):
            return "right", triplet
    if pairs:
        return "relation differs", pairs[0]
    if any(same_end(t.subject, target) and same_end(t.object, subject) for t in found):
        return "ends swapped", None
    has_subject = any(same_end(end, subject) for t in found for end in (t.subject, t.object))
    has_target = any(same_end(end, target) for t in found for end in (t.subject, t.object))
    if has_subject and has_target:
        return "both ends found, not joined", None
    if has_subject or has_target:
        return "one end missed", None
    return "both ends missed", None


def _same_relation(first: str, second: str) -> bool:
    a = set(re.findall(r"\w+", first.lower())) - {"is", "are", "be", "being"}
    b = set(re.findall(r"\w+", second.lower())) - {"is", "are", "be", "being"}
    if not a or not b:
        return not a and not b
    return bool({_lemma(w) for w in a} & {_lemma(w) for w in b})


# Another tagger under the same rules.

_PENN = {
    "DT": "D", "PDT": "D", "PRP": "P", "PRP$": "S", "CD": "J", "MD": "M", "VB": "V", "VBZ": "V",
    "VBP": "V", "VBD": "V", "VBG": "G", "VBN": "E", "JJ": "A", "JJR": "A", "JJS": "A", "RB": "R",
    "RBR": "R", "RBS": "R", "IN": "I", "TO": "T", "CC": "C", "WDT": "W", "WP": "W", "WRB": "W",
    "EX": "X", "RP": "I", "UH": "K",
}  # fmt: skip


class TextBlobTagger(Tagger):
    """TextBlob's tagger for the open classes; closed classes keep our tags, so the rules fit."""

    def tag(self, words: list[Word]) -> list[str]:
        """Return one tag for each word."""
        from textblob.en.taggers import PatternTagger

        ours = super().tag(words)
        text = " ".join(word.lower.replace(" ", "_") for word in words)
        theirs = PatternTagger().tag(text, tokenize=False)
        if len(theirs) != len(words):
            return ours
        return [
            mine if mine not in "NAVGER" else _PENN.get(penn, "N")
            for mine, (_, penn) in zip(ours, theirs, strict=True)
        ]


# Keywords.


@dataclass(slots=True)
class KeywordScores:
    """Scores of objects and behaviours on hand annotations."""

    objects: Hits = field(default_factory=Hits)
    behaviors: Hits = field(default_factory=Hits)
    missed: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)


def read_annotations(path: Path) -> list[dict[str, object]]:
    """Return the annotated descriptions."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def keyword_scores(
    rows: Iterable[Mapping[str, object]], extractor: RuleKeywordExtractor
) -> KeywordScores:
    """Pooled precision and recall over exact root forms: "a|b" alternatives, "?a" optional."""
    scores = KeywordScores()
    for row in rows:
        found = extractor.extract(str(row["text"]))
        for kind in ("objects", "behaviors"):
            hits: Hits = getattr(scores, kind)
            given = [keyword.text for keyword in getattr(found, kind)]
            _score_list(scores, hits, row[kind], given, f"{row['id']} {kind}")  # type: ignore[arg-type]  # plain JSON
    return scores


def _score_list(
    scores: KeywordScores, hits: Hits, wanted: Sequence[str], given: Sequence[str], where: str
) -> None:
    optional = {name for w in wanted if w.startswith("?") for name in w[1:].split("|")}
    needed = [set(w.split("|")) for w in wanted if not w.startswith("?")]
    accepted = set().union(*needed) if needed else set()
    hits.wanted += len(needed)
    found = set(given)
    for names in needed:
        if names & found:
            hits.right += 1
        else:
            scores.missed.append(f"{where}: {'|'.join(sorted(names))}")
    counted = [name for name in given if name not in optional]
    extra = [name for name in counted if name not in accepted]
    # Two given words that are alternatives of one another count as one.
    hits.given += len(extra) + sum(bool(names & found) for names in needed)
    scores.extra += [f"{where}: {name}" for name in extra]


def descriptions(folder: Path, domain: str) -> Iterator[tuple[str, str]]:
    """(image name, human description) of a domain of Mementos."""
    packed = (folder / f"{domain}.descriptions.csv").read_bytes()
    # One published file has a character cut in half.
    text = packed.decode("utf-8-sig", errors="replace")
    for row in list(csv.reader(io.StringIO(text, newline="")))[1:]:
        yield row[0], row[1]


@dataclass(slots=True)
class GraphScores:
    """How extracted keywords and a published graph cover each other."""

    roots: int
    roots_found: int
    keywords: int
    known: int


def graph_scores(
    folder: Path, domain: str, kind: str, extracted: Sequence[Keywords]
) -> GraphScores:
    """Coverage of the graph's roots, and the share of keyword mentions that the graph knows.

    A root counts as found when some description's keywords have it, singular and plural alike; a
    keyword is known when it is a form or a root of the graph, as a whole or by its last word
    (objects) or its first (behaviours).
    """
    name = "object" if kind == "objects" else "behavior"
    graph = json.loads((folder / f"{domain}_{name}_graph.json").read_text(encoding="utf-8"))
    roots = {
        " ".join(lemmas(root)) for forms in graph.values() for rs in forms.values() for root in rs
    }
    forms = {" ".join(lemmas(f"{w} {rest}")) for w, more in graph.items() for rest in more} | roots
    roots.discard("")
    mentions = [k.text for keywords in extracted for k in getattr(keywords, kind)]
    seen = {" ".join(lemmas(m)) for m in mentions}
    seen |= {m.split()[-1 if kind == "objects" else 0] for m in seen if m}
    return GraphScores(
        roots=len(roots),
        roots_found=len(roots & seen),
        keywords=len(mentions),
        known=sum(" ".join(lemmas(m)) in forms for m in mentions),
    )


def print_triplets(goldens: Path, extractor: Extractor, halves: Sequence[str | None]) -> None:
    """Print the tables of Tri-HE's answers."""
    data = json.loads((goldens / "tri_he/tri-he.json").read_text(encoding="utf-8"))
    for half in halves:
        scores = triplet_scores(data, half, extractor)
        print(f"tri-he {half or 'all'}: {scores.answers} answers, {scores.empty} without a claim")
        for name in ("ends", "ends_exact", "image_objects", "stated_triplets"):
            hits = getattr(scores, name)
            print(f"  {name}: recall {hits.recall:.3f} ({hits.right}/{hits.wanted})")
        for name in ("triplets", "pairs"):
            hits = getattr(scores, name)
            print(f"  {name}: P {hits.precision:.3f} R {hits.recall:.3f} F1 {hits.f1:.3f} {hits}")
        print("  ", dict(scores.outcomes.most_common()))


def print_keywords(analyser: Analyser) -> None:
    """Print the tables of the annotated descriptions."""
    path = Path(__file__).resolve().parents[1] / "data/keywords/descriptions.jsonl"
    rows = read_annotations(path)
    for half in ("dev", "held_out"):
        for domain in (None, *DOMAINS):
            chosen = [r for r in rows if r["half"] == half and domain in (None, r["domain"])]
            keywords = keyword_scores(chosen, RuleKeywordExtractor(analyser))
            o, b = keywords.objects, keywords.behaviors
            print(
                f"keywords {half} {domain or 'all'} n={len(chosen)}: objects P {o.precision:.3f} "
                f"R {o.recall:.3f}; behaviours P {b.precision:.3f} R {b.recall:.3f}"
            )


def print_graphs(folder: Path, analyser: Analyser) -> None:
    """How Mementos' graphs and our keywords of its human descriptions cover each other."""
    for domain in DOMAINS:
        extractor = RuleKeywordExtractor(analyser)
        extracted = [extractor.extract(text) for _, text in descriptions(folder, domain)]
        for kind in ("objects", "behaviors"):
            g = graph_scores(folder, domain, kind, extracted)
            print(
                f"mementos {domain} {kind}: roots {g.roots_found}/{g.roots} = "
                f"{g.roots_found / g.roots:.3f}; known {g.known}/{g.keywords} = "
                f"{g.known / g.keywords:.3f}"
            )


def main() -> None:
    """Print every table."""
    goldens = Path(sys.argv[1])
    if len(sys.argv) > 2:
        print_triplets(goldens, shared_extractor(sys.argv[2]), ("dev", "held_out", None))
        return
    lexicon = load_lexicon()
    print_triplets(goldens, RuleTripletExtractor(), ("dev", "held_out", None))
    print_keywords(shared_analyser())
    print_graphs(goldens / "mementos", shared_analyser())
    print("with TextBlob's tagger:")
    other = Analyser(lexicon, TextBlobTagger(lexicon))
    print_triplets(goldens, RuleTripletExtractor(other), (None,))
    print_keywords(other)


if __name__ == "__main__":
    main()
