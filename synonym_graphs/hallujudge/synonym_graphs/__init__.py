"""Synonym graphs: which words name which object, and where a caption mentions it.

>>> graph = load_graph("coco")
>>> matcher = compile_matcher(graph, reading="corrected")
>>> [(m.word, m.object) for m in matcher.find("Two puppies beside a parking meter.")]
[('puppy', 'dog'), ('parking meter', 'parking meter')]
"""

from ._graph import QualifierRule, SuppressRule, SynonymGraph
from ._keyword_values import KeywordCounts, KeywordMatch, KeywordPair, KeywordReading, NearMiss
from ._keywords import KeywordMatcher, compile_keywords
from ._lexicon import Reading
from ._load import graph_from_bytes, load_graph, shipped_graphs
from ._matcher import Matcher, Mention, compile_matcher
from ._parse import Layout, parse_graph
from ._pickles import is_pickle, read_released_pickle
from ._released import released_json
from ._validate import table_notes, validate_graph
from ._words import clean_word
from .errors import GraphError, GraphFormatError, GraphInvalidError, GraphNotFoundError

__all__ = [
    "GraphError",
    "GraphFormatError",
    "GraphInvalidError",
    "GraphNotFoundError",
    "KeywordCounts",
    "KeywordMatch",
    "KeywordMatcher",
    "KeywordPair",
    "KeywordReading",
    "Layout",
    "Matcher",
    "Mention",
    "NearMiss",
    "QualifierRule",
    "Reading",
    "SuppressRule",
    "SynonymGraph",
    "clean_word",
    "compile_keywords",
    "compile_matcher",
    "graph_from_bytes",
    "is_pickle",
    "load_graph",
    "parse_graph",
    "read_released_pickle",
    "released_json",
    "shipped_graphs",
    "table_notes",
    "validate_graph",
]
