#!/usr/bin/env bash
# A number from 0 to 1 by JSON Schema's minimum and maximum. xgrammar 0.2.9 allows six decimals and no exponent,
# llguidance 1.9.1 any decimals and no exponent, and outlines-core 0.2.14 ignores both bounds: 1e-05 can't be written
# with the first two, 0.1234567 not with the first, and 1.5 is accepted by the last.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(cd "$(dirname "$0")" && pwd)
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  xgrammar==0.2.9 llguidance==1.9.1 outlines-core==0.2.14 torch==2.13.0+cpu numpy==2.4.6 transformers==5.24.0
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
from schema_engines import accepted

between = {"type": "number", "minimum": 0, "maximum": 1}
found = {text: accepted(between, text) for text in ("0.5", "1.0", "0.1234567", "1e-05", "1.5")}
print("by xgrammar, llguidance, outlines-core:", found)
assert found == {
    "0.5": [True, True, True],
    "1.0": [True, True, True],
    "0.1234567": [False, True, True],
    "1e-05": [False, False, True],
    "1.5": [False, False, True],
}
PYTHON
