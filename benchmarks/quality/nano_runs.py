"""The embedded model in tiles at 2, 3 and 4 times its canvas, against itself untiled.

Every finished render is appended to a file at once, so a run that was stopped goes on where it was.
Worker processes of one thread take a seed each; untiled clips are kept on disk for later variants.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from h3video.nano.follow import held_out_scenes
from h3video.nano.judge import measure
from h3video.tiling.tokens import TokenPlan

from .measures import colour_drift, count_subjects, flip, pulse, seam_energy
from .nano_paint import Painter, Shelf, enlarged, to_bytes
from .nano_variants import STAGES, Canvas, Stage, Variant, fingerprint, plan, schedule
from .workers import pool as workers_pool

Array = Any
Row = dict[str, Any]
Say = Callable[[str], None]

FOLDER = Path("build/quality")
SCENES = 20
"""Held-out prompts; more seeds draw them again."""


def look(clip: Array, untiled: Array, scene: Any, owner: Array | None) -> Row:
    """All measures of a clip [f, h, w, 3] in 0..1 against the untiled one.

    owner   the tile of each pixel, [h, w]; None: one tile
    """
    seen = measure(to_bytes(clip))
    return {
        **(dict.fromkeys(APART, 0.0) if clip is untiled else apart(clip, untiled, owner)),
        "step": pulse(clip).frame, "subjects": count_subjects(clip, scene.ground),
        "colour": seen.colour == scene.colour, "ground": seen.ground == scene.ground,
        "direction": seen.direction == scene.direction,
    }  # fmt: skip


APART = ("flip", "total", "axis", "line", "pulse", "flicker", "drift")
"""Measures of how far a clip is from the untiled one."""


def apart(clip: Array, untiled: Array, owner: Array | None) -> Row:
    """Those measures; FLIP of every second frame, seams of the middle one."""
    middle = len(clip) // 2
    seams = seam_energy(clip[middle], untiled[middle], angles=1)
    steps = pulse(clip, untiled, owner)
    return {
        "flip": flip(clip[1::2], untiled[1::2]), "total": seams.total, "axis": seams.axis,
        "line": seams.line, "pulse": steps.frame, "flicker": steps.cell,
        "drift": colour_drift(clip, untiled).part,
    }  # fmt: skip


def owners(p: TokenPlan) -> Array:
    """The tile of each pixel, [h, w]: the one of the largest weight at its token."""
    tile, largest = np.zeros(p.columns * p.rows, np.int64), np.zeros(p.columns * p.rows)
    for number, w in enumerate(p.weights()):
        better = w.weight > largest[w.points]
        tile[w.points[better]], largest[w.points[better]] = number, w.weight[better]
    px = p.family.token_px
    return tile.reshape(p.rows, p.columns).repeat(px, 0).repeat(px, 1)


@dataclass(frozen=True)
class Task:
    """Variants of one stage that one seed lacks."""

    canvas: Canvas
    path: str
    seed: int
    variants: tuple[Variant, ...]


def tasks(rows: Iterable[Row], seeds: int, stages: Sequence[Stage] = STAGES) -> Iterator[Task]:
    """What is to be drawn, in order; what the rows have is left out."""
    done = {key_of(r) for r in rows}
    for stage in stages:
        marks = [(v, fingerprint(stage.canvas, v.settings)) for v in stage.variants]
        for seed in range(seeds):
            lack = []
            for variant, mark in marks:
                if (key := (stage.canvas.key, stage.path, mark, seed)) not in done:
                    lack.append(variant)
                    done.add(key)
            if lack:
                yield Task(stage.canvas, stage.path, seed, tuple(lack))


def key_of(row: Row) -> tuple[Any, ...]:
    """What was drawn, whatever it is called: an option may be today's default."""
    return tuple(row[k] for k in ("key", "path", "mark", "seed"))


def work(task: Task, folder: Path, painter: Painter | None = None) -> Iterator[Row]:
    """Draw and measure the variants of a task."""
    canvas, scene = task.canvas, held_out_scenes(SCENES)[task.seed % SCENES]
    brush = Seed(canvas, task.path, task.seed, folder, painter or _painter())
    untiled = brush.untiled()
    for variant in task.variants:
        clip, sizes, owner = untiled, {}, None
        if variant.settings is not None:
            clip, sizes = brush.draw(variant.settings), size(canvas, variant)
            owner = owners(plan(canvas, variant.settings))
        yield {
            "canvas": canvas.name, "key": canvas.key, "path": task.path, "seed": task.seed,
            "variant": variant.name, "group": variant.group,
            "mark": fingerprint(canvas, variant.settings), **sizes,
            "seconds": brush.seconds, **look(clip, untiled, scene, owner),
        }  # fmt: skip


