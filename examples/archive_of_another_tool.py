"""Score POPE answers that lmms-eval logged, and compare answer parsers.

lmms-eval writes `..._samples_pope.jsonl` when it runs with `--log_samples`. No question file is
needed: the labels are in the log.

    python examples/archive_of_another_tool.py
"""

import argparse
from pathlib import Path

from hallujudge.sdk import Client

LOG = Path(__file__).resolve().parent / "data" / "lmms_eval_pope.jsonl"


def main() -> None:
    """Score the log once per answer parser."""
    with Client.embedded() as client:
        for parser in ("lmms-eval", "published", "strict"):
            report = client.score("pope", responses=LOG, variant=parser)
            unscored = report.coverage.unscored
            print(f"{parser:10} f1 {report.f1:.3f}, unscored {unscored} of {report.coverage.items}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
