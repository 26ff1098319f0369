"""Any answers, written in any layout of another tool, are read as they were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.archive_samples import CAPTION_LAYOUTS, PLAIN_MAP, QUESTION_LAYOUTS, Caption, Question
from support.sizes import examples

from hallujudge.metrics import AnswersItem
from hallujudge.metrics.chair import ChairItem
from hallujudge.sdk.archives import InputOptions, read_items

# Workbooks can't hold control characters, and tables turn texts of blanks into missing ones.
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\n\t"),
    min_size=1,
    max_size=40,
).filter(lambda text: bool(text.strip()) and not text.startswith(" "))
FEW = settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Question, ...]:
    rows = draw(st.lists(st.tuples(st.sampled_from(["yes", "no"]), TEXTS), min_size=1, max_size=6))
    return tuple(
        Question(
            id=number % 3,
            category=("random", "popular")[number // 3],
            image=f"{number}.jpg",
            text=f"Is there a thing {number}?",
            label=label,
            answer=answer,
        )
        for number, (label, answer) in enumerate(rows)
    )


@pytest.mark.parametrize("layout", QUESTION_LAYOUTS)
@given(known=questions())
@FEW
def test_answers(layout: str, known: Sequence[Question]) -> None:
    key_map = PLAIN_MAP if layout.startswith("plain") else {}
    with TemporaryDirectory() as folder:
        path = QUESTION_LAYOUTS[layout](Path(folder), known)
        items = list(read_items("pope", path, None, options=InputOptions(key_map=key_map)))
    found = [(item.label, item.response) for item in items if isinstance(item, AnswersItem)]
    assert found == [(q.label, q.answer) for q in known]


@pytest.mark.parametrize("layout", CAPTION_LAYOUTS)
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
@FEW
def test_captions(layout: str, texts: list[str]) -> None:
    known = [
        Caption(image_id=number, text=text, objects=("dog", f"cat {number}"))
        for number, text in enumerate(texts)
    ]
    with_objects, write = CAPTION_LAYOUTS[layout]
    objects = {str(c.image_id): list(c.objects) for c in known}
    with TemporaryDirectory() as folder:
        path = write(Path(folder), known)
        items = list(read_items("chair", path, None if with_objects else objects))
    found = [
        (item.id, item.response, item.reference_objects)
        for item in items
        if isinstance(item, ChairItem)
    ]
    assert found == [(str(c.image_id), c.text, c.objects) for c in known]
