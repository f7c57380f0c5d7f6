"""Draw docs/img/tiles.png: how one tile of a frame is made.

    python docs/make_tiles_picture.py

The default plan of Wan at 1280x704. Left: all tiles of a step, each with its own colour, mixed by
the weights that blend them, and the seams of the next step. Right: one tile: the tokens that it
runs, and its weight on them.
"""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from h3video.models import WAN
from h3video.render.pictures import FAINT, INK, LINE, PAPER, save_png, tile_edges
from h3video.tiling.settings import HexSettings
from h3video.tiling.shift import clip_schedule
from h3video.tiling.tokens import TokenPlan

TARGET = Path(__file__).parent / "img" / "tiles.png"
COLOURS = ((86, 156, 214), (206, 120, 92), (120, 178, 104), (190, 160, 80), (160, 120, 190),
           (90, 180, 180), (200, 110, 150), (110, 126, 200), (170, 190, 90), (196, 140, 120),
           (90, 150, 120))  # fmt: skip
SEEN, UNSEEN = (70, 84, 104), (34, 37, 43)
TOKEN, GAP, FOOT = 9, 24, 66
"""px of a token, between the two pictures, below them."""


def maps(plan: TokenPlan) -> list[Any]:
    """Every tile's weight on the token grid: [rows, columns], 0..1."""
    found = []
    for own in plan.weights():
        flat = np.zeros(plan.rows * plan.columns, np.float32)
        flat[own.points] = own.weight
        found.append(flat.reshape(plan.rows, plan.columns))
    return found


def enlarged(colours: Any) -> Image.Image:
    """[rows, columns, 3] in 0..255, a token as a square with a dark edge."""
    picture = np.repeat(np.repeat(colours, TOKEN, 0), TOKEN, 1)
    picture[::TOKEN] *= 0.82
    picture[:, ::TOKEN] *= 0.82
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


def all_tiles(plan: TokenPlan, weights: list[Any], following: TokenPlan) -> Image.Image:
    """The tiles' colours mixed by their weights, and the seams of the plan that follows."""
    mixed = sum(w[..., None] * np.array(c) for w, c in zip(weights, cycle(COLOURS)))
    picture = outlined(enlarged(np.asarray(mixed, np.float64)), plan)
    draw, scale = ImageDraw.Draw(picture), TOKEN / plan.family.token_px
    for ends in tile_edges(following.grid, [t.cells for t in following.tiles])[0]:
        draw.line([(x * scale, y * scale) for x, y in ends], fill=UNSEEN, width=1)
    return picture


def one_tile(plan: TokenPlan, weights: list[Any], number: int) -> Image.Image:
    """What a tile runs, and in its colour what of it counts."""
    seen = np.zeros(plan.rows * plan.columns, bool)
    seen[list(plan.tiles[number].tokens)] = True
    ground = np.where(seen.reshape(plan.rows, plan.columns, 1), SEEN, UNSEEN).astype(np.float64)
    weight = weights[number][..., None]
    colour = np.array(COLOURS[number % len(COLOURS)])
    return outlined(enlarged(ground * (1 - weight) + weight * colour), plan)


def outlined(picture: Image.Image, plan: TokenPlan) -> Image.Image:
    """Cells' edges over it: those between tiles bright, those inside a tile faint."""
    draw, scale = ImageDraw.Draw(picture), TOKEN / plan.family.token_px
    border, inner = tile_edges(plan.grid, [t.cells for t in plan.tiles])
    for edges, colour, wide in ((inner, FAINT, 1), (border, LINE, 2)):
        for ends in edges:
            draw.line([(x * scale, y * scale) for x, y in ends], fill=colour, width=wide)
    return picture


def main() -> None:
    """Write the picture."""
    schedule = clip_schedule(1280, 704, 81, WAN, HexSettings())
    plan = schedule.at(0)
    weights = maps(plan)
    centre = plan.grid.cell_at(plan.width / 2, plan.height / 2)
    middle = next(i for i, tile in enumerate(plan.tiles) if centre in tile.cells)
    runs = len(plan.tiles[middle].tokens)
    left, right = all_tiles(plan, weights, schedule.at(1)), one_tile(plan, weights, middle)
    page = Image.new("RGB", (2 * left.width + 3 * GAP, left.height + GAP + FOOT), PAPER)
    page.paste(left, (GAP, GAP))
    page.paste(right, (left.width + 2 * GAP, GAP))
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=17)
    texts = (
        f"{len(plan.tiles)} tiles of {len(plan.grid.cells)} cells (white: between tiles). Where "
        f"colours mix, {plan.overlap:.0f} px,\ntiles share; weights sum to one. Dark: where the "
        "next step has its seams.",
        f"One tile. Coloured: what it gives to the frame. Grey: context that it only sees. Dark:\n"
        f"not run. It runs {runs / plan.columns / plan.rows:.0%} of the tokens, the largest tile "
        f"{plan.share:.0%}.",
    )
    for text, x in zip(texts, (GAP, left.width + 2 * GAP)):
        draw.multiline_text((x, left.height + GAP + 12), text, fill=INK, font=font, spacing=6)
    save_png(page, TARGET)
    print(TARGET.name, *page.size)


if __name__ == "__main__":
    main()
