"""Tri-HE's items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from papers.paper_items import Items
from support.mpnet import mpnet_folder, rates_of_ten_records
from support.wordnet_sample import write_wordnet

from hallujudge.judge_service.engine.judge_options import judges_of
from hallujudge.judge_service.extractors.rules.rule_extractors import RuleTripletExtractor
from hallujudge.judge_service.judges import JudgeRequestItem
from hallujudge.judge_service.judges.questions import TRIPLET_CHOICES, questions_of
from hallujudge.judge_service.matchers import MatcherSettings
from hallujudge.judge_service.settings.judge_settings import FallbackSettings, JudgeSettings
from hallujudge.metrics.framework.agreement import krippendorff_alpha, pearson
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Sentence, Triplet, Verdict
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.metrics.tri_he import ASKING, TriHeMetric
from hallujudge.metrics.tri_he.claim_analyses import (
    ClaimTable,
    JudgedAnswer,
    Scene,
    frequent_pair_rates,
    is_prediction_error,
    trend,
)
from hallujudge.synonym_graphs.tools import find_wordnet

ITEMS = Items("Tri-HE")
METRIC = TriHeMetric(variant="published", judge="test")


def claim(part: Part | None = None, *, right: bool = False, **more: Any) -> ClaimVerdict:
    verdict = Verdict.SUPPORTED if right else Verdict.NOT_SUPPORTED
    return ClaimVerdict(
        triplet=more.pop("triplet", Triplet("a", "b", "c")), verdict=verdict, part=part, **more
    )


RIGHT = claim(right=True)
# Of image 1 two answers, of image 2 one: wrong 1 of 2, 2 of 2 and 0 of 1.
ANSWERS = (
    JudgedAnswer(group_id="1", verdicts=(RIGHT, claim(Part.OBJECT))),
    JudgedAnswer(group_id="1", verdicts=(claim(Part.RELATION), claim(Part.SUBJECT))),
    JudgedAnswer(group_id="2", verdicts=(RIGHT,)),
)


@ITEMS.is_made(38, "f.1, 2", "Hallu_Q and Hallu_I", "own", [0.5, 0.375])
def _rates(_: Path) -> list[float | None]:
    found = ClaimTable(ANSWERS, METRIC).rates()[""]
    return [found.hallu_q, found.hallu_i]


@ITEMS.is_made(39, "3.1", "object and relation rates", "own", [1 / 3, 1 / 6])
def _parts(_: Path) -> list[float | None]:
    found = ClaimTable(ANSWERS, METRIC).rates()
    return [found["object_"].hallu_q, found["relation_"].hallu_q]


@ITEMS.is_made(40, "3.3", "NLI judge: thresholds 0.5 and 0.6, the top 3", "printed", [0.5, 0.6, 3])
def _matcher(_: Path) -> list[float]:
    # Its 580 verdicts with MiniLM: tests/golden/test_tri_he_matcher.py.
    settings = MatcherSettings()
    return [settings.keep_above, settings.support_above, settings.top]


@ITEMS.is_made(
    41, "3.3", "NLI judge with mpnet: rates of ten records", "own", [0.6342857, 0.6345238],
    golden=True,
)  # fmt: skip
def _mpnet(goldens: Path) -> list[float]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return list(rates_of_ten_records(mpnet_folder(), goldens, Path(folder)))


ITEMS.is_not_made(
    42, "3.3", "the kept triplets or the top 3, as the text has it",
    "the released script compares with both; 7 of 170 verdicts differ, which the docs say",
)  # fmt: skip


@ITEMS.is_made(
    43, "3.3", "encoder: minilm by default, mpnet is one option", "own", ["minilm", "mpnet"]
)
def _encoder(_: Path) -> list[str]:
    return [MatcherSettings().model, MatcherSettings(model="mpnet").model]


def asked(*claims: Any) -> JudgeRequestItem:
    return JudgeRequestItem(
        id="1", payer="1", claims=claims, reference_triplets=(Triplet("man", "riding", "horse"),)
    )


@ITEMS.is_made(44, "3.3, A.2", "LLM judge: one claim a call, the part named", "own", [2, 4])
def _judge(_: Path) -> list[int]:
    claims = (Triplet("a", "b", "c"), Triplet("d", "e", "f"))
    found = questions_of(asked(*claims), claims_per_call=1)
    assert found[0].choices == TRIPLET_CHOICES
    return [len(found), len(found[0].choices)]


@ITEMS.is_made(
    45, "3.3", "GPT-4 as fallback, where it is configured", "own", [["llm"], ["llm", "fallback"]]
)
def _fallback(_: Path) -> list[list[str]]:
    # That it is asked for refused claims only: tests/e2e/test_tri_he_judges_cli.py.
    return [
        judges_of(
            JudgeSettings(judge_order="llm,fallback", fallback=FallbackSettings(model=model)),
            "router",
        )
        for model in ("", "gpt-4-1106-preview")
    ]


@ITEMS.is_made(46, "3.3, A.1", "triplets of an answer", "own", [("dog", "near", "couch")])
def _triplets(_: Path) -> list[tuple[str, ...]]:
    found = RuleTripletExtractor().extract("A dog is near the couch.")
    return [(each.subject, each.relation.removeprefix("is "), each.object) for each in found]


@ITEMS.is_made(47, "5.3, T3", "sentence level: supported or not", "own", ["judge-sentence", 2])
def _sentences(_: Path) -> list[Any]:
    [found] = questions_of(asked(Sentence("A dog sits.")), claims_per_call=1)
    return [found.template.name, len(found.choices)]


@ITEMS.is_made(
    48, "3.1", "prediction errors leave the rates of definition", "own", [True, 0.5, 0.25]
)
def _errors(_: Path) -> list[Any]:
    scene = Scene.of((Triplet("lamp", "near", "desk"), Triplet("tv", "turned on", "wall")))
    wrong = claim(triplet=Triplet("lamp", "turned on", "desk"))
    is_error = is_prediction_error(wrong, scene)
    said = [RIGHT, RIGHT, claim(Part.OBJECT), replace(wrong, prediction_error=is_error)]
    rates = [
        TriHeMetric(variant=name, judge="t").score_answer(said).scores["hallu_q"]
        for name in ("published", "definition")
    ]
    return [is_error, *rates]


@ITEMS.is_made(49, "T3", "Pearson correlation", "own", 0.5)
def _pearson(_: Path) -> float | None:
    return pearson([1, 2, 3], [1, 3, 2])


@ITEMS.is_made(
    50, "4, 5.3", "Krippendorff's alpha, nominal", "own", 1 - 2 / 4 / (4 * 4 * 2 / (8 * 7))
)
def _alpha(_: Path) -> float | None:
    # Four units of two: one disagrees, 2 of 8 pairable values; of 8 values 4 and 4 are expected.
    units = [["a", "a"], ["b", "b"], ["a", "b"], ["a", "b"]]
    return krippendorff_alpha(units, level="nominal")


@ITEMS.is_made(51, "T8", "guideline: scores from 1 to 5", "printed", [1, 5])
def _guideline(_: Path) -> list[int]:
    from hallujudge.studies.analysis.agreement import GUIDELINE

    scores = [int(line[0]) for line in GUIDELINE.splitlines() if line[:1].isdigit()]
    return [min(scores), max(scores)]


@ITEMS.is_made(52, "T4", "pairs: a fifth are frequent", "own", [5, 1])
def _pairs(_: Path) -> list[int]:
    often = tuple(claim(right=True, triplet=Triplet("man", x, "horse")) for x in "abc")
    rare = tuple(claim(Part.RELATION, triplet=Triplet("a", "r", str(n))) for n in range(4))
    found = frequent_pair_rates(
        ClaimTable([JudgedAnswer(group_id="1", verdicts=often + rare)], METRIC)
    )
    return [found.all_pairs, len(found.pairs)]


@ITEMS.is_made(
    53, "5.3", "synsets: WordNet is found in a usual place", "own", [("dog", "domestic dog")]
)
def _synsets(_: Path) -> list[tuple[str, ...]]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        found = find_wordnet(places=[write_wordnet(Path(folder) / "wordnet")])
        assert found is not None
        return [found.senses("dog", "objects")[0].words]


@ITEMS.is_made(54, "F3", "trend over the words of the answer", "own", [0.0, 0.5])
def _trend(_: Path) -> list[float | None]:
    said = (claim(right=True, within_words=5), claim(Part.OBJECT, within_words=15))
    table = ClaimTable([JudgedAnswer(group_id="1", verdicts=said)], METRIC)
    return [rates[""].hallu_q for _, rates in trend(table, (10, 20))]


@ITEMS.is_made(
    55,
    "5.4, T5, T6",
    "mitigation: image in the second call",
    "own",
    [[True], [True, False], [True, False], [True, True]],
)
def _mitigation(_: Path) -> list[list[bool]]:
    return [[step.shows for step in each.steps] for each in ASKING["tri-he"].protocols]


ITEMS.is_not_made(
    56, "T7, T10", "answers of LogicCheckGPT, VCD and OPA-DPO",
    "these are methods of others; an archive of their answers is scored as any other",
)  # fmt: skip


@ITEMS.is_made(57, "4", "images with five relations or more", "printed", 1)
def _images(_: Path) -> int:
    import json
    import tempfile

    from hallujudge.asking.tri_he_questions import read_scenes

    def graph(count: int) -> dict[str, Any]:
        relations = [{"name": "near", "object": str(n + 1)} for n in range(count)]
        objects: dict[str, Any] = {
            str(n): {"name": f"thing {n}", "relations": []} for n in range(count + 1)
        }
        objects["0"]["relations"] = relations
        return {"width": 9, "height": 9, "objects": objects}

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graphs.json"
        path.write_text(json.dumps({"few": graph(4), "many": graph(5)}))
        return len(list(read_scenes(path, least_relations=5)))


def cells(*tables: int) -> list[float]:
    """Return the cells of tables, in percent."""
    rows = published_rows(TriHeMetric)
    shown = [row for row in rows if any(f"table {n}, " in row.source for n in tables)]
    return [round(100 * value, 2) for row in shown for value in row.scores.values()]


@ITEMS.is_made(58, "T2", "published rows: cells", "printed", 56)
def _table_2(_: Path) -> int:
    return len(cells(2))


TABLES_9_AND_10 = [
    *(38.98, 37.37, 23.25, 21.13, 13.51, 13.30),
    *(38.19, 35.92, 26.16, 24.09, 11.83, 11.38),
    *(31.75, 29.93, 19.29, 18.09, 12.46, 11.84),
    *(29.12, 26.99, 17.16, 14.95, 12.22, 11.13),
    *(21.73, 21.07, 28.89, 30.64, 19.53, 20.98, 14.44, 16.82),
]


@ITEMS.is_made(59, "D", "rows judged by Llama-3.3", "printed", TABLES_9_AND_10)
def _llama(_: Path) -> list[float]:
    # Next to a run of a scripted Llama: tests/e2e/test_published_baselines.py.
    return cells(9, 10)
