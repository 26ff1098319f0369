#!/usr/bin/env bash
# Runs what README tells a newcomer to run (make demo, test, docs): in a fresh clone of HEAD, with an empty home and no
# environment but the settings of package clients. Fails if a target does, or leaves a user or an open folder behind.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  echo "usage: tools/newcomer.sh [TARGET...]   make targets; by default demo, test and docs"
  exit 0
fi
cd "$(dirname "$0")/.."
python=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -m 700 "$work/private" "$work/private/home"
clone=$work/private/hallujudge
git clone -q . "$clone"

# How the machine reaches its registries is not the newcomer's doing.
clients=()
while IFS= read -r setting; do clients+=("$setting"); done < <(
  env | grep -E '^((PIP|UV)_[A-Z_]+|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY)=' || true
)
users=$(cut -d: -f1 /etc/passwd)
[[ $# -gt 0 ]] || set -- demo test docs
for target in "$@"; do
  env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$work/private/home" ${clients[@]+"${clients[@]}"} \
    make -C "$clone" "$target" PYTHON="$python"
done

[[ $(cut -d: -f1 /etc/passwd) == "$users" ]] || { echo "a user was added to the machine" >&2; exit 1; }
[[ $(stat -c %a "$work/private") == 700 ]] || { echo "a private folder was opened" >&2; exit 1; }
left=$(git -C "$clone" status --porcelain)
[[ -z $left ]] || { printf 'the clone is not clean:\n%s\n' "$left" >&2; exit 1; }
