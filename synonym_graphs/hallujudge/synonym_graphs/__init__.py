"""Synonym graphs, and the matchers that find their words in captions and keyword lists.

Example:
    >>> graph = load_graph("coco")
    >>> matcher = compile_matcher(graph, variant="corrected")
    >>> [(m.word, m.object) for m in matcher.find("Two puppies beside a parking meter.")]
    [('puppy', 'dog'), ('parking meter', 'parking meter')]
"""

from .files import graph_from_bytes, is_pickle, load_graph, read_released_pickle, shipped_graphs
from .graph import (
    GraphError,
    GraphFormatError,
    GraphInvalidError,
    GraphNotFoundError,
    QualifierRule,
    SuppressRule,
    SynonymGraph,
    table_notes,
    validate_graph,
)
from .graph_parser import Layout, parse_graph
from .json_layouts import released_json
from .keyword_lookup import KeywordCounts, KeywordMatch, KeywordPair, KeywordVariant, NearMiss
from .keyword_matcher import KeywordMatcher, compile_keywords, maps_references
from .object_lexicon import Variant
from .object_matcher import Mention, ObjectMatcher, compile_matcher
from .word_forms import clean_word

__all__ = [
    "GraphError",
    "GraphFormatError",
    "GraphInvalidError",
    "GraphNotFoundError",
    "KeywordCounts",
    "KeywordMatch",
    "KeywordMatcher",
    "KeywordPair",
    "KeywordVariant",
    "Layout",
    "Mention",
    "NearMiss",
    "ObjectMatcher",
    "QualifierRule",
    "SuppressRule",
    "SynonymGraph",
    "Variant",
    "clean_word",
    "compile_keywords",
    "compile_matcher",
    "graph_from_bytes",
    "is_pickle",
    "load_graph",
    "maps_references",
    "parse_graph",
    "read_released_pickle",
    "released_json",
    "shipped_graphs",
    "table_notes",
    "validate_graph",
]
