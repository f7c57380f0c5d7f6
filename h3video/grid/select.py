"""Choose cells of a grid with a short expression.

    ring<=2                     rings around the focus
    row 0    row 1..3           rows of the lattice, from the top
    index 5    colour 1         number in the grid; one of its three colours
    x<50%    y>=100             cell centres, px or share of the frame
    84754a9ffffffff             an id;  several: 84754a9ffffffff, 84754abffffffff
    parent 83754afffffffff      all cells under a coarser one
    polygon 10,10 200,40 120,200   cells whose centre lies inside, px
    all    none    border       border: cells that reach over the frame's edge

joined by `and`, `or` (or a comma), `not` and parentheses; `and` binds tighter.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, NoReturn

from .. import h3
from ..errors import UsageError
from .cells import GridCells

_TOKEN = re.compile(
    r"\s*(?:(?P<id>8[0-9a-f]{14})(?![0-9a-z_])"
    r"|(?P<number>-?\d+(?:\.(?!\.)\d*)?%?)"
    r"|(?P<word>[a-z]+)"
    r"|(?P<mark>\.\.|<=|>=|==|!=|[<>=(),]))",
    re.IGNORECASE,
)

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip

_PROPERTIES = ("ring", "row", "index", "colour", "color", "x", "y")

_HELP = (
    "use ids, ring<=2, row 0, row 1..3, index 5, colour 1, x<50%, y>=100, parent ID, "
    "polygon x,y x,y x,y, border, all, none, joined by and, or, not, ( )"
)

Chosen = frozenset[int]


def select_cells(cells: GridCells, text: str) -> tuple[int, ...]:
    """Indices of the cells that an expression chooses, ascending.

    Raises UsageError for an expression that cannot be read (with the place), an id
    that is not in the grid, and one that chooses nothing (unless it says `none`).
    """
    parser = _Parser(cells, text)
    chosen = parser.expression()
    parser.end()
    if not chosen and text.strip().lower() != "none":
        raise UsageError(
            f"select {_short(text)!r} chooses none of the {len(cells.grid.cells)} cells; "
            "write none if that is meant"
        )
    return tuple(sorted(chosen))


class _Parser:
    """Recursive descent; every method returns the chosen cells."""

    def __init__(self, cells: GridCells, text: str) -> None:
        self.cells, self.grid, self.text = cells, cells.grid, text
        self.everything: Chosen = frozenset(range(len(self.grid.cells)))
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                self._fail(at)
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind).lower(), match.start(kind)))
            at = match.end()
        self.at = 0
        self.depth = 0

    # ---- grammar ----

    def expression(self) -> Chosen:
        chosen = self._term()
        while self._take("or") or (self._take(",") and self._peek()[0] != "end"):
            chosen |= self._term()
        return chosen

    def _term(self) -> Chosen:
        chosen = self._factor()
        while self._take("and"):
            chosen &= self._factor()
        return chosen

    def _factor(self) -> Chosen:
        # Loops, not recursion, over `not`: a thousand of them must not exhaust the stack.
        negate = False
        while self._take("not"):
            negate = not negate
        if self._take("("):
            self.depth += 1
            if self.depth > 50:
                raise UsageError("select has more than 50 nested parentheses; write it flatter")
            chosen = self.expression()
            self.depth -= 1
            if not self._take(")"):
                self._fail(self._place(), "a ) is missing")
        else:
            chosen = self._atom()
        return self.everything - chosen if negate else chosen

    def _atom(self) -> Chosen:
        kind, value, place = self._next()
        if kind == "id":
            return frozenset({self._index_of(value)})
        if value == "all":
            return self.everything
        if value == "none":
            return frozenset()
        if value == "border":
            return self._where(self._reaches_over)
        if value == "parent":
            return self._children()
        if value == "polygon":
            return self._polygon()
        if value in _PROPERTIES:
            return self._compare("colour" if value == "color" else value)
        self._fail(place)

    def _compare(self, name: str) -> Chosen:
        values = self._values(name)
        kind, mark, _ = self._peek()
        if kind == "mark" and mark in _COMPARE:
            self.at += 1
            test, limit = _COMPARE[mark], self._number(name)
            return self._where(lambda i: test(values[i], limit))
        low = self._number(name)
        high = self._number(name) if self._take("..") else low
        return self._where(lambda i: low <= values[i] <= high)

    # ---- what the words mean ----

    def _where(self, test: Callable[[int], bool]) -> Chosen:
        return frozenset(i for i in self.everything if test(i))

    def _values(self, name: str) -> list[float]:
        cells = self.grid.cells
        if name == "ring":
            return list(self.cells.rings())
        if name == "index":
            return list(range(len(cells)))
        if name in ("x", "y"):
            return [getattr(c, name) for c in cells]
        if self.cells.projection != "face":
            raise UsageError(f"{name} has no meaning on an equirectangular map; use ring, x or y")
        if name == "colour":
            return list(self.grid.colours)  # type: ignore[union-attr]
        top = max(c.r for c in cells)
        return [top - c.r for c in cells]

    def _reaches_over(self, index: int) -> bool:
        width, height = self.grid.width, self.grid.height
        return any(
            x < 0.0 or y < 0.0 or x > width or y > height for x, y in self.grid.corners(index)
        )

    def _index_of(self, text: str) -> int:
        number = h3.str_to_int(text)
        if number in self.grid.by_id:
            return self.grid.by_id[number]
        if not h3.is_valid_cell(number):
            raise UsageError(f"{text} is no H3 cell; copy ids from the grid's summary")
        res = h3.get_resolution(number)
        remedy = f"; its resolution is {res}: use `parent {text}`" if res < self.grid.res else ""
        raise UsageError(
            f"cell {text} is not in this grid of {len(self.grid.cells)} cells at hex_res "
            f"{self.grid.res}{remedy}"
        )

    def _children(self) -> Chosen:
        kind, text, place = self._next()
        if kind != "id" or not h3.is_valid_cell(h3.str_to_int(text)):
            self._fail(place, "parent needs an H3 id")
        parent = h3.str_to_int(text)
        res = h3.get_resolution(parent)
        if res > self.grid.res:
            raise UsageError(
                f"parent {text} has resolution {res}, finer than the grid's {self.grid.res}"
            )
        return self._where(lambda i: h3.cell_to_parent(self.grid.cells[i].id, res) == parent)

    def _polygon(self) -> Chosen:
        points = []
        while self._peek()[0] == "number":
            x = self._number("x")
            if not self._take(","):
                self._fail(self._place(), "a polygon's points are written x,y")
            points.append((x, self._number("y")))
        if len(points) < 3:
            self._fail(self._place(), f"a polygon needs 3 points, not {len(points)}")
        return self._where(lambda i: _inside(self.grid.cells[i].x, self.grid.cells[i].y, points))

    # ---- tokens ----

    def _peek(self) -> tuple[str, str, int]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "", len(self.text))

    def _next(self) -> tuple[str, str, int]:
        token = self._peek()
        self.at += 1
        return token

    def _take(self, value: str) -> bool:
        if self._peek()[1] != value:
            return False
        self.at += 1
        return True

    def _place(self) -> int:
        return self._peek()[2]

    def _number(self, name: str) -> float:
        kind, text, place = self._next()
        if kind != "number":
            self._fail(place, f"{name} needs a number")
        if not text.endswith("%"):
            return float(text)
        if name not in ("x", "y"):
            self._fail(place, "only x and y may be in %")
        side = self.grid.width if name == "x" else self.grid.height
        return float(text[:-1]) / 100.0 * side

    def end(self) -> None:
        if self.at < len(self.tokens):
            self._fail(self._place())

    def _fail(self, place: int, why: str = "") -> NoReturn:
        found = self.text[place:].split()[:1]
        where = f"at {found[0]!r} (character {place + 1})" if found else "at its end"
        why = why or ("it is empty" if not self.text.strip() else "this is not understood")
        raise UsageError(f"select {_short(self.text)!r}: {why} {where}; {_HELP}")


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else f"{flat[:57]}..."


def _inside(x: float, y: float, points: list[tuple[float, float]]) -> bool:
    """Even-odd rule."""
    inside = False
    for (x1, y1), (x2, y2) in zip(points, points[1:] + points[:1]):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) / (y2 - y1) * (x2 - x1):
            inside = not inside
    return inside
