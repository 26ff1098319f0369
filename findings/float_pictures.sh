#!/usr/bin/env bash
# A picture as floats from 0 to 1, as many loaders give it: the image processors of transformers 5.24.0 divide it by 255
# once more, so that the model sees black. Nothing is said at the level of warnings. do_rescale=False gives what the same
# picture gives as bytes.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  transformers==5.24.0 pillow==13.0.0 numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import logging
import numpy
from transformers import CLIPImageProcessorPil

said = []
handler = logging.Handler()
handler.emit = said.append
logging.getLogger("transformers").addHandler(handler)
process = CLIPImageProcessorPil()

def level(picture, **options):
    return round(float(process(picture, return_tensors="np", **options)["pixel_values"].mean()), 2)

white = numpy.full((224, 224, 3), 255, "uint8")
floats = white.astype("float32") / 255
found = [level(white), level(floats), level(floats, do_rescale=False), level(white * 0)]
print("white as bytes, as floats, as floats without do_rescale, and black:", found, "warnings:", len(said))
assert found[0] == found[2] > 1.9 and abs(found[1] - found[3]) < 0.02 and not said
PYTHON
