"""MkDocs hooks that generate reference pages from the code.

The pages exist only in the built site. Their sources are the command line's own tree of commands,
the settings that ``hallujudge config show`` lists, the comments of the ``.proto`` files, the
JSON Schemas, and the declarations of metrics.
"""

from __future__ import annotations

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
