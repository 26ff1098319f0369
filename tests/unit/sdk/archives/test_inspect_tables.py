"""Tables that Inspect AI's ``samples_df`` makes of a log; the file's name has the release."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from hallujudge.sdk import Client
from hallujudge.sdk.errors import ArchiveError

[TABLE] = (Path(__file__).resolve().parents[3] / "data" / "inspect_ai").glob("samples_df-*.csv")
REFUSED = (
    r"is a table of samples of Inspect AI, such as samples_df makes, without any response: give "
    r"the log itself, or add a column of responses: samples_df\(LOG, columns="
)


@pytest.mark.parametrize("kind", ["frame", "file", "records"])
@pytest.mark.parametrize("metric", ["pope", "chair"])
def test_a_table_without_responses_is_refused(tmp_path: Path, kind: str, metric: str) -> None:
    frame = pd.read_csv(TABLE).drop(columns="response")
    frame.to_csv(tmp_path / "a.csv", index=False)
    forms = {"frame": frame, "file": tmp_path / "a.csv", "records": frame.to_dict("records")}
    references = {"0": ["dog"], "1": ["cat"]} if metric == "chair" else None
    with Client.embedded() as client, pytest.raises(ArchiveError, match=REFUSED):
        client.score(metric, responses=forms[kind], references=references)


def test_a_column_of_responses_is_scored() -> None:
    with Client.embedded() as client:
        report = client.score("pope", responses=pd.read_csv(TABLE))
    assert report.coverage.scored == 2
    assert report.scores["accuracy"].value == 0.5
