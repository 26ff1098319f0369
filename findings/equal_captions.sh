#!/usr/bin/env bash
# Scores of a caption that equals its reference. rouge-score 0.1.2 knows only a to z and digits: 0 for Chinese, and
# "café" equals "caf". sacrebleu 2.6.0 gives a caption of two words 100 by sentence_bleu, and a corpus of such captions 0
# by corpus_bleu.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  rouge-score==0.1.2 sacrebleu==2.6.0
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

pairs = [("a cat", "a cat"), ("一只猫", "一只猫"), ("un café", "un caf")]
rouge = {pair: RougeScorer(["rougeL"]).score(*pair)["rougeL"].fmeasure for pair in pairs}
texts = ["a cat", "a dog"]
one, all_of_them = sacrebleu.sentence_bleu(texts[0], texts[:1]).score, sacrebleu.corpus_bleu(texts, [texts]).score
print("ROUGE-L:", rouge, "BLEU of a caption and of a corpus:", round(one, 1), all_of_them)
assert list(rouge.values()) == [1, 0, 1] and round(one, 6) == 100 and all_of_them == 0
PYTHON
