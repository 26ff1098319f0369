"""Matchers: their settings and texts, the store of vectors, and backends compared on tiny models.

Each test names the package it lacks.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.messages import expected_message
from support.tiny_models import store_as
from support.word_matchers import GRAPH, WordEncoder, judged, published, query

from hallujudge.judge_service.errors import InternalError, InvalidInputError
from hallujudge.judge_service.matchers import (
    ClaimQuery,
    MatcherSettings,
    VectorStore,
    claim_text,
    length_batches,
)
from hallujudge.judge_service.matchers.cosine_matcher import reference_text
from hallujudge.judge_service.matchers.matcher_models import MatcherModels, open_encoder
from hallujudge.judge_service.matchers.model_folders import find_model
from hallujudge.metrics.framework.claims import Triplet, Verdict

MISSING = "not installed: pip install 'hallujudge[matcher]'"
for package in ("onnxruntime", "onnx", "tokenizers", "safetensors", "torch"):
    pytest.importorskip(package, reason=f"{package} is {MISSING}")
transformers = pytest.importorskip("transformers", reason=f"transformers is {MISSING}")
sentence_transformers = pytest.importorskip(
    "sentence_transformers", reason=f"sentence_transformers is {MISSING}"
)

pytestmark = pytest.mark.slow
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
WORDS = ["man", "dog", "horse", "tree", "riding", "under", "is", "blue", ".", ",", "##s"]


def tokenizer(path: Path, cls: str = "[CLS]", sep: str = "[SEP]", pad: str = "[PAD]") -> int:
    """Writes a word-piece tokenizer and gives the size of its vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocab = {word: number for number, word in enumerate(SPECIAL + WORDS)}
    made = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(cls, vocab[cls]), (sep, vocab[sep])],
    )
    made.enable_padding(length=16, pad_id=vocab[pad], pad_token=pad)
    made.enable_truncation(8)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        cls_token=cls,
        sep_token=sep,
        pad_token=pad,
        unk_token="[UNK]",
        model_max_length=64,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"][
            :: 1 if cls == "[CLS]" else 2
        ],
    ).save_pretrained(path)
    return len(vocab)


def make_encoder(path: Path, architecture: str, pooling: str = "mean") -> Path:
    """Saves a sentence encoder with random weights."""
    from torch import manual_seed

    manual_seed(1)
    mpnet = architecture == "mpnet"
    size = tokenizer(path, *(("<s>", "</s>", "<pad>") if mpnet else ()))
    shape: dict[str, Any] = {
        "vocab_size": size,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 66,
        "initializer_range": 0.3,
    }
    if mpnet:
        config, model = transformers.MPNetConfig(**shape), transformers.MPNetModel
    else:
        config, model = transformers.BertConfig(**shape), transformers.BertModel
    model(config).save_pretrained(path, safe_serialization=True)
    from sentence_transformers.sentence_transformer import modules

    word = modules.Transformer(str(path), max_seq_length=60)
    pool = modules.Pooling(word.get_embedding_dimension(), pooling_mode=pooling)
    sentence_transformers.SentenceTransformer(
        modules=[word, pool, modules.Normalize()], device="cpu"
    ).save(str(path / "saved"), safe_serialization=True)
    return path / "saved"


