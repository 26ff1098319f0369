"""The report as one HTML page, as text; tests/e2e/test_report_html.py looks at it in a browser."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import report_samples as samples

from hallujudge.metrics import Evidence, Item, ItemResult, JsonValue, MentionVerdict, Outcome
from hallujudge.metrics.answers.evidence import AnswerEvidence
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Verdict
from hallujudge.metrics.framework.triplets import Triplet
from hallujudge.metrics.pope.items import PopeItem
from hallujudge.metrics.tri_he.evidence import TriHeEvidence
from hallujudge.metrics.tri_he.items import TriHeItem
from hallujudge.sdk.report import HtmlPage
from hallujudge.sdk.report.pieces import Mark, marked
from hallujudge.sdk.report.text import clean

VOID = {"meta", "wbr"}
TAGS = VOID.union(
    ("html", "head", "title", "style", "body", "main", "header", "section", "article", "details"),
    ("h1", "h2", "h3", "p", "b", "small", "code", "span", "mark", "div", "summary", "ul", "li"),
    ("table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "svg", "rect", "circle"),
)


class Reader(HTMLParser):
    """Reads a page, and fails where it is not well formed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.marks: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.articles: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)
        if tag == "mark":
            self.marks.append((dict(attrs)["class"] or "", ""))
        if tag == "article":
            self.articles.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.text.append(data)
        if "mark" in self.open:
            kind, text = self.marks[-1]
            self.marks[-1] = (kind, text + data)
        if "article" in self.open:
            self.articles[-1] += data


def page_of(*pairs: tuple[Item, ItemResult], **options: object) -> str:
    page = HtmlPage()
    for item, result in pairs:
        page.add(item, result)
    return page.render(samples.report(**options))  # type: ignore[arg-type]  # the sample's own options


def test_page_holds_scores_coverage_signature_and_settings() -> None:
    text = " ".join(Reader(page_of(unscored=2)).text)
    for part in ("0.1877", "[0.1700, 0.2000]", "1,998 of 2,000 items scored", "graph version"):
        assert part in text
    assert samples.SIGNATURE in "".join(Reader(page_of()).text)


def test_mentions_are_marked_and_explained() -> None:
    page = page_of(samples.caption("7"))
    assert Reader(page).marks[2:] == [("wrong", "dog"), ("right", "sofa")]
    assert 'title="dog → dog, not among the image&#x27;s reference objects"' in page
    [article] = Reader(page).articles
    assert "1 of 2 mentions hallucinated" in article
    assert "Missed bed" in article


def test_what_is_hallucinated_is_listed_in_words_too() -> None:
    mention = MentionVerdict("sofa", "couch", 11, 15, True)
    [article] = Reader(page_of(samples.caption("7", mentions=(mention, mention)))).articles
    assert article.count("sofa → couch") == 1


def test_hostile_text_stays_text() -> None:
    hostile = samples.HOSTILE
    mention = MentionVerdict(hostile, hostile, 0, 30, True)
    groups = {hostile: {hostile: {hostile: samples.score(hostile, 0.5)}}}
    page = page_of(
        samples.caption(hostile, hostile, (mention,), group_id=hostile),
        samples.unscored_caption(hostile),
        unscored=1,
        groups=groups,
        metric=hostile,
        signature=hostile,
    )
    reader = Reader(page)
    assert "script" not in reader.open
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name == "style"]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", page)
    assert page.encode()


def test_page_allows_itself_its_own_style_and_nothing_else() -> None:
    page = page_of()
    [style] = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    [policy] = re.findall('http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.replace("&#x27;", "'").split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in style
    assert "@import" not in style


def wrong_mentions(count: int) -> tuple[MentionVerdict, ...]:
    return tuple(MentionVerdict("dog", "dog", 2, 5, True) for _ in range(count))


def test_worst_items_come_first_and_the_rest_is_counted() -> None:
    pairs = [
        samples.caption(f"i{number}", mentions=wrong_mentions(number % 7)) for number in range(2000)
    ]
    reader = Reader(page_of(*pairs))
    ids = [re.match(r"i\d+?(?=\d of|$)", article)[0] for article in reader.articles]  # type: ignore[index]  # always there
    assert ids == [f"i{number}" for number in range(2000) if number % 7 == 6][:200]
    assert "Showing 200 of 2,000 scored items" in "".join(reader.text)


def test_ties_go_to_those_that_came_first() -> None:
    pairs = [samples.caption(f"i{number}", mentions=()) for number in range(300)]
    reader = Reader(page_of(*pairs))
    assert len(reader.articles) == 200
    assert reader.articles[0].startswith("i0")
    assert reader.articles[-1].startswith("i199")


def test_unscored_items_are_named_up_to_a_bound() -> None:
    pairs = [samples.unscored_caption(f"u{number}") for number in range(80)]
    text = "".join(Reader(page_of(*pairs, unscored=80)).text)
    assert "Unscored items (50 of 80)" in text
    assert "u49 RESPONSE_MISSING: the caption is null" in text
    assert "u50" not in text


def test_page_stays_small_whatever_comes() -> None:
    long = "a dog " * 200_000
    mentions = tuple(MentionVerdict("dog", "dog", at, at + 3, True) for at in range(2, 60_000, 6))
    page = page_of(samples.caption("x" * 10_000, long, mentions))
    assert len(page) < 200_000
    assert "1,196,000 more characters" in page


def test_page_is_the_same_for_the_same_run() -> None:
    pairs = [samples.caption("1"), samples.caption("2")]
    assert page_of(*pairs) == page_of(*pairs)


def test_empty_run_has_a_page() -> None:
    assert "No scored items." in "".join(Reader(page_of()).text)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherEvidence:
    """Evidence of a protocol that the page has no view for."""

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "answer": samples.HOSTILE,
            "flags": [True, None, 0.5],
            "claims": [["man", "riding", "horse"], {"verdict": "supported"}],
            "none": [],
            "many": list(range(1000)),
        }


