"""Extractors that use an installed library: triplets by spaCy, nouns by nltk."""

from __future__ import annotations

import asyncio
import sys
import threading
from importlib.metadata import EntryPoint
from pathlib import Path

import nltk
import pytest
from support.messages import expected_message
from support.nltk_sample import write_nltk_data
from support.spacy_sample import made_parser

from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.engine.extraction import claim_extractor
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.resources import Offers, Resources
from hallujudge.judge_service.errors import InvalidInputError, MissingExtraError, NotFoundError
from hallujudge.judge_service.extractors import (
    TripletExtractor,
)
from hallujudge.judge_service.extractors import (
    library_extractors as spacy_pipelines,
)
from hallujudge.judge_service.extractors.library_extractors import (
    NltkNounExtractor,
    SpacyTripletExtractor,
    pieces,
    shared_extractor,
)

TEXT = "The bus is red."
ROWS = (
    "The/DET/DT/det/1/the bus/NOUN/NN/nsubj/1/bus is/AUX/VBZ/ROOT/0/be red/ADJ/JJ/acomp/-1/red "
    "./PUNCT/./punct/-2/."
)


def test_claims_and_label_of_a_pipeline() -> None:
    extractor = SpacyTripletExtractor(made_parser({TEXT: ROWS}))
    assert isinstance(extractor, TripletExtractor)
    assert extractor.label == "spacy-2/en_made-1.0"
    found = asyncio.run(extractor.extract_many([TEXT, "", "Nothing."]))
    assert [[claim.parts for claim in claims] for claims in found] == [
        [("bus", "is", "red")],
        [],
        [],
    ]


def test_texts_are_parsed_outside_the_event_loop() -> None:
    seen: list[str] = []
    pipeline = made_parser({}, noticed=lambda: seen.append(threading.current_thread().name))
    asyncio.run(SpacyTripletExtractor(pipeline).extract_many(["A dog."]))
    assert seen
    assert threading.main_thread().name not in seen


def test_a_pipeline_without_such_a_parser_is_refused() -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message(
            "judge_service.extractors.library_extractors:en-made-has-no-parser-with-the"
        ),
    ):
        SpacyTripletExtractor(made_parser({}, labels=("nsubj", "pobj", "prep", "obj")))


def test_a_pipeline_that_is_not_installed_is_named() -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    with pytest.raises(
        MissingExtraError,
        match=expected_message(
            "judge_service.extractors.library_extractors:en-no-such-one-but-it-is"
        ),
    ):
        shared_extractor("en_no_such_one")


def test_without_spacy_its_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(
        MissingExtraError,
        match=expected_message("sdk.cli.installation_checks:spacy-download-en-core-web-sm"),
    ):
        shared_extractor("en_core_web_other")


def test_callers_of_a_server_name_what_it_offers() -> None:
    resources = Resources(JudgeFactory, offers=Offers(pipelines=("en_core_web_sm",)))
    options = {"extractor": "spacy", "spacy_pipeline": "/tmp/theirs"}
    with pytest.raises(
        NotFoundError,
        match=expected_message(
            "judge_service.extractors.library_extractors:it-offers-en-core-web-sm"
        ),
    ):
        claim_extractor(options, resources)


def test_pieces_are_short_and_end_after_sentences() -> None:
    text = "A dog sits on the red mat. " * 300
    found = list(pieces(text))
    assert "".join(piece for _, piece in found) == text
    assert max(len(piece) for _, piece in found) <= 2_000
    assert all(text.startswith(piece, start) and piece.endswith(". ") for start, piece in found)


@pytest.mark.parametrize(
    "text",
    ["", " ", "x" * 300_000, "dog " * 100_000, "\n" * 5_000, "." * 250_000, "a\u0301" * 9_000],
)
def test_hostile_texts_are_read_in_part(text: str) -> None:
    found = list(pieces(text))
    assert sum(len(piece) for _, piece in found) <= 200_000
    assert all(len(word) <= 100 for _, piece in found for word in piece.split())


def test_nouns_are_lemmas_with_their_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [str(write_nltk_data(tmp_path / "nltk"))])
    found = NltkNounExtractor()
    assert found.extract("The man saw two puppies, a tree and its leaves. Man!") == (
        *("man", "puppy", "tree", "leaf", "Man"),
    )
    assert found.extract("") == ()
    assert found.label == f"nltk-{nltk.__version__}"


def test_missing_data_are_named_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(MissingExtraError) as caught:
        NltkNounExtractor()
    assert str(caught.value).endswith(
        expected_message(
            "judge_service.extractors.library_extractors:python-nltk-downloader-punkt-tab-averaged-perceptron"
        )
    )


def test_installed_pipelines_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(*, group: str) -> list[EntryPoint]:
        assert group == "spacy_models"
        return [EntryPoint(name, name, group) for name in ("en_core_web_trf", "en_core_web_sm")]

    monkeypatch.setattr(spacy_pipelines, "entry_points", installed)
    assert spacy_pipelines.installed_pipelines() == ("en_core_web_sm", "en_core_web_trf")


@pytest.mark.parametrize(
    ("extractor", "needed"),
    [("rules", False), ("sentences", False), ("spacy", True), ("llm", True)],
)
def test_extraction_with_a_model_stays_out_of_worker_processes(
    extractor: str, needed: bool
) -> None:
    spec = ScoreSpec(metric="tri-he", options={"extractor": extractor})
    assert metric_entry("tri-he").extracts_with_models(spec) is needed
