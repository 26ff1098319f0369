#!/usr/bin/env bash
# datasets 5.2.0: rows that hold a dictionary with keys of their own, such as counts of objects. Dataset.from_list gives
# every row all keys, with None for those that it lacked; load_dataset("json") of the same rows keeps each row's own.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  datasets==5.2.0
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import json, os
os.environ["HF_HOME"] = os.getcwd()
from datasets import Dataset, disable_progress_bars, load_dataset

disable_progress_bars()
rows = [{"counts": {"cat": 1}}, {"counts": {"dog": 2}}]
with open("rows.jsonl", "w") as file:
    file.writelines(json.dumps(row) + "\n" for row in rows)
listed = Dataset.from_list(rows)[0]["counts"]
loaded = load_dataset("json", data_files="rows.jsonl", split="train")[0]["counts"]
print("from_list", listed, "load_dataset", loaded)
assert (listed, loaded) == ({"cat": 1, "dog": None}, {"cat": 1})
PYTHON
