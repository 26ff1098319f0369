"""Matchers: judges that compare claims with references by a local model.

Protocol ``published`` gives the verdicts of Tri-HE's released NLI judge, the others those of small
judges: sentence-pair classifiers. Importing a matcher loads no model and no model library.

This module has the inputs, interfaces and settings of matchers, the table of small judges, and the
cache of sentence vectors and probabilities.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.arrays import Float32Array
from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Triplet, Verdict

from ..errors import InvalidInputError, Violation

Vectors: TypeAlias = Float32Array
"""A vector for each of some texts, or one of them."""
Architecture: TypeAlias = Literal["classifier", "seq2seq", "hhem"]
"""How weights are loaded: a sequence classifier, a T5 model, or HHEM's T5 token classifier."""

Head: TypeAlias = Literal["entailment", "second", "words", "first_token"]
"""Where the probability of "supported" is read.

``entailment``: the class that ``id2label`` calls entailment. ``second``: the second of two classes.
``words``: two words of the vocabulary at the first decoded position. ``first_token``: the second
class of the first token.
"""

_ARCHITECTURES: Mapping[Head, Architecture] = {
    "entailment": "classifier",
    "second": "classifier",
    "words": "seq2seq",
    "first_token": "hhem",
}
_AGGREFACT = "LLM-AggreFact leaderboard (llm-aggrefact.github.io)"


class JudgePreset(Struct, frozen=True, kw_only=True):
    """A small judge, in this process or behind a server."""

    name: str
    """Its name, for ``--judge``."""
    title: str
    """The model's name."""
    model: str
    """The hub id of the authors' weights; empty if the option ``small_model`` must name it."""
    licence: str
    """The licence of the weights."""
    reported: str = ""
    """The accuracy that the authors report, with its source; empty if none was found."""
    measured: str = "not measured: weights not at hand"
    """The agreement that was measured on Tri-HE's checked answers."""


class SmallPreset(JudgePreset, frozen=True, kw_only=True):
    """A small judge in this process."""

    head: Head
    """Where the probability is read."""
    template: str = ""
    """The input, with ``{premise}``, ``{claim}`` and ``{eos}``; empty for a pair of two texts."""
    limit: int = 0
    """The maximum number of tokens of an input; 0 for that of the model's files."""
    chunk: int = 0
    """The maximum length of a premise, in ``unit``; 0 for the length that the input permits."""
    unit: Literal["tokens", "words"] = "tokens"
    """The unit of ``chunk``."""
    tokenizer: str = ""
    """The hub id of the tokenizer, if the authors' folder has none."""
    reads: Literal["all", "retained"] = "all"
    """``all``: the whole scene graph and the object list; ``retained``: the references nearest to
    the claim by cosine, as in Tri-HE's matcher."""

    @property
    def shown(self) -> str:
        """The input in one line, for tables."""
        if not self.template:
            return "premise and claim, as a pair of texts"
        return "`" + self.template.replace("\n", "⏎") + "`"

    @property
    def architecture(self) -> Architecture:
        """How the weights are loaded."""
        return _ARCHITECTURES[self.head]


# Every template is the text that the authors' own code gives to the tokenizer.
# Liyan06/MiniCheck, minicheck/inference.py: batch_tokenize and inference_per_example; the chunk
# sizes are the defaults of minicheck/minicheck.py.
_MINICHECK = "{premise}{eos}{claim}"
# derenlei/FactCG, factcg/utils.py (INSTRUCTION_TEMPLATE) and factcg/inference.py (chunking_src).
_FACTCG = (
    "{premise}\n\nChoose your answer: based on the paragraph above can we conclude that "
    '"{claim}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
)
# vectara/hallucination_evaluation_model, configuration_hhem_v2.py.
_HHEM = (
    "<pad> Determine if the hypothesis is true given the premise?\n\n"
    "Premise: {premise}\n\nHypothesis: {claim}"
)

