"""Stands in for a node that cannot be loaded, so that workflows open and say what is wrong."""

from __future__ import annotations

from typing import Any


def placeholder_v3(node_id: str, reason: str) -> Any:
    """A V3 node without inputs that raises `reason` when it runs."""
    from comfy_api.latest import io

    class Placeholder(io.ComfyNode):
        @classmethod
        def define_schema(cls) -> Any:
            return io.Schema(
                node_id=node_id, display_name=f"{node_id} (unavailable)", category="h3-video",
                description=reason, inputs=[], outputs=[io.AnyType.Output(tooltip=reason)],
                is_output_node=True,
            )  # fmt: skip

        @classmethod
        def execute(cls, **_: Any) -> Any:
            raise RuntimeError(reason)

    return Placeholder


def placeholder_v1(node_id: str, reason: str) -> Any:
    """The same for a ComfyUI from before the V3 schema."""

    class Placeholder:
        RETURN_TYPES = ("*",)
        FUNCTION = "execute"
        CATEGORY = "h3-video"
        OUTPUT_NODE = True
        DESCRIPTION = reason

        @classmethod
        def INPUT_TYPES(cls) -> dict[str, Any]:
            return {"required": {}}

        def execute(self, **_: Any) -> Any:
            raise RuntimeError(reason)

    Placeholder.__name__ = node_id
    return Placeholder