class Seed:
    """Draws one prompt on one path in any way; small and untiled clips come from the shelf.

    seconds   processor time of the last clip; None where the shelf had it
    """

    def __init__(self, canvas: Canvas, path: str, seed: int, folder: Path,
                 painter: Painter) -> None:  # fmt: skip
        self.canvas, self.path, self.seed, self.painter = canvas, path, seed, painter
        self.prompt = held_out_scenes(SCENES)[seed % SCENES].caption()
        self.shelf = Shelf(folder / "clips")
        self.seconds: float | None = None
        self.start = None
        if path == "upscaled":
            first = canvas.first_frames, canvas.first_steps
            name = "-".join(map(str, ("small", canvas.width, canvas.height, *first, canvas.frames)))
            start = self.shelf.get(
                f"{name}-{seed}", lambda: painter.small(canvas, self.prompt, seed)
            )
            self.start = enlarged(start, canvas.large)

    def untiled(self) -> Array:
        """The clip without tiles, of 256 levels in 0..1."""
        name = f"{self.canvas.key}-{self.path}-{self.seed}"
        return self.shelf.get(name, lambda: self.draw(None))

    def draw(self, settings: Mapping[str, Any] | None) -> Array:
        """A clip [f, h, w, 3] of 256 levels in 0..1."""
        began = time.process_time()
        tiles = None if settings is None else dict(settings)
        clip = self.painter.draw(self.canvas, self.prompt, self.seed, tiles, self.start)
        self.seconds = time.process_time() - began
        return to_bytes(clip) / 255.0


def clip_of(canvas: Canvas, path: str, seed: int, settings: Mapping[str, Any] | None,
            folder: Path) -> Array:  # fmt: skip
    """One clip, for a picture."""
    brush = Seed(canvas, path, seed, folder, _painter())
    return brush.untiled() if settings is None else brush.draw(settings)


def size(canvas: Canvas, variant: Variant) -> Row:
    """Tiles, the largest one's share of the frame, and tokens against the frame's."""
    plans = schedule(canvas, variant.settings or {})
    largest = plans.largest
    return {"tiles": len(largest.tiles), "share": largest.share, "tokens": plans.price}


def run(seeds: int, workers: int, say: Say, folder: Path = FOLDER,
        stages: Sequence[Stage] = STAGES) -> tuple[list[Row], int]:  # fmt: skip
    """Draw and measure what is not in the file yet, a line of JSON for every render; return the
    rows of today's plans, and how many clips were drawn for them now."""
    path = folder / "nano.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    todo = list(tasks(rows, seeds, stages))
    lacking = sum(len(t.variants) for t in todo)
    say(f"nano: {lacking} renders to do")
    if todo:
        with workers_pool(workers) as pool:
            futures = {pool.submit(_all, task, folder): task for task in todo}
            try:
                for number, future in enumerate(as_completed(futures)):
                    task = futures[future]
                    rows += future.result()
                    say(f"nano {task.canvas.name} {task.path} seed {task.seed}: "
                        f"{number + 1} of {len(todo)} done")  # fmt: skip
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return list(current(rows, seeds, stages)), lacking


def current(rows: Iterable[Row], seeds: int, stages: Sequence[Stage]) -> Iterator[Row]:
    """The rows of the stages' variants with the plans and names of today, once each."""
    found = {key_of(r): r for r in rows}
    given: set[tuple[Any, ...]] = set()
    for stage in stages:
        for variant in stage.variants:
            mark = fingerprint(stage.canvas, variant.settings)
            for seed in range(seeds):
                row = found.get((stage.canvas.key, stage.path, mark, seed))
                name = (stage.canvas.key, stage.path, variant.name, seed)
                if row and name not in given:
                    given.add(name)
                    yield {**row, "variant": variant.name, "group": variant.group}


def _plain(row: Row) -> Row:
    return {k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in row.items()}


def _all(task: Task, folder: Path) -> list[Row]:
    """Every row is written when it is known: one short line each, so processes do not mix."""
    found = []
    for row in map(_plain, work(task, folder)):
        with (folder / "nano.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        found.append(row)
    return found


_open = ExitStack()
"""Holds a worker's pipeline until the process ends."""


@lru_cache(maxsize=1)
def _painter() -> Painter:
    """The painter of this process, of one thread."""
    import torch

    from h3video.nano.follow import pipeline

    torch.set_num_threads(1)
    return Painter(_open.enter_context(pipeline()))