_PRESETS = (
    SmallPreset(
        name="nli",
        title='any NLI cross-encoder (Tri-HE\'s "NLI judge" is `matcher`)',
        model="",
        head="entailment",
        reads="retained",
        licence="the model's own",
    ),
    SmallPreset(
        name="minicheck-roberta",
        title="MiniCheck-RoBERTa-Large (0.4B)",
        model="lytang/MiniCheck-RoBERTa-Large",
        head="second",
        template=_MINICHECK,
        limit=512,
        chunk=400,
        licence="MIT",
    ),
    SmallPreset(
        name="minicheck-deberta",
        title="MiniCheck-DeBERTa-v3-Large (0.4B)",
        model="lytang/MiniCheck-DeBERTa-v3-Large",
        head="second",
        template=_MINICHECK,
        limit=2048,
        chunk=400,
        licence="MIT",
    ),
    SmallPreset(
        name="minicheck-flan-t5",
        title="MiniCheck-Flan-T5-Large (0.8B)",
        model="lytang/MiniCheck-Flan-T5-Large",
        head="words",
        template="predict: " + _MINICHECK,
        limit=2048,
        chunk=500,
        unit="words",
        licence="MIT",
        reported=f"75.0 % balanced accuracy, {_AGGREFACT}",
    ),
    SmallPreset(
        name="factcg",
        title="FactCG-DeBERTa-v3-Large (0.4B)",
        model="yaxili96/FactCG-DeBERTa-v3-Large",
        head="second",
        template=_FACTCG,
        limit=2048,
        # The authors count nltk's words, which also split punctuation off.
        chunk=550,
        unit="words",
        licence="MIT",
        reported=f"75.6 % balanced accuracy, {_AGGREFACT}",
    ),
    SmallPreset(
        name="hhem",
        title="HHEM-2.1-Open (0.1B)",
        model="vectara/hallucination_evaluation_model",
        head="first_token",
        tokenizer="google/flan-t5-base",
        template=_HHEM,
        # The authors set no limit; longer inputs than this take minutes on a CPU.
        limit=2048,
        licence="Apache-2.0",
        reported="76.55 % balanced accuracy, AggreFact-SOTA (model card)",
    ),
)

SMALL_JUDGES: Mapping[str, SmallPreset] = {preset.name: preset for preset in _PRESETS}
"""The small judges by name."""


def preset_of(name: str) -> SmallPreset:
    """Return the small judge of a name that settings have checked."""
    return SMALL_JUDGES[name]


PROTOCOLS = ("published", *SMALL_JUDGES)
"""The ways of comparing claims with references: Tri-HE's matcher, and the small judges."""

BACKENDS = ("auto", "onnx", "torch")
"""The backends of the sentence encoder; ``auto`` chooses onnxruntime if it supports the model."""

PART_RULES = ("objects", "none")
"""The rules for the wrong part of unsupported claims; see ``PartRule``."""


class ClaimQuery(Struct, frozen=True, kw_only=True):
    """A claim and the references that it is checked against."""

    claim: ClaimParts
    """The triplet or sentence."""
    references: tuple[Triplet, ...] | None
    """The triplets of the image's scene graph, in its order; None if it has none."""
    objects: tuple[str, ...] = ()
    """Objects of the image that the triplets do not name."""
    span: tuple[int, int] | None = None
    """The place of the claim in the response, which the verdict copies."""


