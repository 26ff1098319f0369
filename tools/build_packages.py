"""Build dist/: an sdist of each of the two packages, and from each sdist its wheel.

    python tools/build_packages.py [FOLDER]

``hallujudge-client`` is built in its own folder. ``hallujudge`` is built in a copy of the checkout
without the client's files, whose ``pyproject.toml`` requires the client of the same version. From a
checkout itself, ``pip install .`` installs everything as one package, because no index has the
client of a version that is not released (docs/decisions/two-packages.md).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_DEPENDENCIES = "\ndependencies = [\n"


def pyproject(folder: Path = ROOT) -> dict[str, Any]:
    """Return the content of a folder's pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    return found


def files_of_client() -> list[Path]:
    """Return the files of the package hallujudge-client, relative to the checkout."""
    # The build backend imports it from the package's folder, too.
    sys.path.insert(0, str(ROOT / "client"))
    from hatch_build import client_files

    hook = pyproject(ROOT / "client")["tool"]["hatch"]["build"]["hooks"]["custom"]
    return client_files(ROOT, hook["files"], hook["without"])


def wheels(folder: Path) -> tuple[Path, Path]:
    """Return the wheels of hallujudge and of its client in a folder.

    Raises:
        SystemExit: There is not exactly one of each.
    """
    found = [sorted(folder.glob(f"{name}-*.whl")) for name in ("hallujudge", "hallujudge_client")]
    if any(len(each) != 1 for each in found):
        names = ", ".join(path.name for each in found for path in each) or "none"
        raise SystemExit(f"expected a wheel of each package in {folder}, found {names}: make wheel")
    return found[0][0], found[1][0]


def write_whole(to: Path) -> None:
    """Write the tree of hallujudge: the checkout without what is the client's."""
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    done = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    left_out = set(files_of_client())
    for name in filter(None, done.stdout.split("\0")):
        path = Path(name)
        if path in left_out or path.parts[0] == "client" or not (ROOT / path).is_file():
            continue
        target = to / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target)
    text = (to / "pyproject.toml").read_text(encoding="utf-8")
    assert text.count(_DEPENDENCIES) == 1, "pyproject.toml lists dependencies"
    client = f'  "hallujudge-client=={pyproject()["project"]["version"]}",\n'
    (to / "pyproject.toml").write_text(
        text.replace(_DEPENDENCIES, _DEPENDENCIES + client), encoding="utf-8"
    )


def build(out: Path) -> None:
    """Build both packages into a folder."""
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", out)
    with tempfile.TemporaryDirectory() as work:
        whole = Path(work, "hallujudge")
        write_whole(whole)
        for source in (ROOT / "client", whole):
            subprocess.run((*command, source), check=True)


def main() -> None:
    """Build into the folder that the command line names, or into dist/."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", metavar="FOLDER")
    build(parser.parse_args().folder.absolute())


if __name__ == "__main__":
    main()
