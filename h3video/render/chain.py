"""Work through a job: sample, decode and join chunk after chunk, keeping each piece as it is done.

What is missing is found from the end: the video needs the decoded chunks, a decoded chunk its
latents, latents the chunk before. So a finished job does nothing, and one that was killed, or lost
a piece, or had one dropped, makes just what is not there.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..memory import PhaseMeter
from ..tiling.chunks import Chunk
from ..tiling.join import JoinSettings
from .document import chunk_plan
from .engines.protocol import FIRST_FRAME, LATENTS, Cancel, ChunkRequest, Engine, EngineDied, Sound
from .engines.stepdown import smaller
from .memory_watch import Watermarks, host_now, out_of_memory
from .merge import joined, sound_of
from .store import Key, PieceStore
from .tensors import Rows

MERGED: Key = ("merged", 0)

SEQUENCES = ("png", "exr")

PHASES = {"latents": "sample", "frames": "decode", "merged": "join"}

UNCOUNTED = ("encode", "load")
"""Phases of an engine that do not move the bar: they take little of a chunk's time."""

Say = Callable[[str], None]


class Chain:
    """A job at work. Hold the folder's lock.

    say        is told what happens, a line each
    progress   is called with (piece, share of that piece that was just done)
    made       pieces that this run made, in order
    """

    def __init__(
        self, document: dict[str, Any], store: PieceStore, engine: Engine, *,
        say: Say = print, progress: Callable[[Key, float], None] | None = None,
        cancel: Cancel | None = None, meter: PhaseMeter | None = None,
    ) -> None:  # fmt: skip
        self.document, self.store, self.engine = document, store, engine
        self.plan = chunk_plan(document)
        self.say = say
        self.progress = progress or (lambda key, share: None)
        self.cancel = cancel or Cancel()
        self.meter = meter or PhaseMeter()
        self.marks = Watermarks()
        self.made: list[Key] = []
        self.joins: list[str] = []
        self._stepped: set[str] = set()
        self.smaller: dict[str, dict[str, Any]] = {"sample": {}, "decode": {}}
        for event in store.events("stepdown"):
            self.smaller[event["phase"]].update(event["settings"])

    # ---- what is to be done ----

    def run(self) -> None:
        """Make everything that is missing. Raises what the engine raises, OSError, UsageError."""
        if self._merged_is_right():
            self.say(f"{self.output} is finished")
            return
        while (key := self.next_piece()) is not None:
            self._hint(key)
            self._make(key)

    @property
    def output(self) -> Path:
        """The video file, or the folder of pictures."""
        from .sequence import sequence_folder

        path = Path(self.document["output"])
        return sequence_folder(path) if self.document["merge"]["codec"] in SEQUENCES else path

    def next_piece(self) -> Key | None:
        """The piece to make now; None when the video is finished."""
        if self.engine.gives == "latents" and self.engine.continuity == LATENTS:
            # All chunks are sampled before the first is decoded: weights are loaded once.
            for chunk in self.plan.chunks:
                if not self.store.valid("frames", chunk.index):
                    wanted = self._missing(("latents", chunk.index))
                    if wanted is not None:
                        return wanted
        for chunk in self.plan.chunks:
            wanted = self._missing(("frames", chunk.index))
            if wanted is not None:
                return wanted
        return None if self._merged_is_right() else MERGED

    def _merged_is_right(self) -> bool:
        piece = self.store.piece(*MERGED)
        return (
            piece is not None
            and piece.made == self.document["merge"]
            and Path(piece.file) == self.output
            and self.store.valid(*MERGED)
        )

    def _missing(self, key: Key) -> Key | None:
        """`key` if it can be made now, or what it needs first; None if it is there."""
        if self.store.valid(*key):
            return None
        for needed in self._needs(key):
            first = self._missing(needed)
            if first is not None:
                return first
        # With what it was made from at hand again it may be as right as before.
        return None if self.store.valid(*key) else key

    def _needs(self, key: Key) -> list[Key]:
        kind, k = key
        if kind == "frames" and self.engine.gives == "latents":
            return [("latents", k)]
        if k == 0 or self.engine.continuity not in (LATENTS, FIRST_FRAME):
            return []
        return [("latents" if self.engine.continuity == LATENTS else "frames", k - 1)]

    def left(self) -> list[Key]:
        """All pieces that are not there, in the order in which a new job would make them."""
        return [key for key in self.all_pieces() if not self._there(key)]

    def all_pieces(self) -> list[Key]:
        """All pieces of the job."""
        count = len(self.plan.chunks)
        kinds = ("latents", "frames") if self.engine.gives == "latents" else ("frames",)
        return [(kind, k) for kind in kinds for k in range(count)] + [MERGED]

    def _there(self, key: Key) -> bool:
        return self._merged_is_right() if key == MERGED else self.store.valid(*key)

    def _hint(self, key: Key) -> None:
        """Say so when a piece was begun more than once and never finished."""
        tries = self.store.began.get(key, 0)
        if tries >= 2 and self.store.piece(*key) is None and not self.document["engine"]["worker"]:
            self.say(
                f"{self.title(key)} was begun {tries} times and never finished; if the system "
                "stopped it for memory, --worker notices that and goes on with smaller tiles"
            )

    # ---- doing it ----

    def _make(self, key: Key) -> None:
        kind, k = key
        if self.store.piece(*key) is not None:
            self.store.drop(*key, why=self.store.check(*key) or "the joined video is to differ")
        self.store.begin(*key)
        started = time.perf_counter()
        with self.meter.phase(f"{PHASES[kind]} {k + 1}" if kind != "merged" else "join"):
            if kind == "merged":
                self._merge()
            elif kind == "frames" and self.engine.gives == "latents":
                self._decode(k)
            else:
                self._sample(k)
        self.made.append(key)
        if kind != "merged":
            self._after(key, time.perf_counter() - started)

    def _sample(self, k: int) -> None:
        chunk = self.plan.chunks[k]
        given = self._from_before(chunk)
        if given is None:
            return  # a piece was damaged and is dropped now: it comes first
        result = self._attempt(
            "sample", ("latents" if self.engine.gives == "latents" else "frames", k),
            lambda report: self.engine.generate(
                self._request(chunk, "sample", **given), report, self.cancel
            ),
        )  # fmt: skip
        if self.engine.gives == "latents":
            check_latents(result.latents, chunk)
            before = self._needs(("latents", k))
            with self._saving(("latents", k)):
                self.store.put(
                    "latents", k, _named(result.latents), before, self._told(chunk)
                )
        else:
            self._keep_frames(chunk, result, self._needs(("frames", k)))

    def _from_before(self, chunk: Chunk) -> dict[str, Any] | None:
        """What a chunk continues from; None if that is not there after all."""
        found: dict[str, Any] = {}
        if chunk.index == 0:
            if self.engine.continuity == FIRST_FRAME:
                found["first_frame"] = self._first_picture()
            return found
        if self.engine.continuity == LATENTS and chunk.latent_shared:
            before = self.store.get("latents", chunk.index - 1)
            if before is None:
                return None
            found["head"] = before[0]["latents"][:, :, -chunk.latent_shared :].clone()
        elif self.engine.continuity == FIRST_FRAME:
            if not self.store.valid("frames", chunk.index - 1):
                return None
            rows = Rows(self.store.path("frames", chunk.index - 1), "frames")
            found["first_frame"] = rows[len(rows) - 1 : len(rows)][0]
            if self.store.piece("sound", chunk.index - 1) is not None:
                sound = self.store.get("sound", chunk.index - 1, "numpy")
                if sound is None:
                    return None
                found["tail_sound"] = Sound(sound[0]["samples"], int(sound[1]["rate"]))
        return found

    def _first_picture(self) -> Any:
        from .pictures import first_picture

        told = self.document.get("inputs", {}).get("image", {})
        settings = self.document["settings"]
        if not told and self.engine.gives == "frames":
            return None  # another program may have a picture of its own, or need none
        return first_picture(told.get("file", ""), settings["width"], settings["height"])

    def _decode(self, k: int) -> None:
        chunk = self.plan.chunks[k]
        found = self.store.get("latents", k)
        if found is None:
            return
        latents = found[0]["latents"] if set(found[0]) == {"latents"} else found[0]
        result = self._attempt(
            "decode", ("frames", k),
            lambda report: self.engine.decode(
                latents, self._request(chunk, "decode"), report, self.cancel
            ),
        )  # fmt: skip
        self._keep_frames(chunk, result, [("latents", k)])

    def _keep_frames(self, chunk: Chunk, result: Any, inputs: list[Key]) -> None:
        check_frames(result.frames, chunk, self.document["settings"])
        k = chunk.index
        with self._saving(("frames", k)):
            if result.sound is not None:
                told = {"rate": str(result.sound.rate)}
                self.store.put("sound", k, {"samples": result.sound.samples}, inputs, told)
                inputs = [*inputs, ("sound", k)]
            self.store.put("frames", k, {"frames": result.frames}, inputs)

    def _merge(self) -> None:
        from .video import open_writer

        settings, merge = self.document["settings"], self.document["merge"]
        join = JoinSettings(merge["join"], merge["join_colour"])
        sound = sound_of(self.plan, self.store, settings["fps"])
        per_frame, path = 1.0 / self.plan.frames, Path(self.document["output"])
        with self._saving(MERGED):
            with open_writer(
                path, settings["width"], settings["height"], settings["fps"],
                comment=self.comment(), codec=merge["codec"], sound=sound,
            ) as writer:  # fmt: skip
                for frame in joined(self.plan, self.store, join, self.joins.append):
                    self.cancel.check()
                    writer.write(frame)
                    self.progress(MERGED, per_frame)
            self.store.files.sync_folder(self.output.parent)
            pieces = [("frames", c.index) for c in self.plan.chunks]
            self.store.adopt(*MERGED, self.output, pieces, merge)

    def comment(self) -> str:
        """What the video file tells of itself: the job, the same bytes for the same job."""
        import json

        told = {k: self.document[k] for k in ("settings", "chunks", "versions", "merge")}
        told["model"] = Path(self.document["model"]["file"]).name
        return json.dumps(told, ensure_ascii=False, sort_keys=True)

    # ---- around it ----

    def _request(self, chunk: Chunk, phase: str, **given: Any) -> ChunkRequest:
        settings, own = self.document["settings"], self.document["chunks"][chunk.index]
        small = dict(self.smaller[phase])  # smaller tiles need no smaller crops, nor the reverse
        return ChunkRequest(
            chunk.index, chunk.frames, chunk.latent_frames, chunk.start, chunk.latent_start,
            settings["width"], settings["height"], settings["fps"], own["prompt"],
            own["negative"], settings["steps"], settings["cfg"], own["seed"],
            "field" if settings["seeds"] == "field" else "chunk",
            decode_budget=small.pop("decode_budget", settings.get("decode_budget")),
            tiling=small, **given,
        )  # fmt: skip

    def _told(self, chunk: Chunk) -> dict[str, str]:
        """Metadata of latents, with which `h3video decode` shows a chunk alone."""
        if self.document["engine"]["name"] != "diffusers":
            return {}
        from .engines.diffusers_engine import chunk_job, job_of

        job = chunk_job(job_of(self.document), self._request(chunk, "sample"))
        return {"h3video_job": job.to_json(), "steps_done": str(job.steps)}

    def _attempt(self, phase: str, key: Key, call: Callable[[Any], Any]) -> Any:
        """Run an engine's call; with a smaller plan once if memory runs out or it dies of it."""

        def report(phase: str, share: float) -> None:
            if phase not in UNCOUNTED:
                self.progress(key, share)

        try:
            return call(report)
        except EngineDied as e:
            why = str(e)
        except Exception as e:
            if not out_of_memory(e):
                raise
            why = f"memory ran out ({' '.join(str(e).split())[:120]})"
            if not self._can_step(phase):
                raise
        # Outside of the handler: the error's frames hold the tensors that did not fit.
        self._step_down(phase, key, why)
        return call(report)

    def _can_step(self, phase: str) -> bool:
        now = dict(self.smaller[phase])
        return phase not in self._stepped and smaller(self.document, phase, now) is not None

    def _step_down(self, phase: str, key: Key, why: str) -> None:
        found = None
        if phase not in self._stepped:
            found = smaller(self.document, phase, dict(self.smaller[phase]))
        if found is None:
            raise MemoryError(
                f"{self.title(key)}: {why}, and no smaller plan is left; finished chunks are kept "
                f"in {self.store.folder}. Use a smaller canvas, shorter chunks or --offload group"
            )
        settings, text = found
        self._stepped.add(phase)
        self.say(f"{self.title(key)}: {why}; trying once more with {text}")
        self.store.note("stepdown", phase=phase, settings=settings, why=why, to=text)
        self.smaller[phase].update(settings)
        self.engine.release(everything=True)

    def _after(self, key: Key, seconds: float) -> None:
        """Release, and tell what memory did."""
        phase = self.meter.phases[-1]
        self.engine.release()
        host, device = phase.host_peak, phase.device_peak
        self.store.note("memory", piece=list(key), host_peak=host, device_peak=device,
                        host_after=host_now(), seconds=round(seconds, 3))  # fmt: skip
        if PHASES[key[0]] == "sample":
            for text in self.marks.add(host, device):
                self.say(text)
                self.store.note("leak", text=text)

    @contextmanager
    def _saving(self, key: Key) -> Iterator[None]:
        """Make an error of the disk one that says what is safe and what to do."""
        try:
            yield
        except OSError as e:
            reason = {
                errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up",
                errno.EROFS: "the disk is read-only", errno.EIO: "the disk reports an error",
            }.get(e.errno or 0, e.strerror or str(e))  # fmt: skip
            kept = len(self.store.pieces())
            raise OSError(
                e.errno,
                f"{self.title(key)} could not be saved: {reason}; {kept} finished pieces are kept, "
                f"and `h3video resume {self.store.folder}` continues when that is mended",
            ) from e

    def title(self, key: Key) -> str:
        """How people are told of a piece: chunk 4 of 11 (sampling)."""
        kind, k = key
        if kind == "merged":
            return "joining the chunks"
        doing = "decoding" if kind == "frames" and self.engine.gives == "latents" else "sampling"
        return f"chunk {k + 1} of {len(self.plan.chunks)} ({doing})"


def _named(latents: Any) -> dict[str, Any]:
    return latents if isinstance(latents, dict) else {"latents": latents}


def check_latents(latents: Any, chunk: Chunk) -> None:
    """Raise RuntimeError for latents that are not finite: nothing good can follow."""
    from .health import check_values

    for name, tensor in _named(latents).items():
        found = check_values(tensor, 1, f"chunk {chunk.index + 1} ({name})")
        if found.broken:
            raise RuntimeError(found.broken)


def check_frames(frames: Any, chunk: Chunk, settings: dict[str, Any]) -> None:
    """Raise RuntimeError when an engine made another size or number of frames than asked."""
    wanted = (chunk.frames, settings["height"], settings["width"], 3)
    if tuple(frames.shape) != wanted or str(frames.dtype) != "uint8":
        raise RuntimeError(
            f"chunk {chunk.index + 1} came as {tuple(frames.shape)} {frames.dtype}, wanted are "
            f"{wanted} uint8 (frames, height, width, colours); check the engine's workflow"
        )
