"""The index in pure Python: the same contract as the native library, a port of csrc/h3.c.

It serves when there is no library for this machine, and it is the slow definition
that the native rasters are tested against. Angles are radians. How it works is
told at the top of csrc/h3.c; names here follow it. Standard library only.
"""

from __future__ import annotations

import math
from functools import lru_cache

from .constants import (
    COS_TURN3,
    FACE_CENTRES,
    HOME_FACE,
    MOST_CELLS,
    SIN_TURN3,
    SPACING0,
    SQRT3,
)  # fmt: skip
from .errors import error

Vec = tuple[float, float, float]
Spot = tuple[int, int, int]
"""(face, a, b): a lattice point on a face's plane at a resolution known from the context."""

MAX_RES = 15
CENTER, K, J, JK, I, IK, IJ, NONE = range(8)
STEP_A = (0, -1, 0, -1, 1, 0, 1)
STEP_B = (0, -1, 1, 0, 0, -1, 1)
TURNED = (0, IK, JK, K, IJ, I, J, 7)
SEXTANT = (0, 4, 2, 3, 0, 5, 1)
DIGIT_OF = (I, IJ, J, JK, K, IK)
EDGE_A, EDGE_B = (1, -1, 0), (1, 0, -1)
CORNER_A, CORNER_B = (2, 1, -1, -2, -1, 1), (1, 2, 1, -1, -2, -1)
FIVE = (5, 0, 1, 2, 3)
PENTAGON_ORDER = ((0, 1, 2, 3, 5), (1, 2, 3, 5, 0))


# ---- integers and vectors -------------------------------------------------------------------


def _dot(p: Vec, q: Vec) -> float:
    return p[0] * q[0] + p[1] * q[1] + p[2] * q[2]


def _cross(p: Vec, q: Vec) -> Vec:
    return (p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0])


def _along(p: Vec, s: float, q: Vec) -> Vec:
    return (p[0] + s * q[0], p[1] + s * q[1], p[2] + s * q[2])


def _unit(p: Vec) -> Vec:
    s = 1.0 / math.sqrt(_dot(p, p))
    return (p[0] * s, p[1] * s, p[2] * s)


def _vec(lat: float, lng: float) -> Vec:
    return (math.cos(lat) * math.cos(lng), math.cos(lat) * math.sin(lng), math.sin(lat))


def _seventh(n: int) -> int:
    """n / 7 rounded to the nearest integer; there are no ties."""
    return (2 * n + 7) // 14


def _up(res: int, a: int, b: int) -> tuple[int, int]:
    """The parent, at the level above `res`."""
    if res & 1:
        return _seventh(3 * a - b), _seventh(a + 2 * b)
    return _seventh(2 * a + b), _seventh(3 * b - a)


def _down(res: int, a: int, b: int) -> tuple[int, int]:
    """The middle child, at level `res`."""
    return (2 * a + b, 3 * b - a) if res & 1 else (3 * a - b, a + 2 * b)


def _turn(turns: int, a: int, b: int) -> tuple[int, int]:
    for _ in range(turns % 6):
        a, b = a - b, a
    return a, b


def _turn_digit(turns: int, digit: int) -> int:
    for _ in range(turns % 6):
        digit = TURNED[digit]
    return digit


def _digit_of_step(a: int, b: int) -> int:
    return 4 * a + 2 * b - 7 * min(a, b, 0)


def _grow(res: int, a: int, b: int) -> tuple[int, int]:
    """Where a point of resolution 0 lies at a finer one."""
    for r in range(1, res + 1):
        a, b = _down(r, a, b)
    return a, b


def _steps(a: int, b: int) -> int:
    return max(abs(a), abs(b), abs(a - b))


def _plane(scale: float, a: int, b: int) -> tuple[float, float]:
    return scale * (a - 0.5 * b), scale * (0.5 * SQRT3 * b)


# ---- bits -----------------------------------------------------------------------------------


def _res_of(h: int) -> int:
    return (h >> 52) & 15


def _base_of(h: int) -> int:
    return (h >> 45) & 127


def _digit(h: int, res: int) -> int:
    return (h >> (3 * (MAX_RES - res))) & 7


