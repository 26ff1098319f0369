#!/usr/bin/env bash
# The right answer A of a multiple choice. Inspect AI 0.3.285 removes articles before it compares, so that exact() and
# f1() call the answer "A" wrong. What lmms-eval 0.7.3 does to answers of its VQA tasks makes an empty text of it, so that
# no answer at all and "The" are right. Both drop the sign of -5.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  inspect-ai==0.3.285
# Without what it requires: the module needs nothing but Python.
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-deps \
  lmms-eval==0.7.3
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import asyncio
import runpy
import sysconfig
from pathlib import Path
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Target, exact, f1
from inspect_ai.solver import TaskState

module = Path(sysconfig.get_path("purelib")) / "lmms_eval/tasks/_task_utils/vqa_eval_metric.py"
plain = runpy.run_path(str(module))["EvalAIAnswerProcessor"]()

def by_inspect(scorer, answer, label):
    output = ModelOutput.from_content("model", answer)
    state = TaskState(model="some/model", sample_id=1, epoch=1, input="Which one?", messages=[], output=output)
    return asyncio.run(scorer(state, Target(label))).value

pairs = [("A", "A"), ("B", "B"), ("", "A"), ("The", "A"), ("-5", "5")]
inspect = [(by_inspect(exact(), *pair), by_inspect(f1(), *pair)) for pair in pairs]
lmms_eval = [plain(answer) == plain(label) for answer, label in pairs]
print("answer and label:", pairs, "Inspect AI:", inspect, "lmms-eval:", lmms_eval)
assert inspect == [("I", 0), ("C", 1), ("I", 0), ("I", 0), ("C", 1)] and all(lmms_eval)
PYTHON
