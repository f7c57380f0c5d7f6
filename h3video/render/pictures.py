"""Pictures for people: a contact sheet, and the grid drawn over a frame with its ids."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..blend.weights import Grid

PAPER, INK = (24, 26, 30), (235, 235, 235)
LINE, HALO = (255, 255, 255), (0, 0, 0)


def draw_grid(frame: Any, grid: Grid, groups: list[tuple[int, ...]], scale: float = 1.0) -> Any:
    """The frame as a PIL image with every cell's outline and id.

    frame    uint8 numpy [H, W, 3]
    groups   cells of each tile: cells of one tile are joined by a line between their centres
    scale    enlarges the picture so that ids can be read
    """
    from PIL import Image, ImageDraw, ImageFont

    height, width = frame.shape[:2]
    size = (round(width * scale), round(height * scale))
    picture = Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS)
    draw = ImageDraw.Draw(picture)
    for cell in grid.cells:
        outline = [(x * scale, y * scale) for x, y in grid.corners(cell.index)]
        draw.line([*outline, outline[0]], fill=HALO, width=4)
        draw.line([*outline, outline[0]], fill=LINE, width=2)
    for group in groups:
        centres = [(grid.cells[i].x * scale, grid.cells[i].y * scale) for i in group]
        if len(centres) > 1:
            draw.line(centres, fill=LINE, width=1)
    font = ImageFont.load_default(size=max(9, min(15, int(grid.edge * scale / 7))))
    for cell in grid.cells:
        text = f"{cell.id:x}"
        box = draw.textbbox((0, 0), text, font=font)
        wide, tall = box[2] - box[0], box[3] - box[1]
        # Cells at the border have their centre outside: keep the text inside the picture.
        x = min(max(cell.x * scale - wide / 2, 3), size[0] - wide - 3)
        y = min(max(cell.y * scale - tall / 2, 3), size[1] - tall - 6)
        draw.text((x, y), text, fill=INK, font=font, stroke_width=2, stroke_fill=HALO)
    return picture


def contact_sheet(
    frames: Any, grid: Grid, groups: list[tuple[int, ...]], caption: str, thumbnails: int = 6
) -> Any:
    """A sheet: frames of the clip from first to last, and the grid over the middle frame.

    frames   uint8 numpy [F, H, W, 3]. Returns a PIL image.
    """
    from PIL import Image, ImageDraw, ImageFont

    count, height, width = frames.shape[:3]
    shown = min(thumbnails, count)
    picks = [round(i * (count - 1) / max(1, shown - 1)) for i in range(shown)]
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


def save_png(picture: Any, path: Path) -> None:
    """Write a PIL image as PNG; the file appears only when it is complete."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        picture.save(partial, format="PNG", optimize=True)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
