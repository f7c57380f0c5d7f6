"""The lattice arithmetic against brute force and against its own laws."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.grid.lattice import CLASS3_TURN, NEIGHBOUR_STEPS, Lattice, hex_distance, spacing

frames = st.tuples(
    st.integers(16, 200), st.integers(16, 200), st.integers(2, 4), st.floats(-180, 180)
)


def lattice_of(frame):
    width, height, res, rotation = frame
    return Lattice.over_frame(width, height, res, 0.075, rotation)


def test_published_scale():
    # design: at res 4 an edge is 6.0 % of the longer side
    for width, edge in ((512, 31), (640, 38), (1024, 61)):
        got = Lattice.over_frame(width, width // 2, 4, 0.075, 0.0).edge
        assert round(got) == edge
    assert math.degrees(CLASS3_TURN) == pytest.approx(19.1066, abs=1e-4)
    assert spacing(4) == pytest.approx(0.007795225, abs=1e-9)  # measured with the official library


@given(frames, st.integers(-6, 6), st.integers(-6, 6))
def test_centre_and_locate_are_inverse(frame, q, r):
    lattice = lattice_of(frame)
    assert lattice.locate(*lattice.centre(q, r)) == (q, r)


@given(frames, st.floats(0, 1), st.floats(0, 1))
def test_locate_is_the_nearest_centre(frame, fx, fy):
    lattice = lattice_of(frame)
    x, y = fx * frame[0], fy * frame[1]
    q, r = lattice.locate(x, y)
    own = math.dist(lattice.centre(q, r), (x, y))
    for dq, dr in NEIGHBOUR_STEPS:
        assert own <= math.dist(lattice.centre(q + dq, r + dr), (x, y)) + 1e-9


@given(frames)
def test_pixel_rows_are_the_pixels_that_locate_gives(frame):
    width, height = frame[:2]
    lattice = lattice_of(frame)
    owner = {}
    for q, r in lattice.cells_near(width, height):
        for y, first, last in lattice.pixel_rows(q, r, width, height):
            for x in range(first, last + 1):
                assert (x, y) not in owner
                owner[x, y] = (q, r)
    assert len(owner) == width * height
    for (x, y), cell in list(owner.items())[:: max(1, width * height // 500)]:
        assert lattice.locate(x + 0.5, y + 0.5) == cell


@given(frames)
def test_corners_are_shared_with_neighbours(frame):
    lattice = lattice_of(frame)
    mine = lattice.corners(0, 0)
    for dq, dr in NEIGHBOUR_STEPS:
        theirs = lattice.corners(dq, dr)
        shared = [a for a in mine if any(math.dist(a, b) < 1e-6 for b in theirs)]
        assert len(shared) == 2


def test_hex_distance_of_neighbours_is_one():
    assert [hex_distance(*s) for s in NEIGHBOUR_STEPS] == [1] * 6
    assert hex_distance(0, 0) == 0
    assert hex_distance(3, -1) == 3
    assert hex_distance(2, 2) == 4


turns = st.one_of(st.sampled_from([0.0, 15.0, 30.0, 60.0, -90.0, 180.0]), st.floats(-400, 400))


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 5), turns)
def test_pixel_count_is_the_sum_of_the_rows(width, height, res, rotation):
    lattice = Lattice.over_frame(width, height, res, 0.075, rotation)
    for q, r in itertools.islice(lattice.cells_near(width, height), 60):
        rows = lattice.pixel_rows(q, r, width, height)
        expected = sum(last - first + 1 for _, first, last in rows)
        assert lattice.pixel_count(q, r, width, height) == expected
