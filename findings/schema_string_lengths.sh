#!/usr/bin/env bash
# xgrammar 0.2.9: a string with minLength or maxLength can hold no quotation mark, backslash or line break, because every
# escape is excluded. A judge whose reason is limited to 200 characters can't quote the response. llguidance 1.9.1 and
# outlines-core 0.2.14 allow escapes.
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
import json
from schema_engines import accepted

texts = [json.dumps({"why": text}) for text in ("it says a cat", 'it says "a cat"')]
found = {}
for name, limit in (("free", {}), ("maxLength", {"maxLength": 200}), ("minLength", {"minLength": 1})):
    schema = {"type": "object", "properties": {"why": {"type": "string", **limit}}, "required": ["why"]}
    found[name] = [accepted(schema, text) for text in texts]
print("plain and quoting text, by xgrammar, llguidance, outlines-core:", found)
yes = [True, True, True]
assert found == {
    "free": [yes, yes], "maxLength": [yes, [False, True, True]], "minLength": [yes, [False, True, True]]
}
PYTHON
