"""Methods replaced on single instances, below the host's hooks, and put back.

diffusers (group offloading, layerwise casting, caches) and accelerate (model and sequential
offloading) hook a module by replacing `module.forward` and keeping what was there. A wrapper above
such a hook would fire it once per tile, and is lost when the pipeline takes its hooks off after a
call; so a wrapper goes to the innermost place, where the class's own method is kept, and is looked
for in all of them when it is taken off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

Place = tuple[Any, str]
"""An object and the attribute of it that holds a function."""


class Wrappers:
    """What was wrapped, to be undone."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace a method on one instance by `make(original)`."""
        holder, attribute = innermost(owner, name)
        original = getattr(holder, attribute)
        wrapper = functools.wraps(original)(make(original))
        _put(holder, attribute, wrapper)
        self._done.append((owner, name, original, wrapper))

    def undo(self) -> None:
        """Take every wrapper off again, wherever hooks have moved it."""
        for owner, name, original, wrapper in reversed(self._done):
            for holder, attribute in list(_places(owner, name)):
                if getattr(holder, attribute, None) is not wrapper:
                    continue
                if holder is owner and attribute == name and _is_plain(owner, name, original):
                    owner.__dict__.pop(name, None)
                else:
                    _put(holder, attribute, original)
        self._done.clear()


def innermost(owner: Any, name: str) -> Place:
    """Where the method is kept that every hook calls in the end."""
    places = list(_places(owner, name))
    for holder, attribute in places:
        if _is_plain(owner, name, getattr(holder, attribute)):
            return holder, attribute
    for holder, attribute in places:
        if not _is_hook(owner, getattr(holder, attribute)):
            return holder, attribute
    return owner, name


def _places(owner: Any, name: str) -> Iterator[Place]:
    yield owner, name
    if name != "forward":
        return
    if "_old_forward" in vars(owner):  # accelerate
        yield owner, "_old_forward"
    registry = vars(owner).get("_diffusers_hook")
    for reference in getattr(registry, "_fn_refs", ()):
        if reference.original_forward is not None:
            yield reference, "original_forward"
        yield reference, "forward"


def _is_plain(owner: Any, name: str, value: Any) -> bool:
    own = getattr(type(owner), name, None)
    return getattr(value, "__self__", None) is owner and getattr(value, "__func__", None) is own


def _is_hook(owner: Any, value: Any) -> bool:
    """Both libraries put functools.partial(function, module) there."""
    return isinstance(value, functools.partial) and value.args[:1] == (owner,)


def _put(holder: Any, attribute: str, value: Any) -> None:
    object.__setattr__(holder, attribute, value)
