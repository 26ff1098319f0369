"""Tiny random vision encoders in folders, and how far noise moves their outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

MISSING = "not installed: pip install 'hallujudge[matcher]'"
torch = pytest.importorskip("torch", reason=f"torch is {MISSING}")
transformers = pytest.importorskip("transformers", reason=f"transformers is {MISSING}")

SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
"""Size of an encoder."""


def write_encoders(folder: Path) -> list[Path]:
    """Write an encoder of images, a larger model with one, and an encoder of clips."""
    torch.manual_seed(0)
    clip = transformers.CLIPConfig(
        vision_config=SHAPE,
        text_config={**SHAPE, "vocab_size": 50, "max_position_embeddings": 8},
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
        "vit": transformers.ViTModel(transformers.ViTConfig(**SHAPE)),
        "clip": transformers.CLIPModel(clip),
        "mae": transformers.VideoMAEModel(transformers.VideoMAEConfig(**SHAPE, **clips)),
    }
    for name, model in models.items():
        model.save_pretrained(folder / name)
    return [folder / name for name in models]


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
