"""Judge Tri-HE claims with a local model, a paid fallback and a budget.

The first judge is asked about every claim. What it cannot answer goes to the fallback. No more
than `--max-calls` calls are sent in all. The fallback's key comes from the environment variable
HALLUJUDGE_FALLBACK_API_KEY.

    python examples/judge_with_fallback.py \
        --llm-url http://localhost:8000/v1 --llm-model meta-llama/Llama-3.3-70B-Instruct \
        --fallback-url https://api.openai.com/v1 --fallback-model gpt-4o
"""

import argparse

from hallujudge.metrics import TriHeEvidence
from hallujudge.sdk import Client

ANSWERS = [
    {"image_id": 7, "question": "What is there?", "response": "A dog is on a red sofa."},
    {"image_id": 8, "question": "What is there?", "response": "A man rides a horse."},
]
SCENE_GRAPHS = {
    "7": [["dog", "on", "sofa"], ["sofa", "is", "blue"]],
    "8": [["man", "riding", "horse"]],
}


def parsed() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Score two answers by Tri-HE.")
    for name in ("--llm-url", "--llm-model", "--fallback-url", "--fallback-model"):
        parser.add_argument(name, required=True)
    parser.add_argument("--max-calls", type=int, default=100)
    return parser.parse_args()


def main() -> None:
    """Score the answers and print each claim with its judge and verdict."""
    given = parsed()
    settings = {
        "llm.url": given.llm_url,
        "llm.model": given.llm_model,
        "fallback.url": given.fallback_url,
        "fallback.model": given.fallback_model,
        "max_calls": given.max_calls,
    }
    with Client.embedded(settings) as client:
        report = client.score(
            "tri-he",
            responses=ANSWERS,
            references=SCENE_GRAPHS,
            options={"judge": "router", "extractor": "rules"},
        )
    for item in report.items:
        evidence = item.evidence
        for claim in evidence.claims if isinstance(evidence, TriHeEvidence) else ():
            print(tuple(claim.triplet), claim.verdict.value, claim.judge or claim.reason)
    print(f"unscored {report.coverage.unscored}, hallu_q {report.hallu_q}")


if __name__ == "__main__":
    main()
