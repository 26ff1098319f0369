"""``hallujudge graph``: show, check and extend synonym graphs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

# Their modules are imported when a command uses them: help pages wait for none of them.
from hallujudge import studies as room
from hallujudge.judge_service.engine.resources import read_graph
from hallujudge.metrics.errors import choose_from
from hallujudge.sdk.archives.local_files import read_bytes
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

if TYPE_CHECKING:
    from hallujudge.synonym_graphs import SynonymGraph, tools

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
    # Scripts that check a list of words see by the exit code that one is unknown.
    return ExitCode.FAILED if lost else ExitCode.OK


def _named(forms: list[str]) -> str:
    return ", ".join(sorted(forms)) or "(no other form)"


@graph_app.command(epilog=examples("hallujudge graph validate my_graph.json"))
def validate(graph: Graph) -> ExitCode:
    """Check a graph for cycles, contradictions and blanks."""
    try:
        opened = _open(graph)
    except InvalidInputError as err:
        if isinstance(err.__cause__, room.synonym_graphs.GraphInvalidError):
            for problem in err.__cause__.problems:
                click.echo(problem)
        raise
    click.echo(f"{opened.label}: sound; {len(opened.roots)} roots, {len(opened.edges)} forms")
    for note in room.synonym_graphs.table_notes(opened):
        click.echo(f"note: {note}")
    return ExitCode.OK


@graph_app.command(epilog=examples("hallujudge graph stats coco"))
def stats(graph: Graph) -> ExitCode:
    """Print figures of a graph."""
    opened = _open(graph)
    found = room.tools.statistics_of(opened)
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
    old, new = _open(first), _open(second)
    found = room.tools.difference(old, new)
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
    before = grown = _open(graph)
    for other in with_:
        patch = _patch_of(other)
        try:
            if patch is None:
                grown = room.tools.merge_graphs(
                    grown, _open(other), version=version or grown.version
                )
            else:
                # All patches of a call are made for the given graph, not for what has grown of it.
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
                grown = room.tools.apply_patch(grown, patch, version=version)
        except room.synonym_graphs.GraphError as err:
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
    if kind not in _KINDS:
        raise InvalidInputError(f"--kind {kind!r}: {choose_from(kind, _KINDS)}")
    roots = room.root_suggestions
    # Before roots are ranked, which takes long: the file may be refused.
    earlier = _earlier_patch(out)
    opened = _open(graph)
    counts = {
        word: count
        for word, count in roots.unknown_words(items, kind, domain).items()
        # The run may be older than this graph, which knows some of its words by now.
        if count >= least and not opened.roots_of(word)
    }
    sources = roots.Sources(
        embeddings=embeddings, wordnet=wordnet, llm=llm_options(llm_url, llm_model)
    )
    patch = roots.suggested(opened, counts, kind=kind, limit=limit, sources=sources)
    patch = roots.decided(roots.kept(patch, earlier), accept or (), reject or (), accept_above)
    write_file(out, patch.to_text())
    roots.show_patch(patch, out)
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
    opened = _open(graph)
    try:
        svg = (
            room.tools.draw_neighbourhood(opened, word)
            if word
            else room.tools.draw_domain(opened, columns=columns)
        )
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


def _patch_of(name: str) -> tools.GraphPatch | None:
    """Return a patch file's content; None if the file is a graph."""
    path = Path(name)
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    # People edit patches, and some editors on Windows begin a file with a byte order mark.
    text = read_bytes(path, _MAX_PATCH_BYTES).decode("utf-8-sig", "replace")
    # Graphs are JSON files too. A patch of any version begins with its format; parse_patch refuses
    # a newer one.
    if room.tools.PATCH_FORMAT.partition("/")[0] not in text[:1000]:
        return None
    try:
        return room.tools.parse_patch(text, name=name)
    except room.synonym_graphs.GraphError as err:
        raise InvalidInputError(str(err)) from err


def _earlier_patch(out: Path) -> tools.GraphPatch | None:
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
