#!/usr/bin/env bash
# Keywords that are dropped: xgrammar 0.2.9 and outlines-core 0.2.14 accept replies that break uniqueItems, oneOf, a
# required key without properties of its own, and xgrammar an allOf of two bounds. A required key that is not among the
# properties is even one that neither lets the model write. llguidance 1.9.1 refuses the first two schemas, and holds
# replies to the others.
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

whole = {"type": "integer"}
keys = {"type": "object", "properties": {"a": whole}, "required": ["a", "b"]}
limits = {"allOf": [{**whole, "minimum": 3}, {**whole, "maximum": 5}]}
found = {
    "uniqueItems": accepted({"type": "array", "items": whole, "uniqueItems": True}, "[1, 1]"),
    "oneOf": accepted({"oneOf": [{**whole, "minimum": 0}, {**whole, "maximum": 5}]}, "3"),
    "required key left out": accepted(keys, '{"a": 1}'),
    "required key written": accepted(keys, '{"a": 1, "b": 2}'),
    "allOf": accepted(limits, "9"),
}
print("by xgrammar, llguidance, outlines-core:", found)
assert found == {
    "uniqueItems": [True, None, True],
    "oneOf": [True, None, True],
    "required key left out": [True, False, True],
    "required key written": [False, True, False],
    "allOf": [True, False, False],
}
PYTHON
