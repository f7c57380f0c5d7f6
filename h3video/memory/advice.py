"""What to change when a plan does not fit: every suggestion is planned again before it is made.

Suggestions are single changes first, then pairs and threes of the cheapest. Their price is the
time of a step against the untouched plan: from the tile plan's own work count where tiles are
concerned, from the bytes that are streamed where weights are, and stated as a guess elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from ..errors import UsageError
from .ask import Ask, Tiles
from .calibration import Calibration
from .ledger import TOO_LARGE, Ledger, plan
from .quants import parse_quant
from .units import GIB, gib

Tiler = Callable[[Ask, float], Tiles | None]
"""tiler(ask, share) -> a tile plan of at most that share of the clip, None when there is none."""

SHARES = (0.5, 1 / 3, 0.25, 0.125)
LADDER = ("BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "Q2_K")
MOST = 8
"""Suggestions that are shown."""


@dataclass(frozen=True)
class Change:
    """One change to an ask.

    kind    what is changed; two changes of a kind are never combined
    text    for people;  price   time against the untouched plan, 1 is none
    note    what it costs beside time
    settings  flags, options and inputs that make it
    guess   a quick, optimistic stand-in for an `apply` that is slow
    """

    kind: str
    text: str
    price: float
    note: str
    apply: Callable[[Ask], Ask]
    settings: tuple[tuple[str, str], ...] = ()
    guess: Callable[[Ask], Ask] | None = None


class Steps:
    """The changes of one kind, the mildest first, made when they are first asked for."""

    def __init__(self, found: Iterator[Change]) -> None:
        self._found = found
        self._made: list[Change] = []

    def __iter__(self) -> Iterator[Change]:
        yield from self._made
        for change in self._found:
            self._made.append(change)
            yield change

    @property
    def last(self) -> Change | None:
        """The most severe one."""
        made = list(self)
        return made[-1] if made else None


@dataclass(frozen=True)
class Advice:
    """Changes that go together, and the plan that results."""

    changes: tuple[Change, ...]
    ledger: Ledger

    @property
    def price(self) -> float:
        """Time against the untouched plan."""
        price = 1.0
        for change in self.changes:
            price *= change.price
        return price

    @property
    def fits(self) -> bool:
        """Whether the plan fits with it."""
        return self.ledger.fits

    @property
    def settings(self) -> dict[str, str]:
        """All settings."""
        return {k: v for change in self.changes for k, v in change.settings}

    def text(self) -> str:
        """One line for people."""
        what = " + ".join(c.text for c in self.changes)
        notes = "; ".join(dict.fromkeys(c.note for c in self.changes if c.note))
        return f"{what}{f' ({notes})' if notes else ''}"

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "changes": [c.text for c in self.changes], "kinds": [c.kind for c in self.changes],
            "fits": self.fits, "state": self.ledger.state, "peak_bytes": self.ledger.peak,
            "time": round(self.price, 3), "settings": self.settings,
            "notes": [c.note for c in self.changes if c.note],
        }  # fmt: skip


def advise(
    ledger: Ledger, tiler: Tiler | None = None, calibration: Calibration | None = None
) -> tuple[Advice, ...]:
    """Suggestions that make a plan fit, cheapest first; when none does, those that come nearest.

    A plan that fits needs none.
    """
    if ledger.state == "fits":
        return ()
    ask, goal = ledger.ask, ("fits",) if ledger.fits else ("fits", "tight")
    kinds = [Steps(found) for found in ladders(ledger, tiler, calibration)]
    for size in (1, 2, 3, 4):
        found = [
            advice for together in combinations(kinds, size)
            if (advice := _mildest(ask, together, goal, calibration)) is not None
        ]  # fmt: skip
        if found or ledger.fits:
            return tuple(sorted(found, key=lambda a: (round(a.price, 2), a.text()))[:MOST])
    severe = [_try(ask, (k.last,), calibration) for k in kinds if k.last is not None]
    nearest = [a for a in severe if a is not None]
    nearest.sort(key=lambda a: (len(a.ledger.blockers), _over(a.ledger)))
    return tuple(nearest[:3])


def _over(ledger: Ledger) -> int:
    return max(place.over for phase in ledger.phases for place in ledger.places(phase))


def _try(
    ask: Ask, together: tuple[Change, ...], calibration: Calibration | None, quick: bool = False
) -> Advice | None:
    try:
        for change in together:
            ask = (change.guess if quick and change.guess else change.apply)(ask)
        return Advice(together, plan(ask, calibration))
    except UsageError:
        return None


def _mildest(
    ask: Ask, kinds: tuple[Steps, ...], goal: tuple[str, ...], calibration: Calibration | None
) -> Advice | None:
    """The mildest changes of these kinds that fit together; every one of them must be needed."""
    last = [k.last for k in kinds]
    if any(change is None for change in last):
        return None
    severe = _try(ask, tuple(c for c in last if c is not None), calibration, quick=True)
    if severe is None or severe.ledger.state not in goal:
        return None  # a milder one does not fit either: peaks never fall with more of anything
    for together in product(*kinds):
        for quick in (True, False):
            advice = _try(ask, together, calibration, quick)
            if advice is None or advice.ledger.state not in goal:
                break
            if not quick:
                return _named(advice)
    return None


def _named(advice: Advice) -> Advice:
    """With the tile plan's own words, which are known only now."""
    tiles = advice.ledger.ask.tiles
    if tiles is None:
        return advice
    return replace(advice, changes=tuple(
        replace(c, text=f"{tiles.runs} tiles of {tiles.share:.0%} of the clip",
                price=max(tiles.time, 0.2), settings=tiles.settings) if c.kind == "tiles" else c
        for c in advice.changes
    ))  # fmt: skip


