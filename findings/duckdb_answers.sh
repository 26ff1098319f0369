#!/usr/bin/env bash
# DuckDB 2.0.1: a CSV column of yes and no is read as booleans, so that answers come back as true and false. One answer
# in other words keeps all as text. In JSON lines yes and no stay text, but ids that look like UUIDs lose their capitals,
# so that they no longer join.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  duckdb==2.0.1
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import duckdb

open("answers.csv", "w").write("id,answer\n1,Yes\n2,no\n")
open("mixed.csv", "w").write("id,answer\n1,Yes\n2,no\n3,Not sure\n")
open("ids.jsonl", "w").write('{"id": "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "answer": "Yes"}\n')
found = [duckdb.sql(f"select answer from '{name}'").fetchall() for name in ("answers.csv", "mixed.csv")]
[(name, answer)] = duckdb.sql("select cast(id as varchar), answer from 'ids.jsonl'").fetchall()
print(found, name, answer)
assert found == [[(True,), (False,)], [("Yes",), ("no",), ("Not sure",)]]
assert (name, answer) == ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "Yes")
PYTHON
