"""The arguments of a diffusion model's forward pass by name, whatever its signature."""

from __future__ import annotations

import inspect
from typing import Any


class Forward:
    """What a DIFFUSION_MODEL wrapper was called with.

    executor      ComfyUI's; `executor.class_obj` is the model
    arguments     by name, further keywords among them
    """

    def __init__(self, executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.executor = executor
        self.model = executor.class_obj
        self._rest = ""
        signature = inspect.signature(type(self.model)._forward)
        self._bound = signature.bind(self.model, *args, **kwargs)
        for name, parameter in signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._rest = name
        bound = dict(self._bound.arguments)
        bound.pop("self")
        rest = bound.pop(self._rest, {})
        self.arguments = {**bound, **rest}

    @property
    def options(self) -> dict[str, Any]:
        """ComfyUI's transformer_options."""
        found = self.arguments.get("transformer_options")
        return found if isinstance(found, dict) else {}

    def call(self, options: dict[str, Any] | None = None) -> Any:
        """Go on with the pass, with other transformer_options if given."""
        if options is not None:
            self._bound.arguments["transformer_options"] = options
        return self.executor(*self._bound.args[1:], **self._bound.kwargs)

    def again(self, changes: dict[str, Any]) -> Any:
        """The pass once more with some arguments changed; others are as they first were."""
        arguments = {**self.arguments, **changes}
        named = {n: arguments.pop(n) for n in self._bound.arguments if n in arguments}
        if self._rest:
            named[self._rest] = arguments
        ordered: Any = {"self": self.model, **named}
        bound = inspect.BoundArguments(self._bound.signature, ordered)
        return self.executor(*bound.args[1:], **bound.kwargs)
