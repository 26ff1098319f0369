#!/usr/bin/env bash
# Margins of yes over no, above 0 for yes, in torchmetrics 1.9.0. A batch with a value outside of 0 to 1 is taken for
# logits, any other for probabilities with a threshold of 0.5, so that the same four answers are all right in one batch
# and half of them in two. One probability of 1.0001, as rounding gives it, makes logits of the others in its batch: all
# are yes.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  torchmetrics==1.9.0 torch==2.13.0+cpu numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import torch
from torchmetrics.classification import BinaryAccuracy

def accuracy(labels, *batches):
    metric, labels = BinaryAccuracy(), iter(labels)
    for batch in batches:
        metric.update(torch.tensor(batch), torch.tensor([next(labels) for _ in batch]))
    return round(metric.compute().item(), 2)

margins = accuracy([1, 1, 0, 0], [0.3, 0.4, -0.3, -0.4]), accuracy([1, 1, 0, 0], [0.3, 0.4], [-0.3, -0.4])
rounded = accuracy([0, 0, 0, 1], [0.1, 0.2, 0.3, 1.0]), accuracy([0, 0, 0, 1], [0.1, 0.2, 0.3, 1.0001])
print("margins in one batch and in two:", margins, "probabilities with 1.0 and with 1.0001:", rounded)
assert margins == (1, 0.5) and rounded == (1, 0.25)
PYTHON
