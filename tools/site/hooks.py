"""MkDocs hooks that generate reference pages from the code.

The pages exist only in the built site. Their sources are the command line's own tree of commands,
the settings that ``hallujudge config show`` lists, the comments of the ``.proto`` files, the
JSON Schemas, and the declarations of metrics.
"""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import chain
from pathlib import Path

from cli_page import cli_page
from metrics_tables import with_metrics
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from schema_tables import with_tables
from settings_page import settings_page
from wire_page import wire_page

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "sdk" / "hallujudge" / "sdk" / "schemas"
PROTOS = ROOT / "protos" / "hallujudge" / "judge" / "v1"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages that a pattern of the navigation means in its place, without those it names."""
    named = set(re.findall(r"[\w/-]+\.md", str(config.nav)))
    for section in config.nav:
        for name, pages in section.items() if isinstance(section, dict) else ():
            found = (_pages(page, named) if "*" in str(page) else [page] for page in pages)
            section[name] = pages if isinstance(pages, str) else [*chain.from_iterable(found)]
    return config


def _pages(pattern: str, named: Container[str]) -> list[str]:
    """Return the pages of a pattern that the navigation does not name, by their titles."""
    docs = ROOT / "docs"
    found = sorted(docs.glob(pattern), key=lambda path: path.read_text().casefold())
    paths = (path.relative_to(docs).as_posix() for path in found)
    return [path for path in paths if path not in named]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the site's files."""
    pages = {
        "reference/cli.md": cli_page(),
        "reference/settings.md": settings_page(),
        "reference/wire.md": wire_page(sorted(PROTOS.glob("*.proto"))),
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill a page's marks with tables made from JSON Schemas and metrics."""
    del page, config, files
    return with_metrics(with_tables(markdown, SCHEMAS))
