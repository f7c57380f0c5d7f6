"""The expression language that chooses cells, against a slow and obvious evaluation."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.grid import frame_grid, grid_cells, hex_grid, select_cells

CELLS = grid_cells(hex_grid(640, 384, 4), focus=(200.0, 100.0))
GRID = CELLS.grid
RINGS = CELLS.rings()
TOP = max(c.r for c in GRID.cells)
ALL = set(range(len(GRID.cells)))


WORDS = ["ring", "row", "1", "2", "<=", "..", "and", "or", "not", "(", ")", ",", "all", "50%", "x"]


def chosen(text):
    return set(select_cells(CELLS, text))


ATOMS = {
    "all": lambda c: True,
    "ring<=1": lambda c: RINGS[c.index] <= 1,
    "ring 2": lambda c: RINGS[c.index] == 2,
    "ring 1..2": lambda c: 1 <= RINGS[c.index] <= 2,
    "ring != 3": lambda c: RINGS[c.index] != 3,
    "row 0": lambda c: c.r == TOP,
    "row>=2": lambda c: TOP - c.r >= 2,
    "index < 9": lambda c: c.index < 9,
    "colour 1": lambda c: GRID.colours[c.index] == 1,
    "x<50%": lambda c: c.x < 320,
    "y>=100.5": lambda c: c.y >= 100.5,
    f"{GRID.cells[7].id:x}": lambda c: c.index == 7,
    f"parent {GRID.parent(20):x}": lambda c: GRID.parent(c.index) == GRID.parent(20),
    "polygon 0,0 640,0 640,200 0,200": lambda c: 0 <= c.x < 640 and 0 < c.y <= 200,
}


@pytest.mark.parametrize("text", ATOMS)
def test_words_mean_what_they_say(text):
    expected = {c.index for c in GRID.cells if ATOMS[text](c)}
    assert expected and chosen(text) == expected


def trees():
    leaf = st.sampled_from(sorted(ATOMS)).map(
        lambda t: (t, {c.index for c in GRID.cells if ATOMS[t](c)})
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            inner.map(lambda a: (f"not ({a[0]})", ALL - a[1])),
            st.tuples(inner, inner).map(
                lambda p: (f"({p[0][0]}) and ({p[1][0]})", p[0][1] & p[1][1])
            ),
            st.tuples(inner, inner).map(
                lambda p: (f"({p[0][0]}) or ({p[1][0]})", p[0][1] | p[1][1])
            ),
        ),
        max_leaves=8,
    )


@given(trees())
def test_combinations_are_set_algebra(tree):
    text, expected = tree
    if expected:
        assert chosen(text) == expected
    else:
        with pytest.raises(UsageError, match="chooses none"):
            chosen(text)


def test_and_binds_tighter_than_or():
    assert chosen("index 1 or index 2 and index 3") == {1}
    assert chosen("index 1, index 2 and not index 3") == {1, 2}


def test_case_space_and_a_last_comma_do_not_matter():
    assert chosen("  RING <=1 ,\n ROW 0,") == chosen("ring<=1 or row 0")
    assert chosen(f"{GRID.cells[3].id:X}") == {3}


def test_border_and_inside_share_the_frame():
    border = chosen("border")
    inside = chosen("not border")
    assert border | inside == ALL and not border & inside
    assert all(0 < GRID.cells[i].x < 640 for i in inside)


def test_none_is_allowed_when_it_is_meant():
    assert chosen("none") == set()


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("ring", "ring needs a number at its end"),
        ("ring <= x", "ring needs a number at 'x'"),
        ("cell 4", "not understood at 'cell'"),
        ("ring 1 ring 2", "not understood at 'ring'"),
        ("(ring 1", "a \\) is missing"),
        ("ring 1)", "not understood at '\\)'"),
        ("ring 1 or", "at its end"),
        ("ring 50%", "only x and y"),
        ("polygon 1,1 2,2", "needs 3 points, not 2"),
        ("polygon 1 2", "written x,y"),
        ("parent 5", "parent needs an H3 id"),
        ("ring 99", "chooses none of the"),
        ("$", "not understood at '\\$' \\(character 1\\)"),
        ("__import__('os')", "not understood"),
        ("8" + "0" * 14, "is no H3 cell"),
        ("(" * 60 + "all" + ")" * 60, "more than 50"),
    ],
)
def test_mistakes_are_named_with_their_place(text, says):
    with pytest.raises(UsageError, match=says):
        chosen(text)


def test_a_cell_elsewhere_is_refused_with_a_hint():
    other = hex_grid(640, 384, 3).cells[0].id
    with pytest.raises(UsageError, match=f"use `parent {other:x}`"):
        chosen(f"{other:x}")
    finer = hex_grid(640, 384, 5).cells[0].id
    with pytest.raises(UsageError, match="is not in this grid"):
        chosen(f"{finer:x}")


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text):
    with contextlib.suppress(UsageError):
        chosen(text)


@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_no_heap_of_words_breaks_the_parser(words):
    with contextlib.suppress(UsageError):
        chosen(" ".join(words))


def test_ten_thousand_nots_are_fine():
    assert chosen("not " * 10_000 + "ring 1") == chosen("ring 1")


def test_globe_knows_rings_and_places_but_no_rows():
    globe = grid_cells(frame_grid(512, 256, "0", projection="equirectangular"), 4.0)
    assert select_cells(globe, "ring<=1") and select_cells(globe, "x<50%")
    for word in ("row 0", "colour 1"):
        with pytest.raises(UsageError, match="no meaning on an equirectangular map"):
            select_cells(globe, word)
