"""What a failed call leaves in the place of a response is unscored, and does not stop the run."""

from __future__ import annotations

import pytest

from hallujudge.sdk import Client

FAILED = [{"error": {"code": 500, "message": "x"}}, float("nan"), "nan"]


@pytest.mark.parametrize("value", FAILED, ids=["error object", "NaN", "text"])
def test_a_failed_call_is_unscored(value: object) -> None:
    archives = {
        "chair": ([{"image_id": 1, "caption": value}], {"1": ["dog"]}),
        "pope": ([{"question_id": 1, "prediction": value, "answer": "Yes", "question": "q"}], None),
        "mementos": (
            [{"image": "a", "description": value}],
            [{"image": "a", "description": "Run."}],
        ),
    }
    with Client.embedded() as client:
        for metric, (responses, references) in archives.items():
            report = client.score(metric, responses=responses, references=references)
            assert report.coverage.reasons == {"RESPONSE_FAILED": 1}, metric
