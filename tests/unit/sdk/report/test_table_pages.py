"""Pages of tables as text: no line is too long for a terminal, and no column is cut."""

from __future__ import annotations

from hallujudge.sdk.report.table_pages import Grid, Page, render_page

HEADINGS = ("score", "better end", "llava", "owl", "difference", "95% interval", "p")
ROW = ("mean_words", "higher", "90.6645", "98.4755", "+7.8110", "[+6.7925, +8.8260]", "<0.0001")


def grid(
    headings: tuple[str, ...] = HEADINGS, row: tuple[str, ...] = ROW, spare: tuple[str, ...] = ()
) -> Grid:
    return Grid(
        title="Differences",
        headings=headings,
        rows=(row,),
        keys=headings,
        values=(row,),
        spare=spare,
    )


def text_of(table: Grid, width: int = 80) -> list[str]:
    signature = "|".join(["chair", "var:published", "graph:coco-published-1@58bde436"] * 3)
    page = Page(title="page", grids=(table,), sentences=("Word " * 40,), sources={"run": signature})
    return render_page(page, width=width).splitlines()


def test_lines_fit_a_terminal_and_numbers_stay_whole() -> None:
    lines = text_of(grid())
    assert max(map(len, lines)) <= 80
    for number in ("90.6645", "98.4755", "+7.8110", "+8.8260]", "<0.0001"):
        assert number in " ".join(" ".join(lines).split())


def test_signatures_break_after_bars() -> None:
    lines = text_of(grid())
    signature = lines[lines.index("run") + 1 :]
    assert all(line.startswith("  ") for line in signature)
    assert [line[-1] for line in signature[:-1]] == ["|"] * (len(signature) - 1)


def test_spare_columns_are_left_out_only_where_a_table_is_too_wide() -> None:
    table = grid(spare=("better end", "p"))
    narrow, wide = text_of(table), text_of(table, width=120)
    assert not any("higher" in line for line in narrow)
    assert any("higher" in line and "<0.0001" in line for line in wide)


def test_no_column_is_cut_where_a_table_is_wider_than_the_terminal() -> None:
    numbers = tuple(f"0.{n}{n}{n}{n}" for n in range(10, 30))
    lines = text_of(grid(tuple(f"score-{n}" for n in range(20)), numbers))
    assert any(all(number in line for number in numbers) for line in lines)


def test_a_long_name_breaks_and_leaves_the_numbers_whole() -> None:
    lines = text_of(grid(row=("a-model-with-a-very-long-name-" * 2, *ROW[1:])))
    assert max(map(len, lines)) <= 80
    assert any("90.6645" in line for line in lines)


def test_names_of_scores_and_runs_break_after_underscores() -> None:
    headings = ("score", "eh_gemini", "eh_video_llava", *HEADINGS[4:], "eh_video_llava is")
    row = ("description_unparsed_rate", *ROW[2:], "not told apart")
    words = set(" ".join(text_of(grid(headings, row))).split())
    assert words >= {"description_", "unparsed_", "rate", "eh_video_", "llava", "[+6.7925,", "is"}


def test_columns_are_as_wide_as_their_longest_word_where_lines_are_too_long() -> None:
    names = ("score", "raw", "95% interval", "corrected", "95% interval", "for this run")
    ends = ("chair_i", "0.1199", "[0.0875, 0.1621]", "0.0870", "[0.0373, 0.1954]", "[0.04, 0.18]")
    table = grid((*names, "Rogan–Gladen", "labels", "report"), (*ends, "–", "81", "ppi++"))
    for width in (80, 94, 100, 120):
        lines = text_of(table, width)
        assert any(line.endswith("labels   report") for line in lines)
        assert any(line.endswith("81       ppi++") for line in lines)
