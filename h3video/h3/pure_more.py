"""The pure index, second part: paths, local coordinates, places, compaction, edges, vertexes,
areas. Ports of csrc/h3.c; the reasons are told there. Angles are radians, standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from .constants import EARTH_KM, EDGE_KM, MOST_CELLS
from .errors import CODES, error
from .pure import (
    CENTER,
    DIGIT_OF,
    FIVE,
    IJ,
    PENTAGON_ORDER,
    SEXTANT,
    STEP_A,
    STEP_B,
    I,
    K,
    Spot,
    Vec,
    _along,
    _base_of,
    _blank,
    _cell,
    _corners,
    _cross,
    _decode,
    _decode_turned,
    _digit,
    _digit_of_step,
    _dot,
    _down,
    _encode,
    _geo,
    _grow,
    _is_pentagon,
    _leading,
    _neighbour_at,
    _neighbours,
    _outline,
    _res,
    _res_of,
    _round_half_even,
    _same_res,
    _steps,
    _tables,
    _turn,
    _turn_index,
    _unfolded,
    _unit,
    _up,
    _vec,
    _with_digit,
    cell_to_center_child,
    cell_to_children,
    cell_to_children_size,
    cell_to_latlng,
    cell_to_parent,
    grid_distance,
    is_valid_cell,
)  # fmt: skip

CELL_MODE, EDGE_MODE, VERTEX_MODE = 1, 2, 4


# ---- walks and paths --------------------------------------------------------------------------


def _walk(cell: int, first: int, last: int) -> list[int]:
    """Rings in the order of uber/h3, where no pentagon is near."""
    if last < 0:
        raise error(2, f"k {last}")
    _cell(cell)
    for five in (cell_to_center_child(_blank(0, b), _res_of(cell)) for b in _tables().pentagons):
        if grid_distance(cell, five) <= last:
            raise error(9, f"disk of {last} steps around {cell:#x}")
    if 3 * last * (last + 1) + 1 > MOST_CELLS:
        raise error(13, f"disk of {last} steps around {cell:#x}")
    h, turns, out = cell, 0, [cell] if first == 0 else []

    def step(digit: int) -> None:
        nonlocal h, turns
        h, moved = _neighbour_at(h, _turned(turns, digit))
        turns += moved

    for ring in range(1, last + 1):
        step(I)
        for side in range(6 if ring >= first else 0):
            for _ in range(ring):
                if first == last:
                    out.append(h)
                step(DIGIT_OF[(side + 2) % 6])
                if first < last:
                    out.append(h)
    return out


def _turned(turns: int, digit: int) -> int:
    return DIGIT_OF[(SEXTANT[digit] + turns) % 6]


def grid_disk_unsafe(cell: int, k: int) -> list[int]:
    return _walk(cell, 0, k)


def grid_ring_unsafe(cell: int, k: int) -> list[int]:
    return _walk(cell, k, k)


def _on_line(p: Spot, q: Spot, t: float) -> Spot:
    r = p[2] + t * (q[2] - p[2])
    i = (p[1] - p[2]) + t * ((q[1] - p[1]) - (q[2] - p[2]))
    return (p[0], *_round_half_even(i, r))


def grid_path_cells(start: int, end: int) -> list[int]:
    _same_res(start, end)
    res = _res_of(start)
    p, target = _decode(start), _decode(end)
    steps, q = _unfolded(p, target, res)
    if steps >= MOST_CELLS:
        raise error(13, f"a path of {steps} steps")
    path = [start]
    while len(path) <= steps:  # straight in the plane while that is unbroken
        h = _encode(_on_line(p, q, len(path) / steps), res)
        left = steps - len(path)
        if p[0] != target[0] and (grid_distance(path[-1], h) != 1 or grid_distance(h, end) != left):
            break
        path.append(h)
    side = _cross(_vec(*cell_to_latlng(start)), _vec(*cell_to_latlng(end)))
    while len(path) <= steps:  # from there on the neighbour nearest to the great circle
        left = steps - len(path)
        nearer = [h for h in _neighbours(path[-1]) if grid_distance(h, end) == left]
        path.append(min(nearer, key=lambda h: abs(_dot(_vec(*cell_to_latlng(h)), side))))
    return path


# ---- local coordinates ------------------------------------------------------------------------


def _position(h: int) -> tuple[int, int]:
    """Position of a cell around its base cell's centre, by its digits alone."""
    a = b = 0
    for r in range(1, _res_of(h) + 1):
        a, b = _down(r, a, b)
        a, b = a + STEP_A[_digit(h, r)], b + STEP_B[_digit(h, r)]
    return a, b


