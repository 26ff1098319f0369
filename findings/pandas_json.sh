#!/usr/bin/env bash
# pandas 3.1.1 and the JSON lines of runs: read_json makes numbers of texts that look like numbers, so that the image id
# 000000000139 becomes 139 and no longer joins, and times of the numbers of a column whose name ends in _at. to_json
# writes ten decimals, so that a probability of 1e-12 becomes 0. dtype=False keeps the ids.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  pandas==3.1.1 numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import io, json, pandas

line = json.dumps({"id": "000000000139", "model": "1e5", "seen_at": 1000000000})
read = pandas.read_json(io.StringIO(line), lines=True).iloc[0].to_dict()
kept = pandas.read_json(io.StringIO(line), lines=True, dtype=False).iloc[0].to_dict()
[written] = json.loads(pandas.DataFrame({"p": [1e-12]}).to_json(orient="records"))
print("read_json:", read, "with dtype=False:", kept["id"], "1e-12 is written as", written["p"])
assert (read["id"], read["model"], str(read["seen_at"])) == (139, 100000.0, "2001-09-09 01:46:40")
assert (kept["id"], kept["model"], written["p"]) == ("000000000139", "1e5", 0)
PYTHON
