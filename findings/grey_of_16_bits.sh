#!/usr/bin/env bash
# A grey picture of 16 bits, as scans and depth maps are: Pillow 13.0.0's convert("RGB"), by which transformers 5.24.0
# loads pictures, clips every level above 255 to white; OpenCV 5.0.0 keeps the upper byte. RGB of 16 bits is right in
# both. A float TIFF of 0 to 1 becomes black.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  pillow==13.0.0 opencv-python-headless==5.0.0.93 numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import cv2, numpy
from PIL import Image

cv2.imwrite("grey.png", numpy.full((8, 8), 0x4000, "uint16"))
cv2.imwrite("colour.png", numpy.full((8, 8, 3), 0x4000, "uint16"))
Image.fromarray(numpy.full((8, 8), 0.5, "float32")).save("float.tif")
found = {
    name: (Image.open(name).convert("RGB").getpixel((0, 0))[0], None if read is None else int(read[0, 0, 0]))
    for name in ("grey.png", "colour.png", "float.tif")
    for read in [cv2.imread(name)]
}
print("level by Pillow and OpenCV:", found)
assert found == {"grey.png": (255, 64), "colour.png": (64, 64), "float.tif": (0, None)}
PYTHON
