#!/usr/bin/env bash
# Answers to a multiple choice in opencompass 0.5.4, whose options are A to D. Where an answer names no option, the first
# capital from A to D inside of any word is one: "There is no Dog" is D, "the Cart" and "I Can't tell" are C, "Answer: the
# dog" is A. first_capital_postprocess reads the T of "The answer is B."
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
# Without what it requires: the module needs nothing but Python and a registry of names.
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-deps \
  opencompass==0.5.4
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import runpy
import sys
import sysconfig
from pathlib import Path
from types import ModuleType, SimpleNamespace

# The module is read alone; its functions are only put on a list of names.
for name in ("opencompass", "opencompass.registry"):
    sys.modules[name] = ModuleType(name)
kept = SimpleNamespace(register_module=lambda *names: lambda function: function)
sys.modules["opencompass.registry"].TEXT_POSTPROCESSORS = kept
texts = runpy.run_path(str(Path(sysconfig.get_path("purelib")) / "opencompass/utils/text_postprocessors.py"))

answers = ["B", "The answer is B.", "There is no Dog", "the Cart", "I Can't tell", "Answer: the dog", "there is no dog"]
options = {answer: texts["first_option_postprocess"](answer, "ABCD") for answer in answers}
capital = texts["first_capital_postprocess"]("The answer is B.")
print("first_option_postprocess:", options, "first_capital_postprocess of 'The answer is B.':", capital)
assert list(options.values()) == ["B", "B", "D", "C", "C", "A", ""] and capital == "T"
PYTHON
