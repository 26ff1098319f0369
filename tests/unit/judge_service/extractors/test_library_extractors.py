"""The extractors that use spaCy and nltk, and what they say where one is not installed."""

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
from support.spacy_sample import made_parser, parsed

from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.engine.extraction import ClaimExtractor
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.resources import Offers, Resources
from hallujudge.judge_service.errors import InvalidInputError, MissingExtraError, NotFoundError
from hallujudge.judge_service.extractors import ExtractedTriplet, TripletExtractor
from hallujudge.judge_service.extractors import library_extractors as spacy_pipelines
from hallujudge.judge_service.extractors.library_extractors import (
    NltkNounExtractor,
    ParsedTriplets,
    SpacyTripletExtractor,
    shared_extractor,
)
from hallujudge.judge_service.extractors.parsed_phrases import pieces
from hallujudge.judge_service.extractors.rules.lexicon import load_lexicon
from hallujudge.metrics.framework.claims import Modality

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
        ClaimExtractor(options, resources)


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


STATED, HEDGED, CONDITIONAL = Modality.STATED, Modality.HEDGED, Modality.CONDITIONAL


def _found(rows: str, offset: int = 0) -> list[ExtractedTriplet]:
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    claims = ParsedTriplets(load_lexicon())
    claims.read(parsed(spacy.blank("en").vocab, rows), offset)
    return claims.found


