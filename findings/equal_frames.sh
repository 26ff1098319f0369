#!/usr/bin/env bash
# Ten frames of which some equal the one before, written as an animation by Pillow 13.0.0 and read again. In GIF, PNG and
# WebP six are left, shown for longer, so that the same number means another moment. AVIF keeps ten.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  pillow==13.0.0 numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import numpy
from PIL import Image

levels = [0, 50, 50, 50, 100, 150, 150, 200, 250, 250]
frames = [Image.fromarray(numpy.full((32, 32, 3), level, "uint8")) for level in levels]
found = {}
for kind, options in (("gif", {}), ("png", {}), ("webp", {"lossless": True}), ("avif", {})):
    frames[0].save(f"clip.{kind}", save_all=True, append_images=frames[1:], duration=100, **options)
    with Image.open(f"clip.{kind}") as clip:
        read = []
        for number in range(clip.n_frames):
            clip.seek(number)
            read.append((int(numpy.asarray(clip.convert("RGB")).mean()), int(clip.info["duration"])))
    found[kind] = read
print("level and milliseconds of each frame:", found["gif"], "frames:", {kind: len(read) for kind, read in found.items()})
merged = [(0, 100), (50, 300), (100, 100), (150, 200), (200, 100), (250, 200)]
assert found == {"gif": merged, "png": merged, "webp": merged, "avif": [(level, 100) for level in levels]}
PYTHON
