"""The table of small judges: the inputs, outputs and known accuracy of their models.

Every template is the text that the authors' own code gives to the tokenizer; its source names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallPreset:
    """A small judge."""

    name: str
    """Its name, for ``--judge``."""
    title: str
    """The model's name."""
    model: str
    """The hub id of the authors' weights; empty if the option ``small_model`` must name it."""
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
    licence: str
    """The licence of the weights."""
    reported: str = ""
    """The accuracy that the authors report, with its source; empty if none was found."""
    measured: str = "not measured: weights not at hand"
    """The agreement that was measured on Tri-HE's checked answers."""

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
