# Sourced by each finding: `python` runs the Python of an environment with the packages that are given
# to `environment`, in a temporary folder that is removed at the end. uv is used where it is on PATH.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(cd "$(dirname "$0")" && pwd)

environment() {
  if command -v uv >/dev/null; then
    uv venv --quiet --python python3 "$folder/environment"
    UV_FIND_LINKS=${PIP_FIND_LINKS:-} uv pip install --quiet --python "$folder/environment/bin/python" "$@"
  else
    python3 -m venv "$folder/environment"
    "$folder/environment/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  fi
}

python() { (cd "$folder" && environment/bin/python "$@"); }
