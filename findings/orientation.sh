#!/usr/bin/env bash
# The orientation of a photo. Pillow 13.0.0 turns a TIFF when it is opened and the other formats only by exif_transpose,
# which transformers 5.24.0 and datasets 5.2.0 call. OpenCV 5.0.0 turns JPEG, PNG and WebP, leaves AVIF as it lies, and
# reads no TIFF at all that has a quarter turn (it returns None).
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  pillow==13.0.0 opencv-python-headless==5.0.0.93
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import cv2
from PIL import Image, ImageOps

found = {}
for kind in ("jpg", "png", "webp", "avif", "tif"):
    # Anew for each: saving AVIF takes the orientation out of the object that it is given.
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.new("RGB", (16, 8)).save("photo." + kind, exif=turned)
    pillow, read = Image.open("photo." + kind), cv2.imread("photo." + kind)
    found[kind] = (pillow.size, ImageOps.exif_transpose(pillow).size, None if read is None else read.shape[1::-1])
print("size by Image.open, exif_transpose, OpenCV:", found)
lying, upright = (16, 8), (8, 16)
assert found == {
    **dict.fromkeys(("jpg", "png", "webp"), (lying, upright, upright)),
    "avif": (lying, upright, lying),
    "tif": (upright, upright, None),
}
PYTHON
