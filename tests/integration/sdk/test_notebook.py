"""In the kernel of a notebook: progress is shown, and a user's mistake is one sentence."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ipykernel", reason="ipykernel is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")

PREPARED = """
from hallujudge.sdk import Client
client = Client.embedded()
captions = {str(n): "A dog and a cat." for n in range(40)}
references = {key: ["dog"] for key in captions}
"""


@pytest.fixture(scope="module")
def outputs() -> list[list[Any]]:
    """The outputs of each cell of one notebook."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    cells = [
        PREPARED,
        'report = client.score("chair", responses=captions, references=references, progress=True)',
        'client.score("chair", responses="no-such-file.jsonl", references=references)',
        'report.items["no such id"]',
        "report.plot()",
        'from hallujudge.sdk.errors import InternalError\nraise InternalError("a defect")',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=60, allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def test_progress_is_shown_below_the_cell_and_ends_with_all_items(
    outputs: list[list[Any]],
) -> None:
    [shown] = outputs[1]
    assert shown["output_type"] == "display_data"
    assert shown["data"]["text/plain"].startswith("scored 40 of 40 (100 %)")
    assert '<progress value="40" max="40">' in shown["data"]["text/html"]


@pytest.mark.parametrize(("cell", "error"), [(2, "ArchiveError"), (3, "NotFoundError")])
def test_a_mistake_is_one_sentence(outputs: list[list[Any]], cell: int, error: str) -> None:
    [shown] = outputs[cell]
    assert shown["ename"] == error
    assert shown["traceback"] == [f"{error}: {shown['evalue']}"]


def test_a_plot_is_shown_once_as_a_picture(outputs: list[list[Any]]) -> None:
    [shown] = outputs[4]
    assert "image/png" in shown["data"]


def test_a_defect_keeps_its_frames(outputs: list[list[Any]]) -> None:
    [shown] = outputs[5]
    assert shown["traceback"][0].startswith("Traceback")
