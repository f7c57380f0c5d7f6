"""Jobs as a whole: start or continue one, look at one, redo a chunk, verify, list."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..memory import Phase, PhaseMeter, format_bytes
from .chain import MERGED, Chain, Say
from .document import NAME as DOCUMENT
from .document import agree, chunk_plan, load_document, save_document, shown, versions
from .engines.protocol import Cancelled, Engine
from .files import REAL, Files
from .fingerprint import fields
from .lock import JobLock, holder_of
from .store import Key, PieceStore, piece_name

LEAST_FREE = 64 << 20
"""Bytes that must be left on the disk beside what the pieces will take."""


def job_folder(output: Path) -> Path:
    """Where the job of a video lies: out.mp4 -> out.job, beside it."""
    return output.with_suffix(".job")


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

    document: dict[str, Any]
    made: tuple[Key, ...]
    bill: dict[str, Any]


def run_job(
    folder: Path, document: dict[str, Any] | None = None, *, allow: Iterable[str] = (),
    quiet: bool = False, say: Say | None = None, files: Files = REAL,
    meter: Callable[[], PhaseMeter] = PhaseMeter,
) -> Outcome:  # fmt: skip
    """Start a job or continue one.

    document   as wanted now; None: as job.json has it
    allow      fields that may differ from what pieces were made with

    Raises UsageError when the job is another process's, or was made otherwise; OSError from the
    disk. Whatever happens, finished pieces stay.
    """
    from .engines.registry import open_engine

    say = say or (lambda text: None if quiet else print(text, flush=True))
    _make_folder(folder, document is not None)
    with JobLock(folder):
        old = load_document(folder) if (folder / DOCUMENT).is_file() else None
        if document is None:
            if old is None:
                load_document(folder)  # says what is missing
            document = dict(old or {})
        store = PieceStore(folder, files)
        store.open_for_writing()
        if done := _is_done(store, document, say):
            return done
        with contextlib.closing(open_engine(document)) as engine:
            document = _settle(store, document, old, engine, allow, say)
            return _work(store, document, engine, quiet, say, meter())


def _make_folder(folder: Path, new: bool) -> None:
    if not new:
        load_document(folder)
        return
    if folder.is_file():
        raise UsageError(f"job {folder} is a file; give a folder such as out.job")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "lock").touch()
    except OSError as e:
        reason = e.strerror or type(e).__name__
        raise UsageError(
            f"job folder {folder} is not writable ({reason}); choose another with --job"
        ) from None


def _is_done(store: PieceStore, document: dict[str, Any], say: Say) -> Outcome | None:
    """A finished job, seen without opening an engine; None if there may be work."""
    told = store.events("job")
    if not told or told[-1]["fields"] != fields(document):
        return None
    chain = Chain(document, store, Still(document))
    if chain.next_piece() is not None:
        return None
    say(f"{chain.output} is finished")
    return Outcome(document, (), bill_json(chain))


def _settle(
    store: PieceStore, document: dict[str, Any], old: dict[str, Any] | None, engine: Engine,
    allow: Iterable[str], say: Say,
) -> dict[str, Any]:  # fmt: skip
    """Complete the document with what the engine is made of, and compare with the pieces."""
    document = {**document, **engine.identity(), "versions": versions()}
    if old is not None:
        document["created"] = old.get("created", document["created"])
        document["chunks"] = _own_wishes(store, document["chunks"])
        for name, before in old.get("versions", {}).items():
            now = document["versions"].get(name)
            if now != before:
                say(f"note: {name} was {before}, is {now}; the rest may differ in the last bits")
    for line in agree(store, document, allow):
        say(f"allowed: {line}")
    if document != old:
        save_document(store.folder, document, store.files)
    return document


def _own_wishes(store: PieceStore, chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Chunks with what `redo` set for some of them."""
    out = [dict(c) for c in chunks]
    for event in store.events("redo"):
        if event["chunk"] < len(out):
            out[event["chunk"]].update(event["wishes"])
    return out


