"""What the page is answered: the same cells as the node's, bounded, and clear refusals."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.grid import grid_cells, hex_grid, select_cells
from h3video.nodes.routes import MAX_DRAWN, grid_answer, select_answer

ASKED = {"width": "640", "height": "384", "hex_res": "4", "focus_x": "0.25", "focus_y": "0.5"}


def test_the_drawing_is_the_grid():
    answer = json.loads(grid_answer(ASKED))
    grid = hex_grid(640, 384, 4)
    cells = grid_cells(grid, focus=(160.0, 192.0))
    assert answer["count"] == len(answer["cells"]) == len(grid.cells)
    assert answer["focus"] == grid.cell_at(160, 192)
    for drawn, cell, ring in zip(answer["cells"], grid.cells, cells.rings()):
        assert drawn["id"] == f"{cell.id:x}" and drawn["ring"] == ring
        assert drawn["neighbours"] == list(grid.neighbours[cell.index])
        assert len(drawn["corners"]) == 6
        for (x, y), (a, b) in zip(drawn["corners"], grid.corners(cell.index)):
            assert abs(x - a) < 0.01 and abs(y - b) < 0.01


def test_defaults_are_the_nodes_defaults():
    assert json.loads(grid_answer({}))["count"] == len(hex_grid(1024, 576, 4).cells)
    assert json.loads(grid_answer({"hex_res": "auto"}))["res"] == 4


def test_chosen_cells_are_those_of_the_expression():
    answer = json.loads(select_answer({**ASKED, "select": "ring<=1 or row 0"}))
    cells = grid_cells(hex_grid(640, 384, 4), focus=(160.0, 192.0))
    assert answer["chosen"] == list(select_cells(cells, "ring<=1 or row 0"))


@pytest.mark.parametrize(
    "change, says",
    [
        ({"hex_res": "16"}, "hex_res 16 is out of range 0..15"),
        ({"hex_res": "four"}, "hex_res 'four'"),
        ({"hex_res": "-1"}, "hex_res -1 is out of range"),
        ({"width": "0"}, "width 0 is out of range"),
        ({"width": "99999"}, "width 99999 is out of range"),
        ({"width": "640.5"}, "not a whole number"),
        ({"height": "nan"}, "not a finite number"),
        ({"span": "inf"}, "not a finite number"),
        ({"span": "0"}, "span 0 is out of range"),
        ({"span": "2", "hex_res": "9"}, "span 2 is out of range"),
        ({"rotation": "x" * 999}, "rotation 'x{40}' is not a number"),
        ({"projection": "flat"}, "projection 'flat' is unknown"),
        ({"focus_x": "1.5"}, "focus_x 1.5 is out of range 0..1"),
        ({"overlap": "-3"}, "overlap -3 is out of range"),
        (
            {"hex_res": "7", "width": "4096", "height": "4096"},
            f"limit is {MAX_DRAWN}; use hex_res 5",
        ),
        ({"hex_res": "15"}, "too many cells to draw"),
        ({"file": "/etc/passwd"}, "parameter 'file' is unknown"),
        ({"projection": "equirectangular", "width": "8192", "height": "4096"}, "too large to draw"),
    ],
)
def test_bad_input_is_refused(change, says):
    with pytest.raises(UsageError, match=says):
        grid_answer({**ASKED, **change})


def test_bad_expressions_are_refused():
    with pytest.raises(UsageError, match="not understood"):
        select_answer({**ASKED, "select": "rung 1"})
    with pytest.raises(UsageError, match="limit is 20000"):
        select_answer({**ASKED, "select": "x" * 20_001})


@given(
    st.dictionaries(
        st.sampled_from(
            ["width", "height", "hex_res", "overlap", "span", "rotation", "projection", "focus_x"]
        ),
        st.one_of(
            st.text(max_size=8), st.integers(-5, 20000).map(str),
            st.floats(allow_nan=True).map(str),
            st.sampled_from(["auto", "face", "equirectangular"]),
        ),
        max_size=4,
    )
)  # fmt: skip
def test_no_query_breaks_the_answer(query):
    try:
        answer = json.loads(grid_answer(query))
    except UsageError as e:
        assert "\n" not in str(e) and len(str(e)) < 400
    else:
        assert 1 <= answer["count"] <= 1.5 * MAX_DRAWN
