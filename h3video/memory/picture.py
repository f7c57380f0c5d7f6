"""The plan as a picture: a stacked bar for every phase, the limits as lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import UsageError
from .ledger import Ledger
from .report import HEADS, title
from .units import GIB, gib

PAPER, INK, FAINT, LIMIT = (250, 250, 247), (32, 34, 40), (150, 152, 158), (196, 44, 44)
COLOURS = {
    "weights": (70, 104, 168), "activations": (230, 152, 60), "scores": (205, 72, 96),
    "pixels": (110, 168, 118), "runtime": (150, 140, 170), "host": (206, 208, 214),
}  # fmt: skip
LABELS = {
    "weights": "weights", "activations": "activations", "scores": "attention scores",
    "pixels": "pixels", "runtime": "driver, program", "host": "in RAM, beside or waiting",
}  # fmt: skip
WIDTH, ROW, LEFT, RIGHT, TOP = 960, 46, 170, 130, 96


def draw(ledger: Ledger, verdict: str) -> Any:
    """A PIL image. Raises UsageError where Pillow is not installed."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ModuleNotFoundError:
        raise UsageError(
            "the picture needs Pillow, which is not installed; run `python -m pip install "
            "pillow`, or leave -o out"
        ) from None
    bars = [_bar(ledger, phase) for phase in ledger.phases]
    limits = _limits(ledger)
    top = max([sum(n for _, n in bar) for bar in bars] + [n for _, n in limits]) * 1.06
    height = TOP + ROW * len(bars) + 96
    picture = Image.new("RGB", (WIDTH, height), PAPER)
    pen = ImageDraw.Draw(picture)
    small, big = ImageFont.load_default(size=14), ImageFont.load_default(size=17)
    pen.text((18, 14), title(ledger), fill=INK, font=big)
    why = ledger.because().split(";")[0]  # the clause that decides; the rest is in the text
    pen.text((18, 40), f"{HEADS[verdict]}: {why}"[:128], fill=INK, font=small)
    scale = (WIDTH - LEFT - RIGHT) / top
    bottom = TOP + ROW * len(bars)
    _axis(pen, small, top, scale, bottom)
    for row, (phase, bar) in enumerate(zip(ledger.phases, bars)):
        y = TOP + ROW * row
        pen.text((18, y + 12), phase.name, fill=INK, font=small)
        x = float(LEFT)
        for kind, count in bar:
            end = x + count * scale
            pen.rectangle((x, y + 6, max(x, end - 1), y + ROW - 8), fill=COLOURS[kind])
            x = end
        there, beside = (sum(n for k, n in bar if (k == "host") is host) for host in (False, True))
        label = f"{there / GIB:.1f} + {beside / GIB:.1f} GiB" if beside else gib(there)
        pen.text((x + 6, y + 12), label, fill=INK, font=small)
    for name, count in limits:
        x = LEFT + count * scale
        pen.line((x, TOP - 14, x, bottom), fill=LIMIT, width=2)
        wide = pen.textlength(name, font=small)
        pen.text((min(x - wide / 2, WIDTH - wide - 6), TOP - 34), name, fill=LIMIT, font=small)
    _legend(pen, small, bars, bottom + 48)
    return picture


def save(ledger: Ledger, verdict: str, path: Path) -> None:
    """Write the picture whole or not at all. Raises UsageError, see draw."""
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp"):
        raise UsageError(f"picture {path} is no .png, .jpg or .webp; name it plan.png")
    if not path.parent.is_dir():
        raise UsageError(f"folder {path.parent} is not there; make it first")
    draft = path.with_name(f".{path.name}.new{path.suffix}")
    try:
        draw(ledger, verdict).save(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _bar(ledger: Ledger, phase: Any) -> list[tuple[str, int]]:
    """Parts of a bar: what is needed by kind on the place of work, then what RAM holds."""
    where = "host" if ledger.ask.machine.gpu == "cpu" else "device"
    out = []
    for kind in ("weights", "activations", "scores", "pixels", "runtime"):
        terms = [t for t in phase.terms if t.where == where and t.kind == kind]
        count = sum(t.needed for t in terms)
        if count:
            out.append((kind, count))
    if where == "device" and phase.needed("host"):
        out.append(("host", phase.needed("host")))
    return out


def _limits(ledger: Ledger) -> list[tuple[str, int]]:
    m = ledger.ask.machine
    if m.gpu == "cpu":
        return [("RAM for it", m.ram_limit.high)]
    name = "Metal's limit" if m.gpu == "mps" else "the card"
    found = [(name, m.device_limit.high)]
    if m.unified and m.ram_limit.high > m.device_limit.high * 1.08:
        found.append(("RAM for it", m.ram_limit.high))
    return found


def _axis(pen: Any, font: Any, top: float, scale: float, bottom: int) -> None:
    step = next(s for s in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 500, 10**6) if top / GIB / s <= 10)
    count = 0.0
    while count * GIB <= top:
        x = LEFT + count * GIB * scale
        pen.line((x, TOP, x, bottom), fill=(228, 228, 224))
        label = f"{count:g} GiB" if count == 0 else f"{count:g}"
        pen.text((x - pen.textlength(label, font=font) / 2, bottom + 6), label, fill=FAINT,
                 font=font)  # fmt: skip
        count += step


def _legend(pen: Any, font: Any, bars: list[list[tuple[str, int]]], y: int) -> None:
    x = 18.0
    used = {kind for bar in bars for kind, _ in bar}
    for kind, colour in COLOURS.items():
        if kind in used:
            pen.rectangle((x, y + 2, x + 13, y + 15), fill=colour)
            pen.text((x + 19, y), LABELS[kind], fill=INK, font=font)
            x += 44 + pen.textlength(LABELS[kind], font=font)
