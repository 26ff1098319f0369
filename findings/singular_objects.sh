#!/usr/bin/env bash
# Names of the 80 objects of MSCOCO, as singulars and as plurals, through five packages that make singulars of words.
# inflect 7.6.0 and textblob 0.20.1 make "bu" of "bus"; textblob "glas" of "glass" and "ty" of "ties"; inflection 0.5.1
# "glofe" of "gloves" and "ty" of "ties"; lemminflect 0.2.3 and simplemma 2.0.0 leave "people". All make "ski" of "skis",
# which is the name of the category.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  inflect==7.6.0 inflection==0.5.1 textblob==0.20.1 simplemma==2.0.0 lemminflect==0.2.3
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import inflect
import inflection
import lemminflect
import simplemma
from textblob import Word

engine = inflect.engine()
tools = {
    "inflect": lambda word: engine.singular_noun(word) or word,
    "inflection": inflection.singularize,
    "textblob": lambda word: str(Word(word).singularize()),
    "simplemma": lambda word: simplemma.lemmatize(word, lang="en"),
    "lemminflect": lambda word: lemminflect.getLemma(word, upos="NOUN")[0],
}
right = {"bus": "bus", "buses": "bus", "glass": "glass", "skis": "skis"}
right |= {"ties": "tie", "gloves": "glove", "people": "person", "knives": "knife"}
wrong = {name: {word: tool(word) for word, one in right.items() if tool(word) != one} for name, tool in tools.items()}
for name, words in wrong.items():
    print(f"{name}:", words)
assert wrong == {
    "inflect": {"bus": "bu", "skis": "ski"},
    "inflection": {"skis": "ski", "ties": "ty", "gloves": "glofe"},
    "textblob": {"bus": "bu", "glass": "glas", "skis": "ski", "ties": "ty"},
    "simplemma": {"skis": "ski", "people": "people"},
    "lemminflect": {"skis": "ski", "people": "people"},
}
PYTHON
