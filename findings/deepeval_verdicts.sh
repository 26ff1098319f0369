#!/usr/bin/env bash
# Verdicts of a judge in DeepEval 4.3.1. A verdict that is neither yes nor no, such as "contradicted" or JSON's false, is
# dropped without a word. If none is left, the score is the best one, also of a judge that gave no verdict at all. A
# response without a claim is faithful.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export DEEPEVAL_TELEMETRY_OPT_OUT=YES PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  deepeval==4.3.1
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import json
from deepeval.metrics import FaithfulnessMetric, HallucinationMetric
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase

class Judge(DeepEvalBaseLLM):
    """Replies with fixed JSON, whatever it is asked; its key is what DeepEval looks for."""

    def __init__(self, **reply):
        self.reply = json.dumps(reply)

    def load_model(self):
        return self

    def generate(self, prompt):
        return self.reply

    async def a_generate(self, prompt):
        return self.reply

    def get_model_name(self):
        return "fixed"

def score(metric, **reply):
    case = LLMTestCase(
        input="What is shown?",
        actual_output="A dog and a bench.",
        context=["A cat.", "A chair."],
        retrieval_context=["A cat."],
    )
    made = metric(model=Judge(**reply), include_reason=False, async_mode=False)
    return made.measure(case, _show_indicator=False)

judged = {}
for verdicts in (["no", "no"], ["no", "yes"], ["contradicted", "yes"], ["contradicted", "hallucinated"], [False, False], []):
    verdict_list = [{"verdict": verdict, "reason": "Not in the picture."} for verdict in verdicts]
    judged[json.dumps(verdicts)] = score(HallucinationMetric, verdicts=verdict_list)
without_claims = score(FaithfulnessMetric, claims=[], truths=["A cat."], verdicts=[])
print("score by verdicts, 1 is best:", judged, "faithfulness without a claim:", without_claims)
assert list(judged.values()) == [0, 0.5, 1, 1, 1, 1] and without_claims == 1
PYTHON
