"""Join two chunks of a clip in time: every hexagonal cell switches at its own best frame.

Where chunks overlap both show the same moments. A dissolve shows everything that moved otherwise
twice; a cut jumps. Here each cell of a grid shows the old chunk up to a frame of its own and the
new one after it, and the frames are chosen together so that the least can be seen: of the switch
inside a cell, and of the border between cells of which one has switched already (switch.py).
Cells are blended with the grid's weights. A cell in which the chunks agree at no frame dissolves.

First the chunks' levels are brought together, since a difference in brightness that no eye finds
in a picture is seen as flicker when it comes from one frame to the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..grid import DEFAULT_SPAN, HexGrid, finest_res, hex_grid
from ..grid.cells import check_frame_grid
from .join_costs import Differences, Weights, levels, measure
from .switch import MAX_NODES, switch_frames

JOINS = ("cell", "fade", "cut")
COLOURS = ("hold", "ease", "off")

LEVEL_LIMIT = 10.0 / 255.0
"""More than this is no drift of colours but another picture, and is left alone."""

FADE_ABOVE = 0.06
"""Root mean square difference (of the clip's range) above which a switch can be seen, unless the
cell changes as much from frame to frame by itself."""

LARGEST_EDGE = 20.0 * 7.0**0.5
"""Px of a cell's edge with hex_res auto; a resolution finer divides by the root of 7."""

_WHOLE = 1 << 16
"""Costs are counted in parts of 1/65536 of a point, so that the choice is made in integers."""


@dataclass(frozen=True)
class JoinSettings:
    """How chunks are joined.

    mode       cell: every cell at its own frame | fade: a dissolve | cut: in the middle
    colour     hold: the new chunk keeps the old one's level to its end | ease: it returns to its
               own over the overlap | off: left as it is
    hex_res    resolution of the grid, or "auto": cells with an edge of 20 to 53 px
    overlap    px of the band over which neighbouring cells are blended
    """

    mode: str = "cell"
    colour: str = "hold"
    hex_res: int | str = "auto"
    overlap: float = 16.0

    def check(self, width: int, height: int) -> None:
        """Raise UsageError for a value that is out of range, before any frame is there."""
        for name, value, known in (("join", self.mode, JOINS), ("colour", self.colour, COLOURS)):
            if value not in known:
                raise UsageError(f"{name} {value!r} is unknown; use {', '.join(known)}")
        if not 0.0 <= self.overlap <= 4096.0:
            raise UsageError(f"overlap {self.overlap:g} is out of range 0..4096 px")
        self.grid(width, height)

    def grid(self, width: int, height: int) -> HexGrid:
        """The cells of a frame of this size in px."""
        res = check_frame_grid(width, height, self.hex_res)
        finer = min(res + 1, finest_res(width, height, DEFAULT_SPAN))
        grid = hex_grid(width, height, res)
        # Bodies are smaller than the tiles that a model is run on, and so are the cells here.
        if self.hex_res == "auto" and grid.edge >= LARGEST_EDGE:
            grid = hex_grid(width, height, finer)
        return grid


@dataclass(frozen=True)
class JoinPlan:
    """What was decided for one overlap.

    grid, step       the cells, and px of the grid that one element of a frame covers
    frames           length n of the overlap
    switch           for every cell the frame 0..n from which on it shows the new chunk
    faded            cells that dissolve instead
    level            what the new chunk is above the old one: [cells][channels], () if nothing
    hold             what stays taken off the new chunk after the overlap, by channel
    """

    settings: JoinSettings
    grid: HexGrid
    step: float
    frames: int
    switch: tuple[int, ...]
    faded: tuple[int, ...]
    level: tuple[tuple[float, ...], ...]
    hold: tuple[float, ...]

    def summary(self) -> str:
        """One line for people."""
        cells = len(self.grid.cells)
        if self.settings.mode != "cell":
            what = f"{self.settings.mode} over {self.frames} frames"
        else:
            kept = sorted(set(self.switch))
            span = f"{kept[0]}-{kept[-1]}" if len(kept) > 1 else f"{kept[0]}"
            what = (
                f"{cells - len(self.faded)} of {cells} cells switch at frame {span} of "
                f"{self.frames}, {len(self.faded)} dissolve"
            )
        shift = max((abs(v) for v in self.hold), default=0.0) * 255.0
        return what + (f"; level held by {shift:.1f}/255" if shift else "")

    def to_json(self) -> dict[str, Any]:
        """Plain data, for logs."""
        return {
            "mode": self.settings.mode, "colour": self.settings.colour,
            "hex_res": self.grid.res, "overlap_px": self.settings.overlap, "frames": self.frames,
            "switch": list(self.switch), "faded": list(self.faded), "hold": list(self.hold),
        }  # fmt: skip

    def curves(self) -> Any:
        """How much of the new chunk every cell shows: float32 [n, cells]."""
        import numpy as np

        n, cells = self.frames, len(self.grid.cells)
        at = np.arange(n)[:, None]
        rise = _rise(n)[:, None]
        if self.settings.mode == "fade":
            return np.repeat(rise, cells, 1)
        out = (at >= np.array(self.switch)[None]).astype(np.float32)
        if self.faded:
            out[:, list(self.faded)] = rise
        return out


def plan_join(
    old: Any, new: Any, settings: JoinSettings | None = None, *, step: float = 1.0,
    unit: float | None = None,
) -> JoinPlan:  # fmt: skip
    """Decide how the overlap of two chunks is joined.

    old, new   the same n frames as the chunks have them: [n, rows, columns, channels], numpy or
               torch, float or uint8; sequences of frames will do
    step       px of the frame that one element covers (1 for pictures, 8 for Wan's latents)
    unit       the range of the values; None: 255 for uint8, 1 for floats

    Raises UsageError when shapes differ or a setting is out of range.
    """
    settings = settings or JoinSettings()
    if len(old) != len(new):
        raise UsageError(f"the chunks share {len(old)} and {len(new)} frames; they must be alike")
    if not len(old):
        raise UsageError("the chunks share no frame; join them with an overlap of 1 or more")
    rows, columns, channels = _shape(old[0], new[0])
    width, height = round(columns * step), round(rows * step)
    settings.check(width, height)
    grid = settings.grid(width, height)
    unit = unit or (255.0 if _is_bytes(old[0]) else 1.0)
    before, after = _Scaled(old, unit), _Scaled(new, unit)
    band = min(settings.overlap, grid.max_overlap())
    weights = Weights(grid, columns, rows, step, band)
    level: tuple[tuple[float, ...], ...] = ()
    hold = (0.0,) * channels
    if settings.colour != "off":
        found = levels(weights, grid, before, after, LEVEL_LIMIT)
        if found.any():
            level = tuple(tuple(float(v) for v in cell) for cell in found)
        if settings.colour == "hold":
            hold = _median(found, [c.pixels for c in grid.cells])
    middle = (len(old) // 2,) * len(grid.cells)
    plan = JoinPlan(settings, grid, step, len(old), middle, (), level, hold)
    if settings.mode != "cell":
        return plan
    even = _Levelled(plan, after, columns, rows)
    switch, faded = choose(measure(weights, before, even), len(grid.cells))
    return JoinPlan(settings, grid, step, len(old), switch, faded, level, hold)


def choose(found: Differences, cells: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The switch frame of every cell, and the cells in which nothing matches."""
    import numpy as np

    n = len(found.cell)
    # Switching at frame s is seen in the last old and the first new frame.
    pad = np.pad(found.cell, ((1, 1), (0, 0)), mode="edge")
    seen = np.pad(found.rms, ((1, 1), (0, 0)), mode="edge")
    cost, apart = (pad[:-1] + pad[1:]) / 2.0, (seen[:-1] + seen[1:]) / 2.0
    hopeless = apart.min(0) > np.maximum(FADE_ABOVE, found.natural)
    curve = _rise(n).astype(np.float64)
    for i, (a, b) in enumerate(found.pairs):
        if hopeless[a] == hopeless[b]:
            continue
        # The neighbour dissolves whatever this one does: a cost of this one alone.
        cell, band = (b, found.border[:, i]) if hopeless[a] else (a, found.border[:, i])
        stays = np.concatenate([[0.0], np.cumsum(curve * band)])
        gone = np.concatenate([[0.0], np.cumsum((1.0 - curve) * band)])
        cost[:, cell] += stays + (gone[-1] - gone)
    order = [c for c in range(cells) if not hopeless[c]]
    place = {c: i for i, c in enumerate(order)}
    stride = max(1, -(-len(order) * n // MAX_NODES))
    picks = sorted({*range(0, n, stride), n})
    own = [[round(cost[s, c] * _WHOLE) for s in picks] for c in order]
    borders = {}
    for i, (a, b) in enumerate(found.pairs):
        if a in place and b in place:
            sums = np.add.reduceat(found.border[:, i], picks[:-1])
            borders[place[a], place[b]] = [round(v * _WHOLE) for v in sums]
    switch = [n // 2] * cells
    for c, s in zip(order, switch_frames(own, borders)):
        switch[c] = picks[s]
    return tuple(switch), tuple(int(c) for c in np.flatnonzero(hopeless))


def join_frames(
    plan: JoinPlan, old: Any, new: Any, carry: Sequence[float] = (), unit: float | None = None
) -> Iterator[Any]:
    """The n frames of the overlap, each like the old chunk's: float32 or uint8, numpy or torch.

    carry    what was taken off the old chunk by earlier joins, by channel (see JoinPlan.hold)
    """
    import numpy as np

    rows, columns, _ = _shape(old[0], new[0])
    unit = unit or (255.0 if _is_bytes(old[0]) else 1.0)
    before, after = _Scaled(old, unit), _Scaled(new, unit)
    even = _Levelled(plan, after, columns, rows)
    curves = plan.curves()
    points = plan.grid.sample_weights(
        columns, rows, plan.step, min(plan.settings.overlap, plan.grid.max_overlap())
    )
    for f in range(plan.frames):
        share = _spread(points, curves[f])[..., None]
        a, b = before[f], even[f]
        mixed = np.where(a == b, a, a + share * (b - a))
        mixed = np.where(share <= 0.0, a, np.where(share >= 1.0, b, mixed))
        yield like(old[f], shifted(mixed, carry), unit)


def shifted(frame: Any, carry: Sequence[float]) -> Any:
    """A float32 frame without the level that joins have found too much."""
    import numpy as np

    return frame - np.asarray(carry, np.float32) if any(carry) else frame


class ClipJoiner:
    """Joins chunk after chunk, frame by frame; holds the frames of one overlap.

        joiner = ClipJoiner(JoinSettings("cell"))
        for chunk in chunks:
            for frame in joiner.feed(chunk.frames, shared=8, held=0 if chunk.last else 8): ...

    `plans` are the joins so far.
    """

    def __init__(self, settings: JoinSettings | None = None) -> None:
        self.settings = settings or JoinSettings()
        self.plans: list[JoinPlan] = []
        self.carry: tuple[float, ...] = ()
        self._tail: list[Any] = []

    def feed(self, frames: Iterable[Any], shared: int, held: int) -> Iterator[Any]:
        """Frames that are finished, as the frames of the next chunk come.

        shared   how many of them the chunk before has, too (0: a plain cut)
        held     how many the next chunk has, too; they come with that one
        """
        source = iter(frames)
        if shared != len(self._tail):
            raise UsageError(
                f"a chunk shares {shared} frames with the one before, which kept "
                f"{len(self._tail)}; give the same number to both"
            )
        if shared:
            new = [f for _, f in zip(range(shared), source)]
            if len(new) < shared:
                raise UsageError(f"a chunk has {len(new)} frames and shares {shared}; make longer")
            plan = plan_join(self._tail, new, self.settings)
            yield from join_frames(plan, self._tail, new, self.carry)
            self._tail, new = [], []
            self.plans.append(plan)
            self.carry = tuple(
                c + h for c, h in zip(self.carry or (0.0,) * len(plan.hold), plan.hold)
            )
        waiting: deque[Any] = deque()
        for frame in source:
            waiting.append(frame)
            if len(waiting) > held:
                yield self._finished(waiting.popleft())
        if len(waiting) < held:
            raise UsageError(
                f"a chunk has {shared + len(waiting)} frames, and shares {shared} with the chunk "
                f"before and {held} with the next; it must be as long as both together"
            )
        self._tail = list(waiting)

    def _finished(self, frame: Any) -> Any:
        if not any(self.carry):
            return frame
        unit = 255.0 if _is_bytes(frame) else 1.0
        return like(frame, shifted(as_float(frame, unit), self.carry), unit)


# ---- frames of any kind as float32 numpy ----


def as_float(frame: Any, unit: float) -> Any:
    """A frame as float32 numpy [rows, columns, channels], its range scaled to 1."""
    import numpy as np

    if hasattr(frame, "detach"):  # a torch tensor, without importing torch
        frame = frame.detach().cpu()
        frame = (frame if frame.dtype.is_floating_point is False else frame.float()).numpy()
    out = np.asarray(frame, np.float32)
    return out if unit == 1.0 else out / np.float32(unit)


def like(sample: Any, frame: Any, unit: float) -> Any:
    """A float32 frame in the kind (numpy or torch), type, device and range of another one."""
    import numpy as np

    out = frame if unit == 1.0 else frame * np.float32(unit)
    if _is_bytes(sample):
        out = np.rint(out).clip(0, 255).astype(np.uint8)
    out = np.ascontiguousarray(out)
    if hasattr(sample, "detach"):
        import torch

        return torch.from_numpy(out).to(sample.device, sample.dtype)
    return out if _is_bytes(sample) else out.astype(np.asarray(sample).dtype, copy=False)


class _Scaled(Sequence[Any]):
    """Frames as float32 numpy in units of the range, made when asked for."""

    def __init__(self, frames: Any, unit: float) -> None:
        self.frames, self.unit = frames, unit

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, f: Any) -> Any:
        return as_float(self.frames[f], self.unit)


class _Levelled(Sequence[Any]):
    """The new chunk's frames with its level drawn to the old one's, less and less so."""

    def __init__(self, plan: JoinPlan, frames: Sequence[Any], columns: int, rows: int) -> None:
        import numpy as np

        self.frames, self.n = frames, plan.frames
        self.hold = np.asarray(plan.hold, np.float32)
        self.rest: Any = None
        if plan.level:
            points = plan.grid.sample_weights(columns, rows, plan.step, plan.grid.max_overlap())
            level = np.asarray(plan.level, np.float32) - self.hold
            if level.any():
                self.rest = np.stack([_spread(points, c) for c in level.T], -1)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, f: Any) -> Any:
        import numpy as np

        frame = self.frames[f]
        if self.hold.any():
            frame = frame - self.hold
        if self.rest is None:
            return frame
        return frame - np.float32(1.0 - (f + 1.0) / (self.n + 1.0)) * self.rest


def _spread(points: Any, values: Any) -> Any:
    """A value for every cell over the frame, by the grid's weights: float32 [rows, columns]."""
    import numpy as np

    index, weight = points
    table = np.asarray([*values, 0.0], np.float32)  # the last entry is "no cell"
    low, high = float(table[:-1].min()), float(table[:-1].max())
    if low == high:
        return np.full(index.shape[:2], low, np.float32)
    out = np.zeros(index.shape[:2], np.float32)
    for slot in range(4):
        out += table[index[..., slot]] * weight[..., slot]
    return np.clip(out, low, high, out=out)  # weights sum to 1 only within a millionth


def _rise(n: int) -> Any:
    """A dissolve's weights of the new chunk: float32 [n], the same read backwards."""
    import numpy as np

    t = (np.arange(n) + 0.5) / n
    return (t * t * (3.0 - 2.0 * t)).astype(np.float32)


def _median(levels: Any, pixels: Sequence[int]) -> tuple[float, ...]:
    """The level of most of the frame, by channel; cells count by their pixels."""
    import numpy as np

    out = []
    for values in levels.T:
        order = np.argsort(values, kind="stable")
        heap = np.cumsum(np.asarray(pixels)[order])
        out.append(float(values[order[int(np.searchsorted(heap, heap[-1] / 2.0))]]))
    return tuple(out)


def _shape(old: Any, new: Any) -> tuple[int, int, int]:
    if tuple(old.shape) != tuple(new.shape) or old.ndim != 3:
        raise UsageError(
            f"frames of {tuple(old.shape)} and {tuple(new.shape)} cannot be joined; chunks need "
            "one size [rows, columns, channels]"
        )
    rows, columns, channels = old.shape
    return int(rows), int(columns), int(channels)


def _is_bytes(frame: Any) -> bool:
    return str(frame.dtype).removeprefix("torch.") == "uint8"
