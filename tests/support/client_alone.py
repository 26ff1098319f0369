"""The package hallujudge-client alone: its files, and of other packages those that it requires."""

from __future__ import annotations

import importlib.util
import runpy
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from support.running import unmeasured

__all__ = ["files_of_client", "make_site", "run_alone"]

ROOT = Path(__file__).resolve().parents[2]
# The modules of what client/pyproject.toml requires, and of what that requires.
REQUIRED = ("grpc", "grpc_status", "google", "msgspec", "typing_extensions")


def files_of_client() -> list[Path]:
    """Return the files of the package, relative to the checkout."""
    found: list[Path] = runpy.run_path(str(ROOT / "tools/build_packages.py"))["files_of_client"]()
    return found


def make_site(folder: Path) -> Path:
    """Make a folder of modules as an installation of the client has it."""
    for path in files_of_client():
        target = folder.joinpath(*path.parts[1:])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target)
    for name in REQUIRED:
        place = _place(name)
        (folder / place.name).symlink_to(place)
    # The release, which is compared with the server's.
    about = folder / f"hallujudge_client-{version('hallujudge')}.dist-info"
    about.mkdir()
    text = f"Name: hallujudge-client\nVersion: {version('hallujudge')}\n"
    (about / "METADATA").write_text(text, encoding="utf-8")
    return folder


def _place(module: str) -> Path:
    """Return the folder of a package, or the file of a module."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, module
    locations = list(spec.submodule_search_locations or ())
    return Path(locations[0] if locations else str(spec.origin))


def run_alone(site: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python with nothing but the client, what it requires, and the standard library."""
    return subprocess.run(
        [sys.executable, "-S", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=site,
        env={**unmeasured(), "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
    )
