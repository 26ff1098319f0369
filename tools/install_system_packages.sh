#!/usr/bin/env bash
# Installs the Debian packages without which tests are skipped: a browser for report.html, npm for its script, and WordNet.
# Does nothing where they are present. Where they can't be installed it says so, and the tests say what they skip.
set -euo pipefail

has_wordnet() {
  local folder
  for folder in /usr/share/wordnet /usr/local/share/wordnet; do
    [[ ! -f $folder/data.noun ]] || return 0
  done
  return 1
}

has_browser() {
  command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null

missing=()
command -v npm >/dev/null || missing+=(npm)
has_browser || missing+=(chromium chromium-driver)
has_wordnet || missing+=(wordnet-base)
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "nothing is missing"
  exit 0
fi

as=()
if [[ $(id -u) -ne 0 ]]; then as=(sudo -n); fi
if ! command -v apt-get >/dev/null || ! "${as[@]}" true 2>/dev/null; then
  echo "missing: ${missing[*]}. Installing them needs apt-get and root: sudo apt-get install ${missing[*]}" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
"${as[@]}" apt-get update -qq
"${as[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "installed: ${missing[*]}"
