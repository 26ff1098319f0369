"""Matching imports little of nltk, and leaves nltk unchanged for other code."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.sizes import further

_FIND = """
import sys
from hallujudge.synonym_graphs import compile_matcher, load_graph
matcher = compile_matcher(load_graph("coco-published"), variant="published")
assert [m.word for m in matcher.find("Two puppies, and (a cat).")] == ["puppy", "cat"]
"""
# Only nltk/__init__.py imports these.
_HEAVY = (
    "nltk.data",
    "nltk.classify",
    "nltk.chunk",
    "nltk.corpus",
    "networkx",
    "scipy",
    "sklearn",
    "textblob",
)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_matching_starts_no_large_library() -> None:
    loaded = run(f"{_FIND}\nprint([name for name in {_HEAVY} if name in sys.modules])")
    assert loaded.strip() == "[]"


USED = "test_nltk_can_be_used_as_usual_afterwards"


@pytest.mark.parametrize(
    "use",
    [
        "import nltk; assert callable(nltk.word_tokenize)",
        "from nltk.tokenize import TweetTokenizer; import nltk; assert nltk.TweetTokenizer",
        *(
            further(USED, use)
            for use in (
                "from nltk import word_tokenize; assert callable(word_tokenize)",
                "import nltk; assert nltk.__version__",
                "import nltk.corpus; assert nltk.corpus.stopwords",
                "import nltk.tokenize; assert callable(nltk.tokenize.word_tokenize)",
                "import nltk.tokenize.casual; import nltk; "
                "assert nltk.tokenize.casual.TweetTokenizer",
                "import nltk; assert nltk.data.path; assert callable(nltk.pos_tag)",
                "import textblob; assert textblob.TextBlob",
            )
        ),
    ],
)
def test_nltk_can_be_used_as_usual_afterwards(use: str) -> None:
    run(f"{_FIND}\n{use}")


def test_an_nltk_that_is_imported_already_is_left_alone() -> None:
    run(f"import nltk\nbefore = nltk\n{_FIND}\nassert sys.modules['nltk'] is before")
