"""A user's arguments of ``vllm serve``, and which GPUs hold a model.

The latter by its config.json, its weights, or the table of known models.
"""

from __future__ import annotations

import json
import runpy
import stat
from pathlib import Path
from typing import Any

import pytest
from support.running import here

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.llm.vllm_serving import (
    CARDS,
    AddedArguments,
    Gpu,
    engine_arguments,
    local_gpus,
    local_verdict,
    model_shape,
    room,
    sizing_table,
)


def structured(text: str) -> object:
    arguments = engine_arguments(
        tensor_parallel_size="1",
        max_model_len="auto",
        quantization="",
        structured_outputs=AddedArguments.of(text).structured_outputs,
    )
    return json.loads(arguments[arguments.index("--structured-outputs-config") + 1])


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("--dtype half", {}),
        ("--structured-outputs-config.enable_in_reasoning true", {"enable_in_reasoning": True}),
        ("--structured_outputs_config.enable-in-reasoning=true", {"enable_in_reasoning": True}),
        ('--structured-outputs-config \'{"backend": "xgrammar"}\'', {"backend": "xgrammar"}),
        ('--structured-outputs-config=\'{"backend": "xgrammar"}\'', {"backend": "xgrammar"}),
        ("--structured-outputs-config.backend outlines", {"backend": "outlines"}),
    ],
)
def test_what_they_say_of_structured_output_is_added_to_ours(
    text: str, more: dict[str, object]
) -> None:
    assert structured(text) == {"backend": "guidance", "disable_any_whitespace": True} | more
    assert all("structured" not in word for word in AddedArguments.of(text).others)


def test_others_stay_as_they_are() -> None:
    text = "-tp 2 --dtype 'a b' --max-num-seqs=8 --max-logprobs -1 --served-model-name judge j2"
    added = AddedArguments.of(text + " --logprobs-mode processed_logprobs --enforce-eager")
    assert added.others == (
        *("-tp", "2", "--dtype", "a b", "--max-num-seqs=8", "--max-logprobs", "-1"),
        *("--served-model-name", "judge", "j2"),
        *("--logprobs-mode", "processed_logprobs", "--enforce-eager"),
    )
    assert added.served_name == "judge"
    assert AddedArguments.of("--served_model_name=judge").served_name == "judge"
    assert AddedArguments.of("") == AddedArguments()


@pytest.mark.parametrize(
    "text",
    [
        "--api-key sesame",
        "--api_key=sesame",
        "--host 0.0.0.0",
        "--port 8000",
        "--uds /tmp/s",
        "--dtype half --model other",
        "--headless",
        "--root-path /v2",
        "--ssl-keyfile k --ssl-certfile c",
        "--logprobs-mode raw_logits",
        "--logprobs-mode",
        "--max-logprobs 5",
        "--runner pooling",
        "--structured-outputs-config 3",
        "--dtype 'half",
    ],
)
def test_what_would_leave_the_judge_without_an_answer_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        AddedArguments.of(text)
    name = text.removeprefix("--dtype half ").split()[0].partition("=")[0].replace("_", "-")
    assert name in str(caught.value)
    assert "sesame" not in str(caught.value), "a key is quoted"


LLAMA_70B = "meta-llama/Llama-3.3-70B-Instruct"
TINY: dict[str, Any] = {
    "num_hidden_layers": 2,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 384,
    "vocab_size": 4096,
    "max_position_embeddings": 8192,
}


def folder_of(path: Path, weights: int = 0, **config: Any) -> str:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(TINY | config), encoding="utf-8")
    if weights:
        (path / "model-00001-of-00001.safetensors").write_bytes(bytes(weights))
    return str(path)


# The numbers of parameters that the models' pages state, from the shapes of their weights.
@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 8_030_261_248),
        (LLAMA_70B, 70_553_706_496),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
        ("Qwen/Qwen3-30B-A3B", 30_532_122_624),
        ("mistralai/Mistral-Small-24B-Instruct-2501", 23_572_403_200),
    ],
)
def test_the_parameters_of_known_models(model: str, parameters: int) -> None:
    assert model_shape(model).parameters == pytest.approx(parameters, rel=1e-3)


def test_a_folder_is_sized_by_its_configuration(tmp_path: Path) -> None:
    shape = model_shape(folder_of(tmp_path / "m"))
    # vLLM 0.32.0 itself reports 4,194,304 tokens in 2 GiB for this model of 1,442,432 parameters.
    assert shape.parameters == pytest.approx(1_442_432, rel=1e-3)
    assert (2 << 30) / shape.kv_bytes(1) == 4_194_304
    assert (shape.kv_bytes(2), shape.kv_bytes(4)) == (256, 256)
    assert shape.precisions() == ("bf16", "FP8", "INT4")