class Encoder(Protocol):
    """A sentence encoder. A text's vector does not depend on the other texts of a call."""

    @property
    def label(self) -> str:
        """The backend and the precision, such as ``onnx-fp32``."""

    @property
    def size(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""


class ClaimMatcher(Protocol):
    """A judge that compares claims with references by a local model."""

    @property
    def name(self) -> str:
        """The judge's name in verdicts."""

    @property
    def label(self) -> str:
        """The protocol, model, precision and thresholds, for the signature."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The content of the label in full, for the report."""

    async def judge(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """Return one verdict for each claim, in order; an invalid claim is unscored."""


class MatcherSettings(Struct, frozen=True, kw_only=True):
    """The settings of a matcher. The signature has all that can change a verdict."""

    protocol: str = "published"
    """``published``, or the name of a small judge."""
    model: str = "minilm"
    """The sentence encoder: ``minilm``, ``mpnet``, a model id or a folder."""
    small_model: str = ""
    """The model of a small judge: a model id or a folder; empty for that of its authors."""
    backend: str = "auto"
    """``onnx``, ``torch`` or ``auto``."""
    device: str = "cpu"
    """The device of torch, such as ``cuda``; onnxruntime runs on the CPU."""
    keep_above: float = 0.5
    """References whose cosine with the claim is above it are kept (Tri-HE paper, section 3.3)."""
    top: int = 3
    """How many of the nearest references are compared as well, or instead if none is kept."""
    support_above: float = 0.6
    """``published``: the cosine above which a claim is supported (Tri-HE paper, section 3.3)."""
    small_above: float = 0.5
    """Small judges: the probability above which a claim is supported; 0.5 is their authors'."""
    parts: str = "objects"
    """``objects``: verdicts name the wrong part of unsupported claims; ``none``: they do not."""
    threads: int = 0
    """The threads of onnxruntime; 0 for its default. Results do not depend on it."""
    cached_vectors: int = 20_000
    """How many vectors are kept between calls."""
    cache_folder: Path | None = None
    """The folder of written ONNX graphs; by default ``.cache/hallujudge/onnx`` in the home."""
    allow_download: bool = False
    """Whether a model that is not on this machine may be downloaded from its hub."""

    def __post_init__(self) -> None:
        if violations := tuple(self._violations()):
            raise InvalidInputError(
                "; ".join(violation.description for violation in violations), violations=violations
            )

    def _violations(self) -> list[Violation]:
        rules = {"protocol": PROTOCOLS, "backend": BACKENDS, "parts": PART_RULES}
        found = [
            (name, f"{name} is {getattr(self, name)!r}; {choose_from(getattr(self, name), known)}")
            for name, known in rules.items()
            if getattr(self, name) not in known
        ]
        found += [
            (name, f"{name} is {getattr(self, name)}; give a number from {low} to 1")
            for name, low in (("keep_above", -1), ("support_above", -1), ("small_above", 0))
            if not low <= getattr(self, name) <= 1
        ]
        found += [
            (name, f"{name} is {getattr(self, name)}; give a whole number from {low} to {high}")
            for name, low, high in (("top", 1, 1000), ("threads", 0, 1024))
            if not low <= getattr(self, name) <= high
        ]
        if self.cached_vectors < 0:
            found.append(
                ("cached_vectors", f"cached_vectors is {self.cached_vectors}; give 0 or more")
            )
        small = SMALL_JUDGES.get(self.protocol)
        if small is not None and not (self.small_model or small.model):
            found.append(
                (
                    "small_model",
                    f"judge {small.name} needs the option small_model: the id or folder of a "
                    "cross-encoder",
                )
            )
        return [Violation(field=name, description=text) for name, text in found]


def claim_text(claim: ClaimParts) -> str:
    """Return a claim as the released script compares it: its parts, joined by blanks."""
    return plain(" ".join(claim))


def plain(text: str) -> str:
    """Return a text with U+FFFD in place of lone surrogates, which tokenizers reject."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


DIGITS = 6
"""The decimals of scores; further ones may differ between machines."""


def verdict_by(
    claim: ClaimParts, score: float, above: float, judge: str, **more: Any
) -> ClaimVerdict:
    """Return the verdict on a claim by its score.

    Args:
        claim: The claim.
        score: Its score.
        above: The score above which it is supported.
        judge: The judge's name.
        more: Other fields of the verdict.
    """
    return ClaimVerdict(
        triplet=claim,
        # Strictly above, as in the released script.
        verdict=Verdict.SUPPORTED if score > above else Verdict.NOT_SUPPORTED,
        score=round(score, DIGITS),
        margin=round(score - above, DIGITS),
        judge=judge,
        **more,
    )


TOKENS_PER_BATCH = 2048
"""The maximum number of tokens of a batch. Larger batches were not faster on CPUs."""


def length_batches(lengths: Sequence[int], tokens: int = TOKENS_PER_BATCH) -> list[list[int]]:
    """Return positions in batches of texts of equal length, the shortest first.

    Texts of equal length need no padding. That saves work, and makes a text's vector independent of
    the other texts in its batch.

    Args:
        lengths: The number of tokens of each text.
        tokens: The maximum number of tokens of a batch.
    """
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    batches = []
    for length in sorted(by_length):
        positions, step = by_length[length], max(1, tokens // max(1, length))
        batches += [positions[at : at + step] for at in range(0, len(positions), step)]
    return batches


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class KeptValues(Generic[_Key, _Value]):
    """Values by key, of which the least recently used are dropped.

    Safe to use from several threads: one at a time asks the model.

    Args:
        make: Returns the values of keys, in order.
        limit: How many values are kept between calls.
    """

    def __init__(self, make: Callable[[list[_Key]], Sequence[_Value]], limit: int) -> None:
        self._make = make
        self._limit = limit
        self._kept: OrderedDict[_Key, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._kept)

    def values(self, keys: Iterable[_Key]) -> dict[_Key, _Value]:
        """Return the value of every distinct key."""
        distinct = dict.fromkeys(keys)
        # Held while the model works: two threads would otherwise compute the same texts.
        with self._lock:
            found = {key: self._kept[key] for key in distinct if key in self._kept}
            missing = [key for key in distinct if key not in found]
            for key in found:
                self._kept.move_to_end(key)
            if missing:
                found |= zip(missing, self._make(missing), strict=True)
                self._kept.update((key, found[key]) for key in missing)
                # After `found` has them, since more may be asked for at once than are kept.
                while len(self._kept) > self._limit:
                    self._kept.popitem(last=False)
        return found


class VectorStore(KeptValues[str, Vectors]):
    """A sentence encoder with a bounded cache of unit vectors, safe to use from several threads.

    Args:
        encoder: The encoder.
        limit: How many vectors are kept between calls.
    """

    def __init__(self, encoder: Encoder, limit: int) -> None:
        # Copied, because a view of a row would keep its whole batch in memory.
        super().__init__(lambda texts: [row.copy() for row in encoder.encode(texts)], limit)


class TextComparer:
    """Compares texts by the cosine of their vectors.

    Args:
        store: Vectors by text.
        label: The encoder and its backend, for signatures.
    """

    def __init__(self, store: VectorStore, label: str) -> None:
        self.label = label
        self._store = store

    def vectors(self, texts: Iterable[str]) -> dict[str, Vectors]:
        """Return the unit vector of every distinct text."""
        return self._store.values(texts)

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosine of each pair, rounded as verdicts are."""
        vectors = self._store.values(text for pair in pairs for text in pair)
        return [round(float(vectors[one] @ vectors[other]), DIGITS) for one, other in pairs]
