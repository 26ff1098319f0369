"""Matchers: judges that compare claims with references by a local model.

Protocol ``published`` gives the verdicts of Tri-HE's released NLI judge, ``nli`` those of an
entailment cross-encoder. Importing this package loads no model and no model library.
"""

from .models import MINILM_SHA256, ModelFolder, find_model
from .opening import MatcherModels, open_matcher
from .values import (
    BACKENDS,
    PROTOCOLS,
    ClaimMatcher,
    ClaimQuery,
    Encoder,
    EntailmentModel,
    MatcherSettings,
)

__all__ = [
    "BACKENDS",
    "MINILM_SHA256",
    "PROTOCOLS",
    "ClaimMatcher",
    "ClaimQuery",
    "Encoder",
    "EntailmentModel",
    "MatcherModels",
    "MatcherSettings",
    "ModelFolder",
    "find_model",
    "open_matcher",
]
