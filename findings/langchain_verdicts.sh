#!/usr/bin/env bash
# Replies of a judge that give no verdict as asked, in langchain-classic 1.0.8. The evaluators of criteria, among them
# correctness, look for Y or N at the end, also inside of a word: a reply that ends in "story" or "say" is a yes, one that
# ends in "man" a no. The evaluator of questions and answers reads the last word, or else the first: "not correct" is
# correct.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  langchain-classic==1.0.8
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
from langchain_classic.evaluation.criteria import LabeledCriteriaEvalChain
from langchain_classic.evaluation.qa import QAEvalChain
from langchain_core.language_models import FakeListLLM

def by_criteria(reply):
    chain = LabeledCriteriaEvalChain.from_llm(FakeListLLM(responses=[reply]), criteria="correctness")
    return chain.evaluate_strings(input="Who is it?", prediction="A man.", reference="A child.")["score"]

def by_answer(reply):
    chain = QAEvalChain.from_llm(FakeListLLM(responses=[reply]))
    return chain.evaluate_strings(input="Who is it?", prediction="A man.", reference="A child.")["score"]

replies = ["Y", "N", "The claim is not supported by the story", "I can't say"]
replies += ["It is right: this is a man", "I cannot tell."]
criteria = {reply: by_criteria(reply) for reply in replies}
words = ["CORRECT", "INCORRECT", "The answer is not correct.", "Correct answers name a child, this one a man."]
answers = {reply: by_answer(reply) for reply in words}
print("criteria:", criteria, "questions and answers:", answers)
assert list(criteria.values()) == [1, 0, 1, 1, 0, None] and list(answers.values()) == [1, 0, 1, 1]
PYTHON
