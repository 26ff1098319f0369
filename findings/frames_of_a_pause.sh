#!/usr/bin/env bash
# A video of 50 frames whose first one is shown for a second, as screen recorders write it. OpenCV 5.0.0 counts 74 frames
# in WebM, Matroska, MPEG-TS and AVI, the time times the rate. Of eight equally spaced ones it then reads five in WebM and
# Matroska. PyAV 18.1.0 says 0 frames, or 74 for AVI. decord 0.6.0 counts 50 and calls the rate 25, which makes two
# seconds of three. MP4 has the right number everywhere.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  av==18.1.0 opencv-python-headless==5.0.0.93 decord==0.6.0 numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
from fractions import Fraction

import av
import cv2
import decord
import numpy

codecs = {"mp4": "libx264", "webm": "libvpx-vp9", "mkv": "libx264", "ts": "libx264", "avi": "mpeg4"}
counts, read = {}, {}
for kind, codec in codecs.items():
    path = f"pause.{kind}"
    with av.open(path, "w") as made:
        stream = made.add_stream(codec, rate=25)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(1, 25)
        for moment in [0, *range(25, 74)]:
            frame = av.VideoFrame.from_ndarray(numpy.full((64, 64, 3), 2 * moment, "uint8"), format="rgb24")
            frame.pts, frame.time_base = moment, Fraction(1, 25)
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))
    with av.open(path) as given:
        said, decoded = given.streams.video[0].frames, sum(1 for _ in given.decode(video=0))
    video, by_decord = cv2.VideoCapture(path), decord.VideoReader(path)
    counted = int(video.get(cv2.CAP_PROP_FRAME_COUNT))
    read[kind] = 0
    for place in numpy.linspace(0, counted - 1, 8).astype(int):
        video.set(cv2.CAP_PROP_POS_FRAMES, int(place))
        read[kind] += video.read()[0]
    counts[kind] = (decoded, counted, said, len(by_decord), round(by_decord.get_avg_fps(), 2))
for kind, numbers in counts.items():
    print(f"{kind}: decoded, by OpenCV, by PyAV's header, by decord, decord's rate {numbers}; OpenCV reads {read[kind]} of 8")
assert counts == {
    "mp4": (50, 50, 50, 50, 12.76),
    "webm": (50, 74, 0, 50, 25.0),
    "mkv": (50, 74, 0, 50, 25.0),
    "ts": (50, 74, 0, 50, 25.0),
    "avi": (50, 74, 74, 50, 25.0),
}
assert read["mp4"] == 8 and read["webm"] == read["mkv"] == 5
PYTHON