HEDGE = (
    "The/DET/DT/det/1/the man/NOUN/NN/nsubj/3/man might/AUX/MD/aux/2/might be/AUX/VB/aux/1/be "
    "reading/VERB/VBG/ROOT/0/read a/DET/DT/det/1/a book/NOUN/NN/dobj/-2/book "
    "on/ADP/IN/prep/-3/on a/DET/DT/det/1/a bench/NOUN/NN/pobj/-2/bench"
)
TREES = {
    HEDGE: {("man", "reading", "book"): HEDGED, ("man", "reading on", "bench"): HEDGED},
    # The bread is sliced but not buttered
    "The/DET/DT/det/1/the bread/NOUN/NN/nsubjpass/2/bread is/AUX/VBZ/auxpass/1/be "
    "sliced/VERB/VBN/ROOT/0/slice but/CCONJ/CC/cc/-1/but not/PART/RB/neg/1/not "
    "buttered/VERB/VBN/conj/-3/butter": {
        ("bread", "is", "sliced"): STATED,
        ("bread", "is not", "buttered"): STATED,
    },
    # There is a cat but not a dog
    "There/PRON/EX/expl/1/there is/VERB/VBZ/ROOT/0/be a/DET/DT/det/1/a cat/NOUN/NN/attr/-2/cat "
    "but/CCONJ/CC/cc/-1/but not/PART/RB/neg/2/not a/DET/DT/det/1/a dog/NOUN/NN/conj/-4/dog": {
        ("cat", "is", "present"): STATED,
        ("dog", "is not", "present"): STATED,
    },
    # A dog can be seen in the background
    "A/DET/DT/det/1/a dog/NOUN/NN/nsubjpass/3/dog can/AUX/MD/aux/2/can be/AUX/VB/auxpass/1/be "
    "seen/VERB/VBN/ROOT/0/see in/ADP/IN/prep/-1/in the/DET/DT/det/1/the "
    "background/NOUN/NN/pobj/-2/background": {("dog", "in", "background"): STATED},
    # A red bus stops in front of a shop
    "A/DET/DT/det/2/a red/ADJ/JJ/amod/1/red bus/NOUN/NN/nsubj/1/bus stops/VERB/VBZ/ROOT/0/stop "
    "in/ADP/IN/prep/-1/in front/NOUN/NN/pobj/-1/front of/ADP/IN/prep/-1/of a/DET/DT/det/1/a "
    "shop/NOUN/NN/pobj/-2/shop": {
        ("bus", "is", "red"): STATED,
        ("bus", "stops in front of", "shop"): STATED,
    },
    # The cup that the man holds is full
    "The/DET/DT/det/1/the cup/NOUN/NN/nsubj/5/cup that/PRON/WDT/dobj/3/that the/DET/DT/det/1/the "
    "man/NOUN/NN/nsubj/1/man holds/VERB/VBZ/relcl/-4/hold is/AUX/VBZ/ROOT/0/be "
    "full/ADJ/JJ/acomp/-1/full": {
        ("man", "holds", "cup"): STATED,
        ("cup", "is", "full"): STATED,
    },
    # If the rain stops , the children will play
    "If/SCONJ/IN/mark/3/if the/DET/DT/det/1/the rain/NOUN/NN/nsubj/1/rain "
    "stops/VERB/VBZ/advcl/5/stop ,/PUNCT/,/punct/4/, the/DET/DT/det/1/the "
    "children/NOUN/NNS/nsubj/2/child will/AUX/MD/aux/1/will play/VERB/VB/ROOT/0/play": {
        ("rain", "is", "stopping"): CONDITIONAL,
        ("children", "is", "playing"): CONDITIONAL,
    },
    # The image shows a girl and her kite
    "The/DET/DT/det/1/the image/NOUN/NN/nsubj/1/image shows/VERB/VBZ/ROOT/0/show a/DET/DT/det/1/a "
    "girl/NOUN/NN/dobj/-2/girl and/CCONJ/CC/cc/-1/and her/PRON/PRP$/poss/1/her "
    "kite/NOUN/NN/conj/-3/kite": {
        ("girl", "is", "present"): STATED,
        ("girl", "has", "kite"): STATED,
    },
    # A group of people is walking
    "A/DET/DT/det/1/a group/NOUN/NN/nsubj/4/group of/ADP/IN/prep/-1/of "
    "people/NOUN/NNS/pobj/-1/people is/AUX/VBZ/aux/1/be walking/VERB/VBG/ROOT/0/walk": {
        ("people", "is", "walking"): STATED
    },
    # The girl picks the ball up
    "The/DET/DT/det/1/the girl/NOUN/NN/nsubj/1/girl picks/VERB/VBZ/ROOT/0/pick "
    "the/DET/DT/det/1/the ball/NOUN/NN/dobj/-2/ball up/ADP/RP/prt/-3/up": {
        ("girl", "picks up", "ball"): STATED
    },
    # The cup holds tea or milk
    "The/DET/DT/det/1/the cup/NOUN/NN/nsubj/1/cup holds/VERB/VBZ/ROOT/0/hold "
    "tea/NOUN/NN/dobj/-1/tea or/CCONJ/CC/cc/-1/or milk/NOUN/NN/conj/-2/milk": {
        ("cup", "holds", "tea"): HEDGED,
        ("cup", "holds", "milk"): HEDGED,
    },
    # The cat's tail is long
    "The/DET/DT/det/1/the cat/NOUN/NN/poss/2/cat 's/PART/POS/case/-1/'s tail/NOUN/NN/nsubj/1/tail "
    "is/AUX/VBZ/ROOT/0/be long/ADJ/JJ/acomp/-1/long": {
        ("cat", "has", "tail"): STATED,
        ("tail", "is", "long"): STATED,
    },
    # Ready to run: the root of the tree is not a verb.
    "Ready/ADJ/JJ/ROOT/0/ready to/PART/TO/aux/1/to run/VERB/VB/xcomp/-2/run": {},
    # Is the cat black ?
    "Is/AUX/VBZ/ROOT/0/be the/DET/DT/det/1/the cat/NOUN/NN/nsubj/-2/cat "
    "black/ADJ/JJ/acomp/-3/black ?/PUNCT/./punct/-4/?": {},
}


@pytest.mark.parametrize(("rows", "expected"), TREES.items())
def test_trees(rows: str, expected: dict[tuple[str, str, str], Modality]) -> None:
    assert {claim.parts: claim.modality for claim in _found(rows)} == expected


def test_places_are_those_of_the_text() -> None:
    text = "The man might be reading a book on a bench"
    for claim in _found(HEDGE, offset=100):
        place = slice(claim.object_span.start - 100, claim.object_span.end - 100)
        assert text[place] == claim.object
        assert claim.start >= 100


def test_long_lists_are_cut() -> None:
    things = [f"box{i}/NOUN/NN/conj/{-i}/box{i}" for i in range(1, 200)]
    rows = "Men/NOUN/NNS/nsubj/1/man hold/VERB/VBP/ROOT/0/hold box0/NOUN/NN/dobj/-1/box0 "
    held = [claim for claim in _found(rows + " ".join(things)) if claim.relation == "hold"]
    assert len(held) == 31
