"""What one forward pass holds beside the weights, from the order in which a runtime's code works.

A transformer block's worst moment is found by listing, for each host, which tensors are alive at
its candidates: in attention, inside the feed-forward, at the residual. Widths come from the model,
the list from reading the host's code, and tests compare it with counted tensors
(tests/memory/test_measured.py). Nothing here is fitted.

Letters in formulas: d width of the hidden states, i of attention, f of the feed-forward's first
layer, m of its second, h of a head, b bytes of an element; all per row of the sequence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .ask import Ask
from .quants import parse_quant
from .terms import Term, computed, ranged
from .units import Range, gib

MAX_ELEMENTS = 2**31

GATED = ("minimax-h3", "mochi")
"""Families whose feed-forward's first layer makes two tensors that are multiplied."""


@dataclass(frozen=True)
class Widths:
    """The letters of the formulas. b: bytes of an activation; rope: width that is rotated."""

    d: int
    i: int
    f: int
    m: int
    h: int
    heads: int
    b: int


@dataclass(frozen=True)
class Moment:
    """A candidate for a block's worst moment: bytes a row, beside the block's input."""

    name: str
    row: float
    formula: str


@dataclass(frozen=True)
class Block:
    """What a host's block holds, in bytes a row.

    state     hidden states that enter the block, which the caller keeps
    tables    positions and modulation that stay for the whole pass, a row of the frame
    moments   see Moment
    widest    elements a row of the widest single tensor
    constant  bytes whatever the clip is
    """

    state: float
    tables: float
    moments: tuple[Moment, ...]
    widest: int
    source: str
    constant: int = 0

    @property
    def worst(self) -> Moment:
        """The moment that decides."""
        return max(self.moments, key=lambda m: m.row)

    @property
    def attention(self) -> Moment:
        """The moment in which attention runs: scores are alive in no other."""
        named = [m for m in self.moments if m.name in ("attention", "single block")]
        return max(named, key=lambda m: m.row, default=self.worst)

    def spare(self, rows: int) -> int:
        """Bytes that the worst moment takes beyond attention's: room that scores fill first."""
        return int(rows * (self.worst.row - self.attention.row))

    def with_attention(self, row: float, formula: str) -> Block:
        """The same with `row` more bytes a row while attention runs."""
        changed = tuple(
            Moment(m.name, m.row + row, f"{m.formula} + {formula}")
            if m.name in ("attention", "single block") else m
            for m in self.moments
        )  # fmt: skip
        return replace(self, moments=changed)


def widths(ask: Ask, bytes_: int | None = None) -> Widths:
    """The model's widths with activations of `bytes_` bytes (None: the model's)."""
    shape = ask.spec.denoiser
    inner = shape.inner or shape.hidden
    gated = ask.spec.family.name in GATED
    return Widths(
        shape.hidden, inner, shape.ffn, shape.ffn // 2 if gated else shape.ffn,
        inner // shape.heads, shape.heads, bytes_ or shape.dtype_bytes,
    )  # fmt: skip


def _m(name: str, row: float, formula: str) -> Moment:
    return Moment(name, row, formula)


def diffusers_block(ask: Ask, bytes_: int = 2) -> Block:
    """A block as diffusers' classes run it: every intermediate result has a name and lives on.

    Norms and residuals of Wan are computed in float32: with 16-bit states two copies and a product
    (12d), with 32-bit ones a product and the sum (8d).
    """
    w = widths(ask, bytes_)
    d, i, f, m, h, b = w.d, w.i, w.f, w.m, w.h, w.b
    wide, text = (12 * d, "12d") if b == 2 else (8 * d, "8d")
    family = ask.spec.family.name
    moments: tuple[Moment, ...]
    feed = _m("feed-forward", (3 * d + 2 * f) * b, "3db + 2fb")
    if family in GATED:
        feed = _m("feed-forward", (3 * d + f + 2 * m) * b, "3db + fb + 2mb")
    if family.startswith("wan"):
        per_token = ask.spec.family.vae_space == 16  # 5B: a time step for every token
        temb, more = (24 * d, " + 24d") if per_token else (0, "")
        moments = (
            _m("residual", 4 * d * b + wide + temb, f"4db + {text}{more}"),
            _m(feed.name, feed.row + temb, feed.formula + more),
            _m("attention", d * b + 4 * i * b + 6 * i + temb, f"db + 4ib + 6i{more}"),
        )
        tables = 8.0 * h + (7 * d * b if per_token else 0)
        positions = 1024 * 8 * h  # the rotary table's three parts are copied
        source = "diffusers transformer_wan.py"
        return Block(d * b, tables, moments, max(f, d), source, positions)
    if family.startswith("ltx"):
        rope = _m("attention", 5 * d * b + 12 * d, "5db + 12d (rotary embedding in float32)")
        return Block(d * b, 8.0 * d, (feed, rope), max(f, d), "diffusers transformer_ltx.py")
    joint = _m("attention", 6 * i * b + 12 * i, "6ib + 12i (rotary embedding in float32)")
    moments = (feed, joint)
    tables = 8.0 * h
    if family == "hunyuan-video":
        single = _m("single block", 6 * i * b + f * b + 12 * i, "6ib + fb + 12i")
        moments = (feed, joint, single)
    if family == "mochi":
        tables, feed = 4.0 * d, _m("feed-forward", (4 * d + f + 2 * m) * b, "4db + fb + 2mb")
        moments = (feed, joint)
    if family == "minimax-h3":
        moments = (feed, _m("attention", d * b + 5 * i * b + 6 * i, "db + 5ib + 6i"))
    return Block(d * b, tables, moments, max(f, 3 * i if family == "flux" else f), "diffusers")


