"""Each rule of the triplet extractor, and sentences with denials, lists and places."""

from __future__ import annotations

import asyncio

import pytest

from hallujudge.judge_service.extractors import TripletExtractor
from hallujudge.judge_service.extractors.rules.rule_extractors import (
    RuleKeywordExtractor,
    RuleTripletExtractor,
)

_EXTRACTOR = RuleTripletExtractor()


def _claims(text: str) -> set[tuple[str, str, str]]:
    return {triplet.parts for triplet in _EXTRACTOR.extract(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # attributes
        ("The bus is red.", {("bus", "is", "red")}),
        ("A red bus stops.", {("bus", "is", "red"), ("bus", "is", "stopping")}),
        ("The sky is clear and blue.", {("sky", "is", "clear"), ("sky", "is", "blue")}),
        ("The man is a chef.", {("man", "is", "chef")}),
        ("The cars are parked.", {("cars", "is", "parked")}),
        # numbers in digits are none, ages and sizes are
        ("The 2 dogs are red.", {("dogs", "is", "red")}),
        ("A 3-year-old girl waves.", {("girl", "is", "3-year-old"), ("girl", "is", "waving")}),
        # prepositions
        ("A cup is on the table.", {("cup", "on", "table")}),
        ("A cup stands in front of a box.", {("cup", "stands in front of", "box")}),
        ("A dog lies next to a couch.", {("dog", "lies next to", "couch")}),
        ("The dog is afraid of the cat.", {("dog", "afraid of", "cat")}),
        # verbs and particles
        ("A man is riding a wave.", {("man", "riding", "wave")}),
        ("The girl picks up a ball.", {("girl", "picks up", "ball")}),
        ("The girl picks the ball up.", {("girl", "picks up", "ball")}),
        ("The dog is running.", {("dog", "is", "running")}),
        ("The men wave.", {("men", "is", "waving")}),
        ("He cuts bread with a knife.",
         {("he", "cuts", "bread"), ("he", "cuts bread with", "knife")}),
        # passives
        ("The pizza is eaten by a man.", {("pizza", "eaten by", "man")}),
        ("The hill is covered in snow.", {("hill", "covered in", "snow")}),
        # possession
        ("The man's hat is big.", {("man", "has", "hat"), ("hat", "is", "big")}),
        ("A man lifts his hat.", {("man", "lifts", "hat"), ("man", "has", "hat")}),
        ("The room has a window.", {("room", "has", "window")}),
        # coordination
        ("A man and a woman hold a kite.", {("man", "hold", "kite"), ("woman", "hold", "kite")}),
        ("She holds a cup and a fork.", {("she", "holds", "cup"), ("she", "holds", "fork")}),
        ("A boy sits and reads a book.", {("boy", "is", "sitting"), ("boy", "reads", "book")}),
        # relative clauses and participles
        ("A man in boots holds a cup.", {("man", "in", "boots"), ("man", "holds", "cup")}),
        ("A dog wearing a hat eats.", {("dog", "wearing", "hat"), ("dog", "is", "eating")}),
        ("A man who has a beard sleeps.", {("man", "has", "beard"), ("man", "is", "sleeping")}),
        ("The cup that the man holds is red.", {("man", "holds", "cup"), ("cup", "is", "red")}),
        ("A wall built by monks is old.", {("wall", "built by", "monks"), ("wall", "is", "old")}),
        # existence
        ("There is a dog.", {("dog", "is", "present")}),
        ("There are two dogs on the beach.", {("dogs", "on", "beach")}),
        ("The image shows a cat on a chair.", {("cat", "on", "chair")}),
        ("On the table, there is a vase.", {("vase", "on", "table")}),
        ("A group of people is walking.", {("people", "is", "walking")}),
        ("A baseball game.", {("baseball game", "is", "present")}),
        # negation
        ("The man is not wearing a hat.", {("man", "not wearing", "hat")}),
        ("It is not a zoo or a park.",
         {("zoo", "is not", "present"), ("park", "is not", "present")}),
        ("It's not a cat, but a dog.", {("cat", "is not", "present"), ("dog", "is", "present")}),
        ("The bus is not red but blue.", {("bus", "is not", "red"), ("bus", "is", "blue")}),
        ("The cup is not on the table but on the floor.",
         {("cup", "not on", "table"), ("cup", "on", "floor")}),
        ("The image does not show a dog but a cat.",
         {("dog", "is not", "present"), ("cat", "is", "present")}),
        ("The man is not wearing a hat but a cap.",
         {("man", "not wearing", "hat"), ("man", "wearing", "cap")}),
        ("The man is not running, but the dog is big.",
         {("man", "is not", "running"), ("dog", "is", "big")}),
        ("The animal is not just a dog.", {("animal", "is", "dog")}),
        ("The wall is neither red nor blue.",
         {("wall", "is not", "red"), ("wall", "is not", "blue")}),
        ("There are no people on the beach.", {("people", "not on", "beach")}),
        ("The bus isn't red.", {("bus", "is not", "red")}),
        ("The dog does not chase the cat.", {("dog", "not chase", "cat")}),
        ("It's unlikely that the dog is a poodle.", {("dog", "is not", "poodle")}),
        ("The cat is unlikely to be asleep.", {("cat", "is not", "asleep")}),
        ("Instead of a dog and a bird, there is a cat.", {("cat", "is", "present")}),
        ("The image shows a cat rather than a dog.", {("cat", "is", "present")}),
        ("The man holds a cup in place of a phone.", {("man", "holds", "cup")}),
        ("It is a bus, as opposed to a train.", {("bus", "is", "present")}),
        ("There is a cat instead of a dog on the sofa.",
         {("cat", "is", "present"), ("dog", "not on", "sofa")}),
        ("The man wears a hat, unlike the woman.",
         {("man", "wears", "hat"), ("woman", "is", "present")}),
        ("There are zero cars on the street.", {("cars", "not on", "street")}),
        ("The picture fails to show a dog.", {("dog", "is not", "present")}),
        ("The picture does not fail to show a dog.", {("dog", "is", "present")}),
        ("The dog is nowhere to be seen.", {("dog", "is not", "present")}),
        ("The dog is not there, but the cat is big.",
         {("dog", "is not", "present"), ("cat", "is", "big")}),
        ("The dog isn't here.", {("dog", "is not", "present")}),
        # chains
        ("The man seems to be holding a cup.", {("man", "holding", "cup")}),
        ("The boy is seen throwing a ball.", {("boy", "throwing", "ball")}),
        ("The woman might be happy.", {("woman", "is", "happy")}),
    ],
)  # fmt: skip
def test_rules(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert _claims(text) == expected


def test_pronouns_refer_to_nouns_that_agree() -> None:
    claims = _EXTRACTOR.extract("A man holds a cup. He drinks from it.")
    assert [claim.parts for claim in claims] == [
        ("man", "holds", "cup"),
        ("man", "drinks from", "cup"),
    ]
    assert claims[1].subject_span == (19, 21)  # where "He" stands


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        ("It has two doors.", "What kind of bus is this?", {("bus", "has", "doors")}),
        ("They are eating.", "What are the children doing?", {("children", "is", "eating")}),
        ("It could be winter.", "What season is it?", set()),
        ("It is possible to park.", "Where is the car?", set()),
        ("The image shows a dog. It is old.", "", {("dog", "is", "present"), ("dog", "is", "old")}),
        ("It has two doors.", "", {("doors", "is", "present")}),
        ("The role of the man is that of a chef.", "", {("man", "is", "chef")}),
        ("The purpose of the net is to stop balls.", "", {("net", "stop", "balls")}),
        ("A man, whose hat is red, rides a horse.", "",
         {("man", "has", "hat"), ("hat", "is", "red"), ("man", "rides", "horse")}),
        ("A man sees a wall where a clock hangs.", "",
         {("man", "sees", "wall"), ("clock", "hangs at", "wall")}),
        ("The sky is gray, which suggests rain.", "",
         {("sky", "is", "gray"), ("rain", "is", "present")}),
    ],
)  # fmt: skip
def test_pronouns_and_frames_stand_for_nouns(
    text: str, question: str, expected: set[tuple[str, str, str]]
) -> None:
    assert {claim.parts for claim in _EXTRACTOR.extract(text, question)} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A dog sleeps next to a man under a tree.",
         {("dog", "sleeps next to", "man"), ("dog", "sleeps under", "tree")}),
        ("A man sleeps in a bed without a blanket.",
         {("man", "sleeps in", "bed"), ("man", "sleeps without", "blanket")}),
        ("A bed with pillows without a blanket.",
         {("bed", "with", "pillows"), ("bed", "without", "blanket")}),
        ("A man sits in a chair without armrests.",
         {("man", "sits in", "chair"), ("chair", "without", "armrests")}),
        ("The cake is without frosting.", {("cake", "without", "frosting")}),
        ("The girl lands without stumbling.",
         {("girl", "is", "landing"), ("girl", "is not", "stumbling")}),
        ("There are no cars or people.",
         {("cars", "is not", "present"), ("people", "is not", "present")}),
        ("The place shows a lack of snow.", {("place", "not shows", "snow")}),
        ("The weather is suitable for cycling.", {("weather", "suitable for", "cycling")}),
        ("The case lies open on the floor.",
         {("case", "is", "open"), ("case", "lies on", "floor")}),
        ("The lamp makes the room bright.", {("room", "is", "bright"), ("lamp", "is", "present")}),
        ("The man might be a cook or a waiter.", {("man", "is", "cook or waiter")}),
        ("The man likes the color of the shirt.", {("man", "likes", "color of shirt")}),
        ("Painted with stripes, the boat floats.",
         {("boat", "painted with", "stripes"), ("boat", "is", "floating")}),
    ],
)  # fmt: skip
def test_rules_of_the_third_version(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert _claims(text) == expected


def test_an_unknown_pronoun_stays_as_subject_and_is_not_an_object() -> None:
    assert _claims("She holds it.") == {("she", "is", "holding")}


def test_spans_point_at_the_text() -> None:
    text = "A small dog chases the polar bear."
    claims = _EXTRACTOR.extract(text)
    assert claims
    for claim in claims:
        assert text[slice(*claim.subject_span)] == claim.subject
        assert text[slice(*claim.object_span)] == claim.object
        assert claim.start <= claim.subject_span.start
        assert claim.object_span.end <= claim.end


def test_negation_is_in_the_relation_and_on_the_claim() -> None:
    (claim,) = _EXTRACTOR.extract("The man is not wearing a hat.")
    assert claim.negated
    assert claim.relation == "not wearing"


def test_many_texts_keep_their_order() -> None:
    assert isinstance(_EXTRACTOR, TripletExtractor)
    found = asyncio.run(_EXTRACTOR.extract_many(["A dog runs.", "", "A cat sleeps."]))
    assert [[claim.subject for claim in claims] for claims in found] == [["dog"], [], ["cat"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dog never chases the ball.", {("dog", "not chases", "ball")}),
        ("He has never worn a hat.", {("he", "not worn", "hat")}),
        ("The lamp is never on the desk.", {("lamp", "not on", "desk")}),
        ("The girl hardly smiles.", {("girl", "is not", "smiling")}),
        ("The man is no longer holding a cup.", {("man", "not holding", "cup")}),
        ("The animals cannot freely roam the field.", {("animals", "not roam", "field")}),
        ("The boys can't easily reach the shelf.", {("boys", "not reach", "shelf")}),
        ("The dog cannot swim.", {("dog", "is not", "swimming")}),
        ("The bread is sliced but not buttered.",
         {("bread", "is", "sliced"), ("bread", "is not", "buttered")}),
        ("The door is open but not locked.",
         {("door", "is", "open"), ("door", "is not", "locked")}),
        ("The cup is on the table but not on the floor.",
         {("cup", "on", "table"), ("cup", "not on", "floor")}),
        ("The woman holds a fork but not a knife.",
         {("woman", "holds", "fork"), ("woman", "not holds", "knife")}),
        ("There is a cat but not a dog.", {("cat", "is", "present"), ("dog", "is not", "present")}),
        ("The man neither runs nor sits.",
         {("man", "is not", "running"), ("man", "is not", "sitting")}),
        ("The cat is neither on the table nor on the floor.",
         {("cat", "not on", "table"), ("cat", "not on", "floor")}),
        ("Neither of the dogs is running.", {("dogs", "is not", "running")}),
        ("This is not a photo of a dog.", {("dog", "is not", "present")}),
        ("No car, bus or truck can be seen.",
         {(name, "is not", "present") for name in ("car", "bus", "truck")}),
        ("Not a dog but a cat sits on the mat.",
         {("dog", "not sits on", "mat"), ("cat", "sits on", "mat")}),
        ("The man is sitting instead of standing.",
         {("man", "is", "sitting"), ("man", "is not", "standing")}),
        ("Neither the man nor the woman wears a hat.",
         {("man", "not wears", "hat"), ("woman", "not wears", "hat")}),
    ],
)  # fmt: skip
def test_denials(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert _claims(text) == expected


def test_cannot_keeps_its_place() -> None:
    text = "The dog cannot swim."
    (claim,) = _EXTRACTOR.extract(text)
    assert text[slice(*claim.object_span)] == "swim"
    assert claim.negated


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The table has plates, forks, knives, and cups.",
         {("table", "has", name) for name in ("plates", "forks", "knives", "cups")}),
        ("The street is lined with shops, cars, signs, and trees.",
         {("street", "lined with", name) for name in ("shops", "cars", "signs", "trees")}),
        ("The kitchen contains a stove, sinks, counters, cabinets, and a fridge.",
         {("kitchen", "contains", name)
          for name in ("stove", "sinks", "counters", "cabinets", "fridge")}),
        ("He carries bags, boxes, books.",
         {("he", "carries", name) for name in ("bags", "boxes", "books")}),
        # verbs after commas stay verbs
        ("The boy opens the box, smiles, and leaves.",
         {("boy", "opens", "box"), ("boy", "is", "smiling"), ("boy", "is", "leaving")}),
        ("The dog runs, jumps, and barks.",
         {("dog", "is", "running"), ("dog", "is", "jumping"), ("dog", "is", "barking")}),
    ],
)  # fmt: skip
def test_lists(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert _claims(text) == expected


def test_list_words_are_objects_and_not_behaviours() -> None:
    found = RuleKeywordExtractor().extract("A girl holds plates, forks, and cups.")
    assert [each.text for each in found.objects] == ["girl", "plate", "fork", "cup"]
    assert [each.text for each in found.behaviors] == ["hold"]


@pytest.mark.parametrize(
    "opening", ["In addition", "In contrast", "In conclusion", "In summary", "On the other hand"]
)
def test_opening_phrases_make_no_claim(opening: str) -> None:
    assert _claims(f"{opening}, a dog lies on the rug.") == {("dog", "lies on", "rug")}


def test_opening_places_stay_claims() -> None:
    assert ("tower", "in", "distance") in _claims("In the distance, a tower stands.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man throws a ball to a boy.",
         {("man", "throws", "ball"), ("man", "throws ball to", "boy")}),
        ("The farmer leads the cows into the barn.",
         {("farmer", "leads", "cows"), ("farmer", "leads cows into", "barn")}),
        ("A girl rides a horse along the river.",
         {("girl", "rides", "horse"), ("girl", "rides horse along", "river")}),
        ("A man is reading a book on a bench.",
         {("man", "reading", "book"), ("man", "reading book on", "bench")}),
        ("The girl eats an apple at the table.",
         {("girl", "eats", "apple"), ("girl", "eats apple at", "table")}),
        ("The sign warns the driver about an issue.",
         {("sign", "warns", "driver"), ("sign", "warns driver about", "issue")}),
        ("The child flies a kite in the sky over the beach.",
         {("child", "flies", "kite"), ("kite", "in", "sky"), ("kite", "over", "beach")}),
        ("A woman plays chess with her brother.",
         {("woman", "plays", "chess"), ("woman", "plays chess with", "brother"),
          ("woman", "has", "brother")}),
        # a preposition stays with the noun where verb and noun allow that
        ("The man wears a jacket with a zipper.",
         {("man", "wears", "jacket"), ("jacket", "with", "zipper")}),
        ("A boy holds a box of crayons.", {("boy", "holds", "box"), ("box", "of", "crayons")}),
        ("The boy put the plate on the table in the kitchen.",
         {("boy", "put", "plate"), ("plate", "on", "table"), ("table", "in", "kitchen")}),
        ("The man sees a dog on the grass.", {("man", "sees", "dog"), ("dog", "on", "grass")}),
    ],
)  # fmt: skip
def test_prepositions(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert _claims(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A woman walks on a path at night.", {("woman", "walks on", "path"),
                                               ("woman", "walks at", "night")}),
        ("Two dogs chase each other in a yard.", {("dogs", "chase in", "yard")}),
        ("A man walks down a road with his dog.",
         {("man", "walks down", "road"), ("man", "walks with", "dog"), ("man", "has", "dog")}),
        ("A boy walks along the beach with a surfboard.",
         {("boy", "walks along", "beach"), ("boy", "walks with", "surfboard")}),
        ("A boy stands in a kitchen with a stove.",
         {("boy", "stands in", "kitchen"), ("kitchen", "with", "stove")}),
        ("The boat race takes place during the day.", {("boat race", "takes place during", "day")}),
        ("The shelf is filled with a lot of jars.", {("shelf", "filled with", "jars")}),
    ],
)  # fmt: skip
def test_places_and_times(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert _claims(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man in a white shirt and black trousers is dancing.",
         {("man", "in", "shirt"), ("man", "in", "trousers"), ("man", "is", "dancing"),
          ("shirt", "is", "white"), ("trousers", "is", "black")}),
        ("A man in a hat and a woman are dancing.",
         {("man", "in", "hat"), ("man", "is", "dancing"), ("woman", "is", "dancing")}),
        ("A girl on a bicycle eating an apple smiles.",
         {("girl", "on", "bicycle"), ("girl", "eating", "apple"), ("girl", "is", "smiling")}),
        ("A woman in the rain holding an umbrella is waiting.",
         {("woman", "in", "rain"), ("woman", "holding", "umbrella"), ("woman", "is", "waiting")}),
        ("A man looks at the door with a smile.",
         {("man", "looks at", "door"), ("man", "looks with", "smile")}),
        ("The boys have a great time throwing balls.",
         {("boys", "have", "time"), ("time", "is", "great"), ("boys", "throwing", "balls")}),
        ("The players run, with some of them carrying bats.",
         {("players", "is", "running"), ("players", "carrying", "bats")}),
        ("A girl holds a cup and pours milk into it.",
         {("girl", "holds", "cup"), ("girl", "pours", "milk"), ("girl", "pours milk into", "cup")}),
        ("A woman sits in what appears to be a train.", {("woman", "sits in", "train")}),
        ("The image you provided shows a bowl.", {("bowl", "is", "present")}),
        ("The tower itself is red.", {("tower", "is", "red")}),
    ],
)  # fmt: skip
def test_subjects(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert _claims(text) == expected
