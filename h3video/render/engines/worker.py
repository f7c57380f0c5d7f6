"""Any engine in a process of its own, so that its death does not take the job along.

The system's out-of-memory killer sends SIGKILL: nothing in the process can catch it. Here the
parent keeps the journal and the pieces, the child makes chunks. They talk in lines of JSON over two
pipes; arrays pass through a folder. The child ends when the parent does.

    python -m h3video.render.engines.worker     (started by WorkerEngine, not by people)
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import fields, replace
from pathlib import Path
from typing import IO, Any

from ...errors import UsageError
from ..memory_watch import out_of_memory
from ..tensors import read_tensors, write_tensors
from .protocol import Cancel, Cancelled, ChunkRequest, ChunkResult, EngineDied, Progress, Sound

ARRAYS = ("head", "first_frame")

CLOSE_SECONDS = 10.0


class WorkerEngine:
    """The parent's side: an Engine whose work is done by a child process.

    `restarts` counts how often a dead child was replaced.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = {**document, "engine": {**document["engine"], "worker": False}}
        self.name = document["engine"]["name"]
        self.restarts = 0
        self._child: subprocess.Popen[str] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="h3video-worker-"))
        told = self._ask("hello", {}, None, None)
        self.continuity: str = told["continuity"]
        self.gives: str = told["gives"]

    @property
    def pid(self) -> int | None:
        """The child's process number."""
        return self._child.pid if self._child is not None else None

    def identity(self) -> dict[str, Any]:
        """See Engine."""
        found: dict[str, Any] = self._ask("identity", {}, None, None)["identity"]
        return found

    def generate(self, request: ChunkRequest, progress: Progress, cancel: Cancel) -> ChunkResult:
        """See Engine."""
        return self._work("generate", {}, request, progress, cancel)

    def decode(
        self, latents: Any, request: ChunkRequest, progress: Progress, cancel: Cancel
    ) -> ChunkResult:
        """See Engine."""
        named = latents if isinstance(latents, dict) else {"latents": latents}
        return self._work("decode", named, request, progress, cancel)

    def release(self, everything: bool = False) -> None:
        """See Engine."""
        if self._child is not None:
            with contextlib.suppress(EngineDied):
                self._ask("release", {"everything": everything}, None, None)

    def close(self) -> None:
        """End the child and remove the folder."""
        child, self._child = self._child, None
        if child is not None:
            assert child.stdin is not None
            with contextlib.suppress(OSError):
                child.stdin.close()  # the child ends when nobody talks to it any more
            try:
                child.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdout is not None:
                child.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _work(
        self, call: str, latents: dict[str, Any], request: ChunkRequest, progress: Progress,
        cancel: Cancel,
    ) -> ChunkResult:  # fmt: skip
        self._folder.mkdir(exist_ok=True)
        inputs = pack_request(request, latents, self._folder / "in.safetensors")
        told = self._ask(call, inputs, progress, cancel)
        return unpack_result(told, self._folder / "out.safetensors")

    def _ask(
        self, call: str, data: dict[str, Any], progress: Progress | None, cancel: Cancel | None
    ) -> dict[str, Any]:
        child = self._started()
        try:
            told = self._talk(child, {"call": call, **data}, progress, cancel)
        except KeyboardInterrupt:
            self.close()
            raise
        if told is None:
            raise EngineDied(self._died(child))
        _raise(told)
        return told

    def _talk(
        self, child: subprocess.Popen[str], call: dict[str, Any], progress: Progress | None,
        cancel: Cancel | None,
    ) -> dict[str, Any] | None:  # fmt: skip
        """The child's answer; None if it ended before it gave one."""
        assert child.stdin is not None and child.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            _send(child.stdin, call)
            while line := child.stdout.readline():
                if not line.endswith("\n"):
                    break  # it ended within a line
                told: dict[str, Any] = json.loads(line)
                if "progress" not in told:
                    return told
                if progress is not None:
                    progress(*told["progress"])
                if cancel is not None and cancel.is_set:
                    _send(child.stdin, {"call": "cancel"})
                    cancel = None
        return None

    def _started(self) -> subprocess.Popen[str]:
        if self._child is None:
            self._folder.mkdir(exist_ok=True)
            self._child = subprocess.Popen(
                [sys.executable, "-m", "h3video.render.engines.worker"], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(),
                start_new_session=True,  # Ctrl-C reaches the parent, who tells the child
            )  # fmt: skip
            assert self._child.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                told = {"document": self.document, "folder": str(self._folder)}
                _send(self._child.stdin, told)
        return self._child

    def _died(self, child: subprocess.Popen[str]) -> str:
        try:
            code = child.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:  # its pipe is closed, it is not: no use any more
            child.kill()
            code = child.wait()
        self._child = None
        self.restarts += 1
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        if code == -signal.SIGKILL if os.name == "posix" else False:
            return "the engine's process was killed (by the system, for memory, most likely)"
        return f"the engine's process ended with code {code}"


def _environment() -> dict[str, str]:
    """The child finds this package wherever the parent found it."""
    root = str(Path(__file__).parents[3])
    old = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not old else f"{root}{os.pathsep}{old}"}


def _send(pipe: IO[str], data: dict[str, Any]) -> None:
    pipe.write(json.dumps(data) + "\n")
    pipe.flush()


