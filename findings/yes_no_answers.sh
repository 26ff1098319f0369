#!/usr/bin/env bash
# Eight plain answers to POPE's questions, all of them right, through two harnesses. lmms-eval 0.7.3 compares whole texts,
# so that "Yes." and "yes, there is a dog" are wrong, and its yes ratio is that of the labels, whatever was answered.
# evalscope 1.14.1 reads capitals: "Yes, there is a dog" is right, "yes, there is a dog" is neither yes nor no. With yes
# to every question, lmms-eval prints a yes ratio of 0.5 for 1.0.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
# Without what they require: the two modules need nothing but Python.
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-deps \
  lmms-eval==0.7.3 evalscope==1.14.1
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import runpy
import sysconfig
from pathlib import Path

packages = Path(sysconfig.get_path("purelib"))
pope = runpy.run_path(str(packages / "lmms_eval/tasks/pope/utils.py"))
verdict = runpy.run_path(str(packages / "evalscope/utils/yes_no.py"))["extract_verdict"]

answers = {"yes": "yes", "Yes": "yes", "Yes.": "yes", "Yes, there is a dog": "yes"}
answers |= {"yes, there is a dog": "yes", "no": "no", "No, there is no dog": "no", "no, it is a cat": "no"}

def by_lmms_eval(answer, label):
    return pope["pope_process_results"]({"answer": label, "question_id": 1}, [answer])["pope_accuracy"]

by_tool = {
    "lmms-eval": [answer for answer, label in answers.items() if by_lmms_eval(answer, label)["score"]],
    "evalscope": [
        answer for answer, label in answers.items() if verdict(answer, allow_lowercase_exact=True) == label.upper()
    ],
}
ratio = pope["pope_aggregate_yes_ratio"]([by_lmms_eval("yes", label) for label in ("yes", "no")])
for name, right in by_tool.items():
    print(f"{name}: right are", right)
print("yes ratio of lmms-eval where every answer is yes:", ratio)
assert by_tool["lmms-eval"] == ["yes", "Yes", "no"] and ratio == 0.5
assert by_tool["evalscope"] == ["yes", "Yes", "Yes.", "Yes, there is a dog", "no", "No, there is no dog"]
PYTHON
