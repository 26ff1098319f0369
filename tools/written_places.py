"""Print the files that name a family by hand.

    python tools/written_places.py [FAMILY ...] [--list]

By default of all families of closed questions. What tools/generated_pages.py writes, and
CHANGELOG.md, do not count. Files of audits and of asking, by the words of their paths, count apart:
they are about what other programs print, and what a model is sent.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hallujudge.metrics.families import FAMILIES, benchmarks_of

ROOT = Path(__file__).resolve().parents[1]
APART = re.compile(r"(?<![a-z])(audit|ask|asked|asking)(?![a-z])")
GENERATED = re.compile(r"<!-- generated: .*?<!-- end -->", re.DOTALL)


def places(family: str) -> Iterator[str]:
    """Yield the files whose text or name has a family's name, in any case, with any separator."""
    name = re.compile(rf"(?<![a-z]){family.replace('_', '[-_ ]?')}(?![a-z'])", re.IGNORECASE)
    listed = subprocess.run(("git", "ls-files"), cwd=ROOT, capture_output=True, check=True)  # noqa: S607
    for path in map(Path, listed.stdout.decode().split()):
        if path.suffix in (".py", ".md", ".toml", ".yml", ".csv") and path.name != "CHANGELOG.md":
            text = (ROOT / path).read_text(encoding="utf-8")
            if name.search(path.stem) or name.search(GENERATED.sub("", text)):
                yield str(path)


def main() -> None:
    """Print how many files name each family, and with ``--list`` which."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", metavar="FAMILY", nargs="*", default=FAMILIES)
    parser.add_argument("--list", action="store_true", help="name the files")
    given = parser.parse_args()
    for family in (each.replace("-", "_") for each in given.families):
        if benchmarks_of(family):
            found = list(places(family))
            own = [path for path in found if not APART.search(path)]
            apart = [path for path in found if path not in own]
            print(f"{family}: {len(own)} files, and {len(apart)} of audits and asking")
            shown = (*own, *(f"apart: {path}" for path in apart)) if given.list else ()
            print("".join(f"  {path}\n" for path in shown), end="")


if __name__ == "__main__":
    main()
