"""A block's weights held while its tiles run, where the host moves them layer by layer.

With block-level group offloading a block's hook fires once, around all its tiles, because our
wrapper sits below it. Leaf-level group offloading and accelerate's sequential offloading hook the
layers inside the block, which would fetch every weight once per tile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def held(block: torch.nn.Module) -> Iterator[None]:
    """Fetch the weights of all hooked layers inside a block once, and let them go at the end."""
    with contextlib.ExitStack() as stack:
        seen: set[int] = set()
        for module in block.modules():
            if module is block:  # its own hooks are above us and have fired
                continue
            hook = getattr(module, "_hf_hook", None)
            if hook is not None and "_old_forward" in vars(module):
                for part in getattr(hook, "hooks", (hook,)):
                    if getattr(part, "offload", False):
                        stack.enter_context(_aligned(part, module))
            group = _group(module)
            if group is not None and id(group) not in seen:
                seen.add(id(group))
                stack.enter_context(_onloaded(group))
        yield


@contextlib.contextmanager
def _aligned(hook: Any, module: torch.nn.Module) -> Iterator[None]:
    """One layer under accelerate's AlignDevicesHook."""
    hook.pre_forward(module)
    hook.offload = False
    try:
        yield
    finally:
        hook.offload = True
        hook.post_forward(module, torch.empty(0))


def _group(module: torch.nn.Module) -> Any:
    registry = vars(module).get("_diffusers_hook")
    if registry is None:
        return None
    hook = registry.get_hook("group_offloading")
    return None if hook is None else hook.group


@contextlib.contextmanager
def _onloaded(group: Any) -> Iterator[None]:
    """One group of diffusers' group offloading: its two methods do nothing meanwhile."""
    if _device(group) == group.offload_device or group.offload_device == group.onload_device:
        group.onload_()
    if group.stream is not None:
        group.stream.synchronize()
    group.onload_ = group.offload_ = _nothing
    try:
        yield
    finally:
        del group.onload_, group.offload_
        group.offload_()


def _device(group: Any) -> torch.device | None:
    tensors = [p for m in group.modules for p in m.parameters()]
    tensors += [*group.parameters, *group.buffers]
    return tensors[0].device if tensors else None


def _nothing() -> None:
    pass
