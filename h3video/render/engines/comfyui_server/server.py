"""What a ComfyUI server is asked over HTTP. Standard library."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
import uuid
from typing import Any
from urllib.parse import urlencode, urlsplit

from ....errors import UsageError

SECONDS = 30.0
"""A request's patience; downloads get ten times as long."""


class Refused(UsageError):
    """The server does not take a workflow; the message has its words."""


class Server:
    """A server by its address, such as http://127.0.0.1:8188."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"server {url!r} is no address; use http://127.0.0.1:8188")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        # A proxy of the network's does not know what runs here.
        here = parts.hostname == "localhost" or parts.hostname.startswith(("127.", "::1"))
        proxies = (urllib.request.ProxyHandler({}),) if here else ()
        self._opener = urllib.request.build_opener(*proxies)

    def socket_url(self, client: str) -> str:
        """Where its events are heard."""
        return f"{self.url.replace('http', 'ws', 1)}/ws?clientId={client}"

    def get(self, path: str, seconds: float = SECONDS) -> bytes:
        """The body of a path. Raises OSError (urllib's errors are OSErrors)."""
        return self._ask(urllib.request.Request(self.url + path), seconds)

    def _ask(self, request: urllib.request.Request, seconds: float = SECONDS) -> bytes:
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                return bytes(answer.read())
        except http.client.HTTPException as e:  # the answer broke off
            raise ConnectionError(f"{type(e).__name__}: {e}") from None

    def json(self, path: str) -> Any:
        """The JSON of a path. Raises OSError, ValueError."""
        return json.loads(self.get(path))

    def post(self, path: str, data: Any) -> bytes:
        """Send JSON; the answer's body. Raises OSError."""
        request = urllib.request.Request(
            self.url + path, json.dumps(data).encode(), {"Content-Type": "application/json"}
        )
        return self._ask(request)

    # ---- prompts ----

    def submit(self, prompt: dict[str, Any], client: str, prompt_id: str) -> None:
        """Queue a workflow under an id of ours. Raises Refused, OSError."""
        body = {"prompt": prompt, "client_id": client, "prompt_id": prompt_id}
        try:
            told = json.loads(self.post("/prompt", body))
        except urllib.error.HTTPError as e:
            if e.code == 400:
                why = _reasons(e.read(), prompt)
                raise Refused(f"the server refuses the workflow: {why}") from None
            raise
        if told.get("prompt_id") != prompt_id:
            raise UsageError(
                f"the server at {self.url} gives prompts ids of its own; update ComfyUI to 0.3.75 "
                "or later"
            )

    def history(self, prompt_id: str) -> dict[str, Any] | None:
        """What is known of a finished prompt, None if nothing. Raises OSError, ValueError."""
        found: dict[str, Any] | None = self.json(f"/history/{prompt_id}").get(prompt_id)
        return found

    def place(self, prompt_id: str) -> str:
        """running, waiting or unknown. Raises OSError, ValueError."""
        queue = self.json("/queue")
        for name, key in (("running", "queue_running"), ("waiting", "queue_pending")):
            if any(item[1] == prompt_id for item in queue.get(key, ())):
                return name
        return "unknown"

    def cancel(self, prompt_id: str) -> None:
        """Take a prompt from the queue, or interrupt it if it runs; others are left alone."""
        self.post("/queue", {"delete": [prompt_id]})
        if self.place(prompt_id) == "running":
            self.post("/interrupt", {"prompt_id": prompt_id})

    # ---- files ----

    def upload(self, name: str, data: bytes, folder: str = "h3video") -> str:
        """Put a picture among the inputs; the name that LoadImage knows it by. Raises OSError."""
        edge = uuid.uuid4().hex
        parts = [
            f'--{edge}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in (("subfolder", folder), ("type", "input"), ("overwrite", "true"))
        ]
        parts.append(
            f'--{edge}\r\nContent-Disposition: form-data; name="image"; filename="{name}"\r\n'
            "Content-Type: image/png\r\n\r\n".encode()
        )
        body = b"".join(parts) + data + f"\r\n--{edge}--\r\n".encode()
        request = urllib.request.Request(
            f"{self.url}/upload/image", body,
            {"Content-Type": f"multipart/form-data; boundary={edge}"},
        )  # fmt: skip
        told = json.loads(self._ask(request))
        return "/".join(filter(None, (told.get("subfolder"), told["name"])))

    def download(self, file: dict[str, str]) -> bytes:
        """A file of a node's output: {"filename", "subfolder", "type"}. Raises OSError."""
        query = {k: file.get(k, "") for k in ("filename", "subfolder", "type")}
        return self.get(f"/view?{urlencode(query)}", 10.0 * SECONDS)

    def version(self) -> str:
        """ComfyUI's version. Raises OSError, ValueError."""
        return str(self.json("/system_stats").get("system", {}).get("comfyui_version", "unknown"))


def _reasons(body: bytes, prompt: dict[str, Any]) -> str:
    """The server's words about a workflow that it refuses, with nodes by title."""
    try:
        told = json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")[:300]
    reasons = []
    for node, errors in (told.get("node_errors") or {}).items():
        for error in errors.get("errors", ()):
            details = error.get("details") or ""
            reasons.append(f"{node_name(prompt, node)}: {error.get('message')} {details}".strip())
    error = told.get("error")
    general = error.get("message") if isinstance(error, dict) else error
    return "; ".join(reasons) or str(general)


def node_name(prompt: dict[str, Any], node: str) -> str:
    """A node as its user knows it: by title, else by kind, with the id."""
    made = prompt.get(node, {})
    title = made.get("_meta", {}).get("title") or made.get("class_type", "node")
    return f"{title} (node {node})"
