#!/usr/bin/env bash
# JSON lines whose last record differs. DuckDB 2.0.1 takes the types of the first 20,480 records: where those are whole
# numbers, a later 0.4 is read as 0 and 0.6 as 1, so that a mean changes. polars 2.1.0 refuses such numbers, but drops
# keys that come after the first 100 records, such as an error.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  duckdb==2.0.1 polars==2.1.0
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import json
import duckdb
import polars

def write(count, *last):
    with open("items.jsonl", "w") as file:
        file.writelines(json.dumps(each) + "\n" for each in [*({"score": 1} for _ in range(count)), *last])

def by_duckdb(count):
    write(count, {"score": 0.4}, {"score": 0.6})
    return [score for (score,) in duckdb.sql("from 'items.jsonl'").fetchall()[-2:]]

found = by_duckdb(20_478), by_duckdb(20_480)
columns = []
for count in (99, 100):
    write(count, {"score": 1, "error": "timeout"})
    columns.append(polars.read_ndjson("items.jsonl").columns)
write(100, {"score": 0.4})
try:
    refused = not polars.read_ndjson("items.jsonl")
except polars.exceptions.ComputeError:
    refused = True
print("DuckDB reads 0.4 and 0.6 as", *found, "polars reads", *columns, "and refuses 0.4:", refused)
assert found == ([0.4, 0.6], [0, 1]) and columns == [["score", "error"], ["score"]] and refused
PYTHON
