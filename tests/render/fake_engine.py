"""An engine without a model, whose every failure can be asked for; see jobs_fixture in conftest.

Latent frame t of a clip is a number made of the seed, the prompt and t, and of the head's last
value, so a chunk that was continued from another one is another one.
"""

import hashlib

import numpy as np
import torch

from h3video.render.engines.protocol import ChunkResult, Sound

OPTIONS = {"gives": "latents or frames", "continuity": "...", "sound": "rate of a sound track"}

CALLS = []
"""("generate" | "decode", chunk) of every call."""

FAIL = {}
"""What to raise: {("generate", chunk): [exception, ...]}, one at each call."""

IDENTITY = {}
"""What identity() tells, with "model" {"files": {...}}, "sampler", "sigmas", "tiles", "lora"."""

HUNGRY = {}
"""{chunk: seconds or function} called while it is made."""


def reset():
    CALLS.clear()
    FAIL.clear()
    HUNGRY.clear()
    IDENTITY.clear()
    IDENTITY.update(
        model={"file": "fake", "files": {"a.safetensors": {"bytes": 3, "sha256": "ab"}}},
        gguf=[], lora=[{"file": "l.safetensors", "scale": 0.5, "bytes": 1, "sha256": "cd"}],
        sampler={"class": "UniPC", "flow_shift": 5.0}, sigmas=[1.0, 0.5, 0.0],
        tiles={"count": 3, "sha256": "ef"}, inputs={"mask": {"file": "m.png", "sha256": "01"}},
        regions=[{"cells": [1, 2], "prompt": "sky"}], windows={"length": 5, "overlap": 2},
    )  # fmt: skip


def value(*what):
    told = hashlib.sha256(repr(what).encode()).digest()
    return int.from_bytes(told[:4], "little") / 2**32


class FakeEngine:
    name = "fake"

    def __init__(self, document, options):
        self.gives = options.get("gives", "latents")
        self.continuity = options.get("continuity", "latents")
        self.rate = int(options.get("sound", 0))
        self.released = []
        self.requests = []

    def identity(self):
        return dict(IDENTITY)

    def _enter(self, call, request, cancel):
        CALLS.append((call, request.index))
        self.requests.append(request)
        cancel.check()
        if HUNGRY.get(request.index):
            HUNGRY[request.index]()
        errors = FAIL.get((call, request.index), [])
        if errors:
            raise errors.pop(0)

    def generate(self, request, progress, cancel):
        self._enter("generate", request, cancel)
        progress("denoise", 1.0)
        before = 0.0 if request.head is None else float(request.head[0, 0, -1, 0, 0])
        if request.first_frame is not None:
            before = float(request.first_frame.mean()) / 255.0
        size = (request.height // 8, request.width // 8)
        out = torch.empty(1, 4, request.latent_frames, *size)
        for t in range(request.latent_frames):
            seen = value(request.seed, request.prompt, request.latent_start + t, round(before, 5))
            out[:, :, t] = seen
        if request.head is not None:
            out[:, :, : request.head.shape[2]] = request.head
        if self.gives == "latents":
            return ChunkResult(latents=out)
        return self._frames(out, request)

    def decode(self, latents, request, progress, cancel):
        self._enter("decode", request, cancel)
        progress("decode", 1.0)
        return self._frames(latents, request)

    def _frames(self, latents, request):
        frames = np.empty((request.frames, request.height, request.width, 3), np.uint8)
        for f in range(request.frames):
            t = -(-f * (latents.shape[2] - 1) // max(1, request.frames - 1))
            frames[f] = int(float(latents[0, 0, t, 0, 0]) * 255)
        if request.first_frame is not None:
            frames[0] = request.first_frame
        sound = None
        if self.rate:
            count = round(request.frames * self.rate / request.fps)
            start = round(request.start * self.rate / request.fps)
            wave = np.sin(2 * np.pi * 220.0 * (start + np.arange(count)) / self.rate)
            sound = Sound(np.stack([wave, wave]).astype(np.float32) * 0.5, self.rate)
        return ChunkResult(frames=frames, sound=sound)

    def release(self, everything=False):
        self.released.append(everything)

    def close(self):
        self.released.append("closed")


def open_engine(document, options):
    return FakeEngine(document, options)


reset()
