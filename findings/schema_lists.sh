#!/usr/bin/env bash
# Lists under lm-format-enforcer 0.11.3, which vLLM offers for JSON schemas. Without maxItems, a list ends after 20
# strings, and after 11 booleans: a 21st claim can't be written. With three booleans required, two can be written and
# three can't. Bounds of integers are dropped: 7 and -1 are accepted from 0 to 5.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  lm-format-enforcer==0.11.3
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import json
import string
from lmformatenforcer import JsonSchemaParser, TokenEnforcer
from lmformatenforcer.tokenenforcer import TokenEnforcerTokenizerData

signs = string.printable
tokens = [(number, sign, False) for number, sign in enumerate(signs)]
end = len(signs)
data = TokenEnforcerTokenizerData(tokens, lambda ids: "".join(signs[i] for i in ids if i < end), end, False, end + 1)

def accepted(schema, value):
    engine, ids = TokenEnforcer(data, JsonSchemaParser(schema)), []
    for sign in [*map(signs.index, json.dumps(value)), end]:
        if sign not in engine.get_allowed_tokens(ids).allowed_tokens:
            return False
        ids.append(sign)
    return True

def lengths(item, value, **bounds):
    schema = {"type": "array", "items": {"type": item}, **bounds}
    return [count for count in range(1, 30) if accepted(schema, [value] * count)]

free = lengths("string", "a"), lengths("boolean", True)
three = [lengths(*each, minItems=3, maxItems=3) for each in (("string", "a"), ("boolean", True))]
numbers = [n for n in (-1, 3, 7) if accepted({"type": "integer", "minimum": 0, "maximum": 5}, n)]
print("most strings and booleans:", [max(each) for each in free], "of three:", three, "from 0 to 5:", numbers)
assert free == ([*range(1, 21)], [*range(1, 12)]) and three == [[3], [2]] and numbers == [-1, 3, 7]
PYTHON
