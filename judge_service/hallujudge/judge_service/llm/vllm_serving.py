"""How vLLM serves a judge: the arguments of ``vllm serve``, and the memory that it needs on GPUs.

Some arguments the judge needs, others a user adds. The memory follows from the model's
``config.json``; ``doctor --vllm`` prints it.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..errors import InvalidInputError

AUTO_LENGTH = "auto"
"""The value of ``--max-model-len`` for the model's own limit, or what fits into memory."""
_STRUCTURED = "structured-outputs-config"
# The engine for structured output that enforces every rule of our schemas. With vLLM's own choice
# of engine, a model filled its reply with tabs until it was cut off.
_COMPACT_JSON: Mapping[str, object] = {"backend": "guidance", "disable_any_whitespace": True}
# At most so many alternatives are asked for at a token.
_MOST_LOGPROBS = 20
_SET_BY_US = "the judge's calls go to the address that is chosen for it; leave it out"
_WITHOUT_TLS = "the judge's calls to it stay on this machine and are not encrypted; leave it out"
# What would leave the judge without an answer, and why.
_REFUSED = {
    "model": "the setting vllm names the model; leave it out",
    "api-key": "it gets another key at each start; leave it out",
    "host": _SET_BY_US,
    "port": _SET_BY_US,
    "uds": _SET_BY_US,
    "root-path": _SET_BY_US,
    "headless": "it would start without an API; leave it out",
    "ssl-keyfile": _WITHOUT_TLS,
    "ssl-certfile": _WITHOUT_TLS,
}
# Arguments of which only some values give answers with margins.
_LIMITED: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "logprobs-mode": (
        lambda mode: mode.endswith("_logprobs"),
        "margins need log-probabilities; give raw_logprobs or leave it out",
    ),
    "max-logprobs": (
        lambda most: most == "-1" or (most.isdecimal() and int(most) >= _MOST_LOGPROBS),
        f"up to {_MOST_LOGPROBS} alternatives are asked for; give at least as many or leave it out",
    ),
    "runner": (
        lambda runner: runner in ("auto", "generate"),
        "a judge writes answers; give generate or leave it out",
    ),
}
# A letter is asked for, because values such as -1 begin with a dash too.
_OPTION = re.compile(r"-{1,2}[A-Za-z]")


def engine_arguments(
    *,
    tensor_parallel_size: str,
    max_model_len: str,
    quantization: str,
    structured_outputs: Mapping[str, object] | None = None,
) -> tuple[str, ...]:
    """Return the arguments of ``vllm serve`` that decide how a judge is served.

    ``serve --vllm``, Compose and Kubernetes all use them. Prefix caching is switched on by name,
    so that claims of an image share their prompt's beginning; the next option has the server say
    how much was shared. ``--generation-config vllm`` keeps the model folder's own sampling defaults
    out: everything is sent with each request. JSON has no white space in it: a model that pads it
    would be cut off in the middle, and tokens cost time. ``--logprobs-mode`` asks for
    log-probabilities and not logits; they are those after a constraint's mask (0.32.0 and 0.33.0).

    Args:
        tensor_parallel_size: GPUs that a layer is spread over, or the variable that names them.
        max_model_len: Longest prompt with its answer, or its variable.
        quantization: How weights are quantised while they are loaded; vLLM reads "" as not at all.
        structured_outputs: What is changed in, or added to, the configuration of structured output.
    """
    structured = json.dumps({**_COMPACT_JSON, **(structured_outputs or {})}, separators=(",", ":"))
    return (
        *("--tensor-parallel-size", tensor_parallel_size),
        *("--max-model-len", max_model_len),
        *("--quantization", quantization),
        *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
        *("--generation-config", "vllm"),
        *("--logprobs-mode", "raw_logprobs"),
        *(f"--{_STRUCTURED}", structured),
    )


