"""Prompts with time codes, and which chunk gets which.

A file of prompts is YAML or JSON: a list of entries, or the same under "prompts":

    - prompt: a red circle moves left over blue waves
    - at: 0:05                    # minutes:seconds, seconds, or frames as 80f
      prompt: a red circle moves right over blue waves
      negative: blurry            # optional; stays until another one is given
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..tiling.chunks import ChunkPlan

FIELDS = {"at", "prompt", "negative"}


@dataclass(frozen=True)
class TimedPrompt:
    """A prompt that holds from frame `start` on; `negative` None keeps the one before."""

    start: int
    prompt: str
    negative: str | None = None


def read_prompts(path: Path, fps: int) -> list[TimedPrompt]:
    """The prompts of a file in order of time. Raises UsageError naming the entry that is wrong."""
    entries = _load(path)
    if isinstance(entries, dict):
        entries = entries.get("prompts", entries)
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path} holds no list of prompts; see docs/long-video.md")
    found = []
    for number, entry in enumerate(entries, 1):
        what = f"{path}, entry {number}"
        if isinstance(entry, str):
            entry = {"prompt": entry}
        if not isinstance(entry, dict) or not str(entry.get("prompt") or "").strip():
            raise UsageError(f"{what} has no prompt; write `prompt: ...`")
        unknown = sorted(set(map(str, entry)) - FIELDS)
        if unknown:
            raise UsageError(f"{what} has {', '.join(unknown)}; known are {', '.join(FIELDS)}")
        at = frame_of(entry.get("at", 0), fps, what)
        negative = entry.get("negative")
        found.append(
            TimedPrompt(
                at, str(entry["prompt"]).strip(), None if negative is None else str(negative)
            )
        )
    starts = [p.start for p in found]
    if starts != sorted(set(starts)) or starts[0] != 0:
        raise UsageError(
            f"{path}: the times {', '.join(f'frame {s}' for s in starts[:6])} do not rise from 0; "
            "order the entries by time and let the first begin at 0"
        )
    return found


def _load(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise UsageError(f"prompts file {path} cannot be read ({e.strerror})") from None
    except UnicodeDecodeError:
        raise UsageError(f"prompts file {path} is not UTF-8 text; save it as UTF-8") from None
    if path.suffix.lower() != ".json":
        try:
            import yaml
        except ImportError:
            raise UsageError(
                f"{path} needs the package pyyaml; install it, or write the file as .json"
            ) from None
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as e:
            raise UsageError(f"{path} is no valid YAML ({' '.join(str(e).split())})") from None
    try:
        return json.loads(text)
    except ValueError as e:
        raise UsageError(f"{path} is no valid JSON ({e})") from None


def frame_of(at: Any, fps: int, what: str = "time") -> int:
    """The frame that a time code means: 90f, 3.5 (seconds), 0:05, 1:02:03.5.

    YAML itself reads 1:30 as 90, which are the same seconds.
    """
    if isinstance(at, bool) or not isinstance(at, (int, float, str)):
        raise UsageError(f"{what}: {at!r} is no time; use 0:05, 5.0 or 80f")
    text = str(at).strip()
    if match := re.fullmatch(r"(\d+)\s*f(rames)?", text):
        return int(match[1])
    if not re.fullmatch(r"(\d+:){0,2}\d+(\.\d*)?", text):
        raise UsageError(f"{what}: {at!r} is no time; use 0:05, 5.0 or 80f")
    seconds = 0.0
    for part in text.split(":"):
        seconds = seconds * 60 + float(part)
    return math.floor(seconds * fps + 0.5)


def assign(
    plan: ChunkPlan, prompts: list[TimedPrompt], negative: str, fps: int
) -> list[tuple[str, str]]:
    """(prompt, negative) of every chunk: those that hold for most of the frames new in it.

    Raises UsageError for a prompt that no chunk would get.
    """
    negatives, last = [], negative
    for p in prompts:
        last = last if p.negative is None else p.negative
        negatives.append(last)
    ends = [p.start for p in prompts[1:]] + [max(plan.frames, plan.chunks[-1].stop)]
    used, out = set(), []
    for chunk in plan.chunks:
        low, high = chunk.new, min(chunk.stop, plan.frames)
        share = [min(high, e) - max(low, p.start) for p, e in zip(prompts, ends)]
        best = max(range(len(prompts)), key=lambda i: (share[i], -i))
        used.add(best)
        out.append((prompts[best].prompt, negatives[best]))
    for i, p in enumerate(prompts):
        if i not in used:
            raise UsageError(
                f"the prompt at {p.start / fps:g} s ({p.prompt[:40]!r}) is used by no chunk: each "
                "takes the one that holds for most of its frames; move it, or make the chunks "
                "shorter (--chunk-frames)"
            )
    return out