def _raise(told: dict[str, Any]) -> None:
    """Raise what the child's call raised."""
    error = told.get("error")
    if error is None:
        return
    kinds: dict[str, type[Exception]] = {
        "usage": UsageError, "memory": MemoryError, "cancelled": Cancelled,
    }  # fmt: skip
    raise kinds.get(error["kind"], RuntimeError)(error["text"])


def pack_request(
    request: ChunkRequest, latents: dict[str, Any], path: Path
) -> dict[str, Any]:  # fmt: skip
    """A request as JSON, its arrays in a file."""
    arrays = {f"latents.{k}": v for k, v in latents.items()}
    plain = {f.name: getattr(request, f.name) for f in fields(request)}
    for name in ARRAYS:
        value = plain.pop(name)
        if value is not None:
            arrays[name] = value
    sound = plain.pop("tail_sound")
    if sound is not None:
        arrays["tail_sound"], plain["sound_rate"] = sound.samples, sound.rate
    write_tensors(path, arrays)
    return {"request": plain}


def unpack_request(data: dict[str, Any], path: Path) -> tuple[ChunkRequest, Any]:
    """The request and the latents that `pack_request` packed."""
    plain = dict(data["request"])
    tensors, _ = read_tensors(path, "torch")
    rate = plain.pop("sound_rate", None)
    request = ChunkRequest(**plain)
    if "head" in tensors:
        request = replace(request, head=tensors["head"])
    if "first_frame" in tensors:
        request = replace(request, first_frame=tensors["first_frame"].numpy())
    if rate is not None:
        request = replace(request, tail_sound=Sound(tensors["tail_sound"].numpy(), rate))
    named = {k.removeprefix("latents."): v for k, v in tensors.items() if k.startswith("latents.")}
    return request, named["latents"] if set(named) == {"latents"} else named


def pack_result(result: ChunkResult, path: Path) -> dict[str, Any]:
    """A result as JSON, its arrays in a file."""
    arrays: dict[str, Any] = {}
    if result.latents is not None:
        named = result.latents if isinstance(result.latents, dict) else {"": result.latents}
        arrays |= {f"latents.{k}": v for k, v in named.items()}
    if result.frames is not None:
        arrays["frames"] = result.frames
    if result.sound is not None:
        arrays["sound"] = result.sound.samples
    write_tensors(path, arrays)
    return {"rate": result.sound.rate if result.sound is not None else 0}


def unpack_result(told: dict[str, Any], path: Path) -> ChunkResult:
    """The result that `pack_result` packed."""
    tensors, _ = read_tensors(path, "torch")
    path.unlink(missing_ok=True)
    named = {k.removeprefix("latents."): v for k, v in tensors.items() if k.startswith("latents.")}
    latents = named[""] if set(named) == {""} else named or None
    frames = tensors["frames"].numpy() if "frames" in tensors else None
    sound = Sound(tensors["sound"].numpy(), told["rate"]) if "sound" in tensors else None
    return ChunkResult(latents, frames, sound)


# ---- the child's side ----


class _Parent:
    """Lines from the parent, read by a thread of their own: a cancel must be heard while working,
    and the parent's death ends this process at once, whatever it is doing."""

    def __init__(self, source: IO[str]) -> None:
        import queue

        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.cancel = Cancel()
        self._source = source
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._source:
            told = json.loads(line)
            if told.get("call") == "cancel":
                self.cancel.set()
            else:
                self.lines.put(told)
        os._exit(0)


def serve(source: IO[str], sink: IO[str]) -> None:
    """Answer the parent's calls until it is gone."""
    parent = _Parent(source)
    start = parent.lines.get()
    folder, engine = Path(start["folder"]), None
    while True:
        call = parent.lines.get()
        parent.cancel = Cancel()
        try:
            if engine is None:
                from .registry import open_engine

                engine = open_engine(start["document"])
            answer = _answer(engine, call, folder, parent, sink)
        except Exception as e:
            answer = {"error": {"kind": _kind(e), "text": _text(e)}}
        _send(sink, answer)


def _answer(
    engine: Any, call: dict[str, Any], folder: Path, parent: _Parent, sink: IO[str]
) -> dict[str, Any]:
    name = call["call"]
    if name == "hello":
        return {"continuity": engine.continuity, "gives": engine.gives}
    if name == "identity":
        return {"identity": engine.identity()}
    if name == "release":
        engine.release(call["everything"])
        return {}

    def progress(phase: str, share: float) -> None:
        _send(sink, {"progress": [phase, share]})

    request, latents = unpack_request(call, folder / "in.safetensors")
    if name == "generate":
        result = engine.generate(request, progress, parent.cancel)
    else:
        result = engine.decode(latents, request, progress, parent.cancel)
    return pack_result(result, folder / "out.safetensors")


def _kind(error: Exception) -> str:
    if isinstance(error, UsageError):
        return "usage"
    if isinstance(error, Cancelled):
        return "cancelled"
    return "memory" if out_of_memory(error) else "other"


def _text(error: Exception) -> str:
    if isinstance(error, (UsageError, Cancelled)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def main() -> None:
    """The child: speak over the first descriptors, and let prints go to the log."""
    sink = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print must not get among the answers
    serve(sys.stdin, sink)


if __name__ == "__main__":
    main()
