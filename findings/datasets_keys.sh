#!/usr/bin/env bash
# datasets 5.2.0: rows that hold a dictionary with keys of their own, such as counts of objects. Dataset.from_list gives
# every row all keys, with None for those that it lacked; load_dataset("json") of the same rows keeps each row's own.
source "$(dirname "$0")/environment.bash"
environment datasets==5.2.0
python - <<'PYTHON' 2>"$folder/log"
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
