#!/usr/bin/env bash
# Agreement where ratings are missing. Two people agree on three of four items, and a third rated none: statsmodels
# 0.15.0 takes NaN for a category of its own, so that kappa falls below 0. Two more items that neither of them could
# rate: NLTK 3.10.4 takes None for a label on which they agree, so that kappa rises.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  statsmodels==0.15.0 nltk==3.10.4
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import numpy
from nltk.metrics.agreement import AnnotationTask
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

def by_statsmodels(*people):
    return round(float(fleiss_kappa(aggregate_raters(numpy.array(people).T)[0])), 2)

def by_nltk(*people):
    triples = [(person, item, label) for person, labels in enumerate(people) for item, label in enumerate(labels)]
    return round(AnnotationTask(triples).kappa(), 2)

one, other, absent = [1, 0, 1, 0], [1, 0, 1, 1], [numpy.nan] * 4
fleiss = by_statsmodels(one, other), by_statsmodels(one, other, absent)
cohen = by_nltk(one, other), by_nltk([*one, None, None], [*other, None, None])
print("kappa without and with missing ratings: statsmodels", fleiss, "NLTK", cohen)
assert fleiss == (0.47, -0.15) and cohen == (0.5, 0.75)
PYTHON
