"""Check the files of deploy/ by the rules of the programs that read them.

Compose files by the compose specification, Kubernetes objects by the schemas of Kubernetes, the
systemd unit by systemd where it is present. Where kubectl is present, objects are checked as
kustomize builds them; elsewhere as they are in their files.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import no_options  # noqa: F401 - answers --help
import yaml

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
KUBERNETES = "1.31"
_VARIABLE = re.compile(r"\$\{\w+:-([^}]*)\}")
# A tag with a digest, of which Docker uses the digest; the checker knows one of the two.
_TAGGED = re.compile(r"(?<=image: )([\w./-]+):[\w.-]+(@sha256:[0-9a-f]{64})")


def main() -> int:
    """Print each problem; return the exit code."""
    problems = [*compose_problems(), *kubernetes_problems(), *unit_problems()]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def compose_problems() -> Iterator[str]:
    """Yield what the compose specification does not allow."""
    from compose_spec import PyCompose

    for path in sorted(DEPLOY.glob("compose*.yaml")):
        # The checker reads neither anchors nor variables, so they are replaced first.
        text = yaml.safe_dump(yaml.safe_load(path.read_text(encoding="utf-8")))
        text = _TAGGED.sub(r"\1\2", _VARIABLE.sub(r"\1", text))
        try:
            PyCompose.from_yaml(text).validate()
        except Exception as err:  # the library's errors have no common class
            yield f"{path.relative_to(ROOT)}: {err}"


def kubernetes_problems() -> Iterator[str]:
    """Yield what the schemas of Kubernetes do not allow."""
    import kubernetes_validate

    for place, found in kubernetes_objects():
        if found["kind"] == "Kustomization":
            continue
        try:
            kubernetes_validate.validate(found, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as err:
            yield f"{place}: {found['kind']} {found['metadata']['name']}: {err.message}"


def kubernetes_objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object, with the place that it comes from."""
    folder = DEPLOY / "kubernetes"
    for overlay in sorted((folder / "overlays").iterdir()):
        for text in _built(overlay):
            for found in yaml.safe_load_all(text):
                yield str(overlay.relative_to(ROOT)), found


def _built(overlay: Path) -> Iterator[str]:
    """Yield an overlay as kustomize builds it, or its files without patches."""
    if kubectl := shutil.which("kubectl"):
        yield subprocess.run(
            [kubectl, "kustomize", str(overlay)], check=True, capture_output=True, text=True
        ).stdout
        return
    kustomization = yaml.safe_load((overlay / "kustomization.yaml").read_text(encoding="utf-8"))
    for name in kustomization["resources"]:
        path = (overlay / name).resolve()
        if path.is_dir():
            yield from _built(path)
        else:
            yield path.read_text(encoding="utf-8")


def unit_problems() -> Iterator[str]:
    """Yield what systemd says of the unit; it wants the program to exist."""
    program = shutil.which("systemd-analyze")
    if program is None:
        print("the systemd unit was read by tests only: systemd-analyze is not installed")
        return
    unit = DEPLOY / "systemd" / "hallujudge.service"
    text = unit.read_text(encoding="utf-8").replace("/opt/hallujudge/bin/hallujudge", "/bin/true")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / unit.name
        copy.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [program, "verify", "--man=no", str(copy)], check=False, capture_output=True, text=True
        )
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    if done.returncode or said:
        yield f"{unit.relative_to(ROOT)}: {' '.join(said) or done.stderr.strip()}"


if __name__ == "__main__":
    sys.exit(main())