def comfyui_block(ask: Ask, bytes_: int = 2) -> Block:
    """A block as ComfyUI 0.33 runs it: results are dropped early, residuals in place."""
    w = widths(ask, bytes_)
    d, i, f, m, h, b = w.d, w.i, w.f, w.m, w.h, w.b
    family = ask.spec.family.name
    moments: tuple[Moment, ...]
    if family == "minimax-h3":
        fused = "db + fb + m + db (int8: the activation is folded into the second layer)"
        feed = _m("feed-forward", (d + f + 2 * m) * b, "db + fb + 2mb")
        if parse_quant(ask.quant).name == "INT8" and ask.machine.gpu == "cuda":
            feed = _m("feed-forward", (2 * d + f) * b + m, fused)
        moments = (
            feed,
            _m("attention", (d + 6 * i) * b, "db + 6ib (q, k, v of one layer, v, result twice)"),
        )
        return Block(d * b, 192.0 * b, moments, max(f, 3 * i), "ComfyUI comfy/ldm/minimax/model.py")
    feed = _m("feed-forward", (3 * d + 2 * f) * b, "3db + 2fb")
    if family in GATED:
        feed = _m("feed-forward", (3 * d + f + 2 * m) * b, "3db + fb + 2mb")
    if family.startswith("wan"):
        attention = _m("attention", (d + 4 * i) * b, "db + 4ib")
        return Block(d * b, 8.0 * h, (feed, attention), f, "ComfyUI comfy/ldm/wan/model.py")
    if family.startswith("ltx"):
        attention = _m("attention", (d + 6 * i) * b, "db + 6ib")
        return Block(d * b, 4.0 * d, (feed, attention), f, "ComfyUI comfy/ldm/lightricks/model.py")
    attention = _m("attention", (d + 7 * i) * b, "db + 7ib")
    moments = (feed, attention)
    if family in ("hunyuan-video", "flux"):
        single = _m("single block", (9 * i + f) * b, "9ib + fb (q, k, v and feed-forward at once)")
        moments = (feed, attention, single)
    widest = 3 * i + f if family == "hunyuan-video" else max(f, 3 * i)
    return Block(d * b, 8.0 * h, moments, widest, "ComfyUI comfy/ldm")


def official_wan_block(ask: Ask) -> Block:
    """Wan-AI's own code: float32 residuals, rotary embedding in float64.

    Wan 2.2 computes the modulation for every token: e [S, d], e0 [S, 6, d] stay, every block adds
    its own table to them (24d more), all in float32.
    """
    w = widths(ask, 2)
    d, i, f, b = w.d, w.i, w.f, w.b
    new = ask.spec.name.startswith("wan2.2")
    table, text = (24 * d, " + 24d") if new else (0, "")
    moments = (
        _m("rotary embedding", 4 * d + 3 * i * b + 4 * i + 20 * i + table,
           f"4d + 3ib + 4i + 20i (float64 twice, float32 once){text}"),
        _m("feed-forward", 4 * d + d * b + 2 * f * b + table, f"4d + db + 2fb{text}"),
    )  # fmt: skip
    tables = 16.0 * w.h / 2 + (28 * d if new else 0)
    return Block(4 * d, tables, moments, max(f, i), "Wan-AI wan/modules/model.py")


def official_hunyuan_block(ask: Ask) -> Block:
    """Tencent's own code: a single block keeps every intermediate result until it returns.

    The modulated input, q, k, v and the feed-forward's first layer as one tensor, q and k thrice
    (normed, the picture's part turned, text joined), attention, and the second layer's input.
    """
    w = widths(ask, 2)
    single = _m(
        "single block", (2 * w.d + 11 * w.i + 3 * w.f) * w.b, "2db + 11ib + 3fb (hyvideo models.py)"
    )
    return Block(
        w.d * w.b, 8.0 * w.h, (single,), 3 * w.i + w.f, "Tencent hyvideo/modules/models.py"
    )


