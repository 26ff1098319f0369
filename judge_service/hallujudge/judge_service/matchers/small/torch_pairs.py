"""Sentence-pair classifiers on transformers and torch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import InvalidInputError
from ..models import ModelFolder
from ..presets import SmallPreset
from ..texts import plain
from ..vectors import length_batches

if TYPE_CHECKING:
    from .torch_weights import TorchWeights

__all__ = ["TorchPairs", "entailment_index"]

# The words "0" and "1" of Flan-T5's vocabulary (Liyan06/MiniCheck, minicheck/inference.py).
_NO, _YES = 3, 209


def entailment_index(config: Mapping[str, Any], model: str) -> int:
    """Return the index of the entailment label, by the label names in the configuration.

    The order of labels differs between models, and a wrong guess would invert verdicts. A model
    without clear label names is therefore refused.

    Args:
        config: The model's config.json.
        model: The model's name, for the error.

    Raises:
        InvalidInputError: No label is called entailment, or several are.
    """
    labels = config.get("id2label")
    named = dict(labels) if isinstance(labels, Mapping) else {}
    found = [index for index, label in named.items() if _is_entailment(str(label))]
    if len(found) != 1 or len(named) < 2:
        shown = ", ".join(str(label) for label in list(named.values())[:8]) or "none"
        raise InvalidInputError(
            f"the model {model} has the labels {shown}; give a model with exactly one label that "
            "is called entailment in id2label of its config.json",
            metadata={"model": model},
        )
    return int(found[0])


def _is_entailment(label: str) -> bool:
    # startswith, because two-way models also have a label "not_entailment".
    words = label.casefold().replace("-", "_").replace(" ", "_")
    return words.startswith("entail")


class TorchPairs:
    """A small judge's model: its input format and its probability of "supported".

    Args:
        preset: The small judge.
        model: The folder of the model.
        weights: The loaded model, which presets of equal weights share.

    Raises:
        InvalidInputError: The model does not have the classes that the preset reads.
    """

    def __init__(self, preset: SmallPreset, model: ModelFolder, weights: TorchWeights) -> None:
        self._preset = preset
        self._weights = weights
        self._classes, self._supported = _classes(preset, model, weights.classes)
        self.label = f"{model.label}/{weights.backend}"
        self.limit = weights.limit(preset.limit)
        special = sorted(weights.special_tokens, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, special)) or r"(?!)")

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens."""
        if not texts:
            return []
        return self._weights.lengths([self._defused(text) for text in texts])

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return the number of tokens of each input, with template and special tokens."""
        return [len(ids) for ids in self.encoded(pairs)["input_ids"]] if pairs else []

    def supported(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability that each premise supports its claim."""
        if not pairs:
            return []
        tokens = self.encoded(pairs)
        out = [0.0] * len(pairs)
        for batch in length_batches([len(ids) for ids in tokens["input_ids"]]):
            rows = {name: [values[at] for at in batch] for name, values in tokens.items()}
            chosen = self._weights.logits(rows)[:, self._classes]
            for position, chance in zip(
                batch, chosen.softmax(dim=-1)[:, self._supported].tolist(), strict=True
            ):
                out[position] = chance
        return out

    def encoded(self, pairs: Sequence[tuple[str, str]]) -> dict[str, list[list[int]]]:
        """Return what the model reads for each premise and claim, without padding."""
        premises = [self._defused(premise) for premise, _ in pairs]
        claims = [self._defused(claim) for _, claim in pairs]
        if not self._preset.template:
            return self._weights.tokens(premises, claims)
        eos = self._weights.eos
        return self._weights.tokens(
            [
                self._preset.template.format(premise=premise, claim=claim, eos=eos)
                for premise, claim in zip(premises, claims, strict=True)
            ]
        )

    def _defused(self, text: str) -> str:
        """Return a text in which the tokenizer finds no special token, such as ``</s>``.

        A judged text with the separator could otherwise write its own premise.
        """
        return self._special.sub(lambda found: f"{found[0][0]} {found[0][1:]}", plain(text))


def _classes(preset: SmallPreset, model: ModelFolder, count: int) -> tuple[list[int], int]:
    """Return the columns of the logits that compete, and which of them means "supported"."""
    if preset.head == "entailment":
        return list(range(count)), entailment_index(model.config, model.name)
    if preset.head == "words":
        if count <= _YES:
            raise _unsuitable(preset, model, f"a vocabulary of {count} words")
        return [_NO, _YES], 1
    if count != 2:
        raise _unsuitable(preset, model, f"{count} classes")
    return [0, 1], 1


def _unsuitable(preset: SmallPreset, model: ModelFolder, found: str) -> InvalidInputError:
    return InvalidInputError(
        f"the model {model.name} has {found}, so it is not a model of the judge {preset.name}; "
        f"give the weights of {preset.model}, or choose another judge",
        metadata={"model": model.name},
    )
