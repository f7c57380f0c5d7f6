"""Queue an API-format prompt on a running ComfyUI and follow it over the websocket."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

Prompt = dict[str, dict[str, Any]]

ENDINGS = ("execution_success", "execution_error", "execution_interrupted")


@dataclass
class Run:
    """What happened to a prompt. Times are seconds from queueing.

    status    "success", "error", "interrupted" or "rejected"
    steps     (node id, value, max, time) of every progress event
    executed  ids of the nodes that ran, in order; cached: ids that did not have to
    outputs   node id -> its ui output
    error     the server's own words, for "error" and "rejected"
    """

    status: str = ""
    steps: list[tuple[str, float, float, float]] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    cached: list[str] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: Any = None
    seconds: float = 0.0
    interrupted_at: float = 0.0

    def steps_of(self, node: str) -> list[tuple[float, float]]:
        """(value, max) of the progress of one node."""
        return [(value, most) for which, value, most, _ in self.steps if which == node]

    def message(self) -> str:
        """Everything the server said about what is wrong, as one text."""
        return json.dumps(self.error, ensure_ascii=False) if self.error else ""

    def expect(self, status: str = "success") -> Run:
        """Itself. Raises AssertionError with the server's words for any other status."""
        assert self.status == status, f"{self.status}, not {status}: {self.message()[:3000]}"
        return self


async def follow(
    url: str, prompt: Prompt, interrupt_in: str | None = None, timeout: float = 300.0
) -> Run:
    """Run a prompt to its end; with `interrupt_in`, stop it at that node's first progress."""
    import aiohttp

    run, client, start = Run(), uuid.uuid4().hex, time.monotonic()
    limit = aiohttp.ClientTimeout(total=timeout)
    socket = f"{url.replace('http', 'ws', 1)}/ws?clientId={client}"
    async with (
        aiohttp.ClientSession(timeout=limit) as session,
        session.ws_connect(socket, max_msg_size=0) as events,
    ):
        async with session.post(
            f"{url}/prompt", json={"prompt": prompt, "client_id": client}
        ) as answer:
            body = await answer.json()
            if answer.status != 200:
                run.status, run.error = "rejected", body
                return run
        while not run.status:
            message = await asyncio.wait_for(events.receive(), timeout)
            if message.type == aiohttp.WSMsgType.BINARY:  # a preview picture
                continue
            if message.type != aiohttp.WSMsgType.TEXT:
                raise ConnectionError(f"the server closed the websocket ({message.type})")
            event = json.loads(message.data)
            run.seconds = time.monotonic() - start
            _note(run, event["type"], event.get("data") or {}, body["prompt_id"])
            reached = interrupt_in and run.steps_of(interrupt_in) and not run.interrupted_at
            if reached and not run.status:
                run.interrupted_at = run.seconds
                async with session.post(f"{url}/interrupt", json={}) as answer:
                    answer.raise_for_status()
    return run


def _note(run: Run, kind: str, data: dict[str, Any], prompt_id: str) -> None:
    """Enter one event into the record; other prompts' events are left out."""
    if data.get("prompt_id") not in (None, prompt_id):
        return
    if kind == "progress":
        run.steps.append((str(data.get("node")), data["value"], data["max"], run.seconds))
    elif kind == "execution_cached":
        run.cached += data["nodes"]
    elif kind == "executing" and data.get("node"):
        run.executed.append(data["node"])
    elif kind == "executed":
        run.outputs[data["node"]] = data.get("output") or {}
    elif kind in ENDINGS:
        run.status = kind.removeprefix("execution_")
        if kind == "execution_error":
            run.error = {k: data.get(k) for k in ("node_id", "exception_type",
                                                  "exception_message", "traceback")}  # fmt: skip


def run_prompt(url: str, prompt: Prompt, **options: Any) -> Run:
    """`follow` for callers that are not asynchronous."""
    return asyncio.run(follow(url, prompt, **options))