def _work(
    store: PieceStore, document: dict[str, Any], engine: Engine, quiet: bool, say: Say,
    meter: PhaseMeter,
) -> Outcome:  # fmt: skip
    chain = Chain(document, store, engine, say=say, meter=meter)
    check_space(chain)
    with JobProgress(chain, quiet) as bar:
        chain.progress = bar.advance
        chain.say = bar.say(say)
        try:
            chain.run()
        except (KeyboardInterrupt, Cancelled):
            _stopped(chain)
            raise
    bill = bill_json(chain)
    if chain.made:
        say(bill_text(bill))
    return Outcome(document, tuple(chain.made), bill)


def _stopped(chain: Chain) -> None:
    done = len(chain.all_pieces()) - len(chain.left())
    print(
        f"h3video: stopped; {done} of {len(chain.all_pieces())} pieces are finished and kept: "
        f"`h3video resume {chain.store.folder}` continues",
        file=sys.stderr,
    )


def check_space(chain: Chain) -> None:
    """Raise UsageError when the disk has not room for the pieces that are missing."""
    import shutil

    settings = chain.document["settings"]
    needed = LEAST_FREE
    for kind, k in chain.left():
        if kind == "merged":
            continue
        chunk = chain.plan.chunks[k]
        pixels = chunk.frames * settings["width"] * settings["height"]
        needed += pixels * 3 if kind == "frames" else pixels // 16
    free = shutil.disk_usage(chain.store.folder).free
    if free < needed:
        raise UsageError(
            f"the disk of {chain.store.folder} has {format_bytes(free)} free, the job needs about "
            f"{format_bytes(needed)} for its pieces; free some, or put it elsewhere with --job"
        )


SHARES = {"latents": 10.0, "frames": 1.0, "merged": 0.5}
"""How long a piece takes against the others, as far as nobody knows better."""


class JobProgress:
    """One bar over all pieces that are missing, on stderr; silent when quiet."""

    def __init__(self, chain: Chain, quiet: bool) -> None:
        from tqdm import tqdm

        self.chain = chain
        self.total = sum(self._size(key) for key in chain.left())
        self.key: Key | None = None
        self.done = 0.0
        self.bar = tqdm(
            total=self.total, disable=quiet or not self.total, file=sys.stderr,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]",
        )  # fmt: skip

    def _size(self, key: Key) -> float:
        return SHARES[key[0]] * (1 if key == MERGED else self.chain.plan.chunks[key[1]].frames)

    def __enter__(self) -> JobProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def advance(self, key: Key, share: float) -> None:
        """Move on by a share of a piece; a piece that follows completes the one before."""
        if key != self.key:
            self._move(1.0)
            self.key, self.done = key, 0.0
        self.bar.set_description(self.chain.title(key), refresh=False)
        self._move(share)

    def _move(self, share: float) -> None:
        if self.key is None:
            return
        share = max(0.0, min(share, 1.0 - self.done))
        self.done += share
        self.bar.update(min(share * self._size(self.key), self.total - self.bar.n))

    def say(self, say: Say) -> Say:
        """Print lines above the bar."""

        def tell(text: str) -> None:
            self.bar.clear()
            say(text)

        return tell


def bill_json(chain: Chain) -> dict[str, Any]:
    """The bill of a run as plain data."""
    document = chain.document
    return {
        "ledger": against_ledger(chain),
        "job": str(chain.store.folder), "video": str(chain.output),
        "settings": document["settings"], "engine": document["engine"],
        "chunks": len(chain.plan.chunks), "made": [piece_name(*k) for k in chain.made],
        "phases": [p.to_json() for p in chain.meter.phases], "joins": chain.joins,
        "smaller": chain.smaller,
    }  # fmt: skip


