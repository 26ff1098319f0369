"""The shipped graph `coco-published` is the published word table, fact for fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallujudge.synonym_graphs import SynonymGraph, load_graph, parse_graph
from hallujudge.synonym_graphs.object_lexicon import Variant, build_lexicon


@pytest.fixture(scope="module")
def table(goldens: Path) -> SynonymGraph:
    text = (goldens / "chair" / "coco_synonyms.txt").read_text("utf-8")
    return parse_graph(text, layout="table", name="published")


def test_entries_count_as_the_same_objects(table: SynonymGraph) -> None:
    assert load_graph("coco-published").table_entries == table.table_entries


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_captions_are_searched_for_the_same_words(table: SynonymGraph, variant: Variant) -> None:
    ours = build_lexicon(load_graph("coco-published"), variant)
    theirs = build_lexicon(table, variant)
    assert (ours.singles, ours.units, ours.suppress) == (
        theirs.singles,
        theirs.units,
        theirs.suppress,
    )
