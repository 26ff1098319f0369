"""Reference vectors of all-MiniLM-L6-v2 in single precision, by sentence-transformers on torch."""

from __future__ import annotations

from ..models import MINILM_SHA256

__all__ = ["GOLDEN_SHA256", "GOLDEN_TEXTS", "GOLDEN_VECTORS"]

GOLDEN_SHA256 = MINILM_SHA256
"""The hash of the weights that computed the vectors."""

GOLDEN_TEXTS = (
    "man riding horse.",
    "A quick check of the sentence encoder: seven lamps, two dogs and 1,000 birds near a café.",
)
"""Two texts of different lengths."""

GOLDEN_VECTORS = (
    (
        0.010917,
        0.016325,
        0.024598,
        0.023854,
        -0.104885,
        -0.002353,
        0.126211,
        0.045308,
        0.006087,
        -0.028705,
        -0.007814,
        0.040424,
        0.017643,
        0.025372,
        -0.058065,
        0.036049,
        -0.042138,
        0.095343,
        0.034876,
        -0.028703,
        -0.000332,
        0.043763,
        -0.127579,
        0.034543,
    ),
    (
        0.047853,
        -0.005915,
        0.002665,
        0.022807,
        -0.027116,
        0.053748,
        -0.000392,
        -0.081770,
        0.009042,
        0.010813,
        0.064246,
        -0.057602,
        0.035082,
        0.005380,
        -0.016113,
        0.057125,
        -0.067900,
        -0.025920,
        0.011865,
        -0.078912,
        0.055704,
        0.032387,
        0.029370,
        0.041004,
    ),
)
"""The first 24 numbers of their vectors, from sentence-transformers 6.2.0 and torch 2.13.0."""