def ggml_block(ask: Ask) -> Block:
    """stable-diffusion.cpp: everything in float32; splitting a tensor copies its parts."""
    w = widths(ask, 4)
    d, i, f, b = w.d, w.i, w.f, w.b
    if ask.spec.family.name in GATED:
        feed = _m("feed-forward", 2 * f * b, "2fb (the first layer's result and its two halves)")
    else:
        feed = _m("feed-forward", (d + f) * b, "db + fb")
    attention = _m("attention", 6 * i * b, "6ib (q, k, v of one layer and their copies)")
    return Block(d * b, 8.0 * w.h, (feed, attention), max(f, 3 * i), "sd.cpp src/model/diffusion")


def h3c_block(ask: Ask) -> Block:
    """antirez/h3.c: one arena for hidden, modulated, attention's result, and q, k, v twice.

    The feed-forward is fused and reuses it.
    """
    w = widths(ask, 2)
    arena = _m("arena", 2 * w.d * w.b + 6 * w.i * w.b, "2db + 6ib")
    return Block(w.d * w.b, 0.0, (arena,), 3 * w.i, "h3_dit.c allocate_activations")


def pass_terms(ask: Ask, block: Block, where: str, batch: int = 1) -> list[Term]:
    """The activations of one pass with the ask's tiles: states, tables, the worst moment.

    With tiles (block-major) every tile's states stay, and one tile is at its worst moment;
    tile-major keeps a float32 sum of the frame and one tile's states.
    """
    worst, rows, frame = block.worst, ask.rows, ask.frame_rows
    tiles = ask.tiles
    if not ask.tiled or tiles is None:
        count = batch * frame * (block.state + worst.row) + frame * block.tables + block.constant
        formula = (
            f"{frame:,} rows x ({block.state:,.0f} states + {block.tables:,.0f} tables + "
            f"{worst.row:,.0f} {worst.name}: {worst.formula})"
        )
        return [computed("activations", where, "activations", count, formula, block.source)]
    at_work = batch * rows * worst.row + rows * block.tables + frame * block.tables
    at_work += block.constant
    every = tiles.all_tokens + tiles.runs * ask.beside
    states = batch * every * block.state
    kept = f"{tiles.runs} tiles of {every:,} rows x {block.state:,.0f}"
    if tiles.exchange == "block":
        states = batch * (frame * (block.state + 4 * block.state / 2) + rows * block.state)
        kept = f"{frame:,} rows x {3 * block.state:,.0f} (states and float32 sum)"
    elif tiles.order == "tile-major":
        states = batch * (frame * (block.state + 2 * block.state) + rows * block.state)
        kept = f"{frame:,} rows x {3 * block.state:,.0f} (embedding and float32 sum)"
    away = "host" if tiles.accumulate == "cpu" else where
    moment = (
        f"{rows:,} rows x ({worst.row:,.0f} {worst.name}: {worst.formula}; {block.tables:,.0f} "
        f"tables) + {frame:,} rows x {block.tables:,.0f}"
    )
    return [
        computed("tiles' states", away, "activations", states, kept, "h3video/tiling/fuse.py"),
        computed("a tile's activations", where, "activations", at_work, moment, block.source),
    ]


def score_bytes(ask: Ask, rows: int, bytes_: int = 2) -> int:
    """Bytes of one full score matrix over `rows` rows: heads x rows^2."""
    return ask.spec.denoiser.heads * rows * rows * bytes_


def full_scores(
    ask: Ask, where: str, why: str, low: float, high: float, bytes_: int = 2,
    block: Block | None = None,
) -> Term:  # fmt: skip
    """The score matrix where a backend builds it, `low` to `high` copies at once.

    block   whose worst moment is counted already: only what attention adds to that is counted
    """
    one = score_bytes(ask, ask.rows, bytes_)
    spare = block.spare(ask.rows) if block else 0
    formula = (
        f"{ask.spec.denoiser.heads} heads x {ask.rows:,}^2 rows x {bytes_} B = {gib(one)}, "
        f"x {low:g} to {high:g} copies{_less(spare)}"
    )
    least, most = (max(0, int(one * n) - spare) for n in (low, high))
    if low == high:
        return computed("score matrix", where, "scores", least, formula, why)
    return ranged("score matrix", where, "scores", least, most, formula, why)


