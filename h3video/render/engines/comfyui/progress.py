"""One progress bar over steps x tiles, and the place where an interrupt is noticed."""

from __future__ import annotations

from typing import Any

SIGMAS, CALLBACK = 3, 5
"""Places in ComfyUI's outer_sample(noise, latent, sampler, sigmas, mask, callback, ...)."""


class Progress:
    """Progress of one sampling.

    latent_shape   shape of the picture's latent when several streams are packed, else None
    """

    TILES = 100
    """Ticks of a step; a step is several passes of many tiles, whose number is not known before."""

    def __init__(self) -> None:
        self.latent_shape: tuple[int, ...] | None = None
        self._bar: Any = None
        self._steps = 0
        self._step = 0
        self._passes = 0.0
        self._expected = 1.0
        self._shown = 0

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Open a bar; returns outer_sample's arguments with the callback wrapped."""
        from comfy.utils import ProgressBar

        values = list(args)
        sigmas = kwargs.get("sigmas", values[SIGMAS] if len(values) > SIGMAS else None)
        shapes = kwargs.get("latent_shapes", values[8] if len(values) > 8 else None)
        self.latent_shape = tuple(shapes[0]) if shapes is not None and len(shapes) > 1 else None
        self._steps = max(1, len(sigmas) - 1) if sigmas is not None else 1
        self._step, self._passes, self._expected, self._shown = 0, 0.0, 1.0, 0
        self._bar = ProgressBar(self._steps * self.TILES)
        if len(values) > CALLBACK:
            values[CALLBACK] = self._wrap(values[CALLBACK])
        else:
            kwargs = {**kwargs, "callback": self._wrap(kwargs.get("callback"))}
        return tuple(values), kwargs

    def end(self) -> None:
        """Forget the bar."""
        self._bar, self.latent_shape = None, None

    def tile(self, share: float) -> None:
        """A tile of a block is done: `share` of a forward pass. Raises when the user interrupts."""
        from comfy.model_management import throw_exception_if_processing_interrupted

        throw_exception_if_processing_interrupted()
        self._passes += share
        # The first step shows how many passes a step takes; until then a bar must not run full.
        inside = min(0.99, self._passes / max(self._expected, self._passes + 0.01))
        self._show(int((self._step + inside) * self.TILES))

    def _wrap(self, callback: Any) -> Any:
        def wrapped(step: int, *args: Any, **kwargs: Any) -> Any:
            out = callback(step, *args, **kwargs) if callback is not None else None
            self._step, self._expected, self._passes = step + 1, max(1.0, self._passes), 0.0
            self._show(self._step * self.TILES)
            return out

        return wrapped

    def _show(self, value: int) -> None:
        if self._bar is not None and value > self._shown:
            self._shown = value
            self._bar.update_absolute(value, self._steps * self.TILES)
