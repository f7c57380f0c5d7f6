"""A tensor of a checkpoint as name, shape and part, and the layers that most of them belong to."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple


class Tensor(NamedTuple):
    """One tensor of a checkpoint.

    name, shape   as in the published file
    part          what it is counted under: "attention", "feed-forward", "modulation", ...
    wide          kept at float32 in the published file whatever the rest is
    """

    name: str
    shape: tuple[int, ...]
    part: str
    wide: bool = False

    @property
    def elements(self) -> int:
        """Number of its values."""
        return prod(self.shape)


Tensors = Iterator[Tensor]


def linear(
    name: str, out: int, inp: int, part: str, bias: bool = True, wide: bool = False
) -> Tensors:
    """A linear layer's weight [out, inp] and bias [out]."""
    yield Tensor(f"{name}.weight", (out, inp), part, wide)
    if bias:
        yield Tensor(f"{name}.bias", (out,), part, wide)


def norm(name: str, width: int, bias: bool = False, part: str = "norms") -> Tensors:
    """A norm's weight [width], and its bias if it has one."""
    yield Tensor(f"{name}.weight", (width,), part)
    if bias:
        yield Tensor(f"{name}.bias", (width,), part)