def _less(spare: int) -> str:
    return f", less {gib(spare)} that the feed-forward needs at another time" if spare else ""


SUB_QUADRATIC = (4096, 256)
"""Most and fewest queries of which ComfyUI computes the scores at a time."""


def sub_quadratic_block(block: Block, ask: Ask, bytes_: int = 2, upcast: bool = False) -> Block:
    """A block whose attention is ComfyUI's sub-quadratic one: q, k, v are laid out anew, and the
    result is there in parts and joined. In float32 (`upcast`) k is there once more."""
    i = widths(ask).i
    row, formula = 4.0 * i * bytes_, "4ib (sub-quadratic: q, k, v, result)"
    if ask.spec.family.name == "minimax-h3":  # whose result is counted twice already
        row, formula = 3.0 * i * bytes_, "3ib (sub-quadratic: q, k, v)"
    if upcast:
        row, formula = row + 4.0 * i, f"{formula} + 4i (k in float32)"
    return block.with_attention(row, formula)


def sub_quadratic(
    ask: Ask, where: str, free: int, bytes_: int = 2, block: Block | None = None
) -> Term:
    """The scores of ComfyUI's sub-quadratic attention, `bytes_` each: of some queries at a time,
    before and after softmax.

    It takes as many queries (4096, halved down to 256) as let four score matrices fit the free
    memory that psutil reports, so the two fill up to half of what is free. Where 256 do not fit it
    takes 512 with a root of the keys at a time, and keeps every part's result twice.
    """
    heads, rows = ask.spec.denoiser.heads, ask.rows
    most, least = (2 * heads * min(n, rows) * rows * bytes_ for n in SUB_QUADRATIC)
    parts = 2 * math.ceil(math.sqrt(rows)) * 512 * widths(ask).i * 2
    least = min(least, parts)
    most = max(least, min(most, max(free, 0) // 2))
    spare = block.spare(rows) if block else 0
    formula = (
        f"2 x {heads} heads x 256 to 4096 queries x {rows:,} keys x {bytes_} B, at "
        f"most half of {gib(max(free, 0))} free{_less(spare)}"
    )
    size = Range(max(0, least - spare), max(0, most - spare))
    return Term(
        "scores of a chunk", where, "scores", size, "range", formula,
        "ComfyUI attention_sub_quad", size.high - size.low, size.high,
    )  # fmt: skip


def split_scores(
    ask: Ask, where: str, free: int, bytes_: int = 2, block: Block | None = None
) -> Term:
    """The scores of ComfyUI's split attention: as many slices, 64 at most, as let three fit what
    is free. With less it stops ("Not enough memory, use lower resolution")."""
    one = score_bytes(ask, ask.rows, bytes_)
    least = 3 * one // 64
    most = max(least, min(3 * one, max(free, 0)))
    spare = block.spare(ask.rows) if block else 0
    size = Range(max(0, least - spare), max(0, most - spare))
    formula = (
        f"3 x {ask.spec.denoiser.heads} heads x {ask.rows:,}^2 rows x {bytes_} B in 1 to 64 "
        f"slices, at most {gib(max(free, 0))} free{_less(spare)}"
    )
    return Term(
        "scores of a slice", where, "scores", size, "range", formula, "ComfyUI attention_split",
        size.high - size.low, size.high,
    )  # fmt: skip


def largest_tensor(ask: Ask, block: Block) -> int:
    """Elements of the largest tensor of a pass."""
    return max(ask.rows * block.widest, ask.frame_rows * ask.spec.denoiser.hidden)


def latent_terms(ask: Ask, where: str, bytes_: int = 4) -> Term:
    """The sampler's own tensors: noise, latents, and the predictions of a step."""
    t, rows, columns = ask.tokens.latent
    one = ask.spec.channels * t * rows * columns * bytes_
    count = 4 if (ask.passes or ask.spec.passes) == 1 else 5
    return computed(
        "latents", where, "activations", one * count,
        f"{count} x {ask.spec.channels} channels x {t}x{rows}x{columns} x {bytes_} B", "sampler",
    )  # fmt: skip


def text_term(ask: Ask, where: str, bytes_: int = 2) -> Term:
    """The prompt's embeddings as they enter the transformer and as its blocks read them."""
    text = ask.tokens.text
    hidden = max((e.hidden for e in ask.encoders() if e.kind == "text"), default=0)
    passes = ask.passes or ask.spec.passes
    count = passes * text * (hidden + ask.spec.denoiser.hidden) * bytes_
    return computed(
        "prompt", where, "activations", count,
        f"{passes} x {text} tokens x ({hidden} + {ask.spec.denoiser.hidden}) x {bytes_} B",
        "shapes",
    )  # fmt: skip
