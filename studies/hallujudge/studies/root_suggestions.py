"""Roots suggested for the unknown keywords of a run, and a patch file with what is decided."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
import numpy as np

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.extractors.llm_extractor_base import (
    Extraction,
    LlmExtractor,
    with_keys,
)
from hallujudge.judge_service.llm.budget import VerdictStore
from hallujudge.judge_service.llm.chat_replies import SHOWN_CHARS
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.prompt_templates import as_line, defused, fenced, object_schema
from hallujudge.judge_service.matchers import MatcherSettings
from hallujudge.judge_service.matchers.matcher_models import open_encoder
from hallujudge.judge_service.matchers.model_folders import find_model
from hallujudge.judge_service.settings.loading import load_settings
from hallujudge.sdk.archives.records import read_records
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.synonym_graphs import GraphError, SynonymGraph

from .graph_tools.editing import GraphPatch, PatchEntry
from .graph_tools.suggestions import (
    RootChooser,
    Similarity,
    WordNet,
    find_wordnet,
    open_wordnet,
    suggest_roots,
)

NO_WORDNET = "none"
"""Value of ``--wordnet`` that skips WordNet even if it is installed."""

# Longer values are sentences, not words.
_MAX_WORD_CHARS = 200
# About a screen; the patch has all of them.
_SHOWN_ENTRIES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Sources of roots in addition to spelling and shared words."""

    embeddings: str = ""
    """Encoder that compares meanings; empty for none."""
    wordnet: str = ""
    """WordNet's folder; empty to search the usual places; ``none`` to skip WordNet."""
    llm: Mapping[str, object] = field(default_factory=dict)
    """Given settings of the language model."""


def unknown_words(items: Path, kind: str, domain: str) -> Counter[str]:
    """Return how many items contain each unknown keyword.

    Raises:
        InvalidInputError: The file is not an ``items.jsonl``.
    """
    counts: Counter[str] = Counter()
    for record in read_records(items):
        evidence = record.values.get("evidence")
        # An unscored item has no keywords: nothing could be read of it.
        if record.values.get("outcome") == "unscored":
            continue
        if not isinstance(evidence, Mapping):
            raise InvalidInputError(f"{record.place}: no evidence; give items.jsonl of a run")
        if domain and evidence.get("domain") != domain:
            continue
        if not {"objects", "behaviors"} & evidence.keys():
            raise InvalidInputError(
                f"{record.place}: no keywords; give items.jsonl of a Mementos run"
            )
        found = evidence.get(kind)
        unknown = found.get("unknown") if isinstance(found, Mapping) else None
        counts.update(_words(unknown if isinstance(unknown, list) else []))
    return counts


def _words(values: Iterable[object]) -> set[str]:
    # Runs reject longer keywords, and the cost of comparing spellings is quadratic in length.
    return {
        value
        for value in values
        if isinstance(value, str) and value.strip() and len(value) <= _MAX_WORD_CHARS
    }


def suggested(
    graph: SynonymGraph, counts: Mapping[str, int], *, kind: str, limit: int, sources: Sources
) -> GraphPatch:
    """Return a patch with ranked roots for every word, the most frequent word first.

    Raises:
        InvalidInputError: A source can't be used.
    """
    words = sorted(counts, key=lambda word: (-counts[word], word))
    wordnet, similarity = _wordnet(sources.wordnet), open_similarity(sources.embeddings)
    choose = _chooser(sources.llm, kind)
    try:
        ranked = suggest_roots(
            graph,
            words,
            similarity=similarity,
            wordnet=wordnet,
            choose=choose,
            kind=kind,
            limit=limit,
        )
    except GraphError as err:
        raise InvalidInputError(str(err)) from err
    asked = {"wordnet": wordnet, "embedding": similarity, "llm": choose}
    names = ["spelling", "words", *(name for name, source in asked.items() if source is not None)]
    click.echo(f"roots by {', '.join(names)}", err=True)
    return GraphPatch(
        graph=graph.label,
        entries=tuple(
            PatchEntry(form=word, count=counts[word], candidates=ranked[word]) for word in words
        ),
    )


