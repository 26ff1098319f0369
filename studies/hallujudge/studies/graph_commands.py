"""``hallujudge graph``: show, check and extend synonym graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from hallujudge.judge_service.engine.resources import read_graph
from hallujudge.judge_service.settings.loading import load_settings
from hallujudge.sdk.archives.local_files import read_bytes
from hallujudge.sdk.archives.records import read_records
from hallujudge.sdk.cli.app import (
    ExitCode,
    command_group,
    examples,
    input_option,
    metric_option,
    output_option,
)
from hallujudge.sdk.cli.options import LlmModel, LlmUrl, llm_options
from hallujudge.sdk.cli.output import write_file
from hallujudge.sdk.cli.parameters import argument
from hallujudge.sdk.errors import InvalidInputError, MissingExtraError, NotFoundError
from hallujudge.sdk.runs.score_run import graph_source
from hallujudge.synonym_graphs import GraphError, SynonymGraph

if TYPE_CHECKING:
    from .graph_tools.editing import GraphPatch
    from .graph_tools.suggestions import RootChooser, Similarity, WordNet

graph_app = command_group(
    "graph", "Show, check and extend synonym graphs.", "hallujudge graph show coco puppy"
)

Graph = Annotated[str, argument(help="A shipped name, or a graph file.")]
OutFile = Annotated[Path, output_option("--out", "-o", help="File to write.")]
_KINDS = ("objects", "behaviors")
# The limit of graph files.
_MAX_PATCH_BYTES = 16 << 20


@graph_app.command(epilog=examples("hallujudge graph show coco puppy couch"))
def show(
    graph: Graph,
    words: Annotated[list[str] | None, argument(help="Words; all roots without any.")] = None,
) -> ExitCode:
    """Show roots and forms of words."""
    opened = _open(graph)
    click.echo(opened.label)
    forms: dict[str, list[str]] = {root: [] for root in opened.roots}
    for form, roots in opened.edges:
        for root in roots:
            if form != root:
                forms.setdefault(root, []).append(form)
    if not words:
        for root in sorted(opened.roots):
            click.echo(f"{root}: {_named(forms[root])}")
        return ExitCode.OK
    lost = 0
    for word in words:
        roots = opened.roots_of(word)
        lost += not roots
        click.echo(f"{word}: {'unknown' if not roots else 'leads to ' + ', '.join(roots)}")
        for root in roots:
            click.echo(f"  {root}: {_named(forms[root])}")
    return ExitCode.FAILED if lost else ExitCode.OK


def _named(forms: list[str]) -> str:
    return ", ".join(sorted(forms)) or "(no other form)"


@graph_app.command(epilog=examples("hallujudge graph validate my_graph.json"))
def validate(graph: Graph) -> ExitCode:
    """Check a graph for cycles, contradictions and blanks."""
    from hallujudge.synonym_graphs import GraphInvalidError, table_notes

    try:
        opened = _open(graph)
    except InvalidInputError as err:
        if isinstance(err.__cause__, GraphInvalidError):
            for problem in err.__cause__.problems:
                click.echo(problem)
        raise
    click.echo(f"{opened.label}: sound; {len(opened.roots)} roots, {len(opened.edges)} forms")
    for note in table_notes(opened):
        click.echo(f"note: {note}")
    return ExitCode.OK


@graph_app.command(epilog=examples("hallujudge graph stats coco"))
def stats(graph: Graph) -> ExitCode:
    """Print figures of a graph."""
    from .graph_tools.editing import statistics_of

    opened = _open(graph)
    found = statistics_of(opened)
    click.echo(f"{opened.label}\nsha256 {opened.digest}")
    for name in ("roots", "forms", "edges", "ambiguous", "phrases", "alone"):
        click.echo(f"{name:<10} {getattr(found, name):>7,}")
    click.echo("largest    " + ", ".join(f"{root} {count}" for root, count in found.largest))
    return ExitCode.OK


@graph_app.command(epilog=examples("hallujudge graph diff coco my_graph.json"))
def diff(
    first: Graph, second: Annotated[str, argument(help="The graph to compare with.")]
) -> ExitCode:
    """Print the differences between two graphs."""
    from .graph_tools.editing import difference

    old, new = _open(first), _open(second)
    found = difference(old, new)
    click.echo(f"--- {old.label}\n+++ {new.label}")
    for sign, roots in (("-", found.lost_roots), ("+", found.new_roots)):
        for root in roots:
            click.echo(f"{sign} root {root}")
    for sign, links in (("-", found.removed), ("+", found.added)):
        for form, root in links:
            if form != root:
                click.echo(f"{sign} {form} -> {root}")
    return ExitCode.OK


@graph_app.command(
    epilog=examples("hallujudge graph merge coco patch.json -o my_graph.json --name mine")
)
def merge(
    graph: Graph,
    with_: Annotated[list[str], argument(metavar="OTHER", help="Patch files, or other graphs.")],
    out: OutFile,
    name: Annotated[str, output_option(help="Name of the new graph.")] = "",
    version: Annotated[str, output_option(help="Version of the new graph.")] = "",
) -> ExitCode:
    """Apply patches to a graph, or join graphs, and write the result."""
    from .graph_tools.editing import apply_patch, merge_graphs

    before = grown = _open(graph)
    for other in with_:
        patch = _patch_of(other)
        try:
            if patch is None:
                grown = merge_graphs(grown, _open(other), version=version or grown.version)
            else:
                if patch.graph not in ("", before.label):
                    click.echo(
                        f"note: {other} was made for {patch.graph}, not for {before.label}",
                        err=True,
                    )
                if not any(entry.decision == "accept" for entry in patch.entries):
                    click.echo(
                        f"note: nothing in {other} is accepted, so it changes nothing; set "
                        '"decision" to "accept" and name a "root"',
                        err=True,
                    )
                grown = apply_patch(grown, patch, version=version)
        except GraphError as err:
            raise InvalidInputError(str(err), reason="GRAPH_INVALID") from err
    if name:
        grown = replace(grown, name=name)
    write_file(out, grown.to_json() + "\n")
    more = len(grown.edges) - len(before.edges)
    click.echo(f"{before.label} -> {grown.label}: {more:+d} forms, written to {out}")
    return ExitCode.OK


@graph_app.command(
    epilog=examples(
        "hallujudge graph suggest mementos-comics-objects --items results/items.jsonl \\",
        "    --kind objects -o patch.json",
    )
)
def suggest(
    graph: Graph,
    items: Annotated[Path, input_option(help="items.jsonl of a Mementos run.")],
    kind: Annotated[str, input_option(help="objects or behaviors.")],
    out: OutFile,
    domain: Annotated[str, input_option(help="Only items of this domain.")] = "",
    accept: Annotated[
        list[str] | None, metric_option(help="WORD=ROOT, or WORD for its best root; repeatable.")
    ] = None,
    reject: Annotated[
        list[str] | None, metric_option(help="WORD that is not added; repeatable.")
    ] = None,
    accept_above: Annotated[
        float, metric_option(help="Least score of best roots to accept.")
        # Scores are at most 1: by default nothing is accepted.
    ] = 2.0,
    wordnet: Annotated[
        str, metric_option(help="Folder of WordNet's files, or none to skip WordNet.")
    ] = "",
    embeddings: Annotated[
        str, metric_option(help="Encoder of meaning: minilm, mpnet or a folder.")
    ] = "",
    llm_url: LlmUrl = None,
    llm_model: LlmModel = None,
    least: Annotated[int, input_option(min=1, help="Fewest items that a word is in.")] = 1,
    limit: Annotated[int, metric_option(min=1, help="Roots to rank for each word.")] = 5,
) -> ExitCode:
    """Rank roots for a run's unknown keywords and write them to a patch file.

    Decisions that the file already holds are kept.
    """
    from .graph_commands import Sources, decided, kept, show_patch, suggested, unknown_words

    if kind not in _KINDS:
        raise InvalidInputError(f"--kind {kind!r}: choose from {', '.join(_KINDS)}")
    # Before roots are ranked, which takes long: the file may be refused.
    earlier = _earlier_patch(out)
    opened = _open(graph)
    counts = {
        word: count
        for word, count in unknown_words(items, kind, domain).items()
        if count >= least and not opened.roots_of(word)
    }
    sources = Sources(embeddings=embeddings, wordnet=wordnet, llm=llm_options(llm_url, llm_model))
    patch = suggested(opened, counts, kind=kind, limit=limit, sources=sources)
    patch = decided(kept(patch, earlier), accept or (), reject or (), accept_above)
    write_file(out, patch.to_text())
    show_patch(patch, out)
    return ExitCode.OK


@graph_app.command(epilog=examples("hallujudge graph draw coco --word dog -o dog.svg"))
def draw(
    graph: Graph,
    out: Annotated[Path, output_option("--out", "-o", help="FILE.svg or FILE.png.")],
    word: Annotated[
        str, input_option(help="Word whose neighbourhood is drawn; all without it.")
    ] = "",
    columns: Annotated[int, output_option(min=1, max=20, help="Columns of cards.")] = 6,
) -> ExitCode:
    """Draw a word's neighbourhood or a whole graph."""
    from .graph_tools.drawing import draw_domain, draw_neighbourhood

    opened = _open(graph)
    try:
        svg = draw_neighbourhood(opened, word) if word else draw_domain(opened, columns=columns)
    except KeyError as err:
        raise NotFoundError(
            f"{opened.label} does not know {word!r}; see its words with hallujudge graph show"
        ) from err
    suffix = out.suffix.lower()
    if suffix == ".svg":
        write_file(out, svg)
    elif suffix == ".png":
        write_file(out, _png(svg))
    else:
        raise InvalidInputError(f"--out {out}: name it .svg or .png")
    click.echo(f"drawn to {out}")
    return ExitCode.OK