class AddedArguments(Struct, frozen=True, kw_only=True):
    """A user's arguments of ``vllm serve``."""

    others: tuple[str, ...] = ()
    """Those that are put last, as they are."""
    structured_outputs: Mapping[str, object] = {}
    """What they say of structured output: vLLM would replace our own JSON by it as a whole."""
    served_name: str = ""
    """The first name that the model is served under; empty for its own."""

    @classmethod
    def of(cls, text: str) -> AddedArguments:
        """Return the arguments of the setting ``vllm.arguments``.

        Raises:
            InvalidInputError: One of them would leave the judge without an answer.
        """
        others: list[str] = []
        structured: dict[str, Any] = {}
        served_name = ""
        for words in _options(_split(text)):
            name, path, values = _named(words)
            _check(name, values)
            if name == _STRUCTURED:
                _merge(structured, path, values)
                continue
            if name == "served-model-name":
                served_name = next(iter(values), "")
            others += words
        return cls(others=tuple(others), structured_outputs=structured, served_name=served_name)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as err:
        raise _unusable(
            f"{text!r:.200} cannot be split: {err}", "close its quotation marks"
        ) from err


def _options(words: Sequence[str]) -> list[list[str]]:
    """Return each option with its values; words before the first one stand alone."""
    options: list[list[str]] = []
    for word in words:
        if _OPTION.match(word) or not options:
            options.append([word])
        else:
            options[-1].append(word)
    return options