def _with_digit(h: int, res: int, digit: int) -> int:
    shift = 3 * (MAX_RES - res)
    return (h & ~(7 << shift)) | (digit << shift)


def _with_res(h: int, res: int) -> int:
    return (h & ~(15 << 52)) | (res << 52)


def _blank(res: int, base: int) -> int:
    return (1 << 59) | (res << 52) | (base << 45) | 0x1FFFFFFFFFFF


def _leading(h: int) -> int:
    for r in range(1, _res_of(h) + 1):
        if _digit(h, r):
            return _digit(h, r)
    return CENTER


def _turn_index(turns: int, h: int) -> int:
    if turns % 6:
        for r in range(1, _res_of(h) + 1):
            h = _with_digit(h, r, _turn_digit(turns, _digit(h, r)))
    return h


# ---- tables ---------------------------------------------------------------------------------


def _sextant_from(a: int, b: int) -> int:
    return 3 if a == 2 else 5 if b == 2 else 1


def _on_face(a: int, b: int) -> bool:
    return a + b <= 2 and b - 2 * a <= 2 and a - 2 * b <= 2


class _Tables:
    """Everything derived from the face centres; see csrc/h3.c for the reasons."""

    def __init__(self) -> None:
        self.scale = [SPACING0 / 7.0 ** (r // 2) for r in range(18)]
        for r in range(1, 17, 2):
            self.scale[r] = self.scale[r - 1] / math.sqrt(7.0)
        self.limit = [2 * 7 ** ((r + 1) // 2) for r in range(17)]
        self._faces()
        self._edges()
        self._base_cells()
        self._turns()

    def _faces(self) -> None:
        self.n: list[Vec] = []
        self.ex: list[Vec] = []
        self.ey: list[Vec] = []
        for lat, lng, az in FACE_CENTRES:
            n = _vec(lat, lng)
            east = (-math.sin(lng), math.cos(lng), 0.0)
            north = _cross(n, east)
            ex = _along(_along((0.0, 0.0, 0.0), math.cos(az), north), math.sin(az), east)
            self.n.append(n)
            self.ex.append(ex)
            self.ey.append(_cross(n, ex))

    def spot_vec(self, face: int, x: float, y: float) -> Vec:
        return _unit(self.plane_vec(face, x, y))

    def plane_vec(self, face: int, x: float, y: float) -> Vec:
        return _along(_along(self.n[face], x, self.ex[face]), y, self.ey[face])

    def _lattice_vec(self, face: int, a: int, b: int) -> Vec:
        return self.spot_vec(face, *_plane(SPACING0, a, b))

    def _edges(self) -> None:
        mids = {
            (f, e): self._lattice_vec(f, EDGE_A[e], EDGE_B[e]) for f in range(20) for e in range(3)
        }
        self.across: dict[tuple[int, int], tuple[int, int, int]] = {}
        for (f, e), mid in mids.items():
            for (g, d), other in mids.items():
                if g != f and _dot(mid, other) > 1.0 - 1e-9:
                    self.across[f, e] = (g, d, (1 + 2 * d + 3 - (1 + 2 * e)) % 6)

    def _base_cells(self) -> None:
        found: list[Vec] = []
        raw: dict[Spot, int] = {}
        for f in range(20):
            for a in range(-2, 3):
                for b in range(-2, 3):
                    if not _on_face(a, b):
                        continue
                    p = self._lattice_vec(f, a, b)
                    same = [i for i, q in enumerate(found) if _dot(p, q) > 1.0 - 1e-9]
                    if not same:
                        found.append(p)
                    raw[f, a, b] = same[0] if same else len(found) - 1
        order = sorted(range(len(found)), key=lambda i: -found[i][2])
        number = {i: rank for rank, i in enumerate(order)}
        self.base = {spot: number[i] for spot, i in raw.items()}
        self.home: dict[int, Spot] = {}
        self.pentagons: set[int] = set()
        self.where: dict[tuple[int, int], Spot] = {}  # (base cell, face) -> its spot there
        for (f, a, b), cell in self.base.items():
            self.where[cell, f] = (f, a, b)
            if a * a + b * b - a * b == 4:
                self.pentagons.add(cell)
            if HOME_FACE[cell] == f:
                self.home[cell] = (f, a, b)

    def _turns(self) -> None:
        self.turns: dict[Spot, int] = {}
        self.sector: dict[Spot, int] = {}
        self.pentagon_face: dict[tuple[int, int], int] = {}
        for spot, cell in self.base.items():
            f, a, b = spot
            home, ha, hb = self.home[cell]
            if cell not in self.pentagons:
                over = [t for (g, _, t) in (self.across[f, e] for e in range(3)) if g == home]
                self.turns[spot] = over[0] if home != f else 0
                continue
            at = self._lattice_vec(f, a, b)
            u = _unit(_along(self.n[home], -_dot(self.n[home], at), at))
            v = _cross(at, u)
            t = math.atan2(_dot(self.n[f], v), _dot(self.n[f], u)) % (2 * math.pi)
            ahead = round(t / (2 * math.pi / 5)) % 5
            s = _sextant_from(ha, hb)
            while ahead > 0:
                s = (s + 1) % 6
                if s != SEXTANT[K]:
                    ahead -= 1
            self.sector[spot] = s
            self.pentagon_face[cell, s] = f
            self.turns[spot] = (s - _sextant_from(a, b)) % 6


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    return _Tables()


# ---- moving over the icosahedron --------------------------------------------------------------


def _edge_beyond(a: int, b: int, limit: int) -> int:
    over = (a + b - limit, b - 2 * a - limit, a - 2 * b - limit)
    e = max(range(3), key=lambda i: (over[i], -i))
    return e if over[e] > 0 else -1


@lru_cache(maxsize=256)
def _middle(e: int, res: int) -> tuple[int, int]:
    return _grow(res, EDGE_A[e], EDGE_B[e])


def _unfold(s: Spot, e: int, res: int, factor: int = 1) -> Spot:
    g, d, turns = _tables().across[s[0], e]
    ma, mb = _middle(e, res)
    na, nb = _middle(d, res)
    a, b = _turn(turns, s[1] - factor * ma, s[2] - factor * mb)
    return g, a + factor * na, b + factor * nb


def _settle(s: Spot, res: int) -> tuple[Spot, int]:
    """The point on the face where it lies, and the turns to that face's axes."""
    even, turns = res + (res & 1), 0
    for _ in range(4):
        a, b = _down(even, s[1], s[2]) if res & 1 else (s[1], s[2])
        e = _edge_beyond(a, b, _tables().limit[even])
        if e < 0:
            break
        turns += _tables().across[s[0], e][2]
        s = _unfold(s, e, res)
    return s, turns


def _encode(s: Spot, res: int) -> int:
    return _encode_turned(s, res)[0]


def _encode_turned(s: Spot, res: int) -> tuple[int, int]:
    """The index of a lattice point, and the turns from the face's axes to its digits."""
    t = _tables()
    (face, a, b), turns = _settle(s, res)
    h = _blank(res, 0)
    for r in range(res, 0, -1):
        pa, pb = _up(r, a, b)
        ca, cb = _down(r, pa, pb)
        h = _with_digit(h, r, _digit_of_step(a - ca, b - cb))
        a, b = pa, pb
    top: Spot = (face, a, b)
    more = 0
    while not _on_face(top[1], top[2]):
        e = _edge_beyond(top[1], top[2], 2)
        more += t.across[top[0], e][2]
        top = _unfold(top, e, 0)
    base = t.base[top]
    more += t.turns[top]
    h = _turn_index(more, (h & ~(127 << 45)) | (base << 45))
    if base in t.pentagons and _leading(h) == K:
        extra = 1 if t.sector[top] == SEXTANT[JK] else -1
        h, more = _turn_index(extra, h), more + extra
    return h, (turns + more) % 6


def _decode(h: int) -> Spot:
    return _decode_turned(h)[0]


def _decode_turned(h: int) -> tuple[Spot, int]:
    """The lattice point of a cell, and the turns from its digits to the face's axes."""
    t = _tables()
    res, base = _res_of(h), _base_of(h)
    s, turns = t.home[base], 0
    lead = _leading(h) if base in t.pentagons else CENTER
    if lead:
        s = t.where[base, t.pentagon_face[base, SEXTANT[lead]]]
        turns = -t.turns[s]
    face, a, b = s
    for r in range(1, res + 1):
        digit = _turn_digit(turns, _digit(h, r))
        a, b = _down(r, a, b)
        a, b = a + STEP_A[digit], b + STEP_B[digit]
    s, moved = _settle((face, a, b), res)
    if lead:
        s, more = _choose_side(s, base, res)
        moved += more
    return s, turns + moved


def _choose_side(s: Spot, base: int, res: int) -> tuple[Spot, int]:
    """On an edge between two sextants of a pentagon: the one nearer to JK, as uber/h3 does."""
    t, even = _tables(), res + (res & 1)
    a, b = _down(even, s[1], s[2]) if res & 1 else (s[1], s[2])
    rank = {0: 0, 1: 1, 2: 2, 3: 4, 5: 3}  # of sextants I, IJ, J, JK, IK
    sextants = {t.pentagon_face[base, k]: rank[k] for k in rank}
    for e, over in enumerate((a + b, b - 2 * a, a - 2 * b)):
        if over == t.limit[even]:
            face, _, turns = t.across[s[0], e]
            here, there = sextants.get(s[0], 9), sextants.get(face, -1)
            return (_unfold(s, e, res), turns) if there > here else (s, 0)
    return s, 0


# ---- checks -----------------------------------------------------------------------------------


def _cell(h: int) -> int:
    if not is_valid_cell(h):
        raise error(5, f"cell {h:#x}")
    return h


def _res(res: int) -> int:
    if not 0 <= res <= MAX_RES:
        raise error(4, f"resolution {res}")
    return res


def _finite(lat: float, lng: float) -> None:
    if not (math.isfinite(lat) and math.isfinite(lng)):
        raise error(3, f"point ({lat}, {lng})")


# ---- points -----------------------------------------------------------------------------------


def _geo(p: Vec) -> tuple[float, float]:
    return math.atan2(p[2], math.hypot(p[0], p[1])), math.atan2(p[1], p[0])


def _round_half_even(q: float, r: float) -> tuple[int, int]:
    """The nearest lattice point: q along I, r along J, rounded together."""
    s = -q - r
    rq, rr, rs = round(q), round(r), round(s)
    dq, dr, ds = abs(rq - q), abs(rr - r), abs(rs - s)
    if dq > dr and dq > ds:
        rq = -rr - rs
    elif dr > ds:
        rr = -rq - rs
    return rq + rr, rr


def _nearest(x: float, y: float, res: int) -> tuple[int, int]:
    if res & 1:
        x, y = x * COS_TURN3 + y * SIN_TURN3, y * COS_TURN3 - x * SIN_TURN3
    per_spacing = 1.0 / _tables().scale[res]
    r = y * (2.0 / SQRT3)
    return _round_half_even((x - 0.5 * r) * per_spacing, r * per_spacing)


def latlng_to_cell(lat: float, lng: float, res: int) -> int:
    _res(res)
    _finite(lat, lng)
    t = _tables()
    p = _vec(lat, lng)
    face = max(range(20), key=lambda f: (_dot(p, t.n[f]), -f))
    c = _dot(p, t.n[face])
    a, b = _nearest(_dot(p, t.ex[face]) / c, _dot(p, t.ey[face]) / c, res)
    return _encode((face, a, b), res)


def cell_to_latlng(cell: int) -> tuple[float, float]:
    t = _tables()
    face, a, b = _decode(_cell(cell))
    res = _res_of(cell)
    even = res + (res & 1)
    if res & 1:
        a, b = _down(even, a, b)
    return _geo(t.plane_vec(face, *_plane(t.scale[even], a, b)))


def plane_to_latlng(face: int, u: float, v: float) -> tuple[float, float]:
    if not (0 <= face < 20 and math.isfinite(u) and math.isfinite(v)):
        raise error(2, f"face {face}, plane point ({u}, {v})")
    return _geo(_tables().plane_vec(face, u, v))


def latlng_to_plane(face: int, lat: float, lng: float) -> tuple[float, float]:
    if not 0 <= face < 20:
        raise error(2, f"face {face}")
    _finite(lat, lng)
    t = _tables()
    p = _vec(lat, lng)
    c = _dot(p, t.n[face])
    if c < 1e-6:
        raise error(2, f"point ({lat}, {lng}), which the plane of face {face} does not reach")
    return _dot(p, t.ex[face]) / c, _dot(p, t.ey[face]) / c


def _inside(u: float, v: float) -> bool:
    """On the face, by a margin wider than any rounding."""
    third = 0.5 * SQRT3 * v
    return 0.5 * u + third < 0.3819 and -u < 0.3819 and 0.5 * u - third < 0.3819


def plane_to_cell(face: int, u: float, v: float, res: int) -> int:
    if not 0 <= face < 20:
        raise error(2, f"face {face}")
    if _inside(u, v):
        return _encode((face, *_nearest(u, v, res)), res)
    return latlng_to_cell(*plane_to_latlng(face, u, v), res)


# ---- outlines ---------------------------------------------------------------------------------


def _corner(res: int, k: int) -> tuple[int, int]:
    a, b = CORNER_A[k % 6], CORNER_B[k % 6]
    return _down(res + 1, a, b) if res & 1 else (a, b)


class _Outline:
    """Vertices of a cell, on the even level at or below it in thirds of its lattice."""

    def __init__(self, res: int) -> None:
        t = _tables()
        self.even = res + (res & 1)
        self.limit = 3 * t.limit[self.even]
        self.scale = t.scale[self.even] / 3.0
        self.points: list[Vec] = []
        self.faces: set[int] = set()

    def add(self, s: Spot) -> None:
        for _ in range(4):
            e = _edge_beyond(s[1], s[2], self.limit)
            if e < 0:
                break
            s = _unfold(s, e, self.even, 3)
        self.faces.add(s[0])
        self.points.append(_tables().plane_vec(s[0], *_plane(self.scale, s[1], s[2])))

    def crossing(self, face: int, e: int, p0: tuple[int, int], p1: tuple[int, int]) -> None:
        """Where the segment p0-p1 meets edge e of the face."""
        nx, ny = ((0.5, 0.5 * SQRT3), (-1.0, 0.0), (0.5, -0.5 * SQRT3))[e]
        x0, y0 = _plane(self.scale, *p0)
        x1, y1 = _plane(self.scale, *p1)
        d0, d1 = nx * x0 + ny * y0 - SPACING0, nx * x1 + ny * y1 - SPACING0
        t = d0 / (d0 - d1)
        x, y = x0 + t * (x1 - x0), y0 + t * (y1 - y0)
        self.points.append(_tables().plane_vec(face, x, y))


def cell_to_boundary(cell: int) -> list[tuple[float, float]]:
    return list(map(_geo, _outline(_cell(cell)).points))


def _corners(cell: int) -> int:
    return 5 if _is_pentagon(cell) else 6


def _outline(cell: int, first: int = 0, count: int = 0) -> _Outline:
    """`count` corners (0: all) of a cell from `first` on, with the bends between them."""
    out = _Outline(_res_of(cell))
    if _is_pentagon(cell):
        _pentagon_outline(_base_of(cell), _res_of(cell), first, count or 5, out)
    else:
        _hexagon_outline(_decode(cell), _res_of(cell), first, count or 6, out)
    return out


def _hexagon_outline(s: Spot, res: int, first: int, count: int, out: _Outline) -> None:
    face, a, b = s
    if res & 1:
        a, b = _down(res + 1, a, b)
    around = [_corner(res, first + k) for k in range(count + 1)]
    corners = [(3 * a + ca, 3 * b + cb) for ca, cb in around]
    beyond = [_edge_beyond(ca, cb, out.limit) for ca, cb in corners]
    for k, now in enumerate(corners):
        last = corners[k - 1]
        bends = k > 0 and res & 1 and beyond[k] != beyond[k - 1] and (k < count or count == 6)
        if bends:
            e = beyond[k] if beyond[k] >= 0 else beyond[k - 1]
            ia, ib = last if beyond[k] >= 0 else now
            if (ia + ib, ib - 2 * ia, ia - 2 * ib)[e] < out.limit:
                out.crossing(face, e, last, now)
        if k < count:
            out.add((face, *now))


def _pentagon_outline(base: int, res: int, first: int, count: int, out: _Outline) -> None:
    t = _tables()
    for k in range(count):
        sextant = PENTAGON_ORDER[res & 1][(first + k) % 5]
        face = t.pentagon_face[base, sextant]
        _, a, b = t.where[base, face]
        own = _sextant_from(a, b)
        a, b = _grow(out.even, a, b)
        ca, cb = _corner(res, own + 5 if res & 1 else own)
        here = (3 * a + ca, 3 * b + cb)
        out.add((face, *here))
        if res & 1 and (k < count - 1 or count == 5):
            na, nb = _corner(res, own)
            ahead = (3 * a + na, 3 * b + nb)
            out.crossing(face, _edge_beyond(*ahead, out.limit), here, ahead)


# ---- neighbours -------------------------------------------------------------------------------


def _neighbour_at(cell: int, digit: int) -> tuple[int, int]:
    """The neighbour in the direction of a digit, as the cell's own digits count, and the turns from
    these to the neighbour's; (0, 0) where K does not exist."""
    res = _res_of(cell)
    if _is_pentagon(cell):
        if digit == K:
            return 0, 0
        t = _tables()
        spot = t.where[_base_of(cell), t.pentagon_face[_base_of(cell), SEXTANT[digit]]]
        s: Spot = (spot[0], *_grow(res, spot[1], spot[2]))
        here = -t.turns[spot]
    else:
        s, here = _decode_turned(cell)
    step = _turn_digit(here, digit)
    h, there = _encode_turned((s[0], s[1] + STEP_A[step], s[2] + STEP_B[step]), res)
    return h, (here + there) % 6


def _neighbours(cell: int) -> list[int]:
    if _is_pentagon(cell):
        return [_neighbour_at(cell, DIGIT_OF[k])[0] for k in FIVE]
    face, a, b = _decode(cell)
    res = _res_of(cell)
    return [_encode((face, a + STEP_A[d], b + STEP_B[d]), res) for d in DIGIT_OF]


def _check_disk(cell: int, k: int) -> None:
    if k < 0:
        raise error(2, f"k {k}")
    res = _res_of(_cell(cell))
    far = (29 if res & 1 else 11) * 7 ** (res // 2)
    k = min(k, far)
    if 3 * k * (k + 1) + 1 > MOST_CELLS:
        raise error(13, f"disk of {k} steps around {cell:#x}")


def grid_disk_distances(cell: int, k: int) -> list[tuple[int, int]]:
    _check_disk(cell, k)
    rings = [[cell]]
    seen = {cell}
    for _ in range(k):
        ring = []
        for h in rings[-1]:
            for n in _neighbours(h):
                if n not in seen:
                    seen.add(n)
                    ring.append(n)
        if not ring:
            break
        rings.append(ring)
    return [(h, d) for d, ring in enumerate(rings) for h in ring]


def grid_disk(cell: int, k: int) -> list[int]:
    return [h for h, _ in grid_disk_distances(cell, k)]


def grid_ring(cell: int, k: int) -> list[int]:
    return [h for h, d in grid_disk_distances(cell, k) if d == k]


@lru_cache(maxsize=20)
def _images(face: int) -> dict[int, list[tuple[int, int, int]]]:
    """The planes of other faces seen from one: (turns, a, b), what to turn by and then to add, in
    points of resolution 0; all ways over 7 edges at most that come through no face twice."""
    found: dict[int, list[tuple[int, int, int]]] = {}

    def add(g: int, at: tuple[int, int, int], depth: int, seen: frozenset[int]) -> None:
        known = found.setdefault(g, [])
        if at not in known:
            known.append(at)
        for e in range(3 if depth else 0):
            after, d, over = _tables().across[g, e]
            if after in seen:
                continue
            a, b = _turn(-over, -EDGE_A[d], -EDGE_B[d])
            a, b = _turn(at[0], a + EDGE_A[e], b + EDGE_B[e])
            add(after, ((at[0] - over) % 6, a + at[1], b + at[2]), depth - 1, seen | {after})

    add(face, (0, 0, 0), 7, frozenset({face}))
    return found


def _unfolded(p: Spot, q: Spot, res: int) -> tuple[int, Spot]:
    """The fewest steps from p to q, and q in the plane of p's face on that way."""
    if p[0] == q[0]:
        return _steps(p[1] - q[1], p[2] - q[2]), q
    places = []
    for turns, c, d in _images(p[0])[q[0]]:
        a, b = _turn(turns, q[1], q[2])
        c, d = _grow(res, c, d)
        places.append((p[0], a + c, b + d))
    best = min(places, key=lambda s: _steps(p[1] - s[1], p[2] - s[2]))
    return _steps(p[1] - best[1], p[2] - best[2]), best


def grid_distance(a: int, b: int) -> int:
    _same_res(a, b)
    return _unfolded(_decode(a), _decode(b), _res_of(a))[0]


def _same_res(a: int, b: int) -> None:
    if _res_of(_cell(a)) != _res_of(_cell(b)):
        raise error(12, f"resolutions {_res_of(a)} and {_res_of(b)}")


def are_neighbor_cells(a: int, b: int) -> bool:
    _same_res(a, b)
    return a != b and b in _neighbours(a)


# ---- hierarchy --------------------------------------------------------------------------------


def is_valid_cell(h: int) -> bool:
    if not 0 <= h < 1 << 63 or (h >> 59) & 15 != 1 or (h >> 56) & 7:
        return False
    if _base_of(h) > 121:
        return False
    res = _res_of(h)
    if any((_digit(h, r) == NONE) != (r > res) for r in range(1, 16)):
        return False
    return not (_base_of(h) in _tables().pentagons and _leading(h) == K)


def is_pentagon(cell: int) -> bool:
    return _is_pentagon(_cell(cell))


def _is_pentagon(h: int) -> bool:
    return _base_of(h) in _tables().pentagons and not _leading(h)


def get_resolution(cell: int) -> int:
    return _res_of(_cell(cell))


def get_base_cell_number(cell: int) -> int:
    return _base_of(_cell(cell))


def cell_to_parent(cell: int, res: int) -> int:
    _cell(cell)
    if _res(res) > _res_of(cell):
        raise error(12, f"parent resolution {res} of a cell of {_res_of(cell)}")
    for r in range(res + 1, _res_of(cell) + 1):
        cell = _with_digit(cell, r, NONE)
    return _with_res(cell, res)


def _child_res(cell: int, res: int) -> int:
    if not _res_of(_cell(cell)) <= res <= MAX_RES:
        raise error(4, f"child resolution {res} of a cell of {_res_of(cell)}")
    return res


def cell_to_center_child(cell: int, res: int) -> int:
    _child_res(cell, res)
    for r in range(_res_of(cell) + 1, res + 1):
        cell = _with_digit(cell, r, CENTER)
    return _with_res(cell, res)


def cell_to_children_size(cell: int, res: int) -> int:
    count = 7 ** (_child_res(cell, res) - _res_of(cell))
    return int(1 + 5 * (count - 1) // 6) if _is_pentagon(cell) else int(count)


def cell_to_children(cell: int, res: int) -> list[int]:
    size = cell_to_children_size(cell, res)
    if size > MOST_CELLS:
        raise error(13, f"children of {cell:#x} at resolution {res}")
    top, five = _res_of(cell), _base_of(cell) in _tables().pentagons
    h, out = cell_to_center_child(cell, res), []
    for _ in range(size):
        out.append(h)
        r = res
        while r > top and _digit(h, r) == IJ:
            h = _with_digit(h, r, CENTER)
            r -= 1
        if r > top:
            h = _with_digit(h, r, _digit(h, r) + 1)
        if five and _leading(h) == K:
            h = _with_digit(h, r, J)
    return out


def get_pentagons(res: int) -> list[int]:
    return [cell_to_center_child(_blank(0, b), _res(res)) for b in sorted(_tables().pentagons)]


def get_res0_cells() -> list[int]:
    return [_blank(0, b) for b in range(122)]


# ---- text -------------------------------------------------------------------------------------


def str_to_int(text: str) -> int:
    if not 1 <= len(text) <= 16 or set(text) - set("0123456789abcdefABCDEF"):
        raise error(1, f"text {text[:40]!r}, which is no index of 1 to 16 hexadecimal digits")
    return int(text, 16)


def int_to_str(h: int) -> str:
    return f"{h:x}"
