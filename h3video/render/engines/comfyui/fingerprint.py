"""A fingerprint of everything that decides a sampling's result, the same in every process.

Latents, noise and conditioning are hashed byte by byte. A model's weights are too many: of every
tensor the name, shape, type and some values spread over it are taken, before any patch is applied,
and the patches (LoRA) apart. Objects that are not known are taken by class and attributes; one
whose attributes differ from process to process makes a walk begin anew, never go on wrongly.
"""

from __future__ import annotations

import hashlib
import logging
import types
import uuid
from typing import Any

import torch
from torch import Tensor

log = logging.getLogger("h3video")

SAMPLED = 64
"""Values that are taken of every weight tensor."""

DEEPEST = 12
"""Objects inside objects beyond this are taken by class only."""

MOST = 50_000
"""Objects that are looked into; more means that something holds half of the program."""

PASSING = {"uuid", "_uuid", "patches_uuid", "device", "current_device", "load_device"}
"""Names of attributes and entries that differ from run to run and decide nothing."""


class Fingerprint:
    """Hashes values one after the other.

    skip   names of entries and attributes to leave out
    """

    def __init__(self, skip: frozenset[str] = frozenset()) -> None:
        self._hash = hashlib.sha256()
        self._skip = PASSING | skip
        self._open: list[int] = []
        self._seen = 0

    def add(self, name: str, value: Any) -> Fingerprint:
        """Take a value, whatever it is."""
        self._say("value", name)
        self._value(value)
        return self

    def add_model(self, patcher: Any) -> Fingerprint:
        """Take a ComfyUI ModelPatcher: class, configuration, weights, patches."""
        model = patcher.model
        self._say("model", _qualified(type(model)))
        self._value(getattr(getattr(model, "model_config", None), "unet_config", None))
        self._value(getattr(model, "model_sampling", None))
        backup = getattr(patcher, "backup", {})
        for name, weight in sorted(model.state_dict().items()):
            kept = backup.get(name)  # what a patch has replaced while the model is loaded
            kept = getattr(kept, "weight", kept)
            self._sample(name, weight if kept is None else kept)
        for name, patches in sorted(getattr(patcher, "patches", {}).items(), key=str):
            self._say("patch", str(name))
            self._value(patches)
        return self

    def hexdigest(self) -> str:
        """64 hex digits."""
        return self._hash.hexdigest()

    def _say(self, *parts: Any) -> None:
        self._hash.update(repr(parts).encode())

    def _value(self, value: Any) -> None:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            self._say(type(value).__name__, value)
        elif isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, dict):
            self._entries("dict", {_key(k): v for k, v in value.items()})
        elif isinstance(value, (list, tuple)):
            self._say("list", len(value))
            for v in value:
                self._value(v)
        elif isinstance(value, (set, frozenset)):
            self._say("set", sorted(_key(v) for v in value))
        elif isinstance(value, (type, torch.dtype, torch.device)):
            self._say("name", str(value))
        else:
            self._object(value)

    def _entries(self, kind: str, entries: dict[str, Any]) -> None:
        names = sorted(n for n in entries if n not in self._skip)
        self._say(kind, names)
        for name in names:
            self._value(entries[name])

    def _tensor(self, value: Tensor) -> None:
        self._say("tensor", tuple(value.shape), str(value.dtype))
        if value.device.type != "meta":
            self._bytes(value)

    def _bytes(self, value: Tensor) -> None:
        flat = value.detach().contiguous().reshape(-1)
        self._hash.update(flat.view(torch.uint8).cpu().numpy().tobytes())

    def _sample(self, name: str, weight: Any) -> None:
        """Some values of a weight; all of a small one."""
        self._say("weight", name, tuple(getattr(weight, "shape", ())), str(weight.dtype))
        if weight.device.type == "meta" or not weight.numel():
            return
        # A quantised weight may be a tensor of a class of its own: take its plain storage.
        flat = weight.detach().as_subclass(Tensor).reshape(-1)
        self._bytes(flat[:: max(1, flat.numel() // SAMPLED)])

    def _object(self, value: Any) -> None:
        if id(value) in self._open or len(self._open) >= DEEPEST:
            self._say("again", _qualified(type(value)))
            return
        self._seen += 1
        if self._seen > MOST:
            self._never_again(value)
            return
        self._open.append(id(value))
        try:
            if isinstance(value, (types.FunctionType, types.MethodType)):
                self._function(value)
            elif hasattr(value, "model") and hasattr(value, "patches"):
                self.add_model(value)
            elif isinstance(value, torch.nn.Module):
                self._module(value)
            else:
                self._say("object", _qualified(type(value)))
                self._entries("state", _state(value))
        finally:
            self._open.pop()

    def _module(self, value: Any) -> None:
        """A network by its weights, and the numbers beside them (a shift, a scale)."""
        self._say("module", _qualified(type(value)))
        for name, weight in sorted(value.state_dict().items()):
            self._sample(name, weight)
        plain = {k: v for k, v in vars(value).items() if isinstance(v, (bool, int, float, str))}
        self._entries("numbers", plain)

    def _never_again(self, value: Any) -> None:
        """Too much to look at: no other run can be known to be the same."""
        if self._seen == MOST + 1:
            log.warning(
                "walk: %s holds too much to tell whether a later run is the same; finished cells "
                "will not be found again", _qualified(type(value)),
            )  # fmt: skip
            self._hash.update(uuid.uuid4().bytes)

    def _function(self, value: Any) -> None:
        """A function by its name, its defaults, what it closes over and is bound to."""
        self._say("function", value.__module__, value.__qualname__)
        if isinstance(value, types.MethodType):
            self._value(value.__self__)
            value = value.__func__
        self._hash.update(value.__code__.co_code)
        self._value(value.__defaults__)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            try:
                held = cell.cell_contents
            except ValueError:  # a variable that was never set
                continue
            self._say("closes over", name)
            self._value(held)


def _state(value: Any) -> dict[str, Any]:
    """An object's attributes; of our own objects those that are settings, not a run's state."""
    own = str(type(value).__module__).startswith("h3video")
    found = getattr(value, "__dict__", None) or {}
    return {str(k): v for k, v in found.items() if not (own and str(k).startswith("_"))}


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _key(key: Any) -> str:
    """A dict's key as text that no process changes: objects by class, not by address."""
    if isinstance(key, (str, int, float, bool, tuple, type(None))):
        return str(key)
    return _qualified(type(key))