def ladders(
    ledger: Ledger, tiler: Tiler | None, calibration: Calibration | None = None
) -> Iterator[Iterator[Change]]:
    """Every kind of change that makes sense for the ask's runtime and machine."""
    ask = ledger.ask
    for make in (_attention, _flags, _caches, _quants, _encoder, _pruned, _decode, _offload,
                 _streaming, _layers, _wired, _canvas):  # fmt: skip
        yield make(ask)
    yield _frames(ask, calibration)
    yield _tiles(ask, tiler)


def _set(**values: Any) -> Callable[[Ask], Ask]:
    return lambda ask: ask.but(**values)


def _attention(ask: Ask) -> Iterator[Change]:
    from .runtimes import comfyui

    if ask.runtime == "comfyui" and ask.machine.gpu == "mps":
        if comfyui.attention(ask) in ("pytorch", "math"):
            drop = ("--use-pytorch-cross-attention",)
            yield Change(
                "attention", "sub-quadratic attention", 1.05, "",
                lambda a: a.but(attention="sub-quadratic",
                                flags=tuple(f for f in a.flags if f not in drop)),
                (("flag", "--use-quad-cross-attention"),),
            )  # fmt: skip
    elif ask.attention == "math":
        yield Change(
            "attention", "flash attention", 0.7, "", lambda a: a.but(attention="auto"),
            (("attention", "flash"),),
        )  # fmt: skip
    if ask.runtime == "sdcpp" and ask.attention not in ("auto", "flash"):
        yield Change(
            "attention", "--diffusion-fa", 1.0, "", lambda a: a.but(attention="flash"),
            (("flag", "--diffusion-fa"),),
        )  # fmt: skip


def _flags(ask: Ask) -> Iterator[Change]:
    """Without the flags at which ComfyUI would not start."""
    from .flags import check_flags

    fatal = tuple(n.flag for n in check_flags(ask) if n.fatal)
    if fatal:
        kept = tuple(f for f in ask.flags if f.split("=")[0] not in fatal)
        yield Change("flags", f"leave {' and '.join(fatal)} out", 1.0, "", _set(flags=kept))


def _caches(ask: Ask) -> Iterator[Change]:
    keeping = ("--cache-classic", "--cache-lru", "--high-ram")
    if ask.resident:
        yield Change(
            "free", f"free {' and '.join(ask.resident)} when done", 1.02, "loaded again next time",
            lambda a: a.but(resident=()), (("node", "H3FreeMemory"),),
        )  # fmt: skip
    if ask.runtime == "comfyui" and ask.has_flag(*keeping):
        yield Change(
            "cache", "--cache-none", 1.02, "every run loads its models again",
            lambda a: a.but(
                flags=(*(f for f in a.flags if f.split("=")[0] not in keeping), "--cache-none")
            ),
            (("flag", "--cache-none"),),
        )  # fmt: skip