def test_the_weights_in_a_folder_count_as_they_are(tmp_path: Path) -> None:
    shape = model_shape(folder_of(tmp_path / "m", weights=1000, quantization_config={"bits": 4}))
    assert (shape.bytes_at("INT4"), shape.precisions()) == (1000, ("INT4",))
    groups = {"group_0": {"weights": {"num_bits": 8}}}
    for found in ({"quant_method": "fp8"}, {"config_groups": groups}):
        assert model_shape(folder_of(tmp_path / "m", quantization_config=found)).precision == "FP8"


def test_models_that_see_or_compress(tmp_path: Path) -> None:
    plain = model_shape(folder_of(tmp_path / "m"))
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "config.json").write_text(json.dumps({"text_config": TINY}), encoding="utf-8")
    assert model_shape(str(tmp_path / "v")).parameters == plain.parameters
    compressed = model_shape(folder_of(tmp_path / "m", kv_lora_rank=512, qk_rope_head_dim=64))
    assert compressed.kv_bytes(1) == compressed.kv_bytes(4) == 2 * (512 + 64) * 2
    experts = model_shape(folder_of(tmp_path / "m", num_experts=8, moe_intermediate_size=96))
    assert experts.parameters - plain.parameters == 2 * (3 * 128 * (8 * 96 - 384) + 128 * 8)


def test_what_cannot_be_sized(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"'some/model' is not known.*llama-3\.3-70b"):
        model_shape("some/model")
    with pytest.raises(InvalidInputError, match=r"has no config\.json"):
        model_shape(str(tmp_path))
    with pytest.raises(
        InvalidInputError, match="no number at num_hidden_layers or n_layer; it has"
    ):
        model_shape(folder_of(tmp_path / "m", num_hidden_layers=None))
    with pytest.raises(InvalidInputError, match="bits of its quantization_config"):
        model_shape(folder_of(tmp_path / "m", quantization_config={"quant_method": "x"}))
    (tmp_path / "m" / "config.json").write_text("[", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        model_shape(str(tmp_path / "m"))


def test_the_table_of_a_70b_judge() -> None:
    cells = {row[0]: row[1:] for row in sizing_table(model_shape(LLAMA_70B))}
    assert cells["GPUs"] == ["bf16, 141 GB", "FP8, 73 GB", "INT4, 41 GB"]
    assert [cell.split(",")[0] for cell in cells["1 x 80 GB"]] == ["no", "no", "fits"]
    assert [cell.split(",")[0] for cell in cells["2 x 80 GB"]] == ["tight", "fits", "fits"]
    assert [cell.split(",")[0] for cell in cells["1 x 141 GB"]] == ["no", "fits", "fits"]


def test_every_profile_fits_its_gpus() -> None:
    deploy = runpy.run_path(str(Path(__file__).parents[4] / "tools/gen_deploy.py"))
    assert deploy["PROFILES"]
    for profile in deploy["PROFILES"]:
        shape = model_shape(profile.model)
        assert room(shape, profile.precision, profile.gpus, CARDS[profile.card] << 20) > 65_536
        request, limit = deploy["host_memory"](shape, profile.precision, profile.gpus)
        assert limit * 2**30 >= request * 2**30 + shape.bytes_at(profile.precision)


def test_this_machines_gpus_decide() -> None:
    shape, gpu = model_shape(LLAMA_70B), Gpu(name="H100", total=81_559 << 20, used=0)
    assert local_verdict(shape, "bf16", 1, [gpu] * 2) == (
        False,
        "2 x H100, 80 GiB: bf16 on 1 does not fit; these fit: bf16 on 2, FP8 on 2, INT4 on 1, "
        "INT4 on 2",
    )
    assert local_verdict(shape, "FP8", 2, [gpu] * 2)[0]
    assert local_verdict(shape, "bf16", 4, [gpu])[1].endswith("vllm.tensor_parallel_size is 4")
    # 64 heads are not divided by three.
    assert room(shape, "INT4", 3, gpu.total) == 0


def test_doctor_sizes_a_model_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771, 5'\necho 'NVIDIA X, [N/A], 5'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert local_gpus() == [Gpu(name="NVIDIA H200", total=143_771 << 20, used=5 << 20)]
    monkeypatch.setenv("HALLUJUDGE_VLLM_QUANTIZATION", "fp8")
    run = here("doctor", "--vllm", LLAMA_70B)
    assert run.returncode == 0, run.stderr
    assert "    ok  GPUs: 1 x NVIDIA H200, 140 GiB: FP8 on 1: fits, 188k tokens" in run.stdout
    monkeypatch.delenv("HALLUJUDGE_VLLM_QUANTIZATION")
    assert "FAILED  GPUs:" in here("doctor", "--vllm", LLAMA_70B).stdout
    monkeypatch.setenv("PATH", "")
    bare = here("doctor", "--vllm", LLAMA_70B)
    assert (bare.returncode, "absent  GPUs: none" in bare.stdout) == (0, True)