def make_classifier(path: Path, labels: list[str]) -> Path:
    """Saves a cross-encoder with random weights and labels in some order."""
    from torch import manual_seed

    manual_seed(2)
    size = tokenizer(path)
    config = transformers.BertConfig(
        vocab_size=size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=40,
        initializer_range=0.5,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    transformers.BertForSequenceClassification(config).save_pretrained(
        path, safe_serialization=True
    )
    return path


TEXTS = [
    " ".join(random.Random(n).choices(WORDS[:-1], k=1 + n * 7 % 80)) for n in range(60)
]  # some are longer than the encoder reads


@pytest.mark.parametrize(
    ("architecture", "pooling"), [("bert", "mean"), ("bert", "cls"), ("mpnet", "mean")]
)
def test_written_graphs_give_the_references_vectors(
    tmp_path: Path, architecture: str, pooling: str
) -> None:
    model = find_model(str(make_encoder(tmp_path / "m", architecture, pooling)))
    cache = tmp_path / "graphs"
    onnx = open_encoder(model, MatcherSettings(cache_folder=cache))
    torch = open_encoder(model, MatcherSettings(backend="torch"))
    assert (onnx.label, torch.label) == ("onnx-fp32", "torch-fp32")
    one, other = onnx.encode(TEXTS), torch.encode(TEXTS)
    assert one.shape == (60, 32)
    assert np.abs(one - other).max() < 2e-6
    assert np.abs(np.linalg.norm(one, axis=1) - 1).max() < 1e-5
    plain = sentence_transformers.SentenceTransformer(str(model.path), device="cpu")
    reference = plain.encode(TEXTS, show_progress_bar=False)
    assert np.abs(one - reference).max() < 2e-6
    assert onnx.encode([]).shape == torch.encode([]).shape == (0, 32)
    again = open_encoder(model, MatcherSettings(cache_folder=cache))
    assert np.array_equal(again.encode(TEXTS), one)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_weights_of_half_precision_are_computed_with_in_single(tmp_path: Path, kind: str) -> None:
    path = make_encoder(tmp_path / "m", "bert")
    store_as(path, kind)
    model = find_model(str(path))
    onnx = open_encoder(model, MatcherSettings(cache_folder=tmp_path / "graphs"))
    torch = open_encoder(model, MatcherSettings(backend="torch"))
    assert (onnx.label, torch.label) == ("onnx-fp32", "torch-fp32")
    one, other = onnx.encode(TEXTS), torch.encode(TEXTS)
    assert np.abs(one - other).max() < 2e-6


def test_onnxruntime_sends_no_telemetry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "")
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY")
    model = find_model(str(make_encoder(tmp_path / "m", "bert")))
    open_encoder(model, MatcherSettings(backend="onnx", cache_folder=tmp_path / "g"))
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"


def test_a_vector_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    model = find_model(str(make_encoder(tmp_path / "m", "bert")))
    encoder = open_encoder(model, MatcherSettings(backend="onnx", cache_folder=tmp_path / "g"))
    together = encoder.encode(TEXTS)
    for count in (1, 7, 30):
        for at in range(0, len(TEXTS), count):
            part = encoder.encode(TEXTS[at : at + count])
            assert np.array_equal(part, together[at : at + count])
    shuffled = random.Random(0).sample(range(60), 60)
    assert np.array_equal(encoder.encode([TEXTS[n] for n in shuffled]), together[shuffled])


def test_text_that_no_tokenizer_can_read(tmp_path: Path) -> None:
    model = find_model(str(make_encoder(tmp_path / "m", "bert")))
    for backend in ("onnx", "torch"):
        encoder = open_encoder(model, MatcherSettings(backend=backend, cache_folder=tmp_path / "g"))
        found = encoder.encode(["", "\ud800 \udfff", "\0", "人 骑 马 " * 5000, "\u200b"])
        assert np.isfinite(found).all()


def test_a_wrong_graph_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.numpy import load_file

    from hallujudge.judge_service.matchers import onnx_graphs

    model = find_model(str(make_encoder(tmp_path / "m", "bert")))

    def spoilt(weights: Path) -> dict[str, Any]:
        found = load_file(weights)
        return {name: found[name] * (1.5 if "query" in name else 1) for name in found}

    monkeypatch.setattr(onnx_graphs, "load_file", spoilt)
    with pytest.raises(InternalError, match="differ by"):
        open_encoder(model, MatcherSettings(cache_folder=tmp_path / "g"))


