"""Matchers: judges that compare claims with references by a local model.

Protocol ``published`` gives the verdicts of Tri-HE's released NLI judge, the others those of small
judges: sentence-pair classifiers. Importing this package loads no model and no model library.
"""

from .matcher_interface import (
    BACKENDS,
    PROTOCOLS,
    ClaimMatcher,
    ClaimQuery,
    Encoder,
    MatcherSettings,
    PairModel,
)
from .matcher_models import MatcherModels, open_matcher
from .model_folders import MINILM_SHA256, ModelFolder, find_model
from .small_judge_presets import SMALL_JUDGES, SmallPreset

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
