"""Synonym graphs: which words name which object, and where a caption mentions it.

>>> graph = load_graph("coco")
>>> matcher = compile_matcher(graph, reading="corrected")
>>> [(m.word, m.object) for m in matcher.find("Two puppies beside a parking meter.")]
[('puppy', 'dog'), ('parking meter', 'parking meter')]
"""

from ._graph import QualifierRule, SuppressRule, SynonymGraph
from ._lexicon import Reading
from ._load import load_graph, shipped_graphs
from ._matcher import Matcher, Mention, compile_matcher
from ._parse import Layout, parse_graph
from ._validate import table_notes, validate_graph
from .errors import GraphError, GraphFormatError, GraphInvalidError, GraphNotFoundError

__all__ = [
    "GraphError",
    "GraphFormatError",
    "GraphInvalidError",
    "GraphNotFoundError",
    "Layout",
    "Matcher",
    "Mention",
    "QualifierRule",
    "Reading",
    "SuppressRule",
    "SynonymGraph",
    "compile_matcher",
    "load_graph",
    "parse_graph",
    "shipped_graphs",
    "table_notes",
    "validate_graph",
]
