"""Pictures for people: a contact sheet, and the grid drawn over a frame with its ids."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..blend.weights import Grid
from ..errors import UsageError
from ..grid import GlobeGrid

PAPER, INK = (24, 26, 30), (235, 235, 235)
LINE, HALO, FAINT = (255, 255, 255), (0, 0, 0), (190, 190, 190)

Edge = tuple[tuple[float, float], tuple[float, float]]


def tile_edges(
    grid: Grid | GlobeGrid, groups: list[tuple[int, ...]]
) -> tuple[list[Edge], list[Edge]]:  # fmt: skip
    """Edges of cells, in px: those between tiles (or at the rim), and those inside a tile."""
    tile_of = {cell: tile for tile, cells in enumerate(groups) for cell in cells}
    owners: dict[tuple[int, int], list[int]] = {}
    ends: dict[tuple[int, int], Edge] = {}
    for cell in grid.cells:
        corners = grid.corners(cell.index)
        for a, b in zip(corners, corners[1:] + corners[:1]):
            middle = (round((a[0] + b[0]) * 8), round((a[1] + b[1]) * 8))
            owners.setdefault(middle, []).append(tile_of.get(cell.index, -1 - cell.index))
            ends[middle] = (a, b)
    inner = [ends[m] for m, tiles in owners.items() if len(tiles) == 2 and tiles[0] == tiles[1]]
    border = [ends[m] for m, tiles in owners.items() if len(tiles) < 2 or tiles[0] != tiles[1]]
    return border, inner


def draw_grid(
    frame: Any, grid: Grid | GlobeGrid, groups: list[tuple[int, ...]], scale: float = 1.0
) -> Any:  # fmt: skip
    """The frame as a PIL image with every cell's outline and id (or number, or nothing, as fits).

    frame    uint8 numpy [H, W, 3]
    groups   cells of each tile: edges inside a tile are drawn faintly
    scale    enlarges the picture so that ids can be read
    """
    from PIL import Image, ImageDraw, ImageFont

    height, width = frame.shape[:2]
    size = (round(width * scale), round(height * scale))
    picture = Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS)
    draw = ImageDraw.Draw(picture)
    border, inner = tile_edges(grid, groups)
    for ends in inner:
        draw.line([(x * scale, y * scale) for x, y in ends], fill=FAINT, width=1)
    for width_px, colour in ((4, HALO), (2, LINE)):
        for ends in border:
            draw.line([(x * scale, y * scale) for x, y in ends], fill=colour, width=width_px)
    font = ImageFont.load_default(size=max(9, min(15, int(grid.edge * scale / 7))))
    wide_enough = 2.2 * grid.inradius * scale
    for cell in grid.cells:
        text = f"{cell.id:x}"
        if draw.textlength(text, font=font) > wide_enough:
            text = str(cell.index)  # too small for an id: its number in the grid
        if draw.textlength(text, font=font) > wide_enough:
            continue
        box = draw.textbbox((0, 0), text, font=font)
        wide, tall = box[2] - box[0], box[3] - box[1]
        # Cells at the border have their centre outside: keep the text inside the picture.
        x = min(max(cell.x * scale - wide / 2, 3), size[0] - wide - 3)
        y = min(max(cell.y * scale - tall / 2, 3), size[1] - tall - 6)
        draw.text((x, y), text, fill=INK, font=font, stroke_width=2, stroke_fill=HALO)
    return picture


def thumbnails_of(count: int, most: int = 6) -> list[int]:
    """Which frames of a clip a sheet shows: spread from the first to the last."""
    shown = min(most, count)
    return [round(i * (count - 1) / max(1, shown - 1)) for i in range(shown)]


def contact_sheet(
    frames: Any, grid: Grid, groups: list[tuple[int, ...]], caption: str, thumbnails: int = 6
) -> Any:
    """A sheet: frames of the clip from first to last, and the grid over the middle frame.

    frames   uint8 numpy [F, H, W, 3], or what has that shape and the frames that are shown.
    Returns a PIL image.
    """
    from PIL import Image, ImageDraw, ImageFont

    count, height, width = frames.shape[:3]
    picks = thumbnails_of(count, thumbnails)
    shown = len(picks)
    columns = 3 if shown > 2 else shown
    rows = -(-shown // columns)
    page = max(960, min(width, 1920))
    gap, foot = 8, 30
    thumb_width = (page - (columns + 1) * gap) // columns
    thumb_height = round(thumb_width * height / width)
    overlay = draw_grid(frames[count // 2], grid, groups, (page - 2 * gap) / width)
    top = gap + rows * (thumb_height + gap)
    sheet = Image.new("RGB", (page, top + overlay.height + gap + foot), PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=13)
    for i, pick in enumerate(picks):
        x = gap + (i % columns) * (thumb_width + gap)
        y = gap + (i // columns) * (thumb_height + gap)
        thumb = Image.fromarray(frames[pick])
        sheet.paste(thumb.resize((thumb_width, thumb_height), Image.Resampling.LANCZOS), (x, y))
        draw.text(
            (x + 6, y + 4), f"frame {pick + 1}", fill=INK, font=font, stroke_width=2,
            stroke_fill=HALO,
        )  # fmt: skip
    sheet.paste(overlay, (gap, top))
    draw.text((gap, top + overlay.height + gap), caption, fill=INK, font=font)
    return sheet


def first_picture(file: str, width: int, height: int) -> Any:
    """The picture that a clip starts from, fitted to the canvas: uint8 numpy [H, W, 3].

    Raises UsageError when it cannot be read.
    """
    import numpy as np
    from PIL import Image, ImageOps

    if not file:
        raise UsageError("this model starts from a picture; give one with --image FILE")
    try:
        with Image.open(file) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
            return np.asarray(ImageOps.fit(upright, (width, height)))
    except OSError as e:
        raise UsageError(f"image {file} cannot be read ({e})") from None


def save_png(picture: Any, path: Path) -> None:
    """Write a PIL image as PNG; the file appears only when it is complete."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        picture.save(partial, format="PNG", optimize=True)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
