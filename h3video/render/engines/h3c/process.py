"""Run a program to its end, read its stderr as it comes, and never leave it behind."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ....errors import UsageError
from ..protocol import Cancel, EngineDied
from .command import Said, Screen

LAST_LINES = 20
"""Lines of a failed program that an error shows at most."""

PATIENCE = 5.0
"""Seconds between asking a program to end and ending it."""


def run(
    command: Sequence[str], folder: Path, cancel: Cancel, hear: Callable[[Said], None]
) -> None:  # fmt: skip
    """Run to the end. Raises Cancelled, EngineDied (ended by a signal), MemoryError, RuntimeError.

    folder   where it runs
    hear     is told every message of its stderr
    """
    try:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as e:
        raise UsageError(f"{command[0]} cannot be started ({e.strerror}); check the path") from None
    lines: deque[str] = deque(maxlen=LAST_LINES)
    try:
        for said in _messages(process, cancel):
            if said.text:
                lines.append(said.text)
            hear(said)
        process.wait()
        cancel.check()
    finally:
        stop(process)
    code = process.returncode
    if code < 0:
        raise EngineDied(
            f"{Path(command[0]).name} was ended by {_signal_name(-code)}"
            + (" (the system does that when memory runs out)" if -code == signal.SIGKILL else "")
        )
    if code:
        why = next((s for s in reversed(lines) if s.startswith("h3:")), "; ".join(lines))
        text = f"{Path(command[0]).name} failed ({code}): {why.removeprefix('h3: ')}"
        if "out of memory" in why.lower():
            raise MemoryError(text)
        raise RuntimeError(text)


def _messages(process: subprocess.Popen[bytes], cancel: Cancel) -> Iterator[Said]:
    """Messages until the pipe ends; looks at `cancel` ten times a second."""
    pieces: queue.Queue[bytes] = queue.Queue()
    pipe = process.stderr
    assert pipe is not None

    def read() -> None:
        with contextlib.suppress(ValueError, OSError):  # closed by stop()
            while piece := os.read(pipe.fileno(), 4096):
                pieces.put(piece)
        pieces.put(b"")

    threading.Thread(target=read, daemon=True).start()
    screen = Screen()
    while True:
        cancel.check()
        try:
            piece = pieces.get(timeout=0.1)
        except queue.Empty:
            if process.poll() is not None and pieces.empty():
                # A child of the program may hold the pipe open longer than it lives.
                break
            continue
        if not piece:
            break
        yield from screen.feed(piece.decode("utf-8", "replace"))
    yield from screen.end()


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the program and what it has started, if they still run."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
            process.wait(PATIENCE)
    if process.stderr is not None:
        process.stderr.close()


def _signal(process: subprocess.Popen[bytes], which: int) -> None:
    """To the whole group: h3 starts ffmpeg."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, which)
        else:
            process.terminate()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
