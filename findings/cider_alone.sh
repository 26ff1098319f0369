#!/usr/bin/env bash
# CIDEr of captions that equal their references, by pycocoevalcap 1.2, whose best score is 10. Scored alone or beside the
# same reference it is 0; beside others it is 10, 7.5 for three words and 5 for two. What an image scores depends on the
# other images of the run, so that runs on parts can't be averaged.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
# Without what it requires: the module needs numpy alone.
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  numpy==2.4.6
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-deps \
  pycocoevalcap==1.2
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
from pycocoevalcap.cider.cider import Cider

def scores(*captions):
    by_image = {image: [caption] for image, caption in enumerate(captions)}
    return [round(float(score), 2) for score in Cider().compute_score(by_image, by_image)[1]]

long, short, shorter = "a cat on a mat", "a dog runs", "two cups"
found = [scores(long), scores(long, long), scores(long, short, shorter)]
print("alone, twice, and beside others:", found)
assert found == [[0], [0, 0], [10, 7.5, 5]]
PYTHON
