"""The walk: cells are finished one after the other, each beside neighbours that are done.

A plan in plain ints. A step denoises one cell inside a crop that holds the cell and the ring
around it. It finishes the latents of its cell and of the band around it (half the overlap wide)
that no earlier step finished; those are frozen from then on, and later steps see them as they are.
So every latent is finished once, a seam lies inside the later cell, a band's width from the edge,
and nothing is averaged: two different pictures of one place never meet.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import UsageError
from ..grid import HexGrid, finest_res, hex_grid, origin_fits
from .budget import parse_budget
from .crops import DEFAULT_SHARE, OVERLAP_PX, crop_boxes
from .latent_crops import MIN_OVERLAP_LATENTS, Fits, LatentBox
from .settings import HexSettings

WALK_ORDERS = ("spiral", "bfs", "importance")

MAX_STEPS = 1024


@dataclass(frozen=True)
class WalkStep:
    """One cell's turn.

    cell, id      index in the grid and H3 id
    colour        0..2; cells of one colour never touch
    left, top     corner of its crop in latents
    latents       how many it finishes; 0: earlier steps did, nothing is sampled
    after         earlier steps whose latents lie in its crop: it must wait for these only
    """

    cell: int
    id: int
    colour: int
    left: int
    top: int
    latents: int
    after: tuple[int, ...]


@dataclass(frozen=True)
class WalkPlan:
    """In which order a frame's cells are finished. Make one with `plan_walk`.

    unit, patch                px of a latent, latents of a token
    columns, rows              the frame in latents
    crop_columns, crop_rows    every crop in latents
    overlap                    px: a step finishes half of it beyond its cell
    context                    px that a step sees beyond its cell
    order                      spiral | bfs | importance
    """

    grid: HexGrid
    unit: int
    patch: int
    columns: int
    rows: int
    crop_columns: int
    crop_rows: int
    overlap: float
    context: float
    order: str
    steps: tuple[WalkStep, ...]

    @property
    def single(self) -> bool:
        """One crop that is the whole frame: no walk at all."""
        return len(self.steps) == 1

    @property
    def sampled(self) -> tuple[int, ...]:
        """The steps that finish something."""
        return tuple(i for i, s in enumerate(self.steps) if s.latents)

    @property
    def share(self) -> float:
        """A crop's area against the frame's."""
        return self.crop_columns * self.crop_rows / (self.columns * self.rows)

    @property
    def price(self) -> float:
        """Area of all crops that are sampled against the frame's."""
        return self.share * len(self.sampled)

    def box(self, step: int) -> LatentBox:
        """Where a step's crop lies."""
        s = self.steps[step]
        return LatentBox(
            s.left, s.top, self.crop_columns, self.crop_rows, self.columns, self.rows
        )  # fmt: skip

    @cached_property
    def finished_by(self) -> Any:
        """The step that finishes each latent: numpy int32 [rows, columns]."""
        cells = [s.cell for s in self.steps]
        return _finished_by(self.grid, cells, self.columns, self.rows, self.unit, self.overlap)

    def classes(self) -> tuple[tuple[int, ...], ...]:
        """Steps by colour: the cells of a class do not touch, so none is another's neighbour."""
        return tuple(
            tuple(i for i in self.sampled if self.steps[i].colour == colour) for colour in range(3)
        )

    def stages(self) -> tuple[tuple[int, ...], ...]:
        """Steps that may run at the same time, stage after stage, with the same result."""
        stage: dict[int, int] = {}
        for i, step in enumerate(self.steps):
            if step.latents:
                stage[i] = 1 + max((stage[j] for j in step.after), default=-1)
        last = max(stage.values(), default=-1)
        return tuple(tuple(i for i in stage if stage[i] == n) for n in range(last + 1))

    def summary(self) -> str:
        """The plan for the log."""
        if self.single:
            return f"1 cell of {self.columns}x{self.rows} latents: no walk"
        classes = "; ".join(
            f"{colour}: " + " ".join(f"{self.steps[i].id:x}" for i in steps)
            for colour, steps in enumerate(self.classes())
        )
        return (
            f"{len(self.sampled)} cells ({self.order}, res {self.grid.res}), one after the other "
            f"in crops of {self.crop_columns}x{self.crop_rows} from {self.columns}x{self.rows} "
            f"latents, {self.price:.1f} x the frame's work, {len(self.stages())} stages if run in "
            f"parallel; cells that do not touch, by colour: {classes}"
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data; ids as strings, since JSON numbers round 64 bits."""
        return {
            "kind": "walk", "grid": self.grid.to_json(), "unit_px": self.unit,
            "patch": self.patch, "columns": self.columns, "rows": self.rows,
            "crop_columns": self.crop_columns, "crop_rows": self.crop_rows,
            "overlap_px": self.overlap, "context_px": self.context, "order": self.order,
            "classes": [list(c) for c in self.classes()],
            "stages": [list(s) for s in self.stages()],
            "steps": [
                {"cell": s.cell, "id": f"{s.id:x}", "colour": s.colour, "left": s.left,
                 "top": s.top, "latents": s.latents, "after": list(s.after)}
                for s in self.steps
            ],
        }  # fmt: skip


def plan_walk(
    columns: int, rows: int, unit: int, patch: int, settings: HexSettings, *,
    order: str = "spiral", focus: tuple[float, float] = (0.5, 0.5),
    importance: Any = None, fits: Fits | None = None,
) -> WalkPlan:  # fmt: skip
    """Plan a walk over a frame of columns x rows latents.

    unit, patch   px of a latent, latents of a token
    settings      hex_res, overlap, halo (None: one ring of cells), budget, span, rotation and
                  origin are read; shape must be hex or none
    order         spiral: ring by ring around the focus, bfs: along the neighbours from it
                  importance: always the most important cell that touches a finished one
    focus         share of the width and height
    importance    numpy [rows, columns] >= 0; needed for order importance
    fits          what answers a budget in bytes

    "auto" takes the coarsest grid whose crop is at most the budget (None: half of the frame).
    Raises UsageError when a value is out of range or nothing fits.
    """
    _check(settings, order, focus, importance, fits)
    budget = parse_budget(settings.budget)
    auto = settings.hex_res == "auto"
    limit = budget if isinstance(budget, float) else DEFAULT_SHARE
    size = columns, rows, unit, patch
    finest = finest_res(columns * unit, rows * unit, settings.span, settings.turn)
    if settings.shape == "none":
        return _whole(*size, settings, order)
    smallest: WalkPlan | None = None
    for res in range(finest + 1) if auto else [int(settings.hex_res)]:
        if smallest is not None and not origin_fits(
            columns * unit, rows * unit, res, settings.span, settings.place
        ):
            break
        grid = hex_grid(
            columns * unit, rows * unit, res, settings.span, settings.turn, settings.place
        )
        if len(grid.cells) > MAX_STEPS:
            if auto:
                break
            raise UsageError(
                f"hex_res {res} gives {len(grid.cells)} cells at {grid.width}x{grid.height}; at "
                f"most {MAX_STEPS} can be walked: use hex_res {res - 1} or less"
            )
        if auto and 2.0 * grid.inradius < MIN_OVERLAP_LATENTS * unit:
            break  # cells of a few latents: their rings would be most of the work
        draft = _draft(grid, *size, settings, order)
        keeps = draft.share <= limit
        if isinstance(budget, int) and fits is not None:
            keeps = fits(draft.crop_columns, draft.crop_rows)
        if not auto or keeps:
            if draft.share == 1.0 and auto:
                return _whole(*size, settings, order)
            return _ordered(draft, order, focus, importance)
        if smallest is None or draft.share < smallest.share:
            smallest = draft
        elif smallest.share < 1.0:
            break  # finer cells no longer make smaller crops: overlap and context rule
    if budget is None or smallest is None:
        return _whole(*size, settings, order)
    if isinstance(budget, int):
        raise UsageError(
            f"no cell with its ring fits the budget of {budget:,} bytes: the smallest crop has "
            f"{smallest.share:.0%} of the frame (hex_res {smallest.grid.res}); raise the budget, "
            "or lower the context"
        )
    return _ordered(smallest, order, focus, importance)


def _check(
    settings: HexSettings, order: str, focus: tuple[float, float], importance: Any,
    fits: Fits | None,
) -> None:  # fmt: skip
    if settings.shape == "rect":
        raise UsageError("a walk goes over hexagons; use shape hex (or none: no walk)")
    if order not in WALK_ORDERS:
        raise UsageError(f"order {order!r} is unknown; use {', '.join(WALK_ORDERS)}")
    if not all(0.0 <= f <= 1.0 for f in focus):
        raise UsageError(f"focus {focus[0]:g}, {focus[1]:g} is out of range 0..1")
    if order == "importance" and importance is None:
        raise UsageError("order importance needs a mask that says what is important; connect one")
    if isinstance(parse_budget(settings.budget), int) and fits is None:
        raise UsageError(
            "a budget in bytes needs the model's own estimate, which is unknown here; use a share "
            "of the frame such as 0.25"
        )


def _whole(
    columns: int, rows: int, unit: int, patch: int, settings: HexSettings, order: str
) -> WalkPlan:
    grid = hex_grid(columns * unit, rows * unit, 0, settings.span, settings.turn)
    # The cell in the middle stands for the frame; there is no other.
    cell = grid.cells[grid.cell_at(grid.width / 2.0, grid.height / 2.0)]
    step = WalkStep(cell.index, cell.id, 0, 0, 0, columns * rows, ())
    return WalkPlan(grid, unit, patch, columns, rows, columns, rows, 0.0, 0.0, order, (step,))


def _draft(
    grid: HexGrid, columns: int, rows: int, unit: int, patch: int, settings: HexSettings,
    order: str,
) -> WalkPlan:  # fmt: skip
    """The crops of every cell, in the grid's order; what they finish is not worked out yet."""
    narrowest = float(MIN_OVERLAP_LATENTS * unit)
    asked = OVERLAP_PX if settings.overlap is None else settings.overlap
    overlap = min(max(asked, narrowest) if asked > 0.0 else 0.0, grid.max_overlap())
    ring = 2.0 * grid.inradius
    context = max(ring if settings.halo is None else settings.halo, overlap / 2.0 + unit / 2.0)
    wide, tall = -(-columns // patch), -(-rows // patch)
    boxes = crop_boxes(grid, float(unit * patch), wide, tall, context, 0.0)  # 0: none are joined
    crop_columns = min(columns, boxes.columns * patch)
    crop_rows = min(rows, boxes.rows * patch)
    steps = []
    for (cell, *_), x, y in boxes.places:
        left, top = min(x * patch, columns - crop_columns), min(y * patch, rows - crop_rows)
        steps.append(WalkStep(cell, grid.cells[cell].id, grid.colours[cell], left, top, 1, ()))
    return WalkPlan(
        grid, unit, patch, columns, rows, crop_columns, crop_rows, overlap, context, order,
        tuple(steps),
    )  # fmt: skip


def _ordered(draft: WalkPlan, order: str, focus: tuple[float, float], importance: Any) -> WalkPlan:
    """A draft's steps in order, each with what it finishes and waits for."""
    import dataclasses

    import numpy as np

    grid = draft.grid
    x, y = focus[0] * grid.width, focus[1] * grid.height
    if order == "importance":
        values = _cell_means(draft, importance)
        cells = by_importance(values, grid.neighbours)
    else:
        cells = grid.order(order, x, y)
    by_cell = {s.cell: s for s in draft.steps}
    plan = dataclasses.replace(draft, steps=tuple(by_cell[c] for c in cells))
    owner = plan.finished_by
    counts = np.bincount(owner.ravel(), minlength=len(plan.steps))
    steps: list[WalkStep] = []
    for i, step in enumerate(plan.steps):
        box = plan.box(i)
        seen = owner[box.top : box.top + box.rows, box.left : box.left + box.columns]
        after = tuple(int(j) for j in np.unique(seen) if j < i)
        steps.append(dataclasses.replace(step, latents=int(counts[i]), after=after))
    # A dataclass is copied without its cached properties, and the order is the same.
    return dataclasses.replace(plan, steps=tuple(steps))


def by_importance(values: Sequence[float], neighbours: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Cells so that each one after the first touches an earlier one, the most important first.

    Where no cell that touches is left (the frame is in two parts), the most important one begins
    anew. Equal values go by index.
    """
    found: list[int] = []
    done: set[int] = set()
    for start in sorted(range(len(values)), key=lambda i: (-values[i], i)):
        queue = [] if start in done else [(-values[start], start)]
        while queue:
            _, i = heapq.heappop(queue)
            if i in done:
                continue
            done.add(i)
            found.append(i)
            for j in neighbours[i]:
                if j not in done:
                    heapq.heappush(queue, (-values[j], j))
    return tuple(found)


def _cell_means(plan: WalkPlan, importance: Any) -> list[float]:
    import numpy as np

    if importance.shape != (plan.rows, plan.columns):
        raise UsageError(
            f"the importance has {importance.shape[1]}x{importance.shape[0]} points, the frame "
            f"{plan.columns}x{plan.rows} latents"
        )
    owner = _owners(plan.grid, plan.columns, plan.rows, plan.unit).ravel()
    count = np.bincount(owner, minlength=len(plan.grid.cells))
    total = np.bincount(owner, weights=importance.ravel(), minlength=len(plan.grid.cells))
    return [float(v) for v in total / np.maximum(count, 1)]


def _owners(grid: HexGrid, columns: int, rows: int, unit: int) -> Any:
    """The cell of every latent's centre: int64 [rows, columns]."""
    index, _ = grid.sample_weights(columns, rows, float(unit), 0.0)
    return index[..., 0].astype("int64")


def _finished_by(
    grid: HexGrid, cells: Sequence[int], columns: int, rows: int, unit: int, overlap: float
) -> Any:
    import numpy as np

    turn = np.empty(len(grid.cells), np.int32)
    turn[list(cells)] = np.arange(len(cells), dtype=np.int32)
    owner = turn[_owners(grid, columns, rows, unit)]
    xs, ys = np.meshgrid((np.arange(columns) + 0.5) * unit, (np.arange(rows) + 0.5) * unit)
    for step in reversed(range(len(cells))):  # the earliest is written last and rules
        cell = cells[step]
        # Only around the cell; a millionth of a pixel keeps the border alike on every machine.
        left, top, right, bottom = grid.bounds(cell)
        near = _points(top, bottom, overlap, unit), _points(left, right, overlap, unit)
        distance = grid.signed_distance(cell, xs[near], ys[near])
        part = owner[near]
        part[(distance >= -overlap / 2.0 + 1e-6) & (part > step)] = step
    return owner


def _points(low: float, high: float, margin: float, unit: int) -> slice:
    """The latents of one axis that lie between two px, and a margin more."""
    return slice(max(0, int((low - margin) // unit)), max(0, int((high + margin) // unit) + 1))
