#!/usr/bin/env bash
# Sentences of captions as models write them, by pysbd 0.3.4, syntok 1.4.4, blingfire 0.1.8 and the sentencizer of spaCy
# 3.8.18: no two agree. Scores for each sentence, or of the first one, depend on the splitter.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  pysbd==0.3.4 syntok==1.4.4 blingfire==0.1.8 spacy==3.8.18
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import blingfire, pysbd, spacy
from syntok.segmenter import analyze

english = spacy.blank("en")
english.add_pipe("sentencizer")
splitters = {
    "pysbd": pysbd.Segmenter(language="en", clean=False).segment,
    "syntok": lambda text: [sentence for part in analyze(text) for sentence in part],
    "blingfire": lambda text: blingfire.text_to_sentences(text).split("\n"),
    "spaCy": lambda text: list(english(text).sents),
}
texts = (
    "a cat.  a dog.  a cup.",
    "1. A cat. 2. A dog.",
    'The sign says "STOP!" and a man waits.',
    "一只猫坐在沙发上。一只狗在睡觉。",
    "A cat 🐱. A cup.",
)
found = {name: [len(split(text)) for text in texts] for name, split in splitters.items()}
print("sentences:", found)
assert found == {
    "pysbd": [3, 2, 1, 2, 2], "syntok": [1, 2, 1, 1, 1], "blingfire": [1, 4, 2, 2, 2], "spaCy": [3, 4, 2, 1, 2]
}
PYTHON