def _over_gap(start: int, to: int) -> int | None:
    """The turn over a pentagon's gap from one sextant beside another; None: not side by side."""
    place = {5: 0, 4: 1, 6: 2, 2: 3, 3: 4}
    if CENTER in (start, to) or start == to:
        return 0
    apart = place[to] - place[start]
    return {1: 0, -1: 0, 4: 1, -4: -1}.get(apart)


@lru_cache(maxsize=122)
def _around(base: int) -> dict[int, tuple[int, int]]:
    """The base cells beside one, by digit: (base cell, turns between the digits)."""
    found = {d: _neighbour_at(_blank(0, base), d) for d in range(1, 7)}
    return {d: (_base_of(h), turns) for d, (h, turns) in found.items() if h}


def _direction(start: int, to: int) -> int | None:
    return next((d for d, (base, _) in _around(start).items() if base == to), None)


def _local(origin: int, h: int) -> tuple[int, int] | None:
    start, to, fives = _base_of(origin), _base_of(h), _tables().pentagons
    a, b = _position(h)
    if start == to:
        gap = _over_gap(_leading(origin), _leading(h)) if start in fives else 0
        return None if gap is None else _turn(gap, a, b)
    ahead = _direction(start, to)
    if ahead is None:
        return None
    turns, gap = _around(start)[ahead][1], 0
    if to in fives:
        back = _direction(to, start)
        assert back is not None
        inner = _over_gap(back, _leading(h))
        if inner is None:
            return None
        a, b = _turn(inner, a, b)
        turns = SEXTANT[back] + 3 - SEXTANT[ahead]
    elif start in fives:
        gap = _over_gap(_leading(origin), ahead)
        if gap is None:
            return None
    a, b = _turn(-turns, a, b)
    c, d = _grow(_res_of(h), STEP_A[ahead], STEP_B[ahead])
    return _turn(gap, a + c, b + d)


def cell_to_local_ij(origin: int, cell: int) -> tuple[int, int]:
    _same_res(origin, cell)
    found = _local(origin, cell)
    if found is None:
        raise error(1, f"place of {cell:#x} around {origin:#x}, which no plane holds")
    return found


def local_ij_to_cell(origin: int, i: int, j: int) -> int:
    for h in _candidates(_cell(origin), i, j):
        if is_valid_cell(h) and _local(origin, h) == (i, j):
            return h
    raise error(1, f"place ({i}, {j}) around {origin:#x}, where there is no cell")


def _candidates(origin: int, i: int, j: int) -> Iterator[int]:
    res, start, fives = _res_of(origin), _base_of(origin), _tables().pentagons
    for gap in (0, -1, 1) if start in fives else (0,):
        a, b = _turn(gap, i, j)
        digits = _blank(res, 0)
        for r in range(res, 0, -1):
            p, q = _up(r, a, b)
            ca, cb = _down(r, p, q)
            digits = _with_digit(digits, r, _digit_of_step(a - ca, b - cb))
            a, b = p, q
        if _steps(a, b) > 1:
            continue
        ahead = _digit_of_step(a, b)
        if ahead and ahead not in _around(start):
            continue
        base, turns = _around(start)[ahead] if ahead else (start, 0)
        if ahead and base in fives:
            back = _direction(base, start)
            assert back is not None
            turns = SEXTANT[back] + 3 - SEXTANT[ahead]
        for more in (0, -1, 1) if ahead and base in fives else (0,):
            yield _turn_index(turns + more, digits) | base << 45


# ---- hierarchy and facts ----------------------------------------------------------------------


