#!/usr/bin/env bash
# A pattern of JSON Schema is searched for anywhere in the string. xgrammar 0.2.9 and outlines-core 0.2.14 anchor it at
# both ends: under {"pattern": "yes"} a model can write "yes" and nothing else, and for xgrammar under "^yes" too.
# llguidance 1.9.1 follows the standard.
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

found = {
    (pattern, text): accepted({"type": "string", "pattern": pattern}, f'"{text}"')[:engines]
    for pattern, engines in (("yes", 3), ("^yes", 2))
    for text in ("yes", "yes it is")
}
print("by xgrammar, llguidance, outlines-core:", found)
for (_, text), verdicts in found.items():
    assert verdicts == ([True] * 3 if text == "yes" else [False, True, False])[: len(verdicts)]
PYTHON
