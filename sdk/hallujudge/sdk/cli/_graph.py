"""``hallujudge graph``: look at synonym graphs and grow them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallujudge.judge_service.core.resources import read_graph
from hallujudge.synonym_graphs import GraphError, SynonymGraph

from .._spec import graph_source
from ..archives._csv import read_bytes
from ..archives._records import read_records
from ..errors import InvalidInputError, MissingExtraError, NotFoundError, OutputError
from ._app import ExitCode, app

if TYPE_CHECKING:
    from hallujudge.synonym_graphs.tools import GraphPatch, Similarity

__all__: list[str] = []

graph_app = typer.Typer(help="Synonym graphs: look at them, grow them.", no_args_is_help=True)
app.add_typer(graph_app, name="graph")

Graph = Annotated[str, typer.Argument(help="A shipped name, or a graph file.")]
OutFile = Annotated[Path, typer.Option("--out", help="File to write.")]
_KINDS = ("objects", "behaviors")
_MAX_PATCH_BYTES = 16 << 20


@graph_app.command()
def show(
    graph: Graph,
    words: Annotated[list[str] | None, typer.Argument(help="Words; none lists all roots.")] = None,
) -> ExitCode:
    """Show roots and forms of words."""
    opened = _open(graph)
    typer.echo(opened.label)
    if not words:
        for root in sorted(opened.roots):
            typer.echo(f"{root}: {_named(opened, root)}")
        return ExitCode.OK
    lost = 0
    for word in words:
        roots = opened.roots_of(word)
        lost += not roots
        typer.echo(f"{word}: {'unknown' if not roots else 'leads to ' + ', '.join(roots)}")
        for root in roots:
            typer.echo(f"  {root}: {_named(opened, root)}")
    return ExitCode.FAILED if lost else ExitCode.OK


def _named(graph: SynonymGraph, root: str) -> str:
    return ", ".join(form for form in graph.forms_of(root) if form != root) or "(no other form)"


@graph_app.command()
def validate(graph: Graph) -> ExitCode:
    """Check a graph: circles, contradictions, blanks."""
    from hallujudge.synonym_graphs import table_notes

    opened = _open(graph)
    typer.echo(f"{opened.label}: sound; {len(opened.roots)} roots, {len(opened.edges)} forms")
    for note in table_notes(opened):
        typer.echo(f"note: {note}")
    return ExitCode.OK


@graph_app.command()
def stats(graph: Graph) -> ExitCode:
    """Figures of a graph."""
    from hallujudge.synonym_graphs.tools import statistics_of

    opened = _open(graph)
    found = statistics_of(opened)
    typer.echo(f"{opened.label}\nsha256 {opened.digest}")
    for name in ("roots", "forms", "edges", "ambiguous", "phrases", "alone"):
        typer.echo(f"{name:<10} {getattr(found, name):>7,}")
    typer.echo("largest    " + ", ".join(f"{root} {count}" for root, count in found.largest))
    return ExitCode.OK


@graph_app.command()
def diff(
    first: Graph, second: Annotated[str, typer.Argument(help="The graph to compare with.")]
) -> ExitCode:
    """What a second graph says that the first does not, and the other way about."""
    from hallujudge.synonym_graphs.tools import difference

    old, new = _open(first), _open(second)
    found = difference(old, new)
    typer.echo(f"--- {old.label}\n+++ {new.label}")
    for sign, roots in (("-", found.lost_roots), ("+", found.new_roots)):
        for root in roots:
            typer.echo(f"{sign} root {root}")
    for sign, links in (("-", found.removed), ("+", found.added)):
        for form, root in links:
            if form != root:
                typer.echo(f"{sign} {form} -> {root}")
    return ExitCode.OK


@graph_app.command()
def merge(
    graph: Graph,
    with_: Annotated[
        list[str], typer.Argument(metavar="OTHER...", help="Patch files, or other graphs.")
    ],
    out: OutFile,
    name: Annotated[str, typer.Option("--name", help="The new graph's name.")] = "",
    version: Annotated[str, typer.Option("--version", help="Its version.")] = "",
) -> ExitCode:
    """Apply patches to a graph, or join graphs; the result is a graph file of its own."""
    from dataclasses import replace

    from hallujudge.synonym_graphs.tools import apply_patch, merge_graphs

    before = grown = _open(graph)
    for other in with_:
        patch = _patch_of(other)
        try:
            if patch is None:
                grown = merge_graphs(grown, _open(other), version=version or grown.version)
            else:
                if patch.graph not in ("", before.label):
                    typer.echo(
                        f"note: {other} was made for {patch.graph}, not for {before.label}",
                        err=True,
                    )
                grown = apply_patch(grown, patch, version=version)
        except GraphError as err:
            raise InvalidInputError(str(err), reason="GRAPH_INVALID") from err
    if name:
        grown = replace(grown, name=name)
    _write(out, grown.to_json() + "\n")
    more = len(grown.edges) - len(before.edges)
    typer.echo(f"{before.label} -> {grown.label}: {more:+d} forms, written to {out}")
    return ExitCode.OK


@graph_app.command()
def suggest(
    graph: Graph,
    items: Annotated[Path, typer.Option("--items", help="items.jsonl of a Mementos run.")],
    kind: Annotated[str, typer.Option("--kind", help="objects or behaviors.")],
    out: OutFile,
    domain: Annotated[str, typer.Option("--domain", help="Only items of this domain.")] = "",
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", help="WORD=ROOT, or WORD for its best root; repeatable."),
    ] = None,
    reject: Annotated[
        list[str] | None, typer.Option("--reject", help="WORD that is not to be added; repeatable.")
    ] = None,
    accept_above: Annotated[
        float, typer.Option("--accept-above", help="Accept best roots of at least this score.")
    ] = 2.0,
    embeddings: Annotated[
        str, typer.Option("--embeddings", help="Encoder for meaning: minilm, mpnet or a folder.")
    ] = "",
    least: Annotated[int, typer.Option("--least", help="Items that a word must be in.")] = 1,
    limit: Annotated[int, typer.Option("--limit", help="Roots to rank for each word.")] = 5,
) -> ExitCode:
    """Rank roots for the keywords of a run that a graph does not know, into a patch file."""
    from hallujudge.synonym_graphs.tools import GraphPatch, PatchEntry, suggest_roots

    if kind not in _KINDS:
        raise InvalidInputError(f"--kind {kind!r}: choose from {', '.join(_KINDS)}")
    opened = _open(graph)
    counts = {
        word: count
        for word, count in _unknown_words(items, kind, domain).items()
        if count >= least and not opened.roots_of(word)
    }
    words = sorted(counts, key=lambda word: (-counts[word], word))
    ranked = suggest_roots(
        opened, words, similarity=_similarity(embeddings), kind=kind, limit=limit
    )
    patch = GraphPatch(
        graph=opened.label,
        entries=tuple(
            PatchEntry(form=word, count=counts[word], candidates=ranked[word]) for word in words
        ),
    )
    patch = _decided(patch, accept or (), reject or (), accept_above)
    _write(out, patch.to_text())
    _show_patch(patch, out)
    return ExitCode.OK


@graph_app.command()
def draw(
    graph: Graph,
    out: Annotated[Path, typer.Option("--out", help="FILE.svg or FILE.png.")],
    word: Annotated[
        str, typer.Option("--word", help="Draw this word's neighbourhood; without it, everything.")
    ] = "",
    columns: Annotated[int, typer.Option("--columns", min=1, max=20, help="Columns of cards.")] = 6,
) -> ExitCode:
    """Draw a word's neighbourhood or a whole graph."""
    from hallujudge.synonym_graphs.tools import draw_domain, draw_neighbourhood

    opened = _open(graph)
    try:
        svg = draw_neighbourhood(opened, word) if word else draw_domain(opened, columns=columns)
    except KeyError as err:
        raise NotFoundError(f"{opened.label} does not know {word!r}") from err
    suffix = out.suffix.lower()
    if suffix == ".svg":
        _write(out, svg)
    elif suffix == ".png":
        _write(out, _png(svg))
    else:
        raise InvalidInputError(f"--out {out}: name it .svg or .png")
    typer.echo(f"drawn to {out}")
    return ExitCode.OK


