#!/usr/bin/env bash
# qwen-vl-utils 0.0.14 reads no video file beside torchvision 0.28.0, which has no torchvision.io.read_video any more,
# unless torchcodec or decord is installed too; it requires neither. The error names read_video, not what to install.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check torch==2.13.0 \
  numpy==2.3.5 pillow==13.0.0 av==18.1.0 requests packaging
# Without what they require: a CPU build of torchvision is not on every index.
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-deps \
  torchvision==0.28.0 qwen-vl-utils==0.0.14
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
from importlib.metadata import requires

import av
import numpy
import torch

try:
    import torchvision  # noqa: F401
except RuntimeError:
    # Built for CUDA, beside a torch without it: its operators, which nothing here calls, are declared.
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from qwen_vl_utils.vision_process import fetch_video

with av.open("ten.mp4", "w") as made:
    stream = made.add_stream("libx264", rate=5)
    stream.width = stream.height = 64
    for level in range(10):
        made.mux(stream.encode(av.VideoFrame.from_ndarray(numpy.full((64, 64, 3), level, "uint8"), format="rgb24")))
    made.mux(stream.encode(None))
try:
    said = f"read {len(fetch_video({'video': 'ten.mp4'}))} frames"
except AttributeError as err:
    said = str(err)
needed = [each for each in requires("qwen-vl-utils") if "extra" not in each]
print(f"{said}; it requires {needed}")
assert said == "module 'torchvision.io' has no attribute 'read_video'"
assert not any(each.startswith(("decord", "torchcodec")) for each in needed)
PYTHON
