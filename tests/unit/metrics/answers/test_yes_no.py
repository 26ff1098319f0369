"""Yes or no: the same awkward answers under every parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS

ROOT = Path(__file__).resolve().parents[4]
PARSERS = ("published", "opera", "lmms-eval", "vlmevalkit", "repope", "first-word", "strict")
# One letter for each parser, in that order: y, n, or - where the parser cannot tell.
AWKWARD = [
    ("Yes", "yyyyyyy"),
    ("No", "nnnnnnn"),
    ("yes", "yyyyyyy"),
    ("no", "nnnnnnn"),
    ("YES", "yyyyyyy"),
    ("NO", "ynnnnnn"),
    ("Yes.", "yy-yyyy"),
    ("No.", "nn-nnnn"),
    ("NO.", "yn-nnnn"),
    ("yes!", "yy-yyyy"),
    ("no!", "yy-nnnn"),
    (" Yes ", "yyyyyyy"),
    (" no ", "nnnnnnn"),
    ("\nno", "yynnnnn"),
    ("", "yy-----"),
    ("   ", "yy-----"),
    (".", "yy-----"),
    ("isn't", "yn-----"),
    ("There isn't a dog.", "yn-----"),
    ("There isn’t a dog.", "yy-----"),
    ("Not sure", "yy--n--"),
    ("I am not sure", "nn--n--"),
    ("Yes, there is a snowboard", "yy-yyyy"),
    ("Yes, there is a snowboard in the image.", "yy-yyyy"),
    ("No, there is no snowboard in the image.", "nn-nnnn"),
    ("no, yes", "nn--yn-"),
    ("Yes and no", "nn--y--"),
    ("Yes or no?", "yy--y--"),
    ("我不知道", "yy-----"),
    ("是", "yy---yy"),
    ("是的，图中有一只狗。", "yy---yy"),
    ("没有", "yy---nn"),
    ("答案：否", "yy---nn"),
    ("はい", "yy---yy"),
    ("아니요, 없습니다.", "yy---nn"),
    ("Sí, hay un perro.", "yy---yy"),
    ("Non.", "yy--nnn"),
    ("Non-metal parts", "yy--n--"),
    ("Nein", "yy---nn"),
    ("Нет, не вижу.", "yy---nn"),
    ("Sim card", "yy-----"),
    ("1. There is no cat.\n2. A dog is there.\n\nAnswer: Yes", "yn--yyy"),
    ("I see no cat. So the answer is yes.", "nn--yyy"),
    ("There is no cat.\n\n**Yes**", "nn-nyyy"),
    ("Is there a dog? Answer yes or no.\nYes", "ny--yyy"),
    ("Yes\n\nExplanation: there is no cat.", "nn--yyy"),
    ("No.\nA dog is not there. Yes, a cat is.", "nn--ynn"),
    ("Yes\n\nSo the answer is no.", "nn--yy-"),
    ("Yes, a dog. There is no cat. The answer is yes.", "yn--yyy"),
    ("The answer is yes or no", "nn--y--"),
    ("No, there is a cat. The answer is yes.", "nn--yn-"),
    ("The answer is no. The answer is yes.", "nn--yn-"),
    ("If the answer is yes, there is no cat", "nn--yy-"),
    ('{"answer": false}', "yy---nn"),
    ("No... wait, actually yes.", "nn--yy-"),
    ("Yes. Wait, no.", "yn--yn-"),
    ("They wait, then cross.", "yy-----"),
    ("- [ ] Yes\n- [x] No", "nn--ynn"),
    ("I cannot see the image", "yy--n--"),
    ("I can't see the image", "yn-----"),
    ("No, I can't see a dog.", "nn-nnnn"),
    ("No, I cannot see any dogs in this image.", "nn-nnnn"),
    ("No, I can't see the image.", "nn-nnn-"),
    ("No, I can't tell.", "nn-nnn-"),
    ("There is no car.", "nn-nnnn"),
    ("There is a car.", "yy-----"),
    ("The answer is no", "nn-nnnn"),
    ("The answer is yes.", "yy-yyyy"),
    ("Answer: Yes", "yy-yyyy"),
    ("**Yes**", "yy--yyy"),
    ("Yes. There is no doubt.", "yn--yy-"),
    ("A dog. No cat.", "yn-nnn-"),
    ("No idea", "nn-nn--"),
    ("yes,no", "yy--yy-"),
    ("No/Yes", "yy--yn-"),
    ("nope", "yy--n--"),
    ("Yeah", "yy-----"),
    ("know", "yy--n--"),
    ("Yes, but I am not certain", "nn-yyy-"),
    ("(no)", "yy-nnnn"),
    ("None", "yy--n--"),
    ("There is snow on the eyes.", "yy--y--"),
    ("No. Yes, behind it", "nn--yn-"),
    ("A dog with no collar. Yes.", "nn--yy-"),
    ("I would say no.", "nn-nnn-"),
    ("Not that I know", "yy--n--"),
    ("No, it is hard to say why.", "nn-nnn-"),
    ("Yes, it is not hidden", "nn-yyy-"),
    ("Option (B): No", "nn-nnnn"),
    ("Q: Is there a dog?\nA: No", "nn-nnnn"),
    ("Therefore, no.", "nn-nnnn"),
    ("**Verdict:** No", "nn-nnnn"),
    ("Answer - No", "nn-nnnn"),
    ("So the answer would be no.", "nn-nnnn"),
    ("There is no car.\nA dog is there.\n\nYes, I see it.", "nn--yyy"),
    ("There is no car.\n\n**Yes**, behind it.", "nn-nyyy"),
    ("Yes. Actually, no, it is a wolf.", "yn--yn-"),
    ("No, sorry, I mean yes.", "nn--yy-"),
    ("Yes. On closer inspection, no.", "yn--yn-"),
    ("Yes. Actually no other dog is there.", "yn--yy-"),
    ("Answer yes or no. There is none. No", "nn--ynn"),
    ("(yes/no) Yes", "yy--yyy"),
    ("The answer is not yes.", "nn-yy--"),
    ('The sign reads "No parking". Yes.', "yy--yy-"),
    ("$\\text{No}$", "yy-nnnn"),
    ("1. Left: no car.\n2. Right: a dog.\n\nA. Yes", "yn--yyy"),
    ("Left: no car.\n\nYes, on the right.\n\nAsk me more!", "nn--yyy"),
    ("Left: no car.\n\n是的，图中有一只狗。", "nn-nnyy"),
    ("| Is there a dog? | No |", "nn-nnn-"),
    ("答案是：否", "yy---nn"),
    ("图中有狗，所以答案是“是”。", "yy---yy"),
    ("答案是", "yy-----"),
    ("**答案：** No", "nn-nnnn"),
    ("La respuesta es sí.", "yy---yy"),
    ("Réponse finale : **Non**", "yy--nnn"),
    ("Die Antwort lautet nein.", "yy---nn"),
    ("Ответ — нет.", "yy---nn"),
    ("答えは「はい」です。", "yy---yy"),
    ("ไม่ใช่", "yy---nn"),
    ("Ναι.", "yy---yy"),
    ("כן", "yy---yy"),
]
MEANING = {"y": "yes", "n": "no", "-": None}


@pytest.mark.parametrize(("answer", "wanted"), AWKWARD, ids=[repr(a) for a, _ in AWKWARD])
def test_awkward_answers(answer: str, wanted: str) -> None:
    got = {name: YES_NO_PARSERS[name](answer) for name in PARSERS}
    assert got == {name: MEANING[mark] for name, mark in zip(PARSERS, wanted, strict=True)}


def test_the_page_shows_what_each_parser_reads() -> None:
    page = (ROOT / "docs/decisions/answer-parsing.md").read_text(encoding="utf-8")
    heading = "| answer | " + " | ".join(PARSERS) + " |\n"
    rows = page.partition(heading)[2].partition("\n\n")[0].splitlines()[1:]
    assert len(rows) > 10
    for row in rows:
        answer, *shown = (cell.strip() for cell in row.strip("|").split("|"))
        text = "" if answer == "(empty)" else answer.strip("`")
        assert shown == [YES_NO_PARSERS[name](text) or "-" for name in PARSERS], answer


def test_long_answers_are_not_kept() -> None:
    answer = "Yes, " + "there is a dog and " * 5000
    assert YES_NO_PARSERS["published"](answer) == "yes"
    assert YES_NO_PARSERS["vlmevalkit"](answer) == "yes"
