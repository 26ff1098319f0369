#!/usr/bin/env bash
# WhisperFeatureExtractor of transformers 5.24.0, without an error: samples of 16 bits as integers, as PyAV and soundfile
# give them, move every feature by 2.26 (a range of about 2 is usual), two channels become two sounds, and what follows
# 30 seconds is left out.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  transformers==5.24.0 numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import numpy
from transformers import WhisperFeatureExtractor

RATE = 16000
extract = WhisperFeatureExtractor()

def features(sound):
    return extract(sound, sampling_rate=RATE, return_tensors="np")["input_features"]

noise = numpy.random.default_rng(0).normal(size=31 * RATE).clip(-3, 3).astype("float32") / 4
floats = features(noise[:RATE])
integers = features((noise[:RATE] * 32767).astype("int16"))
sounds = len(features(numpy.stack([noise[:RATE]] * 2)))
cut = numpy.array_equal(features(noise), features(noise[: 30 * RATE]))
spread, moved = float(numpy.ptp(floats)), float(numpy.median(integers - floats))
print(f"spread of features {spread:.2f}, integers move them by {moved:.2f}; "
      f"two channels are {sounds} sounds; 31 s are as 30 s: {cut}")
assert 2.2 < moved < 2.3 and spread < 2.5 and sounds == 2 and cut
PYTHON
