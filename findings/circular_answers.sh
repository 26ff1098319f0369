#!/usr/bin/env bash
# VLMEvalKit (ms-vlmeval 0.0.20) on CRPE's answers. One that does not begin with A to D is right if it has the text of the
# right option, which is taken from the fifth character on: of "B. cart" that is "art", so that "a party hat" is right.
# Of a right answer that is the letter alone it is nothing, which every text has: "It is not the cart." is right, and so is
# "nan", the text of an empty cell. An answer that begins with the article ("A cart.") is the letter A.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
# Without what it requires: the module needs nothing at all.
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-deps ms-vlmeval==0.0.20
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import runpy
import sysconfig
from pathlib import Path

module = Path(sysconfig.get_path("purelib")) / "vlmeval/dataset/utils/crpe.py"
is_correct = runpy.run_path(str(module))["is_correct"]
answers = ("B", "B. cart", "It is the cart.", "It is not the cart.", "A cart.", "a party hat", "nan")
by_gold = {gold: [answer for answer in answers if is_correct(gold, answer)] for gold in ("B", "B. cart")}
for gold, right in by_gold.items():
    print(f"where {gold!r} is the right answer, right are", right)
assert by_gold["B"] == ["B", "B. cart", "It is the cart.", "It is not the cart.", "a party hat", "nan"]
assert by_gold["B. cart"] == ["B", "B. cart", "It is the cart.", "It is not the cart.", "a party hat"]
PYTHON