def test_missing_tensors_are_named(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = make_encoder(tmp_path / "m", "bert")
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.bias"]
    save_file(weights, folder / "model.safetensors")
    model = find_model(str(folder))
    with pytest.raises(InvalidInputError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        open_encoder(model, MatcherSettings(backend="onnx", cache_folder=tmp_path / "g"))


LABELS = ["contradiction", "entailment", "neutral"]


def test_support_follows_the_label_order(tmp_path: Path) -> None:
    from hallujudge.judge_service.matchers import preset_of
    from hallujudge.judge_service.matchers.torch_models import TorchPairs, TorchWeights

    pairs = [
        ("man riding horse.", "dog under tree."),
        ("man", "man is blue " * 6),
        ("dog.", "dog."),
    ]
    found = {}
    for number in range(3):
        labels = LABELS[number:] + LABELS[:number]
        folder = find_model(str(make_classifier(tmp_path / str(number), labels)))
        model = TorchPairs(preset_of("nli"), folder, TorchWeights(folder, "classifier"))
        chances = found[labels.index("entailment")] = model.supported(pairs)
        assert model.limit == 40
        assert model.lengths(["man riding", "", "dog , ."]) == [2, 0, 3]
        assert model.sizes(pairs[:1]) == [4 + 4 + 3]
        assert model.supported([]) == []
        assert model.supported(pairs[1:2]) == pytest.approx(chances[1:2])
    # The same weights: the three classes' probabilities add up to one.
    assert [sum(row) for row in zip(*found.values(), strict=True)] == pytest.approx([1, 1, 1])


def test_judge_nli_end_to_end(tmp_path: Path) -> None:
    settings = MatcherSettings(
        protocol="nli",
        model=str(make_encoder(tmp_path / "m", "bert")),
        small_model=str(make_classifier(tmp_path / "c", LABELS)),
        cache_folder=tmp_path / "g",
        keep_above=-1,
    )
    matcher = MatcherModels().open(settings)
    graph = tuple(Triplet(end, "riding", word) for end in WORDS[:4] for word in WORDS[:8])
    queries = [
        ClaimQuery(claim=Triplet("man", "riding", "horse"), references=graph),
        ClaimQuery(claim=Triplet("dog " * 20, "is", "blue " * 20), references=graph),
        ClaimQuery(claim=Triplet("dog", "is", "blue"), references=graph[:1]),
    ]
    found = asyncio.run(matcher.judge(queries))
    assert found[0].verdict is not Verdict.UNSCORED
    assert 0 < (found[0].score or 0) < 1
    assert 1 <= len(found[0].references) < 32, "the premise was split"
    assert found[1].reason == "CLAIM_TOO_LONG"
    assert found[2].references == graph[:1]
    assert matcher.label.startswith("nli/c@")
    assert str(tmp_path) not in matcher.label


def test_models_that_transformers_refuses(tmp_path: Path) -> None:
    path = make_classifier(tmp_path / "c", LABELS)
    (path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (path / "config.json").write_text(
        (path / "config.json").read_text("utf-8").replace('"bert"', '"no-such-type"'), "utf-8"
    )
    encoder = make_encoder(tmp_path / "m", "bert")
    settings = MatcherSettings(protocol="nli", model=str(encoder), small_model=str(path))
    with pytest.raises(
        InvalidInputError,
        match=expected_message(
            "judge_service.matchers.torch_models:transformers-cannot-load-the-model-on-cpu"
        ),
    ):
        MatcherModels().open(settings)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"protocol": "best"}, "protocol"),
        ({"backend": "gpu"}, "backend"),
        ({"parts": "some"}, "parts"),
        ({"keep_above": 1.5}, "keep_above"),
        ({"support_above": float("nan")}, "support_above"),
        ({"small_above": -0.1}, "small_above"),
        ({"top": 0}, "top"),
        ({"threads": -1}, "threads"),
        ({"cached_vectors": -1}, "cached_vectors"),
        ({"protocol": "nli"}, "small_model"),
    ],
)
def test_settings_are_checked(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError, match=field) as caught:
        MatcherSettings(**changes)
    assert [violation.field for violation in caught.value.violations] == [field]


def test_texts_are_the_released_ones() -> None:
    assert claim_text(Triplet("Lamp (old)", "turned on", "a, b")) == "Lamp (old) turned on a, b"
    assert reference_text(Triplet("Lamp (old)", "is", "a, b")) == "Lamp old is a b."
    assert reference_text(GRAPH[3]) == "bus isred."
    assert claim_text(Triplet("a\ud800", "b", "c")) == "a� b c".replace("�", "�" * 3)


def test_each_distinct_text_is_embedded_once() -> None:
    encoder = WordEncoder()
    matcher = published(encoder)
    queries = [query("man", "riding", "horse"), query("cat", "eats", "fish")] * 50
    first = judged(matcher, *queries)
    assert len(encoder.asked) == len(set(encoder.asked))
    before = len(encoder.asked)
    assert judged(matcher, *queries) == first
    assert len(encoder.asked) == before, "a second call finds every vector"


def test_the_cache_is_bounded_and_can_be_off() -> None:
    for limit in (0, 3):
        encoder = WordEncoder()
        store = VectorStore(encoder, limit)
        texts = [f"text {number}" for number in range(10)]
        assert set(store.values(texts)) == set(texts)
        assert len(store) == limit
        store.values(texts[-3:])
        assert len(encoder.asked) == 10 + (3 if limit == 0 else 0)


def test_batches_are_of_equal_length_and_bounded() -> None:
    lengths = [5, 3, 5, 5, 900, 3]
    batches = length_batches(lengths, tokens=10)
    assert batches == [[1, 5], [0, 2], [3], [4]]
    assert length_batches([]) == []
    assert length_batches([0, 0]) == [[0, 1]]
