"""Run a prompt on a server to its end, whatever happens to the connection or the server.

Events come over a websocket. When it breaks, the server is looked for until it is back: a prompt
that it has finished is taken from its history, one that it still has goes on, and one that it has
forgotten (it was restarted) is queued again.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from ....errors import UsageError
from ..protocol import Cancel, Cancelled, EngineDied, Progress
from .server import Server, node_name
from .websocket import WebSocket

TICK = 0.2
"""Seconds after which a wish to stop is noticed."""

LOOK = 5.0
"""Seconds without news after which the history is asked, should an event have been missed."""

TRIES = 3
"""Times that a prompt which the server has forgotten is queued again: it may be what kills it."""


class Follower:
    """Runs one prompt. patience: seconds that a server may be gone."""

    def __init__(
        self, server: Server, prompt: dict[str, Any], progress: Progress, cancel: Cancel,
        patience: float = 300.0, say: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        self.server, self.prompt = server, prompt
        self.progress, self.cancel = progress, cancel
        self.patience, self.say = patience, say
        self.client, self.prompt_id = uuid.uuid4().hex, str(uuid.uuid4())
        self.submitted = 0
        self._done: dict[str, float] = {}
        self._socket: WebSocket | None = None

    def run(self) -> dict[str, Any]:
        """The outputs by node id.

        Raises Refused (a UsageError), Cancelled, EngineDied (the server stays away, or a restart
        did not help), MemoryError, RuntimeError (a node failed).
        """
        try:
            return self._to_the_end()
        except (Cancelled, KeyboardInterrupt):
            self._take_back()
            raise
        finally:
            self._hang_up()

    def _to_the_end(self) -> dict[str, Any]:
        self._connect()
        asked = time.monotonic()
        while True:
            self.cancel.check()
            assert self._socket is not None
            try:
                message = self._socket.receive(TICK)
                news = message is not None and self._hear(json.loads(message))
                if news or time.monotonic() - asked > LOOK:
                    asked = time.monotonic()
                    found = self.server.history(self.prompt_id)
                    if found is not None:
                        return self._ended(found)
                    if not news and self.server.place(self.prompt_id) == "unknown":
                        # Between the queue and the history it is in neither for a moment.
                        found = self.server.history(self.prompt_id)
                        if found is not None:
                            return self._ended(found)
                        raise ConnectionError("the server does not know the prompt")
            except (OSError, ValueError) as e:
                self.say(f"the connection to {self.server.url} broke ({e}); waiting for it")
                self._hang_up()
                self._connect()
                asked = 0.0

    def _connect(self) -> None:
        """Reach the server and have the prompt in its hands."""
        end, pause = time.monotonic() + self.patience, 0.25
        while True:
            self.cancel.check()
            try:
                self._socket = WebSocket(self.server.socket_url(self.client))
                known = self.submitted and (
                    self.server.history(self.prompt_id) is not None
                    or self.server.place(self.prompt_id) != "unknown"
                )
                if not known:
                    self._submit()
                return
            except UsageError:
                raise
            except (OSError, ValueError) as e:
                self._hang_up()
                if not self.submitted:
                    raise UsageError(
                        f"no ComfyUI answers at {self.server.url} ({_why(e)}); start it, or give "
                        "its address with --engine-option server=URL"
                    ) from None
                if time.monotonic() > end:
                    raise EngineDied(
                        f"the server at {self.server.url} is gone for {self.patience:g} s "
                        f"({_why(e)})"
                    ) from None
                time.sleep(pause)
                pause = min(2.0 * pause, 5.0)

    def _submit(self) -> None:
        if self.submitted > TRIES:
            raise EngineDied(
                f"the server at {self.server.url} was restarted {TRIES} times during this chunk; "
                "it may run out of memory: look at its log"
            )
        if self.submitted:
            self.say(f"{self.server.url} has forgotten the chunk; it is queued again")
        self._done.clear()
        # Counted first: if the answer is lost, the prompt may be there all the same.
        self.submitted += 1
        try:
            self.server.submit(self.prompt, self.client, self.prompt_id)
        except UsageError:
            raise
        except (OSError, ValueError):
            if self.submitted == 1:
                self.submitted = 0
            raise

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _take_back(self) -> None:
        """Have the server stop, if it can be reached."""
        try:
            self.server.cancel(self.prompt_id)
        except (OSError, ValueError):
            self.say(f"{self.server.url} could not be told to stop")

    # ---- events ----

    def _hear(self, event: dict[str, Any]) -> bool:
        """Take an event; whether the prompt may have ended."""
        data = event.get("data") or {}
        if data.get("prompt_id") not in (None, self.prompt_id):
            return False
        kind = event.get("type", "")
        if kind == "progress" and data.get("node") is not None and data.get("max"):
            self._advance(str(data["node"]), data["value"] / data["max"])
        elif kind == "executed":
            self._advance(str(data.get("node")), 1.0)
        return kind in ("execution_success", "execution_error", "execution_interrupted") or (
            kind == "executing" and data.get("node") is None and "prompt_id" in data
        )

    def _advance(self, node: str, now: float) -> None:
        now, before = min(now, 1.0), self._done.get(node, 0.0)
        if now > before:
            self._done[node] = now
            self.progress(node_name(self.prompt, node), now - before)

    def _ended(self, found: dict[str, Any]) -> dict[str, Any]:
        """Outputs of a prompt that went well; raises for one that did not."""
        status = found.get("status") or {}
        for kind, data in status.get("messages") or ():
            if kind == "execution_error":
                where = node_name(self.prompt, str(data.get("node_id")))
                what = f"{data.get('exception_type')}: {data.get('exception_message')}".strip()
                text = f"{where} failed on the server: {what}"
                if _out_of_memory(what):
                    raise MemoryError(text)
                raise RuntimeError(text)
            if kind == "execution_interrupted":
                raise Cancelled("the chunk was interrupted on the server")
        if status and not status.get("completed", True):
            raise RuntimeError(f"the server ended the chunk with {status.get('status_str')}")
        outputs: dict[str, Any] = found.get("outputs") or {}
        return outputs


def _out_of_memory(what: str) -> bool:
    """Whether a node's error is one of memory: CUDA's, Metal's, Python's or the system's."""
    text = what.lower().replace(" ", "")
    return any(
        sign in text for sign in ("outofmemory", "memoryerror", "notenoughmemory", "allocateonmps")
    )


def _why(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error) or type(error).__name__
