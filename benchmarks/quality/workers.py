"""Worker processes that end with the lab: at Ctrl-C at once, and when it is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor


def pool(workers: int) -> ProcessPoolExecutor:
    """A pool of so many processes."""
    return ProcessPoolExecutor(workers, initializer=_begin, initargs=(os.getpid(),))


def _begin(parent: int) -> None:
    # Python would hand Ctrl-C back as the task's result and take the next task.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    """A killed parent leaves its workers waiting for tasks for ever."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
