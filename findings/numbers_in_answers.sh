#!/usr/bin/env bash
# Numbers in answers. word2number 1.1 adds up what stands in a sentence: "two or three dogs" are 5, and "There is no one"
# is 1. math-verify 0.9.0 reads times by their hour, subtracts the ends of a range, and reads no "million": 2:15 equals
# 2:45, "10-15" equals -5 and "5 million" equals 5.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  word2number==1.1 math-verify[antlr4_13_2]==0.9.0
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
from math_verify import parse, verify
from word2number.w2n import word_to_num

answers = ["two dogs", "two or three dogs", "two dogs and one cat", "There is no one", "twenty, three"]
read = {answer: word_to_num(answer) for answer in answers}
pairs = [("2:15", "2:45"), ("-5", "10-15"), ("5", "5 million"), ("3", "4")]
equal = {pair: verify(parse(pair[0]), parse(pair[1])) for pair in pairs}
print("word2number:", read, "math-verify:", equal)
assert list(read.values()) == [2, 5, 3, 1, 3] and list(equal.values()) == [True] * 3 + [False]
PYTHON