# Pieces -------------------------------------------------------------------------------------------


def _open(name: str) -> SynonymGraph:
    return read_graph(graph_source(name))


def _patch_of(name: str) -> GraphPatch | None:
    """A patch file's content; None where the file is no patch but a graph."""
    from hallujudge.synonym_graphs.tools import PATCH_FORMAT, parse_patch

    path = Path(name)
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    text = read_bytes(path, _MAX_PATCH_BYTES).decode("utf-8-sig", "replace")
    if PATCH_FORMAT.partition("/")[0] not in text[:1000]:
        return None
    try:
        return parse_patch(text, name=name)
    except GraphError as err:
        raise InvalidInputError(str(err)) from err


def _unknown_words(items: Path, kind: str, domain: str) -> Counter[str]:
    """Unknown keyword -> in how many items it is."""
    counts: Counter[str] = Counter()
    for record in read_records(items):
        evidence = record.values.get("evidence")
        if not isinstance(evidence, Mapping):
            raise InvalidInputError(f"{record.place}: no evidence; give items.jsonl of a run")
        if domain and evidence.get("domain") != domain:
            continue
        found = evidence.get(kind)
        unknown = found.get("unknown") if isinstance(found, Mapping) else None
        words = unknown if isinstance(unknown, list) else []
        counts.update({word for word in words if isinstance(word, str) and word.strip()})
    return counts


