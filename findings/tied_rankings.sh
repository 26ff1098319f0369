#!/usr/bin/env bash
# NDCG of a judge that gives four items the same score. pytrec-eval-terrier 0.5.11 sorts equal scores by their ids
# backwards, so that the names of the items decide: 0.61, the least, or 1. scikit-learn 1.9.1 takes the mean of all
# orders, 0.81. The former keeps scores in single precision: 0.99999999 equals 1, and 99,999,999 equals 100,000,000.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  pytrec_eval-terrier==0.5.11 scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import pytrec_eval
from sklearn.metrics import ndcg_score

def ndcg(ids, scores):
    """The items are 3, 2, 1 and 0 worth."""
    truth = {"question": dict(zip(ids, (3, 2, 1, 0)))}
    run = {"question": dict(zip(ids, map(float, scores)))}
    return round(pytrec_eval.RelevanceEvaluator(truth, {"ndcg"}).evaluate(run)["question"]["ndcg"], 2)

equal = ndcg("abcd", [1] * 4), ndcg("dcba", [1] * 4), round(float(ndcg_score([[3, 2, 1, 0]], [[1] * 4])), 2)
near = [ndcg("abcd", [first, second, 0.5, 0.1]) for first, second in ((1, 0.9), (1, 0.99999999), (1e8, 1e8 - 1))]
print("equal scores, by ids a to d, by d to a, by scikit-learn:", equal, "near ones in the right order:", near)
assert equal == (0.61, 1, 0.81) and near == [1, 0.92, 0.92]
PYTHON