def against_ledger(chain: Chain) -> dict[str, Any] | None:
    """Predicted and measured peaks of sampling and decoding; None where nobody can predict."""
    highest: dict[str, Phase] = {}
    for phase in chain.meter.phases:
        kind = phase.name.split()[0]
        if (phase.host_peak or 0) >= (highest.get(kind, phase).host_peak or 0):
            highest[kind] = phase
    if chain.document["engine"]["name"] != "diffusers" or "sample" not in highest:
        return None
    if chain.document["engine"]["worker"]:
        return None  # the peaks are another process's
    from dataclasses import replace

    from .engines.diffusers_engine import job_of
    from .reality import comparison, predicted
    from .source import find_model

    job = replace(job_of(chain.document), **chain.smaller["sample"])
    source = find_model(job.model)
    plan = job.token_plan(source.family, source.denoiser(job.dtype))
    crops = replace(job_of(chain.document), **chain.smaller["decode"]).crop_plan(source.family)
    ledger = predicted(job, source.folder, plan, crops)
    return None if ledger is None else comparison(ledger, list(highest.values()))


def bill_text(bill: dict[str, Any]) -> str:
    """The bill for people: one line for each kind of work."""
    rows: dict[str, list[float]] = {}
    for phase in bill["phases"]:
        row = rows.setdefault(phase["name"].split()[0], [0, 0.0, 0.0, 0.0])
        row[0] += 1
        row[1] += phase["seconds"]
        row[2] = max(row[2], phase["host_peak_bytes"] or 0)
        row[3] = max(row[3], phase["device_peak_bytes"] or 0)
    lines = ["", f"{'work':<8} {'times':>6} {'seconds':>9} {'peak memory':>12} {'on device':>12}"]
    for name, (count, seconds, host, device) in rows.items():
        lines.append(
            f"{name:<8} {count:>6.0f} {seconds:>9.1f} {format_bytes(host or None):>12} "
            f"{format_bytes(device or None):>12}"
        )
    if bill["ledger"] is not None:
        from .reality import comparison_text

        lines += ["", comparison_text(bill["ledger"])]
    lines += ["", *(f"join     {text}" for text in bill["joins"])]
    return "\n".join([*lines, f"video    {bill['video']}", f"job      {bill['job']}"])


# ---- looking at jobs ----


@dataclass(frozen=True)
class Status:
    """How far a job is. `pieces` maps names to done | missing | damaged: why | being made."""

    folder: Path
    document: dict[str, Any]
    pieces: dict[str, str]
    holder: dict[str, Any] | None
    notes: tuple[str, ...]

    @property
    def done(self) -> int:
        """Finished pieces."""
        return sum(state == "done" for state in self.pieces.values())

    @property
    def finished(self) -> bool:
        """Whether the video is there and right."""
        return self.pieces[piece_name(*MERGED)] == "done"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "job": str(self.folder), "video": self.document["output"], "finished": self.finished,
            "done": self.done, "of": len(self.pieces), "pieces": self.pieces,
            "process": self.holder, "notes": list(self.notes),
        }  # fmt: skip


