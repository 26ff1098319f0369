#!/usr/bin/env bash
# Runs the suite on the wheel that was built from the sdist (make wheel), and measures branch coverage if asked to. The
# wheel and everything that tests can use are in a clean environment outside the repository, where the checkout can't be
# imported.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  echo "usage: tools/test_wheel.sh [--cov] [PYTEST_OPTION...]"
  exit 0
fi
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

# setup_env.py finds the client's wheel beside it.
wheels=(dist/hallujudge-*.whl)
if [[ ${#wheels[@]} -ne 1 || ! -f ${wheels[0]} ]]; then
  echo "expected exactly one wheel in dist/, found: ${wheels[*]}; run make wheel" >&2
  exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" tools/setup_env.py --venv "$work/venv" --extras ci --wheel "${wheels[0]}"

export WHEEL_RUN_CHECKOUT=$PWD
if [[ ${1:-} != --cov ]]; then
  "$work/venv/bin/pytest" "$@"
  exit
fi
status=0
"$work/venv/bin/pytest" --cov-report= "$@" || status=$?
"$work/venv/bin/coverage" report --sort=-miss --skip-covered --fail-under=0 | sed -n '1,12p;$p'
exit "$status"
