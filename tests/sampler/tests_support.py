"""What several test files here share."""

from __future__ import annotations

import contextlib


def settings(**values):
    """HexSettings."""
    from h3video.tiling.settings import HexSettings

    return HexSettings(**values)


def attach(model, how):
    """Attach a tiling."""
    from h3video.render.engines.comfyui.attach import attach as real

    return real(model, how)


def attach_seeing_all(model, how):
    """Tiles that own what they should and all see the whole frame."""
    import dataclasses

    from h3video.tiling.shift import Schedule

    tiled = attach(model, how)
    tiling, known = tiled.h3video_tiling, {}
    original = tiling.schedule

    def schedule(family, **steps):
        found = original(family, **steps)
        if id(found) not in known:
            plans = []
            for plan in found.plans:
                everything = tuple(range(plan.columns * plan.rows))
                tiles = tuple(dataclasses.replace(t, tokens=everything) for t in plan.tiles)
                plans.append(dataclasses.replace(plan, tiles=tiles))
            known[id(found)] = (found, Schedule(tuple(plans)))
        return known[id(found)][1]

    tiling.schedule = schedule
    return tiled


def family_parameters():
    """pytest parameters of every family, new ones marked with the ComfyUI they need."""
    import pytest

    new = ("minimax_h3", "ltxav")
    names = ("wan", "minimax_h3", "ltx", "ltxav", "hunyuan", "flux")
    return [
        pytest.param(f, marks=[pytest.mark.comfy_min("0.33")] if f in new else []) for f in names
    ]


def blocks_of(model, family):
    """Every block module of a tiny model."""
    inner = model.model.diffusion_model
    if family in ("hunyuan", "flux"):
        return list(inner.double_blocks), list(inner.single_blocks)
    return list(getattr(inner, "blocks", None) or inner.transformer_blocks), []


@contextlib.contextmanager
def forward_as(block, function):
    """block.forward is `function(original, ...)` for a while."""
    original = block.forward
    object.__setattr__(block, "forward", lambda *a, **k: function(original, *a, **k))
    try:
        yield
    finally:
        object.__delattr__(block, "forward")


@contextlib.contextmanager
def replaced_blocks(model, family):
    """Every block returns what it was given."""
    double, single = blocks_of(model, family)
    with contextlib.ExitStack() as stack:
        for block in double:
            if single:
                stack.enter_context(forward_as(block, lambda _, img, txt, **k: (img, txt)))
            else:
                stack.enter_context(forward_as(block, lambda _, x, *a, **k: x))
        for block in single:
            stack.enter_context(forward_as(block, lambda _, x, **k: x))
        yield


class Seen(list):
    """(tokens [n, d], positions [m, ...]) of every call of the first block.

    position_shift   positions run over text first
    """

    def __init__(self, family):
        super().__init__()
        self.family = family
        self.position_shift = 0

    def video_start(self, total, frame):
        """Where the frame's tokens are among `total`."""
        return total - frame


@contextlib.contextmanager
def record_first_block(model, family):
    """Record what the first block is given."""
    seen = Seen(family)
    block = blocks_of(model, family)[0][0]

    def watch(original, *args, **kwargs):
        if family == "wan":
            seen.append((args[0][0].clone(), kwargs["freqs"][0, :, 0].clone()))
        elif family == "minimax_h3":
            seen.append((args[0].clone(), args[3][0].clone()))
        elif family == "ltx":
            seen.append((args[0][0].clone(), ltx_rows(kwargs["pe"])))
        elif family == "ltxav":
            seen.append((args[0][0][0].clone(), ltx_rows(kwargs["v_pe"])))
        else:
            text = kwargs["txt"].shape[1]
            seen.position_shift = 0 if getattr(block, "flipped_img_txt", False) else text
            seen.append((kwargs["img"][0].clone(), kwargs["pe"][0, 0].clone()))
        return original(*args, **kwargs)

    with forward_as(block, watch):
        yield seen


def ltx_rows(pe):
    """Rotary rows of LTX, one per token."""
    return pe[0][0].clone() if isinstance(pe, tuple) else pe[0, 0].clone()