class Still:
    """An engine's traits as a job document tells them, for looking only."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.name: str = document["engine"]["name"]
        self.continuity: str = document["plan"]["continuity"]
        self.gives: str = document["engine"].get("gives", "latents")

    def identity(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def generate(self, *_: Any) -> Any:
        """Not for looking."""
        raise NotImplementedError

    decode = generate

    def release(self, everything: bool = False) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""


def look(folder: Path, thorough: bool = False) -> Status:
    """The status of a job; changes nothing.

    thorough   read every file and compare its checksum; else sizes only
    """
    document = load_document(folder)
    store = PieceStore(folder)
    holder = holder_of(folder)
    chain = Chain(document, store, Still(document))
    last = store.journal.entries[-1] if store.journal.entries else {}
    pieces = {}
    for key in chain.all_pieces():
        piece = store.piece(*key)
        if piece is None:
            open_now = last.get("event") == "begin" and (last["kind"], last["index"]) == key
            pieces[piece_name(*key)] = "being made" if holder and open_now else "missing"
            continue
        wrong = store.check(*key) if thorough else store.glance(*key)
        if key == MERGED and not wrong and piece.made != document["merge"]:
            wrong = "the join is to be another one now"
        pieces[piece_name(*key)] = f"damaged: {wrong}" if wrong else "done"
    notes = [e["text"] for e in store.events("leak")]
    notes += [f"{e['why']}: {e['to']}" for e in store.events("stepdown")]
    if store.journal.damaged:
        notes.append(f"{len(store.journal.damaged)} lines of the journal are damaged")
    return Status(folder, document, pieces, holder, tuple(notes))


def find_jobs(places: Iterable[Path]) -> Iterator[Path]:
    """Job folders in the places: they themselves, in them, and one level below."""
    for place in places:
        for pattern in ("", "*", "*/*"):
            for found in sorted(place.glob(pattern)) if pattern else [place]:
                if (found / DOCUMENT).is_file() and (found / "journal.jsonl").exists():
                    yield found


def redo(
    folder: Path, chunk: int, wishes: dict[str, Any], say: Say = print, files: Files = REAL
) -> list[Key]:
    """Drop a chunk and everything that was made from it; returns the pieces that are gone.

    chunk     counted from 0
    wishes    seed, prompt, negative that the chunk gets now; empty: as before

    The job is not run. Raises UsageError.
    """
    document = load_document(folder)
    count = len(chunk_plan(document).chunks)
    if not 0 <= chunk < count:
        raise UsageError(f"chunk {chunk + 1} is out of range: the job has chunks 1..{count}")
    with JobLock(folder):
        store = PieceStore(folder, files)
        store.open_for_writing()
        if wishes:
            store.note("redo", chunk=chunk, wishes=wishes)
            document["chunks"][chunk].update(wishes)
            save_document(folder, document, files)
            _retell(store, document)
        gone = [key for key in dependents(document, store, chunk) if store.piece(*key)]
        for key in gone:
            store.drop(*key, why="asked for with redo")
    made = ", ".join(piece_name(*k) for k in gone) or "nothing (it was not there yet)"
    say(f"to be made again: {made}")
    return gone


def _retell(store: PieceStore, document: dict[str, Any]) -> None:
    """Tell the journal the fields that a redo has changed on purpose."""
    told = store.events("job")
    if told:
        changed = {k: v for k, v in fields(document).items() if k.startswith("chunks.")}
        store.note("job", fields={**told[-1]["fields"], **changed})


def dependents(document: dict[str, Any], store: PieceStore, chunk: int) -> list[Key]:
    """Pieces of a chunk and all that are made from them, last ones first."""
    count = len(chunk_plan(document).chunks)
    chained = document["plan"]["continuity"] != "none"
    kinds = sorted({p.kind for p in store.pieces()} - {MERGED[0]})
    last = count if chained else chunk + 1
    found = [(kind, k) for k in range(chunk, last) for kind in kinds]
    return [MERGED, *reversed(found)]


def describe(status: Status) -> str:
    """A job for people."""
    settings, plan = status.document["settings"], chunk_plan(status.document)
    state = "finished" if status.finished else f"{status.done} of {len(status.pieces)} pieces"
    lines = [
        f"{status.folder}: {state}",
        f"video    {status.document['output']}",
        f"clip     {settings['width']}x{settings['height']}, {plan.describe()}",
        f"model    {status.document['model']['file'] or '-'}, engine "
        f"{status.document['engine']['name']}",
    ]
    if status.holder:
        since = time.strftime("%H:%M", time.localtime(status.holder.get("started", 0)))
        lines.append(f"process  {status.holder.get('pid')} works on it since {since}")
    for chunk in plan.chunks:
        own = {n: s for n, s in status.pieces.items() if n.endswith(f"-{chunk.index:04d}")}
        states = ", ".join(
            f"{n.rpartition('-')[0]} {s}" for n, s in own.items() if not n.startswith("merged")
        )
        text = shown(status.document["chunks"][chunk.index]["prompt"])
        lines.append(f"chunk {chunk.index + 1:<3} frames {chunk.first}-{chunk.stop - 1}: {states}  "
                     f"{text}")  # fmt: skip
    lines.append(f"video    {status.pieces[piece_name(*MERGED)]}")
    return "\n".join([*lines, *(f"note     {n}" for n in status.notes)])
