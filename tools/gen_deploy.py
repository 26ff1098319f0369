"""Write what deploy/ says of vLLM: its arguments, and the profiles. ``--check`` writes nothing.

The arguments are those of ``hallujudge serve --vllm``, and the profiles those of
``judge_service.llm.vllm_sizing``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from hallujudge.judge_service.llm.vllm_arguments import AUTO_LENGTH, engine_arguments
from hallujudge.judge_service.llm.vllm_sizing import PROFILES, Profile, host_memory, model_shape

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
