"""Operators of the tile path: Metal has no float64, and each kernel that is new is a risk."""

import pytest

torch = pytest.importorskip("torch")

from tests_support import attach, family_parameters, replaced_blocks, settings
from torch.utils._python_dispatch import TorchDispatchMode

ALLOWED = {
    "_to_copy", "_unsafe_view", "add", "add_", "alias", "arange", "cat", "clone", "copy_",
    "detach", "empty", "empty_like", "expand", "fill_", "flatten", "full", "full_like",
    "index_add_",
    "index_select", "lift_fresh", "mul", "mul_", "new_empty", "new_zeros", "ones", "ones_like",
    "permute", "repeat_interleave", "reshape", "select", "set_", "slice", "split", "squeeze",
    "stack", "sub", "t", "transpose", "unbind", "unflatten", "unsqueeze", "view", "zero_", "zeros",
    "zeros_like", "div", "empty_strided", "_local_scalar_dense", "is_same_size",
    "resolve_conj", "resolve_neg",  # tolist, of the noise levels
}  # fmt: skip
"""What our own code may call on the device; all of it exists on Metal for float16 to float32."""


class Watch(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names, self.double = set(), []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.names.add(func._overloadpacket.__name__)
        for t in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(t, torch.Tensor) and t.dtype == torch.float64:
                self.double.append(func._overloadpacket.__name__)
        return out


def watched(tiny, model, family, **kw):
    with Watch() as watch:
        tiny.sample(model, family, steps=1, **kw)
    return watch


HOWS = [{}, {"exchange": "block"}, {"order": "tile-major"}, {"window": 7, "window_overlap": 1}]


@pytest.mark.parametrize("family", family_parameters())
@pytest.mark.parametrize("how", HOWS, ids=str)
def test_tiles_add_no_operator_beyond_the_list_and_no_float64(tiny, family, how):
    if how.get("window") and family == "ltx":
        how = {"window": 2, "window_overlap": 1}
    model = getattr(tiny, family)()
    with replaced_blocks(model, family):
        plain = watched(tiny, model, family)
        tiling = attach(model, settings(hex_res=3, overlap=64.0, **how))
        tiled = watched(tiny, tiling, family)
    new = tiled.names - plain.names - ALLOWED
    assert not new, new
    # ComfyUI's own float64 (its positions) is not ours; there must be no more of it
    assert sorted(set(tiled.double)) == sorted(set(plain.double))
    passes = len(tiling.h3video_tiling.plans[-1].tiles) if how.get("order") else 1
    assert len(tiled.double) <= len(plain.double) * passes
