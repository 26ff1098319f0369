"""Tri-HE's released NLI judge and its counting, written plainly: one text at a time, no cache.

Tests compare the matcher and the metric with this code. It shares no code with the
package. ``encode`` turns a list of texts into unit vectors; the procedure is the same for any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Encode = Callable[[list[str]], Any]


def reference_texts(triplets: Sequence[str]) -> list[str]:
    """Texts of a scene graph: those of its file without brackets and commas, with a full stop."""
    return ["".join(c for c in triplet if c not in "(),") + "." for triplet in triplets]


def judge_claim(encode: Encode, claim: Sequence[str], references: list[str]) -> tuple[str, float]:
    """One claim against one image: verdict (yes or no) and score."""
    vectors = encode(references)
    own = encode([" ".join(claim)])[0]
    cosines = vectors @ own
    # The procedure embeds the whole scene graph as one text here, and does nothing with it.
    encode([" ".join(references)])
    nearest = np.argsort(-cosines, kind="stable")[:3]
    score = float(encode([" ".join(references[i] for i in nearest)])[0] @ own)
    kept = [text for text, cosine in zip(references, cosines, strict=True) if cosine > 0.5]
    if kept:
        score = max(score, float(encode([" ".join(kept)])[0] @ own))
    return ("yes" if score > 0.6 else "no"), score


def hallu_q(answers: Sequence[Sequence[str]], wrong: str = "no") -> float:
    """Mean share of wrong verdicts over answers; those without verdicts are left out."""
    shares = [list(verdicts).count(wrong) / len(verdicts) for verdicts in answers if verdicts]
    return sum(shares) / len(shares)


def hallu_i(images: Mapping[str, Sequence[Sequence[str]]], wrong: str = "no") -> float:
    """Mean over images of the same; images without verdicts are left out."""
    shares = [hallu_q(answers, wrong) for answers in images.values() if any(answers)]
    return sum(shares) / len(shares)
