#!/usr/bin/env bash
# Weighted kappa of ratings from 0 to 6 where nobody gave some of them. scikit-learn 1.9.1 weights by places in the sorted
# list of the ratings that occur, so that 1 and 6 are as near as 0 and 1: 0.57 for 0.35. With labels of the whole
# scale, the value is that of the ratings.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
from sklearn.metrics import cohen_kappa_score

one, other = [0, 0, 1, 6, 6, 1], [0, 1, 1, 6, 1, 6]
found = [cohen_kappa_score(one, other, weights="quadratic", labels=labels) for labels in (None, range(7))]
found = [round(float(each), 2) for each in found]
print("quadratic kappa without and with the whole scale:", found)
assert found == [0.57, 0.35]
PYTHON