def _quants(ask: Ask) -> Iterator[Change]:
    if ask.runtime in ("h3c", "vpipe", "official", "h3video") or ask.files.transformer:
        return
    bits = parse_quant(ask.quant).bits
    for name in LADDER:
        if parse_quant(name).bits >= bits and not _refused_type(ask):
            continue
        if parse_quant(name).bits > bits:
            continue
        small = parse_quant(name).bits < 4
        yield Change(
            "quantization", f"transformer in {name}", 1.03,
            "visibly worse pictures" if small else "slightly different pictures",
            _set(quant=name), (("quant", name),),
        )  # fmt: skip


def _refused_type(ask: Ask) -> bool:
    from .blockers import MPS_REFUSES

    name = parse_quant(ask.quant).name
    return (ask.machine.gpu == "mps" and name in MPS_REFUSES) or name in dict(ask.spec.refused)


def _encoder(ask: Ask) -> Iterator[Change]:
    from .parts import encoder_quant

    if ask.runtime not in ("comfyui", "sdcpp", "diffusers"):
        return
    text = [e for e in ask.encoders() if e.kind == "text"]
    if not text or ask.files.encoders:
        return
    bits = parse_quant(encoder_quant(ask, text[0])).bits
    for name in ("Q8_0", "Q4_K_M", "Q2_K"):
        if ask.runtime == "diffusers" and name != "Q8_0":
            continue
        if parse_quant(name).bits < bits:
            yield Change(
                "encoder", f"text encoder in {name}", 1.0,
                "prompts are followed less well" if name == "Q2_K" else "",
                _set(encoder_quant=name), (("encoder_quant", name),),
            )  # fmt: skip


def _pruned(ask: Ask) -> Iterator[Change]:
    if ask.spec.name != "minimax-h3" or ask.runtime not in ("comfyui", "sdcpp"):
        return
    if ask.files.transformer:
        return

    def swap(a: Ask) -> Ask:
        from ..models.catalog import model_spec

        return a.but(spec=model_spec("minimax-h3-pruned"))

    yield Change(
        "pruned", "the pruned checkpoint (20B of 33B)", 1.0, "the same pictures within noise",
        swap, (("model", "minimax-h3-pruned"),),
    )  # fmt: skip


def _tiles(ask: Ask, tiler: Tiler | None) -> Iterator[Change]:
    if tiler is None or ask.runtime not in ("comfyui", "diffusers", "h3video"):
        return
    now = 1.0 if ask.tiles is None else ask.tiles.share
    for share in SHARES:
        if share < now * 0.9:
            yield Change(
                "tiles", f"tiles of {share:.0%} of the clip", 1.2, "", _planned(tiler, share), (),
                _guessed(share),
            )  # fmt: skip


def _planned(tiler: Tiler, share: float) -> Callable[[Ask], Ask]:
    def apply(ask: Ask) -> Ask:
        tiles = tiler(ask, share)
        if tiles is None or tiles.runs < 2:
            raise UsageError(f"no tile of {share:.0%} of the clip can be planned")
        return ask.but(tiles=tiles)

    return apply


def _guessed(share: float) -> Callable[[Ask], Ask]:
    """A tile plan without overlap: less than any real one takes."""

    def apply(ask: Ask) -> Ask:
        video = ask.tokens.video
        return ask.but(
            tiles=Tiles(max(1, int(0.75 * share * video)), video, max(2, int(1 / share)))
        )

    return apply


def _decode(ask: Ask) -> Iterator[Change]:
    if ask.spec.family.name == "minimax-h3" or ask.runtime in ("h3c", "vpipe", "official"):
        return
    for tile in (512, 256):
        if tile < max(ask.width, ask.height) and (ask.decode_tile or 10**9) > tile:
            yield Change(
                "decode", f"decode in tiles of {tile} px", 1.03, "",
                _set(decode_tile=tile),
                (("decode_tile", str(tile)), ("node", "VAE Decode (Tiled)")),
            )  # fmt: skip


