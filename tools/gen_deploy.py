"""Write what deploy/ says of vLLM: its arguments, and the profiles. ``--check`` writes nothing.

The arguments are those of ``hallujudge serve --vllm``.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hallujudge.judge_service.llm.vllm_serving import (
    AUTO_LENGTH,
    ModelShape,
    engine_arguments,
    model_shape,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A deployment that ``deploy/`` has files for."""

    name: str
    """The name of its files."""
    model: str
    """The judge."""
    gpus: int
    """GPUs that it is spread over."""
    card: int
    """Gigabytes of each."""
    quantization: str = ""
    """How vLLM quantises the weights."""

    @property
    def precision(self) -> str:
        """The precision that the weights are served at."""
        return "FP8" if self.quantization else model_shape(self.model).precision


PROFILES: Sequence[Profile] = (
    Profile(name="1x80gb", model="meta-llama/Llama-3.1-8B-Instruct", gpus=1, card=80),
    Profile(
        name="1x80gb-int4",
        model="hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
        gpus=1,
        card=80,
    ),
    Profile(
        name="1x141gb-fp8",
        model="meta-llama/Llama-3.3-70B-Instruct",
        gpus=1,
        card=141,
        quantization="fp8",
    ),
    Profile(
        name="2x80gb-fp8",
        model="meta-llama/Llama-3.3-70B-Instruct",
        gpus=2,
        card=80,
        quantization="fp8",
    ),
    Profile(name="4x80gb", model="meta-llama/Llama-3.3-70B-Instruct", gpus=4, card=80),
)
"""The profiles of Compose and Kubernetes, the smallest first."""

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
_COMPOSE = (f"${{VLLM_MODEL:-{PROFILES[0].model}}}",)
_KUBERNETES = ("/models/judge", "--served-model-name", "judge")
_PATCH = """\
# {title}. Written by tools/gen_deploy.py.
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
  - patch: |-
      apiVersion: apps/v1
      kind: Deployment
      metadata: {{name: vllm}}
      spec:
        template:
          spec:
            containers:
              - name: vllm
                env:
                  - {{name: TENSOR_PARALLEL_SIZE, value: "{gpus}"}}
                  - {{name: QUANTIZATION, value: "{quantization}"}}
                resources:
                  requests: {{cpu: "{cpus}", memory: {request}Gi}}
                  limits: {{memory: {limit}Gi, nvidia.com/gpu: "{gpus}"}}
"""
_ENVIRONMENT = """\
# {title}. Written by tools/gen_deploy.py.
VLLM_MODEL={model}
VLLM_TENSOR_PARALLEL_SIZE={gpus}
VLLM_QUANTIZATION={quantization}
VLLM_MEMORY={limit}g
"""


def host_memory(shape: ModelShape, precision: str, gpus: int) -> tuple[int, int]:
    """Return the memory to request on the host and its limit, in GiB.

    Every GPU has a process of its own. Weights are read through the page cache, which counts to a
    container's limit and is given back under pressure, so they are in the limit only.
    """
    request = 8 + 8 * gpus
    return request, request + math.ceil(shape.bytes_at(precision) / 2**30 / 8) * 8


def files() -> Mapping[Path, str]:
    """Return the text of every file that is written or changed."""
    compose, pod = DEPLOY / "compose.yaml", DEPLOY / "kubernetes/vllm/vllm.yaml"
    found = {
        compose: _with_arguments(compose, "command", (*_COMPOSE, *compose_arguments())),
        pod: _with_arguments(pod, "args", (*_KUBERNETES, *kubernetes_arguments())),
    }
    for profile in PROFILES:
        values = _values(profile)
        found[DEPLOY / "vllm" / f"{profile.name}.env"] = _ENVIRONMENT.format(**values)
        folder = DEPLOY / "kubernetes/vllm-profiles" / profile.name
        found[folder / "kustomization.yaml"] = _PATCH.format(**values)
    return found


def compose_arguments() -> tuple[str, ...]:
    """Return vLLM's arguments with the variables of Compose."""
    return engine_arguments(
        tensor_parallel_size="${VLLM_TENSOR_PARALLEL_SIZE:-1}",
        max_model_len=f"${{VLLM_MAX_MODEL_LEN:-{AUTO_LENGTH}}}",
        quantization="${VLLM_QUANTIZATION:-}",
    )


def kubernetes_arguments() -> tuple[str, ...]:
    """Return vLLM's arguments with the variables of the container."""
    return engine_arguments(
        tensor_parallel_size="$(TENSOR_PARALLEL_SIZE)",
        max_model_len="$(MAX_MODEL_LEN)",
        quantization="$(QUANTIZATION)",
    )


def _with_arguments(path: Path, key: str, arguments: tuple[str, ...]) -> str:
    """Return a file with the line of vLLM's arguments replaced."""
    line = re.compile(rf"^( +{key}: )\[.*--structured-outputs-config.*\]$", re.MULTILINE)
    text = path.read_text(encoding="utf-8")
    found, number = line.subn(lambda match: match[1] + json.dumps(arguments), text)
    if number != 1:
        raise SystemExit(f"{path}: {number} lines of vLLM's arguments instead of one")
    return found


def _values(profile: Profile) -> dict[str, object]:
    request, limit = host_memory(model_shape(profile.model), profile.precision, profile.gpus)
    return {
        "title": f"{profile.gpus} x {profile.card} GB: {profile.model} in {profile.precision}",
        "model": profile.model,
        "gpus": profile.gpus,
        "quantization": profile.quantization,
        "cpus": 4 * profile.gpus,
        "request": request,
        "limit": limit,
    }


def main() -> int:
    """Write the files, or name those that differ; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="name what differs, write nothing")
    check: bool = parser.parse_args().check
    differ = [
        path
        for path, text in files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in differ:
        if check:
            print(f"{path} differs: run tools/gen_deploy.py", file=sys.stderr)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files()[path], encoding="utf-8")
    return 1 if differ and check else 0


if __name__ == "__main__":
    sys.exit(main())
