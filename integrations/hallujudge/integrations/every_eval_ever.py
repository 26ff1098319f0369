"""Reports in the format of Every Eval Ever, the shared collection of evaluations (schema 0.3.0).

A run becomes two files where the collection keeps them, below ``data/METRIC/DEVELOPER/MODEL/``: one
with all scores, their intervals and how they were made, and one with a line for each scored item
and score. A score that is undefined and an item without a score have no number, so that neither has
a line; how many there are, why, and what they could change is in the details of each score.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hallujudge.judge_service import __version__
from hallujudge.metrics import Report
from hallujudge.metrics.framework.columns_and_scores import ScoreDefinition
from hallujudge.metrics.framework.report import Score
from hallujudge.sdk.errors import InvalidInputError, OutputError
from hallujudge.sdk.report.report_text import definitions_of

SCHEMA = "0.3.0"
"""Version of the schema."""

_LIBRARY = "hallujudge"
# The collection asks for both, and a run knows neither.
_DEPLOYMENT = {"deployment_type": "unknown", "model_availability": "unknown"}
_MODEL = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def checked_model(model: str) -> str:
    """Return the id of a model if it names a folder of the collection.

    Raises:
        InvalidInputError: It does not.
    """
    # The names become folders: no part may lead out of the collection, or be its root.
    if not _MODEL.fullmatch(model) or {".", "..", "data"} & set(model.split("/")):
        raise InvalidInputError(
            f"every-eval-ever needs the evaluated model as ORG/NAME, such as "
            f"llava-hf/llava-1.5-7b-hf, not {model!r:.80}; give it with log_to(model=…)"
        )
    return model


def write_every_eval_ever(
    report: Report,
    lines: Iterable[Mapping[str, Any]],
    folder: Path,
    *,
    model: str,
    dataset: str = "",
) -> Path:
    """Write a report and its items, and return the file of the report.

    The same report of the same model gets the same names again.

    Args:
        report: The report.
        lines: Its items, as ``items.jsonl`` has them.
        folder: The folder that holds ``data``.
        model: The evaluated model, such as ``llava-hf/llava-1.5-7b-hf``.
        dataset: The dataset on the Hub, such as ``lmms-lab/POPE``; empty if it is not there.

    Raises:
        InvalidInputError: The model is not such an id, or no score has a value.
        OutputError: A file can't be written.
    """
    checked_model(model)
    if all(score.value is None for score in report.scores.values()):
        raise InvalidInputError(
            f"no score of this {report.metric} report has a value, and every-eval-ever keeps "
            "numbers only; print(report) shows why"
        )
    name = _file_id(report, model)
    place = Path("data", report.metric, *model.split("/"))
    samples = place / f"{name}_samples.jsonl"
    log = _Log(report, model, dataset)
    # In memory, since the report's file has their hash and is written after it.
    rows = [json.dumps(row, ensure_ascii=False) for row in log.rows(lines)]
    content = ("\n".join(rows) + "\n").encode() if rows else b""
    values = log.values(samples if rows else None, content, len(rows))
    target = folder / place / f"{name}.json"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if rows:
            (folder / samples).write_bytes(content)
        # The collection's checks read JSON, which has no NaN and no infinity.
        text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        target.write_text(text, encoding="utf-8")
    except OSError as err:
        raise OutputError.of(target, err, "give another folder") from err
    return target


def _file_id(report: Report, model: str) -> str:
    """Return the id of the files; the collection takes only UUIDs of version 4."""
    content = "\n".join((model, report.signature, report.to_text())).encode()
    # A hash in place of random bits: the same report always has the same id.
    return str(uuid.UUID(bytes=hashlib.sha256(content).digest()[:16], version=4))


class _Log:
    """One evaluation in the form of the schema."""

    def __init__(self, report: Report, model: str, dataset: str) -> None:
        self._report = report
        self._model = model
        self._dataset = dataset
        # One time for both files, which name each other by an id that holds it.
        self._now = str(int(time.time()))
        self._id = f"{report.metric}/{model.replace('/', '_')}/{self._now}"
        self._known = definitions_of(report.metric)

    def values(self, samples: Path | None, content: bytes, rows: int) -> dict[str, Any]:
        """Return the content of the report's file.

        Args:
            samples: The file of the items; None without items.
            content: Its content.
            rows: The number of its lines.
        """
        report = self._report
        scored = [score for score in report.scores.values() if score.value is not None]
        values: dict[str, Any] = {
            "schema_version": SCHEMA,
            "evaluation_id": self._id,
            "retrieved_timestamp": self._now,
            "source_metadata": {
                "source_name": _LIBRARY,
                "source_type": "evaluation_run",
                "source_organization_name": "unknown",
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": _LIBRARY, "version": __version__},
            "model_info": _model(self._model, developer=self._model.partition("/")[0]),
            "evaluation_results": [self._result(score) for score in scored],
        }
        if samples is not None:
            values["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": samples.as_posix(),
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(content).hexdigest(),
                "total_rows": rows,
                "additional_details": self._coverage(),
            }
        return values

    def _result(self, score: Score) -> dict[str, Any]:
        assert score.value is not None, "a score without a value is left out"
        return {
            "evaluation_result_id": self._result_id(score.name),
            "evaluation_name": self._report.metric,
            "source_data": self._source(),
            "metric_config": self._metric(score),
            "score_details": {
                "score": score.value,
                "details": self._coverage() | self._bounds(score.name),
                "uncertainty": self._uncertainty(score),
            },
        }

    def _result_id(self, name: str) -> str:
        return f"{self._id}#{name}"

    def _source(self) -> dict[str, Any]:
        report = self._report
        hashes = {"item_set": report.item_set, "references": report.references}
        source: dict[str, Any] = {"dataset_name": report.metric, "source_type": "other"}
        if self._dataset:
            source |= {"source_type": "hf_dataset", "hf_repo": self._dataset}
            source["samples_number"] = report.coverage.items
        return source | {"additional_details": {key: text for key, text in hashes.items() if text}}

    def _metric(self, score: Score) -> dict[str, Any]:
        report, known = self._report, self._known.get(score.name)
        config: dict[str, Any] = {
            "metric_id": f"{_LIBRARY}.{report.metric}.{score.name}",
            "metric_name": score.name,
            "metric_parameters": {"variant": report.variant},
            # The schema asks for one of two ends: a score with neither is named in the details.
            "lower_is_better": known is not None and known.direction == "lower",
            "additional_details": {"signature": report.signature},
        }
        if known is not None:
            config |= _declared(known)
            config["additional_details"]["direction"] = known.direction
        judges = [share for share in report.judging if share.calls]
        if judges:
            config["llm_scoring"] = {
                "judges": [{"model_info": _model(share.judge)} for share in judges],
                "input_prompt": "named by its hash in the signature",
            }
        return config

    def _coverage(self) -> dict[str, str]:
        """Return how many items are scored, and why the others are not, as texts."""
        coverage = self._report.coverage
        return {
            "items": str(coverage.items),
            "scored": str(coverage.scored),
            "unscored": str(coverage.unscored),
            "unscored_reasons": json.dumps(dict(coverage.reasons)),
        }

    def _bounds(self, name: str) -> dict[str, str]:
        bound = self._report.coverage.bounds.get(name)
        return {} if bound is None else {"best": repr(bound.best), "worst": repr(bound.worst)}

    def _uncertainty(self, score: Score) -> dict[str, Any]:
        found: dict[str, Any] = {"num_samples": score.n}
        if score.ci_low is not None and score.ci_high is not None:
            interval: dict[str, Any] = {"lower": score.ci_low, "upper": score.ci_high}
            # A report says level and method of its intervals in its signature alone.
            stated = re.search(r"\|ci:([a-z-]*)-(0?\.\d+)\b", self._report.signature)
            if stated:
                interval |= {"confidence_level": float(stated[2]), "method": stated[1]}
            found["confidence_interval"] = interval
        return found

    def rows(self, lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield a row for each score of each scored item that has a better end."""
        for line in lines:
            for name, value in (line.get("scores") or {}).items():
                known = self._known.get(name)
                # Without its definition, it is not known which value of a score is the best.
                if value is None or known is None or name not in self._report.scores:
                    continue
                if known.direction != "neither":
                    yield self._row(line, known, value)

    def _row(self, line: Mapping[str, Any], known: ScoreDefinition, value: float) -> dict[str, Any]:
        answers = (line.get("evidence") or {}).get("answers") or ()
        best = known.low if known.direction == "lower" else known.high
        hashes = {name: line[name] for name in ("question_hash", "reference_hash") if name in line}
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self._id,
            "model_id": self._model,
            "evaluation_name": self._report.metric,
            "evaluation_result_id": self._result_id(known.name),
            "sample_id": str(line["id"]),
            "sample_hash": "-".join(hashes.values()) or None,
            "interaction_type": "single_turn",
            # A run keeps the hash of a question, and not its text.
            "input": {"raw": "", "reference": [str(each.get("label") or "") for each in answers]},
            "output": {"raw": _texts(line.get("response"))},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": str(each["answer"]),
                    "extraction_method": str(each.get("how") or "custom"),
                    "is_terminal": True,
                }
                for each in answers
                if each.get("answer") is not None
            ],
            "evaluation": {"score": value, "is_correct": value == best},
            "metadata": {"group_id": str(line.get("group_id", "")), **hashes},
        }


def _model(name: str, **more: str) -> dict[str, Any]:
    return {"name": name, "id": name, **more, "additional_details": dict(_DEPLOYMENT)}


def _declared(known: ScoreDefinition) -> dict[str, Any]:
    """Return what a score's declaration says of it."""
    found: dict[str, Any] = {"evaluation_description": known.sentence}
    found["metric_unit"] = "proportion" if known.unit == "fraction" else known.unit
    # The schema takes ends of a range alone as numbers.
    if math.isfinite(known.low) and math.isfinite(known.high):
        found |= {"score_type": "continuous", "min_score": known.low, "max_score": known.high}
    return found


def _texts(response: object) -> list[str]:
    """Return a response, or each of several answers, as texts."""
    given = response.values() if isinstance(response, Mapping) else [response]
    return [str(text) for text in given if text is not None]