def test_other_evidence_is_shown_in_a_general_way() -> None:
    item, result = samples.caption("q1")
    page = page_of((item, replace(result, evidence=OtherEvidence())))
    [article] = Reader(page).articles
    assert "A dog on a sofa." in article
    assert "chair_i 0.5" in article
    assert '["man", "riding", "horse"]' in article
    assert '{"verdict": "supported"}' in article
    assert "and 940 more" in article


def scored(item: Item, evidence: Evidence) -> tuple[Item, ItemResult]:
    result = ItemResult(
        id=item.id, group_id=item.id, outcome=Outcome.SCORED, scores={}, evidence=evidence
    )
    return item, result


def test_claims_are_marked_where_they_stand() -> None:
    item = TriHeItem(id="q", question="What is there?", response="A man rides a horse.")
    evidence = TriHeEvidence(
        claims=(
            ClaimVerdict(
                triplet=Triplet("man", "rides", "horse"),
                verdict=Verdict.NOT_SUPPORTED,
                part=Part.OBJECT,
                span=(2, 19),
            ),
            ClaimVerdict(triplet=Triplet("man", "is", "tall"), verdict=Verdict.SUPPORTED),
            ClaimVerdict(
                triplet=Triplet("a", "b", "c"), verdict=Verdict.UNSCORED, reason="JUDGE_SILENT"
            ),
        )
    )
    reader = Reader(page_of(scored(item, evidence), metric="tri-he"))
    assert reader.marks[2:] == [("wrong", "man rides a horse")]
    [article] = reader.articles
    assert "1 of 3 claims hallucinated" in article
    assert "Hallucinated man · rides · horse (object)" in article
    assert "Without a verdict a · b · c (JUDGE_SILENT)" in article


def test_wrong_answers_come_first() -> None:
    pairs = [
        scored(
            PopeItem(id=f"q{n}", response="Yes, it is.", question="Is there a dog?", label=label),
            AnswerEvidence(answer="yes", label=label, correct=label == "yes", how="first-word"),
        )
        for n, label in enumerate(["yes", "no"])
    ]
    first, second = Reader(page_of(*pairs, metric="pope")).articles
    assert first.startswith("q1yes, wrong: it is no")
    assert "Question Is there a dog?" in first
    assert second.startswith("q0yes, right")


def test_item_without_evidence_is_shown() -> None:
    item, result = samples.caption("q1")
    [article] = Reader(page_of((item, replace(result, evidence=None)))).articles
    assert article.startswith("q1")


spans = st.integers(-50, 5000)
marks = st.lists(st.builds(Mark, spans, spans, st.booleans(), st.text(max_size=5)), max_size=20)


@given(st.text(max_size=60), marks)
def test_marks_never_change_the_text(response: str, marks: list[Mark]) -> None:
    reader = Reader(marked(response, marks))
    assert "".join(reader.text) == clean(response)
    covered = [m for m in marks if m.wrong and max(m.start, 0) < min(m.end, len(response))]
    assert bool(covered) == any(kind == "wrong" for kind, _ in reader.marks)


@pytest.mark.parametrize(
    ("marks", "shown"),
    [
        ([Mark(0, 3, False, ""), Mark(1, 2, True, "")], ["right a", "wrong b", "right c"]),
        ([Mark(1, 2, True, ""), Mark(0, 3, False, "")], ["right a", "wrong b", "right c"]),
        ([Mark(0, 2, True, "x"), Mark(1, 3, True, "y")], ["wrong ab", "wrong c"]),
        ([Mark(2, 99, True, "")], ["wrong cd"]),
        ([Mark(-9, 1, False, ""), Mark(3, 1, True, ""), Mark(2, 2, True, "")], ["right a"]),
    ],
)
def test_overlapping_marks(marks: list[Mark], shown: list[str]) -> None:
    assert [f"{kind} {text}" for kind, text in Reader(marked("abcd", marks)).marks] == shown
