#!/usr/bin/env bash
# PyAV 18.1.0 (FFmpeg 8.1.2): one stereo sound as mono is 1.41 times as loud in floating point as in 16-bit integers, so
# that a loud one passes 1.0. Integers give the mean of both channels, as other libraries do; floats are the sum times
# 0.707. torchcodec 0.13.0 with num_channels=1 gives the float version, from any file.
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

sound = 0.8 * numpy.sin(numpy.arange(16000) / 6).astype("float32")
soundfile.write("stereo.wav", numpy.stack([sound, sound], 1), 16000, subtype="PCM_16")
mean = abs(soundfile.read("stereo.wav")[0].mean(1)).max()

def peak(format, scale):
    resampler, largest = av.AudioResampler(format=format, layout="mono"), 0.0
    with av.open("stereo.wav") as container:
        for frame in [*container.decode(audio=0), None]:
            for part in resampler.resample(frame):
                largest = max(largest, abs(part.to_ndarray().astype("float64")).max() / scale)
    return float(largest)

found = {"mean": round(float(mean), 2), "s16": round(peak("s16", 32768), 2), "flt": round(peak("flt", 1), 2)}
print("peak of a stereo sound of 0.8 as mono:", found)
assert found == {"mean": 0.8, "s16": 0.8, "flt": 1.13}
PYTHON
