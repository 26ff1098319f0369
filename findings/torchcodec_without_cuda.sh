#!/usr/bin/env bash
# torchcodec 0.17.0 from the package index can't be imported beside a CPU build of torch: its libraries need libnvrtc and
# torch's CUDA library, and the wheel declares no dependency. 0.13.0 is the last that needs none of them (0.14.0 to
# 0.17.0 do); with FFmpeg on the library path it works.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  torchcodec==0.17.0 torch==2.13.0+cpu numpy==2.4.6
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
try:
    import torchcodec
except (ImportError, OSError, RuntimeError) as err:
    causes = []
    while err:
        causes.append(str(err))
        err = err.__cause__ or err.__context__
    print("import torchcodec:", causes[-1])
    assert "libnvrtc" in causes[-1], causes
else:
    raise AssertionError("torchcodec can be imported")
PYTHON