def _offload(ask: Ask) -> Iterator[Change]:
    if ask.runtime not in ("diffusers", "sdcpp", "official") or ask.machine.unified:
        return
    prices = {"model": 1.05, "group": 1.4, "sequential": 4.0}
    order = list(prices)
    start = order.index(ask.offload) + 1 if ask.offload in order else 0
    for mode in order[start:]:
        if ask.runtime == "official" and mode != "model":
            continue
        yield Change(
            "offload", f"offload {mode}", prices[mode], "weights wait in RAM",
            _set(offload=mode), (("offload", mode),),
        )  # fmt: skip


def _streaming(ask: Ask) -> Iterator[Change]:
    if ask.runtime in ("h3c", "vpipe") and not ask.streaming:
        yield Change(
            "streaming", "--ssd-streaming", 1.5, "reads 36 GiB from the SSD in every step",
            lambda a: a.but(streaming=True), (("flag", "--ssd-streaming"),),
        )  # fmt: skip


def _layers(ask: Ask) -> Iterator[Change]:
    if ask.runtime != "h3c" or ask.streaming:
        return
    for layers in (45, 40):
        if layers < (ask.layers or 50):
            yield Change(
                "layers", f"--layers {layers}", layers / 50, "loses detail",
                _set(layers=layers), (("flag", f"--layers {layers}"),),
            )  # fmt: skip


def _wired(ask: Ask) -> Iterator[Change]:
    m = ask.machine
    if m.gpu != "mps" or m.metal is None or m.wired_limit is not None:
        return
    from .units import MIB, Range

    raised = m.ram - max(6 * GIB, m.ram // 8)
    if raised <= m.metal.high:
        return
    mib = raised // MIB
    more = replace(m, metal=Range.exactly(mib * MIB), wired_limit=mib * MIB)
    yield Change(
        "wired limit", f"raise Metal's limit to {gib(mib * MIB)}", 1.0,
        "needs sudo, is lost at reboot, and leaves little to other programs",
        lambda a: a.but(machine=more), (("command", f"sudo sysctl iogpu.wired_limit_mb={mib}"),),
    )  # fmt: skip


def _frames(ask: Ask, calibration: Calibration | None) -> Iterator[Change]:
    """The longest chunk that fits, found by halving: peaks never fall with more frames."""
    family = ask.spec.family
    groups = (ask.frames - family.frame_first) // family.frame_step
    low, high = 0, groups
    if not _fits(ask.but(frames=family.frame_first, tiles=None), calibration):
        low = high = -1
    while low < high - 1:
        middle = (low + high) // 2
        length = middle * family.frame_step + family.frame_first
        if _fits(ask.but(frames=length, tiles=None), calibration):
            low = middle
        else:
            high = middle
    length = low * family.frame_step + family.frame_first
    if low <= 0 or length >= ask.frames or length < family.fps // 2:
        length = max(1, groups // 2) * family.frame_step + family.frame_first
        if length >= ask.frames:
            return
    count = -(-ask.frames // length)
    yield Change(
        "frames", f"{count} chunks of {length} frames", 1.1, "motion must be carried over joins",
        _set(frames=length, tiles=None), (("chunk_frames", str(length)),),
    )  # fmt: skip


def _fits(ask: Ask, calibration: Calibration | None) -> bool:
    try:
        return plan(ask, calibration).fits
    except UsageError:
        return False


def _canvas(ask: Ask) -> Iterator[Change]:
    step = ask.spec.family.size_multiple
    for share in (0.75, 0.5):
        factor = share**0.5
        width = max(step, int(ask.width * factor) // step * step)
        height = max(step, int(ask.height * factor) // step * step)
        if (width, height) == (ask.width, ask.height):
            continue
        yield Change(
            "canvas", f"a canvas of {width}x{height}", share, "a smaller picture",
            _set(width=width, height=height, tiles=None),
            (("width", str(width)), ("height", str(height))),
        )  # fmt: skip


def verdict(ledger: Ledger, advice: tuple[Advice, ...]) -> str:
    """fits | tight | fits if | does not fit."""
    if ledger.state != TOO_LARGE:
        return ledger.state
    return "fits if" if any(a.fits for a in advice) else TOO_LARGE
