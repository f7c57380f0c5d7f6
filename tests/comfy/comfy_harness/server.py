"""A ComfyUI server in a process of its own, with folders of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from .prompt import Prompt, Run, run_prompt

BOOT = Path(__file__).with_name("boot.py")

MODEL_FOLDERS = (
    "checkpoints", "clip", "clip_vision", "configs", "controlnet", "diffusion_models",
    "embeddings", "loras", "text_encoders", "unet", "upscale_models", "vae", "vae_approx",
)  # fmt: skip

HIDDEN = ("h3video", "h3", "diffusers")
"""Not part of ComfyUI; a test environment has them, so they are hidden from the server."""


class ComfyServer:
    """Make the folders, then `start()`; `stop()` ends the process that was started.

    comfyui  the folder with main.py; base: ComfyUI's --base-directory
    hidden   names of packages that cannot be imported in the server
    """

    def __init__(
        self, comfyui: Path, base: Path, arguments: tuple[str, ...] = (),
        hidden: tuple[str, ...] = HIDDEN, environment: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.comfyui, self.base, self.arguments = comfyui, base, arguments
        self.hidden, self.environment = hidden, environment or {}
        self.custom_nodes, self.models = base / "custom_nodes", base / "models"
        self.log_file = base / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""
        for name in ("custom_nodes", "input", "output", "temp", "user"):
            (base / name).mkdir(parents=True, exist_ok=True)
        for name in MODEL_FOLDERS:
            (self.models / name).mkdir(parents=True, exist_ok=True)

    def start(self, timeout: float = 240.0) -> ComfyServer:
        """Start and wait until it answers. Raises RuntimeError with the log's end."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, str(BOOT), str(self.comfyui), "--hide", ",".join(self.hidden),
                   "--", "--cpu", "--listen", "127.0.0.1", "--port", str(port),
                   "--base-directory", str(self.base),
                   "--database-url", f"sqlite:///{self.base / 'user' / 'comfyui.db'}",
                   "--disable-auto-launch", "--disable-api-nodes",
                   # what a user with a GPU runs; the CPU's default is another one
                   "--use-pytorch-cross-attention", *self.arguments]  # fmt: skip
        quiet = {"PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
                 "DO_NOT_TRACK": "1"}  # fmt: skip
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command, env={**os.environ, **quiet, **self.environment}, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(
                    f"ComfyUI ended with {self.process.returncode}\n{self.log()[-4000:]}"
                )
            try:
                self.json("/system_stats", timeout=2)
                return self
            except OSError:
                time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"ComfyUI did not answer within {timeout:g} s\n{self.log()[-4000:]}")

    def stop(self) -> None:
        """End the server; a second call does nothing."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def log(self) -> str:
        """What the server has printed so far."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def get(self, path: str, timeout: float = 30.0) -> tuple[int, bytes, dict[str, str]]:
        """(status, body, headers with lower-case names) of a path; an error status is no error."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=timeout) as answer:
                status, body, headers = answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as e:
            status, body, headers = e.code, e.read(), e.headers
        return status, body, {key.lower(): value for key, value in headers.items()}

    def json(self, path: str, timeout: float = 30.0) -> Any:
        """The JSON of a path that must answer 200."""
        status, body, _ = self.get(path, timeout)
        assert status == 200, f"{path}: {status} {body[:300]!r}"
        return json.loads(body)

    def run(self, prompt: Prompt, **options: Any) -> Run:
        """Run a prompt to its end, see prompt.follow."""
        return run_prompt(self.url, prompt, **options)


def free_port() -> int:
    """A TCP port that was free a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