def _descendants(pentagon: bool, levels: int) -> int:
    return int(1 + 5 * (7**levels - 1) // 6 if pentagon else 7**levels)


def cell_to_child_pos(child: int, res: int) -> int:
    pentagon, pos = _is_pentagon(cell_to_parent(child, res)), 0
    for r in range(res + 1, _res_of(child) + 1):
        digit, below = _digit(child, r), _res_of(child) - r
        if pentagon and digit:
            pos += _descendants(True, below) + (digit - 2) * _descendants(False, below)
        else:
            pos += digit * _descendants(False, below)
        pentagon = pentagon and not digit
    return pos


def child_pos_to_cell(parent: int, res: int, pos: int) -> int:
    _cell(parent)
    if _res(res) < _res_of(parent):
        raise error(12, f"child resolution {res} of a cell of {_res_of(parent)}")
    if not 0 <= pos < cell_to_children_size(parent, res):
        raise error(2, f"place {pos} among the children of {parent:#x}")
    pentagon, h = _is_pentagon(parent), cell_to_center_child(parent, res)
    for r in range(_res_of(parent) + 1, res + 1):
        each = _descendants(False, res - r)
        middle = _descendants(True, res - r) if pentagon else each
        digit = 0
        if pos >= middle:
            digit = 1 + (pos - middle) // each
            pos -= middle + (digit - 1) * each
            digit += pentagon  # K is missing
            pentagon = False
        h = _with_digit(h, r, digit)
    return h


def compact_cells(cells: Sequence[int]) -> list[int]:
    known = sorted(h for h in cells if h)
    for h in known:
        if _res_of(_cell(h)) != _res_of(known[0]):
            raise error(12, f"resolutions {_res_of(known[0])} and {_res_of(h)}")
    if len(set(known)) < len(known):
        raise error(10, "cells to compact")
    out: list[int] = []
    for h in known:
        out.append(h)
        while (res := _res_of(out[-1])) and _digit(out[-1], res) == IJ:
            parent = cell_to_parent(out[-1], res - 1)
            family = cell_to_children(parent, res)
            if out[-len(family) :] != family:
                break
            out[-len(family) :] = [parent]
    return out


def uncompact_cells(cells: Sequence[int], res: int) -> list[int]:
    _res(res)
    known = [_cell(h) for h in cells if h]
    if any(_res_of(h) > res for h in known):
        raise error(12, f"cells finer than resolution {res}")
    if sum(cell_to_children_size(h, res) for h in known) > MOST_CELLS:
        raise error(13, f"{len(known)} cells at resolution {res}")
    return [child for h in known for child in cell_to_children(h, res)]


def construct_cell(res: int, base: int, digits: Sequence[int]) -> int:
    _res(res)
    if not 0 <= base <= 121:
        raise error(17, f"base cell {base}")
    h = _blank(res, base)
    for r, digit in enumerate(digits, 1):
        if not 0 <= digit <= 6:
            raise error(18, f"digit {digit}")
        h = _with_digit(h, r, digit)
        if base in _tables().pentagons and digit == K and not any(digits[: r - 1]):
            raise error(19, f"digits {tuple(digits)} of base cell {base}")
    return h


def get_index_digit(index: int, res: int) -> int:
    if not 1 <= res <= 15:
        raise error(4, f"resolution {res}")
    return _digit(_number(index, 5), res)


def _number(h: int, code: int) -> int:
    if not 0 <= h < 1 << 64:
        raise error(code, f"index {h:#x}")
    return h


def is_res_class_iii(cell: int) -> bool:
    return bool(_res_of(_cell(cell)) & 1)


def is_valid_index(h: int) -> bool:
    return is_valid_cell(h) or is_valid_directed_edge(h) or is_valid_vertex(h)


def get_num_cells(res: int) -> int:
    return int(2 + 120 * 7 ** _res(res))


def get_icosahedron_faces(cell: int) -> list[int]:
    faces = _outline(_cell(cell)).faces
    if _is_pentagon(cell):
        t = _tables()
        faces = {t.pentagon_face[_base_of(cell), k] for k in FIVE}
    return sorted(faces)


# ---- directed edges ---------------------------------------------------------------------------


def _with_mode(h: int, mode: int, reserved: int) -> int:
    return (h & ~(255 << 56)) | mode << 59 | reserved << 56


def is_valid_directed_edge(h: int) -> bool:
    origin, digit = _with_mode(h, CELL_MODE, 0), (h >> 56) & 7
    if h < 0 or h >> 59 != EDGE_MODE or not 1 <= digit <= 6 or not is_valid_cell(origin):
        return False
    return not (digit == K and _is_pentagon(origin))


def _ends(edge: int) -> tuple[int, int]:
    """Origin and digit."""
    if not is_valid_directed_edge(edge):
        raise error(6, f"edge {edge:#x}")
    return _with_mode(edge, CELL_MODE, 0), (edge >> 56) & 7


def cells_to_directed_edge(origin: int, destination: int) -> int:
    _cell(origin), _cell(destination)
    for digit in range(1, 7):
        if _neighbour_at(origin, digit)[0] == destination:
            return _with_mode(origin, EDGE_MODE, digit)
    raise error(11, f"cells {origin:#x} and {destination:#x}")


def directed_edge_to_cells(edge: int) -> tuple[int, int]:
    origin, digit = _ends(edge)
    return origin, _neighbour_at(origin, digit)[0]


def origin_to_directed_edges(origin: int) -> list[int]:
    first = 2 if _is_pentagon(_cell(origin)) else 1
    return [_with_mode(origin, EDGE_MODE, digit) for digit in range(first, 7)]


def reverse_directed_edge(edge: int) -> int:
    origin, destination = directed_edge_to_cells(edge)
    return cells_to_directed_edge(destination, origin)


def directed_edge_to_boundary(edge: int) -> list[tuple[float, float]]:
    origin, digit = _ends(edge)
    odd = _res_of(origin) & 1
    if _is_pentagon(origin):
        first = (PENTAGON_ORDER[odd].index(SEXTANT[digit]) + (0 if odd else 4)) % 5
    else:
        first = (SEXTANT[digit] + _decode_turned(origin)[1] + 5) % 6
    return list(map(_geo, _outline(origin, first, 2).points))


# ---- vertexes ---------------------------------------------------------------------------------


def _beside_corner(cell: int, number: int) -> list[int]:
    res = _res_of(cell)
    if _is_pentagon(cell):
        order, after = PENTAGON_ORDER[res & 1], (number + (4 if res & 1 else 1)) % 5
        return [_neighbour_at(cell, DIGIT_OF[order[k]])[0] for k in (number, after)]
    face, a, b = _decode(cell)
    digits = DIGIT_OF[number], DIGIT_OF[(number + 1) % 6]
    return [_encode((face, a + STEP_A[d], b + STEP_B[d]), res) for d in digits]


def cell_to_vertex(cell: int, number: int) -> int:
    if not 0 <= number < _corners(_cell(cell)):
        raise error(2, f"corner {number} of {cell:#x}")
    owner = min(cell, *_beside_corner(cell, number))
    if owner != cell:
        at = _unit(_outline(cell, number, 1).points[0])
        apart = [
            _along(_unit(_outline(owner, k, 1).points[0]), -1.0, at) for k in range(_corners(owner))
        ]
        number = min(range(len(apart)), key=lambda k: _dot(apart[k], apart[k]))
    return _with_mode(owner, VERTEX_MODE, number)


def cell_to_vertexes(cell: int) -> list[int]:
    return [cell_to_vertex(cell, k) for k in range(_corners(_cell(cell)))]


def is_valid_vertex(h: int) -> bool:
    cell, number = _with_mode(h, CELL_MODE, 0), (h >> 56) & 7
    if h < 0 or h >> 59 != VERTEX_MODE or not is_valid_cell(cell) or number >= _corners(cell):
        return False
    return cell_to_vertex(cell, number) == h


def vertex_to_latlng(vertex: int) -> tuple[float, float]:
    if not is_valid_vertex(vertex):
        raise error(8, f"vertex {vertex:#x}")
    return _geo(_outline(_with_mode(vertex, CELL_MODE, 0), (vertex >> 56) & 7, 1).points[0])


# ---- areas and lengths ------------------------------------------------------------------------


def cell_area(cell: int) -> float:
    points = list(map(_unit, _outline(_cell(cell)).points))
    total: Vec = (0.0, 0.0, 0.0)
    for p in points:
        total = _along(total, 1.0, p)
    middle = _unit(total)
    parts = []
    for p, q in zip(points, points[1:] + points[:1]):
        det = _dot(middle, _cross(_along(p, -1.0, middle), _along(q, -1.0, middle)))
        cosines = 1.0 + _dot(middle, p) + _dot(p, q) + _dot(q, middle)
        parts.append(2.0 * math.atan2(det, cosines))
    return math.fsum(parts)


def great_circle_distance(lat0: float, lng0: float, lat1: float, lng1: float) -> float:
    half = math.sin(0.5 * (lat1 - lat0)) ** 2
    half += math.sin(0.5 * (lng1 - lng0)) ** 2 * math.cos(lat0) * math.cos(lat1)
    return 2.0 * math.atan2(math.sqrt(min(half, 1.0)), math.sqrt(max(0.0, 1.0 - half)))


def edge_length(edge: int) -> float:
    points = directed_edge_to_boundary(edge)
    return sum(great_circle_distance(*p, *q) for p, q in pairwise(points))


def average_hexagon_area(res: int) -> float:
    five = cell_to_center_child(_blank(0, min(_tables().pentagons)), _res(res))
    hexagons = 4.0 * math.pi - 12.0 * cell_area(five)
    return hexagons * EARTH_KM**2 / (get_num_cells(res) - 12)


def average_hexagon_edge_length(res: int) -> float:
    return EDGE_KM[_res(res)]


def describe_error(code: int) -> str:
    if code == 0:
        return "Success"
    doc = CODES[code].__doc__ if code in CODES else None
    return (doc or "Unknown error code").split(chr(10))[0].rstrip(".")
