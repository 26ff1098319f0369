"""Modules that every worker process needs; imported once, before workers are forked from it."""

from __future__ import annotations

import numpy  # noqa: F401

from hallujudge.synonym_graphs.word_forms import load_tokenizers, textblob_inflect

from ..backends import embedded  # noqa: F401
from . import worker  # noqa: F401

load_tokenizers()
textblob_inflect()
