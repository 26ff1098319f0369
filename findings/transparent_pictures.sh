#!/usr/bin/env bash
# One fully transparent PNG in four forms (RGBA, palette, grey with alpha, RGB with one colour left out), whose hidden
# colour is red or grey. qwen-vl-utils 0.0.14 shows white for RGBA, and the hidden colour for the others;
# mistral-common 1.13.1 the hidden colour for the fourth; the image processors of transformers 5.24.0 white for all four.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check torch==2.13.0 \
  numpy==2.3.5 pillow==13.0.0 av==18.1.0 requests packaging transformers==5.24.0 "mistral-common[image]==1.13.1"
# Without what they require: a CPU build of torchvision is not on every index, and its pictures are not used.
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-deps \
  torchvision==0.28.0 qwen-vl-utils==0.0.14
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
import io

import torch
from PIL import Image

try:
    import torchvision  # noqa: F401
except RuntimeError:
    # Built for CUDA, beside a torch without it: its operators, which nothing here calls, are declared.
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from mistral_common.tokens.tokenizers.image import transform_image
from qwen_vl_utils.vision_process import fetch_image
from transformers import CLIPImageProcessorPil

size = (56, 56)
palette = Image.new("P", size, 0)
palette.putpalette([255, 0, 0] + [0] * 765)
forms = {
    "RGBA": (Image.new("RGBA", size, (255, 0, 0, 0)), {}),
    "palette": (palette, {"transparency": 0}),
    "grey": (Image.new("LA", size, (128, 0)), {}),
    "colour key": (Image.new("RGB", size, (255, 0, 0)), {"transparency": (255, 0, 0)}),
}
process = CLIPImageProcessorPil()
tools = {
    "qwen-vl-utils": lambda picture: float(torch.tensor(fetch_image({"image": picture}).getpixel((5, 5)), dtype=torch.float).mean()),
    "mistral-common": lambda picture: float(transform_image(picture, size).mean()),
    "transformers": lambda picture: float(process(picture, return_tensors="np")["pixel_values"].mean()),
}

def stored(picture, options):
    file = io.BytesIO()
    picture.save(file, "PNG", **options)
    return Image.open(io.BytesIO(file.getvalue()))

shown = {}
for name, tool in tools.items():
    white = tool(Image.new("RGB", size, "white"))
    shown[name] = [form for form, given in forms.items() if abs(tool(stored(*given)) - white) < 0.01]
    print(f"{name}: white for", ", ".join(shown[name]))
assert shown == {"qwen-vl-utils": ["RGBA"], "mistral-common": ["RGBA", "palette", "grey"], "transformers": list(forms)}
PYTHON
