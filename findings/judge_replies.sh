#!/usr/bin/env bash
# Replies of a judge, read as JSON. langchain-core 1.8.3 completes a reply that was cut off, also outside of streaming: a
# score of 10 becomes 1, and of four verdicts two are left, both of them valid for PydanticOutputParser. Of two fenced
# verdicts it takes the first, which the judge has withdrawn. json-repair 0.64.6 takes the last one, also where that is
# the one which the judge did not choose.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  langchain-core==1.8.3 json-repair==0.64.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import json_repair
from langchain_core.output_parsers import PydanticOutputParser
from pydantic import BaseModel

class Score(BaseModel):
    score: int

class Verdicts(BaseModel):
    supported: list[bool]

def read(text, kind=Score):
    return PydanticOutputParser(pydantic_object=kind).parse(text).model_dump(), json_repair.loads(text)

whole = '{"score": 10}', '{"supported": [true, true, false, false]}'
found = [read(whole[0][:11]), read(whole[1][:26], Verdicts)]
found.append(read('```json\n{"score": 1}\n```\nOn reflection:\n```json\n{"score": 5}\n```'))
found.append(read('{"score": 5} is my verdict; I had thought of {"score": 1}.'))
print("langchain-core and json-repair:", found)
assert [each[0] for each in found] == [{"score": 1}, {"supported": [True, True]}, {"score": 1}, {"score": 5}]
assert [each[1] for each in found] == [{"score": 1}, {"supported": [True, True]}, {"score": 5}, {"score": 1}]
PYTHON
