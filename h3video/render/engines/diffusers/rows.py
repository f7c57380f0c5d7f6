"""The output head in pieces, whatever the host's code between its layers is.

After the last block a host norms, scales and projects the whole frame, often in float32: with
tiles that would be the peak of a step. The last block therefore hands out `Rows`: the sequence,
and a list of what is still to be done to each row. Arithmetic on it is only noted; the projection,
whose result is small, does it for an eighth of the rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..cut import in_chunks

Step = Callable[[Tensor, int, int], Tensor]
"""step(rows [B, b - a, d], a, b) -> rows"""


class Rows:
    """A sequence [B, S, d] with work that waits until rows are asked for.

    Anything but the row-wise operations below makes the whole tensor first: right, and large.
    """

    def __init__(self, value: Tensor, steps: tuple[Step, ...] = ()) -> None:
        self._value = value
        self._steps = steps

    def then(self, step: Step) -> Rows:
        """One more thing to do to each row."""
        return Rows(self._value, (*self._steps, step))

    def piece(self, start: int, stop: int) -> Tensor:
        """Rows start..stop with everything done: [B, stop - start, d]."""
        rows = self._value[:, start:stop]
        for step in self._steps:
            rows = step(rows, start, stop)
        return rows

    def through(self, last: Callable[[Tensor], Tensor]) -> Tensor:
        """`last` of all rows, a few at a time: [B, S, whatever last returns]."""
        return torch.cat([last(self.piece(a, b)) for a, b in in_chunks(len(self))], 1)

    def whole(self) -> Tensor:
        """The tensor that a host would have had."""
        return self.piece(0, len(self))

    def __len__(self) -> int:
        return int(self._value.shape[1])

    @property
    def device(self) -> torch.device:
        """Where it lies; steps do not move it."""
        return self._value.device

    def to(self, *args: Any, **kwargs: Any) -> Rows:
        """As of a tensor; also what offloading hooks call to move a layer's input."""
        return self.then(lambda rows, a, b: rows.to(*args, **kwargs))

    def float(self) -> Rows:
        """As of a tensor."""
        return self.to(torch.float32)

    def type_as(self, other: Any) -> Rows:
        """As of a tensor."""
        return self.to(other.dtype)

    def __add__(self, other: Any) -> Rows:
        return self.then(lambda rows, a, b: rows + self._of(other, a, b))

    def __radd__(self, other: Any) -> Rows:
        return self.then(lambda rows, a, b: self._of(other, a, b) + rows)

    def __mul__(self, other: Any) -> Rows:
        return self.then(lambda rows, a, b: rows * self._of(other, a, b))

    def __rmul__(self, other: Any) -> Rows:
        return self.then(lambda rows, a, b: self._of(other, a, b) * rows)

    def _of(self, other: Any, start: int, stop: int) -> Any:
        """Rows start..stop of an operand that has a row per token; others as they are."""
        if isinstance(other, Rows):
            return other.piece(start, stop)
        if isinstance(other, Tensor) and other.ndim > 2 and other.shape[1] == len(self) > 1:
            return other[:, start:stop]
        return other

    @property
    def dtype(self) -> torch.dtype:
        """Of the rows when everything is done."""
        return self.piece(0, 1).dtype if self._steps else self._value.dtype

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole(), name)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """torch's functions get the whole tensor."""
        plain = [a.whole() if isinstance(a, Rows) else a for a in args]
        named = {k: v.whole() if isinstance(v, Rows) else v for k, v in (kwargs or {}).items()}
        return func(*plain, **named)


def norm_by_rows(cut: Callable[[tuple[Any, ...], int, int], tuple[Any, ...]]) -> Any:
    """For Wrappers.wrap: a norm that is only noted.

    cut   its further arguments for rows start..stop, given all of them
    """

    def make(original: Any) -> Any:
        def forward(x: Any, *args: Any) -> Any:
            if isinstance(x, Rows):
                return x.then(lambda rows, a, b: original(rows, *cut(args, a, b)))
            return original(x, *args)

        return forward

    return make


def projection_by_rows(original: Any) -> Any:
    """For Wrappers.wrap: a projection that does everything noted so far."""

    def forward(x: Any) -> Any:
        return x.through(original) if isinstance(x, Rows) else original(x)

    return forward
