"""Adversarial noise against vision encoders: MI-FGSM over an ensemble (Dong et al., 2018).

The noise drives what every encoder sees away from what it sees in the clean frames: the loss is
one minus the cosine of the two outputs, averaged over tokens and encoders. This loss has no
gradient at the clean frames, so that the search starts from a random place near them; that is the
one difference to the paper's algorithm, which maximises a classifier's loss.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hallujudge.judge_service.errors import InvalidInputError, MissingExtraError

# Frames that are attacked together; VideoMAE takes 16 as one clip.
_CHUNK = 16
# Parts of a model that take pixels, by the names that transformers gives them.
_VISION_PARTS = ("vision_model", "vision_tower", "visual")
# ImageNet's, for encoders without a configuration of their own.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_WEIGHTS = "*.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackSettings:
    """How strong adversarial noise is."""

    # Ten steps and a momentum of 1 are those of Dong et al., whose epsilon is 16. INFACT's paper
    # gives no value.
    epsilon: float = 8.0
    """Largest change of a value from 0 to 255."""
    steps: int = 10
    """Number of steps; each changes every value by ``epsilon / steps``."""
    momentum: float = 1.0
    """Share of the earlier gradients that stays."""


class EncoderEnsemble:
    """Vision encoders in local folders.

    Args:
        folders: A folder of transformers for each. Encoders of images and of video clips can be
            mixed, and larger models are used for their part that takes pixels.

    Raises:
        InvalidInputError: A folder holds no encoder that takes pixels.
        MissingExtraError: torch or transformers is not installed.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        with MissingExtraError.unless_installed("adversarial noise", "matcher"):
            import torch
            import transformers  # noqa: F401 - its absence is reported here
        self._torch = torch
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        # Sums depend on the number of threads; several files are made at a time instead.
        torch.set_num_threads(1)
        self._encoders = [_Encoder(torch, folder, self._device) for folder in folders]
        self.chunk = max(_CHUNK, *(encoder.frames for encoder in self._encoders))
        """Number of frames that are attacked together."""

    def attack(
        self, frames: NDArray[np.uint8], settings: AttackSettings, start: int
    ) -> NDArray[np.uint8]:
        """Return frames with noise.

        Args:
            frames: Frame, row, column, and the channels red, green and blue.
            settings: How strong it is.
            start: Where its random numbers start.
        """
        torch = self._torch
        clean = torch.from_numpy(frames).to(self._device).permute(0, 3, 1, 2).float() / 255
        with torch.no_grad():
            seen = [encoder.see(clean) for encoder in self._encoders]
        # A generator of the processor gives the same numbers for every device.
        random = torch.Generator().manual_seed(start % (1 << 63))
        limit = settings.epsilon / 255
        moved = (torch.rand(clean.shape, generator=random) * 2 - 1) * (limit / 2)
        noisy = (clean + moved.to(self._device)).clamp(0, 1)
        speed = torch.zeros_like(clean)
        for _ in range(settings.steps):
            noisy.requires_grad_(True)
            loss = sum(
                1 - torch.cosine_similarity(encoder.see(noisy), original, dim=-1).mean()
                for encoder, original in zip(self._encoders, seen, strict=True)
            )
            (slope,) = torch.autograd.grad(loss, noisy)
            with torch.no_grad():
                # The mean in place of the L1 norm is another constant factor, which the sign
                # removes.
                # A frame without any gradient is not divided by zero.
                size = slope.abs().mean(dim=(1, 2, 3), keepdim=True).clamp_min(1e-12)
                speed = settings.momentum * speed + slope / size
                # Steps of epsilon / T, as in algorithm 1 of Dong et al.
                noisy = noisy + (limit / settings.steps) * speed.sign()
                # From the random start, the steps may lead beyond the limit.
                noisy = torch.minimum(torch.maximum(noisy, clean - limit), clean + limit)
                noisy = noisy.clamp(0, 1)
        found: NDArray[np.uint8] = (
            (noisy * 255).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
        )
        return found


def attack_versions() -> dict[str, str]:
    """Return the versions and the device that decide about the bytes of noise."""
    import torch
    import transformers

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": device,
    }