def kept(patch: GraphPatch, earlier: GraphPatch | None) -> GraphPatch:
    """Return the patch with the decisions of an earlier one, including those on missing words."""
    # So that people can ask again with more sources or more items.
    made = {e.form: e for e in earlier.entries if e.decision != "pending"} if earlier else {}
    if not made:
        return patch
    click.echo(f"note: {len(made)} decisions of the file that was there are kept", err=True)
    entries = [
        replace(entry, decision=old.decision, root=old.root)
        if (old := made.pop(entry.form, None))
        else entry
        for entry in patch.entries
    ]
    return replace(patch, entries=(*entries, *made.values()))


def decided(
    patch: GraphPatch, accept: Sequence[str], reject: Sequence[str], above: float
) -> GraphPatch:
    """Return the patch with the decisions of the command line.

    Raises:
        InvalidInputError: A word is not in the patch, or has no root.
    """
    best = {e.form: e.candidates[0] for e in patch.entries if e.candidates}
    pending = {entry.form for entry in patch.entries if entry.decision == "pending"}
    accepted = {f: found.root for f, found in best.items() if f in pending and found.score >= above}
    for value in accept:
        form, equals, root = value.partition("=")
        if (equals and not root.strip()) or (not equals and form not in best):
            found = "the root is empty" if equals else "no root is ranked"
            raise InvalidInputError(f"--accept {value!r}: {found}; say {form}=ROOT")
        if form in reject:
            raise InvalidInputError(f"{form!r} is both accepted and rejected; choose one")
        accepted[form] = root.strip() if equals else best[form].root
    try:
        return patch.decided(accepted, reject)
    except KeyError as err:
        raise InvalidInputError(
            f"{err.args[0]!r} is not among the unknown keywords of these items"
        ) from err


def show_patch(patch: GraphPatch, out: Path) -> None:
    """Print the entries, the most frequent first, and the path of the patch."""
    for entry in patch.entries[:_SHOWN_ENTRIES]:
        best = ", ".join(f"{c.root} {c.score:.2f} ({c.source})" for c in entry.candidates[:3])
        mark = {"accept": "+", "reject": "-"}.get(entry.decision, "?")
        root = f" = {entry.root}" if entry.root else ""
        click.echo(f"{mark} {entry.count:>5}  {entry.form}{root}  <- {best or 'nothing close'}")
    if len(patch.entries) > _SHOWN_ENTRIES:
        click.echo(f"  … and {len(patch.entries) - _SHOWN_ENTRIES} more")
    decisions = Counter(entry.decision for entry in patch.entries)
    summary = ", ".join(f"{count} {name}" for name, count in sorted(decisions.items()))
    click.echo(f"{len(patch.entries)} unknown keywords ({summary or 'none'}), written to {out}")


def _wordnet(folder: str) -> WordNet | None:
    if folder == NO_WORDNET:
        return None
    try:
        return open_wordnet(Path(folder)) if folder else find_wordnet()
    except GraphError as err:
        raise InvalidInputError(f"--wordnet {err}") from err


def _chooser(given: Mapping[str, object], kind: str) -> RootChooser | None:
    """Return the language model of the settings; None if none is configured."""
    resolved = load_settings(given)
    if not given and not (resolved.judges.llm.url and resolved.judges.llm.model):
        return None

    factory = JudgeFactory(resolved.judges, resolved.keys)
    return root_chooser(
        factory.extractor(LlmRootChooser, kind=kind),
        lambda text: click.echo(f"note: llm: {text}", err=True),
        factory.close,
    )


def open_similarity(model: str) -> Similarity | None:
    """Return a function for the similarity of two words; None without a model's name."""
    if not model:
        return None

    encoder = open_encoder(find_model(model), MatcherSettings(model=model))

    def compare(words: Iterable[str], forms: Iterable[str]) -> list[list[float]]:
        left, right = (np.asarray(encoder.encode(list(texts))) for texts in (words, forms))
        # Encoders need not return unit vectors, whose products are cosines.
        left = left / np.linalg.norm(left, axis=1, keepdims=True)
        right = right / np.linalg.norm(right, axis=1, keepdims=True)
        scores: list[list[float]] = (left @ right.T).tolist()
        return scores

    return compare


