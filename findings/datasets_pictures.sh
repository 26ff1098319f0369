#!/usr/bin/env bash
# datasets 5.2.0 with a picture that was opened from memory rather than from a path: a JPEG is encoded again, so that its
# pixels change, and its orientation is lost, so that a photo lies on its side; opened from a path, the file's bytes are
# kept and it stands upright. Downloading pictures and adding them to a dataset gives other pictures than their files.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  datasets==5.2.0 pillow==13.0.0 numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import io, numpy
from datasets import Dataset
from PIL import Image

turned = Image.Exif()
turned[0x0112] = 6
noise = numpy.random.default_rng(0).integers(0, 256, (32, 64, 3), "uint8")
Image.fromarray(noise).save("photo.jpg", quality=60, exif=turned)
data = open("photo.jpg", "rb").read()

def kept(picture):
    dataset = Dataset.from_dict({"image": [picture]})
    return dataset.with_format("arrow")[0]["image"].to_pylist()[0]["bytes"], dataset[0]["image"]

(_, from_path), (stored, from_memory) = kept(Image.open("photo.jpg")), kept(Image.open(io.BytesIO(data)))
change = abs(numpy.asarray(Image.open("photo.jpg")).astype(int) - numpy.asarray(from_memory)).max()
print("from a path", from_path.size, "from memory", from_memory.size, "largest change of a level", change)
assert from_path.size == (32, 64) and from_memory.size == (64, 32)
assert stored != data and change > 20
PYTHON