def _named(words: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return an option's name as vLLM reads it, the path behind a dot, and its values."""
    option, equals, value = words[0].partition("=")
    if not option.startswith("--"):
        return option, "", list(words[1:])
    name, _, path = option.removeprefix("--").partition(".")
    return name.replace("_", "-"), path, [*([value] if equals else []), *words[1:]]


def _check(name: str, values: Sequence[str]) -> None:
    if name in _REFUSED:
        raise _unusable(f"it has --{name}", _REFUSED[name])
    is_usable, why = _LIMITED.get(name, (None, ""))
    if is_usable is not None and not is_usable(next(iter(values), "")):
        raise _unusable(f"it has --{name} {' '.join(values):.80}", why)


def _merge(into: dict[str, Any], path: str, values: Sequence[str]) -> None:
    """Add what an argument says of structured output, as JSON or by dotted names."""
    text = " ".join(values)
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if path:
        into[path.replace("-", "_")] = value
    elif isinstance(value, dict):
        into |= value
    else:
        raise _unusable(
            f"--{_STRUCTURED} is {text!r:.80}, which is not a JSON object", "correct it"
        )


def _unusable(problem: str, advice: str) -> InvalidInputError:
    return InvalidInputError(f"vllm.arguments can't be used: {problem}; {advice}")


# vLLM's own default of --gpu-memory-utilization (0.33.0).
_USED_SHARE = 0.92
# The driver's context, the activations of one step and CUDA graphs: an estimate, not a measurement.
_OVERHEAD = 4 << 30
# Below this no long scene graph fits; below the second, fewer than 64 calls of 1,024 tokens do.
_LEAST_TOKENS, _EASY_TOKENS = 8_192, 64 * 1_024
# vLLM keeps keys and values in 16 bits unless --kv-cache-dtype says otherwise.
_KV_BYTES = 2

PRECISIONS: Mapping[str, float] = {"bf16": 16, "FP8": 8, "INT4": 4.25}
"""Bits of a weight, with the scales of groups of 128 for INT4. Embeddings keep 16."""

CARDS: Mapping[int, int] = {24: 24_564, 48: 46_068, 80: 81_559, 141: 143_771}
"""Gigabytes in a card's name -> MiB that the driver reports (RTX 4090, L40S, H100, H200)."""

# The rows of the table: how many GPUs, and the gigabytes of each.
_GROUPS = ((1, 24), (1, 48), (1, 80), (2, 80), (4, 80), (8, 80), (1, 141), (2, 141))


class ModelShape(Struct, frozen=True, kw_only=True):
    """What decides the memory of a model."""

    name: str
    """Model id or folder."""
    source: str
    """Where the figures come from."""
    parameters: int
    """Parameters of its language model."""
    embeddings: int
    """Parameters of these that are embeddings and the output layer, which stay in 16 bits."""
    layers: int
    """Layers with attention."""
    heads: int
    """Attention heads, which are spread over GPUs."""
    kv_heads: int
    """Heads that keep keys and values; 0 if one compressed vector is kept instead."""
    kv_width: int
    """Values kept for a token and layer: of one head, or of the compressed vector."""
    context: int
    """The longest prompt that the model allows."""
    precision: str
    """Precision of its weights as they are."""
    weight_bytes: int = 0
    """Bytes of the weights in its folder; 0 if they are not there."""

    @property
    def size(self) -> str:
        """Its parameters in words."""
        if self.parameters < 1e8:
            return f"{self.parameters / 1e6:.1f} million parameters"
        return f"{self.parameters / 1e9:.1f} billion parameters"

    def bytes_at(self, precision: str) -> float:
        """Return the bytes of the weights at a precision."""
        if self.weight_bytes and precision == self.precision:
            return self.weight_bytes
        bits = PRECISIONS[precision]
        return (self.parameters - self.embeddings) * bits / 8 + self.embeddings * 2

    def kv_bytes(self, gpus: int) -> int:
        """Return the bytes that each GPU keeps for one token."""
        if not self.kv_heads:
            return self.layers * self.kv_width * _KV_BYTES
        # A head is not divided: more GPUs than heads keep copies.
        return 2 * self.layers * math.ceil(self.kv_heads / gpus) * self.kv_width * _KV_BYTES

    def precisions(self) -> tuple[str, ...]:
        """Return the precisions that it can be served at; what is quantised stays so."""
        return tuple(PRECISIONS) if self.precision == "bf16" else (self.precision,)


def room(shape: ModelShape, precision: str, gpus: int, gpu_bytes: float) -> int:
    """Return the tokens that fit next to the weights; 0 or less if the weights do not fit.

    Args:
        shape: The model.
        precision: How its weights are served.
        gpus: GPUs that a layer is spread over.
        gpu_bytes: Memory of the smallest of them.
    """
    # vLLM refuses a number of GPUs that does not divide the attention heads.
    if shape.heads % gpus:
        return 0
    left = gpu_bytes * _USED_SHARE - _OVERHEAD - shape.bytes_at(precision) / gpus
    return math.floor(left / shape.kv_bytes(gpus))


def verdict(tokens: int) -> str:
    """Return whether a judge works well with room for so many tokens."""
    if tokens < _LEAST_TOKENS:
        return "no"
    return f"{'tight' if tokens < _EASY_TOKENS else 'fits'}, {tokens / 1000:,.0f}k tokens"


def sizing_table(shape: ModelShape) -> list[list[str]]:
    """Return the table of GPUs and precisions, its head first."""
    names = shape.precisions()
    head = [f"{name}, {shape.bytes_at(name) / 1e9:,.0f} GB" for name in names]
    rows = [
        [
            f"{gpus} x {size} GB",
            *(verdict(room(shape, name, gpus, CARDS[size] << 20)) for name in names),
        ]
        for gpus, size in _GROUPS
    ]
    return [["GPUs", *head], *rows]


class Gpu(Struct, frozen=True, kw_only=True):
    """A GPU of this machine."""

    name: str
    total: int
    """Its memory in bytes."""
    used: int
    """The part of it that is in use."""


def local_gpus() -> list[Gpu]:
    """Return the GPUs that NVIDIA's driver reports; none without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = ["--query-gpu=name,memory.total,memory.used", "--format=csv,noheader,nounits"]
    done = subprocess.run(  # noqa: S603 - a program that the machine's owner installed
        [program, *query], check=False, capture_output=True, text=True
    )
    return list(_read_gpus(done.stdout)) if not done.returncode else []


def _read_gpus(text: str) -> Iterator[Gpu]:
    for line in text.splitlines():
        # From the right, since only the name may hold a comma.
        name, total, used = (part.strip() for part in line.rsplit(",", 2))
        # A part of a GPU or one with shared memory has "[N/A]" there.
        if total.isdigit() and used.isdigit():
            yield Gpu(name=name, total=int(total) << 20, used=int(used) << 20)


def local_verdict(
    shape: ModelShape, precision: str, gpus: int, found: Sequence[Gpu]
) -> tuple[bool, str]:
    """Return whether this machine's GPUs hold a model, and what to do if they do not.

    Args:
        shape: The model.
        precision: How its weights would be served.
        gpus: GPUs that a layer would be spread over.
        found: The GPUs of this machine.
    """
    machine = f"{len(found)} x {found[0].name}, {found[0].total / 2**30:,.0f} GiB"
    if gpus > len(found):
        return False, f"{machine}: vllm.tensor_parallel_size is {gpus}"
    # vLLM takes the same share of each GPU, so the smallest one decides.
    least = min(gpu.total for gpu in found)
    tokens = room(shape, precision, gpus, least)
    if tokens >= _LEAST_TOKENS:
        return True, f"{machine}: {precision} on {gpus}: {verdict(tokens)}"
    working = [
        f"{name} on {count}"
        for name in shape.precisions()
        for count in range(1, len(found) + 1)
        if room(shape, name, count, least) >= _LEAST_TOKENS
    ]
    advice = f"these fit: {', '.join(working)}" if working else "choose a smaller model"
    return False, f"{machine}: {precision} on {gpus} does not fit; {advice}"


def model_shape(model: str) -> ModelShape:
    """Return the shape of a model: by the ``config.json`` of its folder, or by the table.

    Raises:
        InvalidInputError: It is neither a folder with a readable ``config.json`` nor known.
    """
    folder = Path(model).expanduser()
    if (folder / "config.json").is_file():
        return _shape_in(folder, model)
    if folder.is_dir():
        raise InvalidInputError(f"{model} has no config.json; name a model's folder or its id")
    name = model.lower()
    if stems := [stem for stem in _KNOWN if stem in name]:
        stem = max(stems, key=len)
        keys = ("layers", "hidden", "heads", "kv_heads", "inner", "vocabulary", "context")
        config = dict(zip(_CONFIG_KEYS, _KNOWN[stem][: len(keys)], strict=True))
        extra = _KNOWN[stem][len(keys)]
        return _shape(model, {**config, **extra}, "known model", _precision_of_name(name))
    raise InvalidInputError(
        f"the size of {model!r} is not known: name its folder, which has config.json, or a "
        f"known model: {', '.join(_KNOWN)}"
    )


_CONFIG_KEYS = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
_TIED = {"tie_word_embeddings": True}
# From the config.json that the authors publish with each model.
_KNOWN: Mapping[str, tuple[Any, ...]] = {
    "llama-3.2-3b": (28, 3072, 24, 8, 8192, 128_256, 131_072, _TIED),
    "llama-3.1-8b": (32, 4096, 32, 8, 14_336, 128_256, 131_072, {}),
    "llama-3.1-70b": (80, 8192, 64, 8, 28_672, 128_256, 131_072, {}),
    "llama-3.3-70b": (80, 8192, 64, 8, 28_672, 128_256, 131_072, {}),
    "llama-3.1-405b": (126, 16_384, 128, 8, 53_248, 128_256, 131_072, {}),
    "qwen2.5-7b": (28, 3584, 28, 4, 18_944, 152_064, 32_768, {}),
    "qwen2.5-32b": (64, 5120, 40, 8, 27_648, 152_064, 32_768, {}),
    "qwen2.5-72b": (80, 8192, 64, 8, 29_568, 152_064, 32_768, {}),
    "qwen3-8b": (36, 4096, 32, 8, 12_288, 151_936, 40_960, {"head_dim": 128}),
    "qwen3-32b": (64, 5120, 64, 8, 25_600, 151_936, 40_960, {"head_dim": 128}),
    "qwen3-30b-a3b": (
        *(48, 2048, 32, 4, 6144, 151_936, 40_960),
        {"head_dim": 128, "num_experts": 128, "moe_intermediate_size": 768},
    ),
    "mistral-small-24b": (40, 5120, 32, 8, 32_768, 131_072, 32_768, {"head_dim": 128}),
}


def _precision_of_name(name: str) -> str:
    if "fp8" in name:
        return "FP8"
    return "INT4" if any(word in name for word in ("awq", "gptq", "int4", "w4a16")) else "bf16"


def _shape_in(folder: Path, name: str) -> ModelShape:
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as err:
        raise InvalidInputError(f"{path} cannot be read: {err}") from err
    if not isinstance(config, dict):
        raise InvalidInputError(f"{path} is not a JSON object")
    sizes = [file.stat().st_size for file in folder.glob("*.safetensors")]
    # Models that see images have their language model's configuration inside.
    inner: dict[str, Any] = next(
        (config[key] for key in _INNER if isinstance(config.get(key), dict)), {}
    )
    source = "config.json and weights" if sizes else "config.json"
    merged = {**config, **inner}
    return _shape(name, merged, source, _precision_of(merged, path), sum(sizes))


_INNER = ("text_config", "llm_config", "language_config")


def _precision_of(config: Mapping[str, Any], path: Path) -> str:
    found = config.get("quantization_config")
    if not isinstance(found, dict):
        return "bf16"
    groups = found.get("config_groups")
    first: Any = next(iter(groups.values()), {}) if isinstance(groups, dict) else {}
    weights = first.get("weights") if isinstance(first, dict) else None
    bits = weights.get("num_bits") if isinstance(weights, dict) else found.get("bits")
    bits = bits or found.get("w_bit") or (8 if "fp8" in str(found.get("quant_method")) else 0)
    if bits not in (4, 8):
        raise InvalidInputError(
            f"{path}: the bits of its quantization_config are unknown: {sorted(found)}"
        )
    return "FP8" if bits == 8 else "INT4"


def _shape(
    name: str, config: Mapping[str, Any], source: str, precision: str, weight_bytes: int = 0
) -> ModelShape:
    def number(*keys: str, default: int | None = None) -> int:
        value = next((config[key] for key in keys if config.get(key) is not None), default)
        if isinstance(value, list) and value:  # layers of several sizes
            value = max(value)
        if not isinstance(value, int) or value < 0:
            raise InvalidInputError(
                f"the configuration of {name} has no number at {' or '.join(keys)}; "
                f"it has: {', '.join(sorted(config))}"
            )
        return value

    layers, hidden = number("num_hidden_layers", "n_layer"), number("hidden_size", "n_embd")
    heads = number("num_attention_heads", "n_head")
    kv_heads = number("num_key_value_heads", default=heads)
    width = number("head_dim", default=hidden // max(1, heads))
    compressed = number("kv_lora_rank", default=0)
    embeddings = number("vocab_size") * hidden * (1 if config.get("tie_word_embeddings") else 2)
    attention = 2 * hidden * width * (heads + kv_heads)
    experts = number("num_experts", "num_local_experts", "n_routed_experts", default=0)
    inner = number("intermediate_size", "ffn_hidden_size")
    if experts:
        shared = number("n_shared_experts", default=0)
        inner = number("moe_intermediate_size", default=inner) * (experts + shared)
    # Three matrices of a gated layer; norms and biases are below a thousandth of all parameters.
    each = attention + 3 * hidden * inner + hidden * experts
    return ModelShape(
        name=name,
        source=source,
        parameters=layers * each + embeddings,
        embeddings=embeddings,
        layers=layers,
        heads=heads,
        kv_heads=0 if compressed else kv_heads,
        kv_width=compressed + number("qk_rope_head_dim", default=0) if compressed else width,
        context=number("max_position_embeddings", "n_positions", default=0),
        precision=precision,
        weight_bytes=weight_bytes,
    )
