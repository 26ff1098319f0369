"""What Tri-HE sends over the wire comes back the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2 as service_pb
from hallujudge.judge_service.engine.found_claims import FoundClaim
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges import Asked, Declined, JudgedItem
from hallujudge.judge_service.llm.budget import Usage
from hallujudge.judge_service.wire import convert as _convert
from hallujudge.judge_service.wire.convert import with_graphs, without_graphs
from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.framework.claims import (
    ClaimVerdict,
    Modality,
    Part,
    Sentence,
    Triplet,
    Verdict,
    WrittenTriplet,
    reference_of,
)
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem
from hallujudge.synonym_graphs import Mention

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(min_value=0, max_value=2**31 - 1)
triplets = st.builds(Triplet, texts, texts, texts)
written = st.builds(WrittenTriplet, texts, texts, texts, written=texts)
references = triplets | written
items = st.builds(
    TriHeItem,
    id=texts,
    group_id=texts,
    fields=st.dictionaries(texts, texts, max_size=3),
    question=texts,
    response=st.none() | texts,
    claims=st.none() | st.lists(triplets, max_size=4).map(tuple),
    reference_triplets=st.none() | st.lists(references, max_size=4).map(tuple),
    reference_objects=st.lists(texts, max_size=4).map(tuple),
    human_scores=st.lists(numbers, max_size=3).map(tuple),
)
usages = st.builds(
    Usage,
    calls=counts,
    prompt_tokens=counts,
    cached_tokens=counts,
    completion_tokens=counts,
    latency_seconds=numbers,
    cost=st.none() | numbers,
    reused=counts,
)
declined = st.builds(Declined, texts, texts, texts)
asked = st.builds(
    Asked,
    judge=texts,
    answered=counts,
    declined=st.lists(declined, max_size=4).map(tuple),
    usage=usages,
    shares=st.lists(numbers, max_size=3).map(tuple),
)
claims = st.builds(
    ClaimVerdict,
    triplet=triplets | st.builds(Sentence, texts),
    verdict=st.sampled_from(Verdict),
    part=st.none() | st.sampled_from(Part),
    score=st.none() | numbers,
    margin=st.none() | numbers,
    judge=texts,
    references=st.lists(references, max_size=3).map(tuple),
    span=st.none() | st.tuples(counts, counts),
    within_words=st.none() | counts,
    modality=st.none() | st.sampled_from(Modality),
    prediction_error=st.booleans(),
    reason=texts,
    detail=texts,
)
evidence = st.builds(
    TriHeEvidence,
    claims=st.lists(claims, max_size=3).map(tuple),
    extractor=texts,
    judging=st.lists(asked, max_size=3).map(
        lambda parts: JudgedItem(verdicts=(), asked=tuple(parts)).judging()
    ),
    human_scores=st.lists(numbers, max_size=3).map(tuple),
)
found_claims = st.builds(
    FoundClaim,
    start=counts,
    end=counts,
    claim=triplets | texts | st.builds(Mention, texts, texts, counts, counts),
    kind=texts,
    modality=st.none() | st.sampled_from(Modality),
)


def as_written(reference: Triplet) -> tuple[Triplet, str]:
    """Triplets with equal parts are equal, so their texts have to be compared too."""
    return reference, reference.written


@given(items)
def test_items(item: TriHeItem) -> None:
    message = pb.Item.FromString(_convert.item_to_proto(item).SerializeToString())
    back = _convert.item_from_proto(message)
    assert back == item
    assert isinstance(back, TriHeItem)
    sent, got = item.reference_triplets or (), back.reference_triplets or ()
    assert list(map(as_written, got)) == list(map(as_written, sent))


@pytest.mark.parametrize(
    "text",
    ["(bus, is,stopped)", "(woman, reason, curiosity, photographer)", "(a, b, c)", "a , b,c"],
)
def test_references_keep_the_text_of_their_file(text: str) -> None:
    item = TriHeItem(id="1", reference_triplets=(reference_of(text),))
    back = _convert.item_from_proto(_convert.item_to_proto(item))
    assert isinstance(back, TriHeItem)
    assert back.reference_triplets is not None
    assert as_written(back.reference_triplets[0]) == as_written(reference_of(text))


@given(evidence, st.sampled_from(Outcome))
def test_evidence(found: TriHeEvidence, outcome: Outcome) -> None:
    result = ItemResult(id="1", group_id="a", outcome=outcome, evidence=found)
    message = pb.ItemResult.FromString(_convert.result_to_proto(result).SerializeToString())
    back = _convert.result_from_proto(message)
    assert back == result
    assert isinstance(back.evidence, TriHeEvidence)
    # What is written to items.jsonl is the same to the byte, the order of reasons included.
    assert json.dumps(back.to_json()) == json.dumps(result.to_json())
    for one, two in zip(found.claims, back.evidence.claims, strict=True):
        assert type(two.triplet) is type(one.triplet)
        assert list(map(as_written, two.references)) == list(map(as_written, one.references))


@given(st.lists(st.tuples(items, evidence), max_size=3))
def test_graphs_that_the_client_has_stay_there(
    pairs: list[tuple[TriHeItem, TriHeEvidence]],
) -> None:
    sent = [item for item, _ in pairs]
    results = [
        ItemResult(id="1", group_id="a", outcome=Outcome.SCORED, evidence=_judged(found, item))
        for item, found in pairs
    ]
    over = [_convert.result_to_proto(result) for result in without_graphs(results)]
    assert not any(message.tri_he.scene_graph for message in over)
    assert with_graphs(sent, [_convert.result_from_proto(message) for message in over]) == results


def _judged(found: TriHeEvidence, item: TriHeItem) -> TriHeEvidence:
    """As a language model judges: by the whole graph, and nothing where it gives no verdict."""
    claims = tuple(structs.replace(claim, references=()) for claim in found.claims)
    whole = any(claim.verdict is not Verdict.UNSCORED for claim in claims)
    graph = (item.reference_triplets or ()) if whole else ()
    return structs.replace(found, claims=claims, scene_graph=graph)


def test_what_a_matcher_kept_is_sent() -> None:
    graph = (Triplet("a", "b", "c"), Triplet("d", "e", "f"))
    claim = ClaimVerdict(triplet=graph[0], verdict=Verdict.SUPPORTED, references=graph[1:])
    result = ItemResult(
        id="1", group_id="a", outcome=Outcome.SCORED, evidence=TriHeEvidence(claims=(claim,))
    )
    item = TriHeItem(id="1", reference_triplets=graph)
    assert with_graphs([item], without_graphs([result])) == [result]
    assert without_graphs([result]) == [result]


@given(found_claims)
def test_found_claims(found: FoundClaim) -> None:
    sent = _convert.found_claim_to_proto(found).SerializeToString()
    back = _convert.found_claim_from_proto(service_pb.Claim.FromString(sent))
    assert back == found
    assert type(back.claim) is type(found.claim)


def test_empty_is_not_the_same_as_absent() -> None:
    for item in (
        TriHeItem(id="1"),
        TriHeItem(id="1", response="", claims=(), reference_triplets=()),
    ):
        message = pb.Item.FromString(_convert.item_to_proto(item).SerializeToString())
        assert _convert.item_from_proto(message) == item


def test_given_claims_must_not_be_sentences() -> None:
    item = TriHeItem(id="1", claims=(Sentence("A dog sits on a sofa."),))
    with pytest.raises(InvalidInputError, match="must be triplets"):
        _convert.item_to_proto(item)
