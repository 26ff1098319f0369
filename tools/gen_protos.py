"""Generate code, stubs and the OpenAPI document from the .proto files, or check the committed ones.

Runs in the environment that tools/protos-requirements.txt pins: use `make protos` and `make drift`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from openapi import document_of

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
GENERATED = "*_pb2*.py*"
DOCUMENT = "hallujudge/judge/v1/openapi.json"


def sources() -> list[str]:
    """Return the .proto files, relative to the source root."""
    return sorted(path.relative_to(PROTOS).as_posix() for path in PROTOS.rglob("*.proto"))


def has_service(source: str) -> bool:
    """Return whether a .proto file declares a service."""
    return bool(
        re.search(r"^service\s", (PROTOS / source).read_text(encoding="utf-8"), re.MULTILINE)
    )


def protoc(out: Path, files: list[str], *plugins: str) -> None:
    """Run protoc on files with the named plugins."""
    if not files:
        return
    command = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", f"-I{PROTOS}"]
    command += [f"--{plugin}_out={'quiet:' if 'mypy' in plugin else ''}{out}" for plugin in plugins]
    # The mypy plugins are found on PATH, in the folder of this interpreter.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run([*command, *files], check=False, env=os.environ | {"PATH": path})
    if done.returncode:
        raise SystemExit(done.returncode)


def generate(out: Path) -> None:
    """Generate all code in the folder `out`."""
    files = sources()
    protoc(out, files, "python", "mypy")
    protoc(out, [source for source in files if has_service(source)], "grpc_python", "mypy_grpc")
    described(out, files)


def described(out: Path, files: list[str]) -> None:
    """Write the OpenAPI document."""
    found = out / "descriptors"
    protoc(out, ["--include_source_info", f"--descriptor_set_out={found}", *files])
    document = document_of(FileDescriptorSet.FromString(found.read_bytes()))
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (out / DOCUMENT).write_text(f"{text}\n", encoding="utf-8")


def generated(folder: Path) -> dict[str, str]:
    """Return the generated files of a folder, by relative path."""
    paths = [*folder.rglob(GENERATED), *folder.rglob(Path(DOCUMENT).name)]
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in paths
        if "__pycache__" not in path.parts
    }


def write(fresh: dict[str, str]) -> None:
    """Replace the generated code in the checkout."""
    for name in generated(PROTOS).keys() - fresh.keys():
        (PROTOS / name).unlink()
    for name, text in fresh.items():
        (PROTOS / name).write_text(text, encoding="utf-8")
    print(f"generated {len(fresh)} files from {len(sources())} .proto files")


def check(fresh: dict[str, str]) -> int:
    """Print how the committed code differs; return the exit code."""
    committed = generated(PROTOS)
    drifted = [
        name
        for name in sorted(fresh.keys() | committed.keys())
        if fresh.get(name) != committed.get(name)
    ]
    for name in drifted:
        old, new = (files.get(name, "").splitlines(keepends=True) for files in (committed, fresh))
        print(
            "".join(
                list(difflib.unified_diff(old, new, f"committed/{name}", f"fresh/{name}", n=0))[:20]
            )
        )
    if drifted:
        print(
            f"generated code is stale: {', '.join(drifted)}; run `make protos` and commit",
            file=sys.stderr,
        )
    else:
        print(f"generated code is fresh ({len(fresh)} files)")
    return 1 if drifted else 0


def main(argv: list[str] | None = None) -> int:
    """Generate the code, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if the code is stale"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        fresh = generated(Path(folder))
    if options.check:
        return check(fresh)
    write(fresh)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