def _decided(
    patch: GraphPatch, accept: Iterable[str], reject: Iterable[str], above: float
) -> GraphPatch:
    best = {e.form: e.candidates[0] for e in patch.entries if e.candidates}
    accepted = {form: found.root for form, found in best.items() if found.score >= above}
    for value in accept:
        form, equals, root = value.partition("=")
        if not equals and form not in best:
            raise InvalidInputError(f"--accept {form!r}: no root is ranked; say {form}=ROOT")
        accepted[form] = root.strip() if equals else best[form].root
    try:
        return patch.decided(accepted, reject)
    except KeyError as err:
        raise InvalidInputError(
            f"{err.args[0]!r} is not among the unknown keywords of these items"
        ) from err


def _show_patch(patch: GraphPatch, out: Path) -> None:
    for entry in patch.entries[:40]:
        best = ", ".join(f"{c.root} {c.score:.2f} ({c.source})" for c in entry.candidates[:3])
        mark = {"accept": "+", "reject": "-"}.get(entry.decision, "?")
        root = f" = {entry.root}" if entry.root else ""
        typer.echo(f"{mark} {entry.count:>5}  {entry.form}{root}  <- {best or 'nothing close'}")
    if len(patch.entries) > 40:
        typer.echo(f"  … and {len(patch.entries) - 40} more")
    decisions = Counter(entry.decision for entry in patch.entries)
    summary = ", ".join(f"{count} {name}" for name, count in sorted(decisions.items()))
    typer.echo(f"{len(patch.entries)} unknown keywords ({summary or 'none'}), written to {out}")


def _similarity(model: str) -> Similarity | None:
    if not model:
        return None
    from hallujudge.judge_service.matchers import MatcherSettings
    from hallujudge.judge_service.matchers._open import open_encoder
    from hallujudge.judge_service.matchers.models import find_model

    encoder = open_encoder(find_model(model), MatcherSettings(model=model))

    def compare(words: Iterable[str], forms: Iterable[str]) -> list[list[float]]:
        import numpy as np

        left, right = (np.asarray(encoder.encode(list(texts))) for texts in (words, forms))
        left = left / np.linalg.norm(left, axis=1, keepdims=True)
        right = right / np.linalg.norm(right, axis=1, keepdims=True)
        scores: list[list[float]] = (left @ right.T).tolist()
        return scores

    return compare


def _png(svg: str) -> bytes:
    try:
        from resvg_py import svg_to_bytes
    except ImportError as err:
        raise MissingExtraError.of("drawing PNG (SVG needs nothing)", "draw") from err
    return bytes(svg_to_bytes(svg_string=svg, zoom=1.5))


def _write(path: Path, content: str | bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8", newline="\n")
    except OSError as err:
        raise OutputError(f"can't write {path}: {err.strerror or err}") from err
