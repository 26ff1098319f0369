"""Score captions in this process and print every hallucinated mention.

python examples/in_process.py
"""

import argparse
import tempfile
from pathlib import Path

from hallujudge.metrics import ChairEvidence
from hallujudge.sdk import Client, write_example


def main() -> None:
    """Score the example captions."""
    with Client.embedded() as client, tempfile.TemporaryDirectory() as folder:
        write_example("chair", folder)
        report = client.score(
            "chair",
            responses=Path(folder) / "captions.jsonl",
            references=Path(folder) / "objects.json",
        )
    for item in report.items:
        if not isinstance(item.evidence, ChairEvidence):
            continue  # an unscored item has no evidence
        if wrong := [m.word for m in item.evidence.mentions if m.hallucinated]:
            print(f"image {item.id}: {', '.join(wrong)}")
    for name, score in report.scores.items():
        print(f"{name} {score.value:.4f} [{score.ci_low:.4f}, {score.ci_high:.4f}]")
    print(report.signature)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
