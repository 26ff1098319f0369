#!/usr/bin/env bash
# pycocotools 2.0.11 takes one name of a category, as its documentation allows, for every name that is a part of it:
# "hot dog" is dog too, "carrot" is car, so that their images and annotations are mixed up. A name that is no category
# gives an empty list, which as a filter means all: every image has a unicorn. Several categories are images with all of
# them, but annotations of any.
set -euo pipefail
folder=$(mktemp -d)
touch "$folder/log"
trap 'status=$?; [ $status -eq 0 ] || tail -n 3 "$folder/log" >&2; rm -rf "$folder"' EXIT
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
  pycocotools==2.0.11
cd "$folder"
environment/bin/python - <<'PYTHON' 2>"$folder/log"
from pycocotools.coco import COCO

names = ["dog", "hot dog", "car", "carrot"]
coco = COCO()
coco.dataset = {
    "images": [{"id": image} for image in (1, 2, 3)],
    "categories": [{"id": number, "name": name} for number, name in enumerate(names, 1)],
    "annotations": [
        {"id": 10 + image, "image_id": image, "category_id": category, "bbox": [0, 0, 1, 1], "area": 1, "iscrowd": 0}
        for image, category in ((1, 1), (2, 2))
    ],
}
coco.createIndex()
found = {}
for wanted in ("hot dog", ["hot dog"], "carrot", "unicorn", ["dog", "hot dog"]):
    ids = coco.getCatIds(catNms=wanted)
    found[str(wanted)] = [names[i - 1] for i in ids], coco.getImgIds(catIds=ids), coco.getAnnIds(catIds=ids)
print("name: categories, images, annotations:", found)
assert found == {
    "hot dog": (["dog", "hot dog"], [], [11, 12]),
    "['hot dog']": (["hot dog"], [2], [12]),
    "carrot": (["car", "carrot"], [], []),
    "unicorn": ([], [1, 2, 3], [11, 12]),
    "['dog', 'hot dog']": (["dog", "hot dog"], [], [11, 12]),
}
PYTHON
