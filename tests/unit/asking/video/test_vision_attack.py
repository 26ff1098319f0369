"""Adversarial noise against tiny random encoders, which the tests make."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support import tiny_encoders
from support.tiny_models import store_as

from hallujudge.asking.video.vision_attack import AttackSettings, EncoderEnsemble, fingerprint
from hallujudge.judge_service.errors import InvalidInputError

pytestmark = pytest.mark.slow
torch, transformers = tiny_encoders.torch, tiny_encoders.transformers
moved = tiny_encoders.moved


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return tiny_encoders.write_encoders(tmp_path_factory.mktemp("encoders"))


def frames(count: int = 5) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, 36, 64, 3), np.uint8)


def test_noise_is_bounded_and_moves_every_encoder_of_the_ensemble(encoders: list[Path]) -> None:
    clean = frames()
    noisy = EncoderEnsemble(encoders).attack(clean, AttackSettings(), 7)
    assert noisy.shape == clean.shape
    assert np.abs(noisy.astype(int) - clean).max() == 8
    signs = np.random.default_rng(1).choice([-8, 8], clean.shape)
    random = np.clip(clean.astype(int) + signs, 0, 255).astype(np.uint8)
    for folder in encoders:
        assert moved(folder, clean, noisy) > 2 * moved(folder, clean, random), folder.name


def test_a_start_decides(encoders: list[Path]) -> None:
    ensemble = EncoderEnsemble(encoders[:1])
    found = [ensemble.attack(frames(2), AttackSettings(steps=2), start) for start in (1, 1, 2)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_more_steps_move_further_and_no_epsilon_not_at_all(encoders: list[Path]) -> None:
    clean = frames()
    ensemble = EncoderEnsemble(encoders[:1])
    far = [
        moved(encoders[0], clean, ensemble.attack(clean, AttackSettings(steps=steps), 3))
        for steps in (1, 10)
    ]
    assert far[0] < far[1]
    assert np.array_equal(ensemble.attack(clean, AttackSettings(epsilon=0), 3), clean)


def test_the_hash_of_an_encoder_is_that_of_its_weights(encoders: list[Path]) -> None:
    assert len({fingerprint(folder) for folder in encoders}) == 3
    assert fingerprint(encoders[0]) == fingerprint(encoders[0])


def test_encoders_of_half_precision_are_computed_with_in_single(
    encoders: list[Path], tmp_path: Path
) -> None:
    for folder in encoders:
        half = shutil.copytree(folder, tmp_path / folder.name)
        store_as(half, "float16")
        single = shutil.copytree(half, tmp_path / f"{folder.name}-single")
        store_as(single, "float32")
        found, wanted = (
            EncoderEnsemble([one]).attack(frames(2), AttackSettings(steps=2), 1)
            for one in (half, single)
        )
        assert np.array_equal(found, wanted), folder.name


def test_folders_that_are_no_encoders(encoders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="is not a vision encoder"):
        EncoderEnsemble([tmp_path])
    with pytest.raises(InvalidInputError, match="has no"):
        fingerprint(tmp_path)
    text = tmp_path / "text"
    config = {**tiny_encoders.SHAPE, "vocab_size": 50, "max_position_embeddings": 8}
    del config["image_size"], config["patch_size"]
    transformers.BertModel(transformers.BertConfig(**config)).save_pretrained(text)
    with pytest.raises(InvalidInputError, match="takes 'input_ids'"):
        EncoderEnsemble([text])
    # A part of the weights would be random.
    import safetensors.torch

    broken = tmp_path / "broken"
    transformers.AutoModel.from_pretrained(encoders[0]).save_pretrained(broken)
    tensors = safetensors.torch.load_file(broken / "model.safetensors")
    tensors.pop("embeddings.patch_embeddings.projection.weight")
    safetensors.torch.save_file(tensors, broken / "model.safetensors", {"format": "pt"})
    with pytest.raises(InvalidInputError, match="has no tensor embeddings"):
        EncoderEnsemble([broken])
