#!/usr/bin/env bash
# A judge's rating from 0 to 10, read by trulens-feedback 2.16.0. Of several numbers in the reply it takes the lowest, so
# that "I found 1 error in 10 claims. Score: 9" is 1 and "Score: 10 (criterion 1)" is 1 as well. A minus is dropped: -3 is
# 3. Fractions stay: 8/10 is 8 and 7.5 is 7.5.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  trulens-feedback==2.16.0
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
from trulens.feedback.generated import re_0_10_rating

replies = ["Score: 9", "Score: 8/10", "7.5", "I see 2 cats. Score: 10", "I found 1 error in 10 claims. Score: 9"]
replies += ["Score: 10 (criterion 1)", "-3"]
read = {reply: re_0_10_rating(reply) for reply in replies}
print(read)
assert list(read.values()) == [9, 8, 7.5, 2, 1, 1, 3]
PYTHON
