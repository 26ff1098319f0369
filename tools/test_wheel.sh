#!/usr/bin/env bash
# Runs the suite against the wheel that was built from the sdist (make wheel), where the checkout can't be imported:
# a clean environment and a copy of the tests, both outside the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
python=${PYTHON:-python3}

wheels=(dist/hallujudge-*.whl)
if [[ ${#wheels[@]} -ne 1 || ! -f ${wheels[0]} ]]; then
  echo "expected exactly one wheel in dist/, found: ${wheels[*]}; run make wheel" >&2
  exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/suite"
for name in tests examples docs pyproject.toml README.md; do
  [[ ! -e $name ]] || cp -R "$name" "$work/suite/"
done
"$python" tools/setup_env.py --venv "$work/venv" --extras test --wheel "${wheels[0]}"

cd "$work/suite"
unset PYTHONPATH
export WHEEL_RUN_CHECKOUT="$repository"
status=0
"$work/venv/bin/pytest" -n 2 -m "not repo" "$@" || status=$?
if [[ $status -eq 5 ]]; then
  echo "no test was collected: the copied suite is empty" >&2
fi
exit "$status"
