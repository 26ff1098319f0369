"""Matchers: judges that compare claims with references by a local model.

Protocol ``published`` gives the verdicts of Tri-HE's released NLI judge, the others those of small
judges: sentence-pair classifiers. Importing this package loads no model and no model library.
"""

from .models import MINILM_SHA256, ModelFolder, find_model
from .opening import MatcherModels, open_matcher
from .presets import SMALL_JUDGES, SmallPreset
from .values import (
    BACKENDS,
    PROTOCOLS,
    ClaimMatcher,
    ClaimQuery,
    Encoder,
    MatcherSettings,
    PairModel,
)

__all__ = [
    "BACKENDS",
    "MINILM_SHA256",
    "PROTOCOLS",
    "SMALL_JUDGES",
    "ClaimMatcher",
    "ClaimQuery",
    "Encoder",
    "MatcherModels",
    "MatcherSettings",
    "ModelFolder",
    "PairModel",
    "SmallPreset",
    "find_model",
    "open_matcher",
]
