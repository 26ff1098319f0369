#!/usr/bin/env bash
# Ogg Opus written from 16 kHz sound: soundfile 0.14.0 reads 16,000 samples a second, PyAV 18.1.0 and with it
# torchcodec 48,000. A window of so many samples covers three times as much sound in one as in the other.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  av==18.1.0 numpy==2.4.6 soundfile==0.14.0
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import av, numpy, soundfile

sound = (0.5 * numpy.sin(numpy.arange(32000) / 6)).astype("float32")
soundfile.write("sound.opus", sound, 16000, format="OGG", subtype="OPUS")
read, rate = soundfile.read("sound.opus")
with av.open("sound.opus") as container:
    frames = [frame.samples for frame in container.decode(audio=0)]
    found = {"soundfile": (rate, len(read)), "PyAV": (container.streams.audio[0].rate, sum(frames))}
print("samples a second, and in all:", found)
assert found == {"soundfile": (16000, 32000), "PyAV": (48000, 96000)}
PYTHON
