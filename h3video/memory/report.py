"""The plan as a table that a person reads in ten seconds, and with every number explained."""

from __future__ import annotations

from .advice import Advice, verdict
from .ledger import Ledger
from .parts import encoder_quant
from .runtimes import runtime
from .settings import settings
from .terms import Phase
from .units import gib

KINDS = ("weights", "activations", "scores", "pixels", "runtime")

HEADS = {
    "fits": "FITS", "tight": "FITS, TIGHTLY", "fits if": "FITS IF CHANGED",
    "does not fit": "DOES NOT FIT",
}  # fmt: skip


def title(ledger: Ledger) -> str:
    """What was asked, in one line."""
    ask = ledger.ask
    more = []
    if ask.asked_frames is not None and ask.asked_frames != ask.frames:
        more.append(f"{ask.asked_frames} frames run as {ask.frames}")
    encoders = [e for e in ask.encoders() if e.kind == "text"]
    if encoders:
        more.append(f"encoder {encoder_quant(ask, encoders[0])}")
    if ask.tiled and ask.tiles is not None:
        more.append(f"{ask.tiles.runs} tiles of {ask.tiles.share:.0%}")
    extra = f" ({', '.join(more)})" if more else ""
    return (
        f"{ask.spec.title} {ask.quant}, {ask.width}x{ask.height}x{ask.frames}, "
        f"{runtime(ask.runtime).TITLE}{extra}"
    )


def text(ledger: Ledger, advice: tuple[Advice, ...], explain: bool = False) -> str:
    """The report."""
    ask = ledger.ask
    lines = [title(ledger), f"on {ask.machine.text()}", ""]
    lines += table(ledger)
    lines += ["", f"{HEADS[verdict(ledger, advice)]}: {ledger.because()}"]
    if ledger.streamed:
        lines.append(streaming(ledger))
    lines += [f"blocked: {b.text()}" for b in ledger.blockers[1:]]
    lines += [f"note: {w}" for w in ledger.warnings]
    lines += [f"note: {n}" for n in dict.fromkeys(n for p in ledger.phases for n in p.notes)]
    lines += _advice(ledger, advice)
    found = settings(advice[0].ledger if advice and advice[0].fits else ledger)
    if found:
        lines += ["", "set:"] + [f"  {s.text}   ({s.why})" for s in found]
    if explain:
        lines += ["", *explained(ledger)]
    return "\n".join(lines)


BUS, DISK = 20e9, 4e9
"""Bytes a second: RAM to a card, a good SSD."""


def streaming(ledger: Ledger) -> str:
    """What is read again in every pass, and how long that takes."""
    disk = ledger.from_disk
    seconds = (ledger.streamed - disk) / BUS + disk / DISK
    where = ""
    if 0 < disk < ledger.streamed:
        where = f", {gib(disk)} of it from the disk, for RAM cannot hold it"
    elif disk:
        where = " from the disk"
    rates = f"{DISK / 1e9:.0f} GB/s" if disk == ledger.streamed else f"{BUS / 1e9:.0f} GB/s"
    if 0 < disk < ledger.streamed:
        rates += f" and {DISK / 1e9:.0f}"
    return (
        f"streams {gib(ledger.streamed)} of weights in every pass{where} (about {seconds:.1f} s "
        f"at {rates})"
    )


def table(ledger: Ledger) -> list[str]:
    """One line a phase: parts and peak on the device, what RAM holds, the worst marked.

    needs: what cannot be given up (weights can be streamed, buffers made smaller); it decides.
    """
    worst = ledger.worst[0]
    only_host = ledger.ask.machine.gpu == "cpu"
    unified = ledger.ask.machine.unified
    head = f"  {'phase':<20}{'weights':>10}{'activ.':>10}{'scores':>10}{'pixels':>10}{'other':>10}"
    lines = [
        f"{head}{'needs':>11}{'RAM' if only_host else 'device':>12}"
        f"{'' if only_host else '  RAM beside'}"
    ]
    for phase in ledger.phases:
        where = "host" if only_host else "device"
        cells = [_cell(phase, where, kind) for kind in KINDS]
        place = ledger.places(phase)[0]
        mark = ">" if phase is worst else " "
        host = "" if only_host else f"{gib(phase.needed('host')):>13}"
        lines.append(
            f"{mark} {phase.name:<20}" + "".join(f"{c:>10}" for c in cells)
            + f"{gib(place.needed):>11}{gib(place.peak):>12}{host}"
        )  # fmt: skip
    limit = ledger.ask.machine.device_limit.text()
    ram = ledger.ask.machine.ram_limit.text()
    if only_host:
        lines.append(f"  {'available':<20}{ram:>73}")
    else:
        both = f"{ram} in all" if unified else ram
        lines.append(f"  {'available':<20}{limit:>73}  {both}")
    return lines


def _cell(phase: Phase, where: str, kind: str) -> str:
    count = phase.total(where, kind)
    return gib(count).replace(" GiB", "G").replace(" MiB", "M") if count >= 2**20 else "-"


def _advice(ledger: Ledger, advice: tuple[Advice, ...]) -> list[str]:
    if not advice:
        return []
    if any(a.fits for a in advice):
        head = "what would make it comfortable:" if ledger.fits else "it fits with:"
    else:
        head = "nothing that was tried makes it fit; nearest:"
    lines = ["", head]
    for number, a in enumerate(advice, 1):
        lines.append(
            f"  {number}. {a.text()}: needs {gib(a.ledger.worst[1].needed)}, peak "
            f"{gib(a.ledger.peak)}, time x {a.price:.2f}"
            + ("" if a.ledger.state == "fits" else f", {a.ledger.state}")
        )
    return lines


def explained(ledger: Ledger) -> list[str]:
    """Every term with its formula and source."""
    lines = ["every number (exact: counted bytes; formula: a runtime's code applied to shapes; "
             "range: known only so):"]  # fmt: skip
    for phase in ledger.phases:
        lines.append(f"{phase.name}:")
        for t in phase.terms:
            exact = t.size.low == t.size.high
            span = "" if exact else f" ({gib(t.size.low)} to {gib(t.size.high)})"
            spare = f", {gib(t.bytes - t.needed)} of it can go" if t.elastic else ""
            lines.append(f"  {t.where:<6} {t.name}: {gib(t.bytes)}{span}{spare}")
            lines.append(f"         {t.basis}: {t.formula}  [{t.source}]")
    return lines