def fingerprint(folder: Path) -> str:
    """Return a hash of an encoder's weights and configuration.

    Raises:
        InvalidInputError: The folder has no weights.
    """
    files = sorted((*folder.glob(_WEIGHTS), *folder.glob("*config.json")))
    if not any(path.suffix != ".json" for path in files):
        raise InvalidInputError(f"{folder} has no {_WEIGHTS}; give a folder of transformers")
    found = sha256()
    for path in files:
        with path.open("rb") as file:
            # Weights may take gigabytes, which need not be in memory.
            file_digest(file, lambda: found)
    return found.hexdigest()


class _Encoder:
    """One encoder: frames to outputs, through which gradients flow."""

    def __init__(self, torch: Any, folder: Path, device: str) -> None:
        import transformers

        # The bars of several processes would break up the line of progress.
        transformers.utils.logging.disable_progress_bar()
        try:
            model: Any
            model, found = transformers.AutoModel.from_pretrained(
                str(folder),
                local_files_only=True,
                # Code and pickled weights of a folder could do anything on this machine.
                trust_remote_code=False,
                use_safetensors=True,
                # transformers 5 would otherwise take the precision in which weights are stored.
                dtype="float32",
                output_loading_info=True,
            )
        except (OSError, ValueError, KeyError, ImportError) as err:
            said = str(err).strip().splitlines()[0]
            raise InvalidInputError(
                f"{folder} is not a vision encoder of transformers: {said:.160}; give its folder "
                "with config.json and the weights"
            ) from err
        # Tensors that are missing are drawn at random; what pools tokens is not used.
        if missing := sorted(key for key in found["missing_keys"] if "pooler" not in key):
            raise InvalidInputError(f"{folder} has no tensor {missing[0]}; give the whole encoder")
        # CLIP and SigLIP also have a part for text, which takes no pixels.
        inner = next((part for name in _VISION_PARTS if (part := getattr(model, name, None))), None)
        self._model = (inner or model).to(device).eval().requires_grad_(False)
        config = self._model.config
        # The side that CLIP's and ViT's first models take.
        self._size = _side(getattr(config, "image_size", 224))
        # Encoders of clips, such as VideoMAE, take a number of frames at a time.
        self.frames = int(getattr(config, "num_frames", 0) or 0)
        self._torch = torch
        self._normal = _normalisation(torch, folder, device)
        if getattr(self._model, "main_input_name", "") != "pixel_values":
            raise InvalidInputError(
                f"{folder} takes {getattr(self._model, 'main_input_name', 'no pixels')!r:.40}; "
                "give an encoder that takes pixel_values, such as CLIP, SigLIP, ViT or VideoMAE"
            )

    def see(self, frames: Any) -> Any:
        """Return the outputs for frames with values from 0 to 1."""
        resize = self._torch.nn.functional.interpolate
        # Not by the encoder's own processor, through which no gradient flows.
        small = resize(frames, size=self._size, mode="bilinear", align_corners=False)
        pixels = self._normal(small)
        if self.frames:
            pixels = _clips(self._torch, pixels, self.frames)
        return self._model(pixel_values=pixels).last_hidden_state


def _clips(torch: Any, frames: Any, count: int) -> Any:
    """Return frames in clips of a number; the last frame is repeated in the last clip."""
    missing = -len(frames) % count
    whole = torch.cat([frames, frames[-1:].expand(missing, -1, -1, -1)])
    return whole.reshape(-1, count, *frames.shape[1:])


def _side(size: object) -> tuple[int, int]:
    if isinstance(size, (list, tuple)):
        return int(size[0]), int(size[1])
    return int(str(size)), int(str(size))


def _normalisation(torch: Any, folder: Path, device: str) -> Callable[[Any], Any]:
    """Return what gives pixels the mean and spread that an encoder was trained with."""
    path = folder / "preprocessor_config.json"
    stated = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    mean, std = (
        torch.tensor(stated.get(key, usual), device=device).reshape(1, 3, 1, 1)
        for key, usual in (("image_mean", _MEAN), ("image_std", _STD))
    )
    return lambda pixels: (pixels - mean) / std
