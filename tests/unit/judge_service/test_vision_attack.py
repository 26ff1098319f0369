"""Adversarial noise against tiny random encoders, which the tests make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.vision_attack import AttackSettings, EncoderEnsemble, fingerprint

MISSING = "not installed: pip install 'hallujudge[matcher]'"
torch = pytest.importorskip("torch", reason=f"torch is {MISSING}")
transformers = pytest.importorskip("transformers", reason=f"transformers is {MISSING}")

pytestmark = pytest.mark.slow
_SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """An encoder of images, the vision part of a larger model, and an encoder of clips."""
    torch.manual_seed(0)
    clip = transformers.CLIPConfig(
        vision_config=_SHAPE,
        text_config={**_SHAPE, "vocab_size": 50, "max_position_embeddings": 8},
        projection_dim=16,
    )
    clips = {
        "num_frames": 4,
        "decoder_hidden_size": 16,
        "decoder_num_hidden_layers": 1,
        "decoder_num_attention_heads": 2,
        "decoder_intermediate_size": 16,
    }
    models = {
        "vit": transformers.ViTModel(transformers.ViTConfig(**_SHAPE)),
        "clip": transformers.CLIPModel(clip),
        "mae": transformers.VideoMAEModel(transformers.VideoMAEConfig(**_SHAPE, **clips)),
    }
    folder = tmp_path_factory.mktemp("encoders")
    for name, model in models.items():
        model.save_pretrained(folder / name)
    return [folder / name for name in models]


def frames(count: int = 5) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, 36, 64, 3), np.uint8)


def moved(folder: Path, clean: NDArray[np.uint8], noisy: NDArray[np.uint8]) -> float:
    """Return how far an encoder's output moves: one minus the cosine, by a call of our own."""
    model: Any = transformers.AutoModel.from_pretrained(folder)
    model = getattr(model, "vision_model", model).eval()
    seen = []
    for pixels in (clean, noisy):
        given = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
        small = torch.nn.functional.interpolate(given, size=(32, 32), mode="bilinear")
        mean, std = (
            torch.tensor(values).reshape(1, 3, 1, 1)
            for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
        )
        small = (small - mean) / std
        if folder.name == "mae":
            small = small[:4].unsqueeze(0)
        with torch.no_grad():
            seen.append(model(pixel_values=small).last_hidden_state)
    return float(1 - torch.nn.functional.cosine_similarity(*seen, dim=-1).mean())


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


def test_folders_that_are_no_encoders(encoders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="is not a vision encoder"):
        EncoderEnsemble([tmp_path])
    with pytest.raises(InvalidInputError, match="has no"):
        fingerprint(tmp_path)
    text = tmp_path / "text"
    config = {**_SHAPE, "vocab_size": 50, "max_position_embeddings": 8}
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