NO_ROOT = "none of these"
"""The reply for a word that belongs to none of the offered roots."""
# One bad entry invalidates a whole reply, so calls are kept small.
_WORDS_PER_CALL = 10
_KINDS = {"objects": "things and beings", "behaviors": "actions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RootQuestion:
    """A word and the roots that it may belong to."""

    word: str
    roots: tuple[str, ...]
    """The roots, the nearest first."""

    def choices(self) -> dict[str, str]:
        """Return roots as the prompt shows them -> the roots themselves."""
        shown: dict[str, str] = {}
        for root in self.roots:
            if (text := defused(root)) and text != NO_ROOT:
                shown.setdefault(text, root)
        return shown


class LlmRootChooser(LlmExtractor[tuple[RootQuestion, ...], dict[str, str]]):
    """Chooses roots for several words with one call.

    Only a root that was offered for a word counts. One entry outside the offered roots invalidates
    the whole reply.

    Args:
        client: Calls the model.
        kind: ``objects`` or ``behaviors``.
        cache: Keeps replies between runs.
        revision: The weights' revision, where known.
    """

    template_name = "choose_roots"

    def __init__(
        self,
        client: ChatClient,
        kind: str,
        *,
        cache: VerdictStore | None = None,
        revision: str = "",
    ) -> None:
        super().__init__(client, cache=cache, revision=revision, max_tokens=1024)
        self._kind = kind

    def _slots(self, source: tuple[RootQuestion, ...]) -> Mapping[str, str]:
        lines = (
            as_line([str(number), question.word, *question.choices()])
            for number, question in enumerate(source, 1)
        )
        return {"kind": _KINDS[self._kind], "words": fenced("WORDS", lines)}

    def _schema(self, source: tuple[RootQuestion, ...]) -> Mapping[str, object]:
        keys = {
            str(number): {"type": "string", "enum": [*question.choices(), NO_ROOT]}
            for number, question in enumerate(source, 1)
        }
        return object_schema(keys)

    def _checked(
        self, value: object, source: tuple[RootQuestion, ...]
    ) -> Extraction[dict[str, str]]:
        questions = {str(number): question for number, question in enumerate(source, 1)}
        answers = with_keys(value, list(questions))
        chosen = {question.word: _root(question, answers[n]) for n, question in questions.items()}
        return Extraction(found={word: root for word, root in chosen.items() if root is not None})


def _root(question: RootQuestion, answer: object) -> str | None:
    """The root that a reply names; None if it is not one of those offered."""
    if answer == NO_ROOT:
        return None
    # A language model chooses and does not propose (docs/decisions/mementos.md).
    root = question.choices().get(answer) if isinstance(answer, str) else None
    if root is None:
        shown = str(answer)[:SHOWN_CHARS]
        raise ValueError(f"{shown!r} was not offered for {question.word[:SHOWN_CHARS]!r}")
    return root


def root_chooser(
    chooser: LlmRootChooser, report: Callable[[str], None], close: Callable[[], Awaitable[None]]
) -> Callable[[Mapping[str, Sequence[str]]], dict[str, str]]:
    """Return a function that chooses a root for each word with a language model.

    Words that the model could not answer are reported and left out.

    Args:
        chooser: The extractor to ask.
        report: Receives one line for each failed call.
        close: Closes the model's connections; called once the words are answered.
    """

    async def ask(calls: list[tuple[RootQuestion, ...]]) -> dict[str, str]:
        try:
            results = await chooser.try_many(calls)
        except (InvalidInputError, UnavailableError) as err:
            report(str(err))
            return {}
        finally:
            await close()
        return _merged(calls, results, report)

    def choose(choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
        questions = [RootQuestion(word=w, roots=tuple(roots)) for w, roots in choices.items()]
        calls = [
            tuple(questions[start : start + _WORDS_PER_CALL])
            for start in range(0, len(questions), _WORDS_PER_CALL)
        ]
        return asyncio.run(ask(calls))

    return choose


def _merged(
    calls: Sequence[tuple[RootQuestion, ...]],
    results: Sequence[Extraction[dict[str, str]]],
    report: Callable[[str], None],
) -> dict[str, str]:
    """The answers of all calls that could be read; the others are reported."""
    found: dict[str, str] = {}
    for questions, result in zip(calls, results, strict=True):
        if result.found is None:
            words = ", ".join(question.word for question in questions)
            report(f"no roots for {words[:200]}: {result.reason}: {result.detail}")
        else:
            found |= result.found
    return found
