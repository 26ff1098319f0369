#!/bin/sh
# Grow a synonym graph from a Mementos run: score, suggest roots, accept one, merge, score again.
# The second run matches the keywords that the first one kept.
#
#     sh examples/grow_a_graph.sh FOLDER
set -eu
case ${1:-} in -*) echo "usage: sh examples/grow_a_graph.sh [FOLDER]"; exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-graph-out}
mkdir -p "$out"

hallujudge score mementos --responses "$here/data/mementos_model.csv" \
  --references "$here/data/mementos_human.csv" --domain robotics --out "$out/run"

hallujudge graph suggest robotics_objects --items "$out/run/items.jsonl" --kind objects \
  --wordnet none --accept "dish mop=sponge" --out "$out/patch.json"

hallujudge graph merge robotics_objects "$out/patch.json" --out "$out/mine.json" --name mine
hallujudge graph diff robotics_objects "$out/mine.json"

hallujudge score mementos --keywords "$out/run/items.jsonl" --domain robotics \
  --object-graph "$out/mine.json" --out "$out/run2"
