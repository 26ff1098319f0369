#!/usr/bin/env bash
# Installs the Debian packages without which tests are skipped: a browser for report.html, npm for its script, WordNet,
# Prometheus' promtool, and shellcheck. Does nothing where they are present. Where they can't be installed it says so, and the tests say what they skip.
set -euo pipefail
if [[ $# -gt 0 ]]; then
  echo "usage: tools/install_system_packages.sh   (no arguments)"
  exit 0
fi

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

# Debian's package brings a server that starts, a user for it and 96 MB. Only the tool is taken out of it.
install_promtool() {
  local work
  work=$(mktemp -d)
  (
    cd "$work"
    # apt-get leaves the rights of root where it may not write as its own user, and says so.
    apt-get download -qq prometheus 2>/dev/null
    dpkg-deb --fsys-tarfile prometheus_*.deb | "${as[@]}" tar -x -C /usr/local/bin --strip-components=3 ./usr/bin/promtool
  )
  rm -rf "$work"
}

missing=()
command -v npm >/dev/null || missing+=(npm)
has_browser || missing+=(chromium chromium-driver)
has_wordnet || missing+=(wordnet-base)
command -v promtool >/dev/null || missing+=(promtool)
command -v shellcheck >/dev/null || missing+=(shellcheck)
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
packages=()
for name in "${missing[@]}"; do
  if [[ $name == promtool ]]; then install_promtool; else packages+=("$name"); fi
done
[[ ${#packages[@]} -eq 0 ]] || "${as[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
echo "installed: ${missing[*]}"