def _open(name: str) -> SynonymGraph:
    return read_graph(graph_source(name))


def _patch_of(name: str) -> GraphPatch | None:
    """Return a patch file's content; None if the file is a graph."""
    from .graph_tools.editing import PATCH_FORMAT, parse_patch

    path = Path(name)
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    # People edit patches, and some editors on Windows begin a file with a byte order mark.
    text = read_bytes(path, _MAX_PATCH_BYTES).decode("utf-8-sig", "replace")
    # Graphs are JSON files too. A patch of any version begins with its format; parse_patch refuses
    # a newer one.
    if PATCH_FORMAT.partition("/")[0] not in text[:1000]:
        return None
    try:
        return parse_patch(text, name=name)
    except GraphError as err:
        raise InvalidInputError(str(err)) from err


def _earlier_patch(out: Path) -> GraphPatch | None:
    """Return the patch that an earlier call wrote, with its decisions; None if there is none."""
    if not out.exists():
        return None
    patch = _patch_of(str(out))
    if patch is None:
        raise InvalidInputError(f"--out {out} exists and is not a patch file; name another file")
    return patch


def _png(svg: str) -> bytes:
    with MissingExtraError.unless_installed("drawing PNG (SVG needs no extra)", "draw"):
        from resvg_py import svg_to_bytes
    return bytes(svg_to_bytes(svg_string=svg, zoom=1.5))


NO_WORDNET = "none"
"""Value of ``--wordnet`` that skips WordNet even if it is installed."""

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
    from .graph_tools.editing import GraphPatch, PatchEntry
    from .graph_tools.suggestions import suggest_roots

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
    from .graph_tools.suggestions import find_wordnet, open_wordnet

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
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory
    from hallujudge.judge_service.extractors.llm_extractor_base import LlmRootChooser, root_chooser

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
    from hallujudge.judge_service.matchers import MatcherSettings
    from hallujudge.judge_service.matchers.matcher_models import open_encoder
    from hallujudge.judge_service.matchers.model_folders import find_model

    encoder = open_encoder(find_model(model), MatcherSettings(model=model))

    def compare(words: Iterable[str], forms: Iterable[str]) -> list[list[float]]:
        import numpy as np

        left, right = (np.asarray(encoder.encode(list(texts))) for texts in (words, forms))
        # Encoders need not return unit vectors, whose products are cosines.
        left = left / np.linalg.norm(left, axis=1, keepdims=True)
        right = right / np.linalg.norm(right, axis=1, keepdims=True)
        scores: list[list[float]] = (left @ right.T).tolist()
        return scores

    return compare
