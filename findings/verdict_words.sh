#!/usr/bin/env bash
# Replies of a judge in words. llama-index-core 0.14.25 looks for "yes" anywhere, also in "eyes" and "yesterday": "No. Her
# eyes are closed." makes a response faithful. selfcheckgpt 0.1.7 takes whatever begins with "no" for a no, so that "Not
# sure" and "Nothing speaks against it" are hallucinations; "It is: yes" is half a one.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export OPENAI_API_KEY=none PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  llama-index-core==0.14.25 openai==2.8.1
# Without what it requires: the module needs no model.
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-deps \
  selfcheckgpt==0.1.7
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import runpy
import sysconfig
from pathlib import Path
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

class Judge(CustomLLM):
    """Replies with one text, whatever it is asked."""

    reply: str

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **options):
        return CompletionResponse(text=self.reply)

    def stream_complete(self, prompt, formatted=False, **options):
        yield CompletionResponse(text=self.reply)

module = Path(sysconfig.get_path("purelib")) / "selfcheckgpt/modeling_selfcheck_apiprompt.py"
checks = runpy.run_path(str(module))["SelfCheckAPIPrompt"]

class Check(checks):
    def completion(self, prompt):
        return self.reply

def by_llama_index(reply):
    evaluator = FaithfulnessEvaluator(llm=Judge(reply=reply))
    return evaluator.evaluate(response="Her eyes are open.", contexts=["A girl sleeps."]).score

def by_selfcheck(reply):
    check = Check()
    check.reply = reply
    return float(check.predict(["Her eyes are open."], ["A girl sleeps."])[0])

replies = ["YES", "NO", "No. Her eyes are closed.", "No, this was yesterday.", "Supported"]
faithful = {reply: by_llama_index(reply) for reply in replies}
replies = ["Yes", "No", "Not sure", "Nothing speaks against it", "It is: yes"]
hallucinated = {reply: by_selfcheck(reply) for reply in replies}
print("llama-index, 1 is faithful:", faithful, "selfcheckgpt, 1 is a hallucination:", hallucinated)
assert list(faithful.values()) == [1, 0, 1, 1, 0] and list(hallucinated.values()) == [0, 1, 1, 1, 0.5]
PYTHON
