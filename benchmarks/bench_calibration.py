"""How far calibrated scores can be trusted: simulations, HAT's marked words, Tri-HE's gold answers.

    python benchmarks/bench_calibration.py [--part PART] [--samples 1000]

``simulated`` draws claims of 400 images with a planted share of hallucinations, a judge with a
planted sensitivity and specificity, and random labels. It prints how often intervals hold the true
share, the bias and the mean error of each estimate, how wide intervals are, and how often the raw
score is said to be nearer than the corrected one.

``weighted`` does the same for claims that count unequally, as in ``hallu_q``: longer answers
hallucinate more, and each of their claims counts less.

``planned`` does the same with labels that a plan draws: by verdict and thirds of the margin, in
which wrong verdicts have smaller margins.

``seen`` scores claims by the metric seen-claims, whose judge errs at known rates and sees not all,
and corrects the scores by 100 labels as ``hallujudge calibrate`` does.

``hat`` scores the captions of HAT by CHAIR, with objects that the rule extractor finds in the five
reference captions. People marked the hallucinated words. It prints how CHAIR agrees with them on
captions, and what 50 labelled captions say of all, over redraws.

``tri-he`` scores the annotated answers of Tri-HE, which three people checked, with a matcher. Its
labels say that all claims are true. Needs the extra ``matcher-onnx`` and MiniLM's weights.
"""

from __future__ import annotations

from collections.abc import Callable

import needs  # noqa: F401  # stops with a sentence where hallujudge is not installed
from arguments import Arguments
from calibration_goldens import print_hat, print_tri_he
from calibration_seen import print_seen
from calibration_simulations import print_planned, print_simulated, print_weighted

PARTS: dict[str, Callable[[int], None]] = {
    "simulated": print_simulated,
    "weighted": print_weighted,
    "planned": print_planned,
    "seen": print_seen,
    "hat": print_hat,
    "tri-he": print_tri_he,
}


def main() -> None:
    """Print the chosen parts."""
    parser = Arguments(__doc__)
    parser.add_argument("--part", choices=PARTS, help="one part only")
    parser.size("--samples", 1000, smoke=2, help="samples of each row")
    arguments = parser.given()
    for name in [arguments.part] if arguments.part else PARTS:
        print(f"\n{name}\n")
        PARTS[name](arguments.samples)


if __name__ == "__main__":
    main()
