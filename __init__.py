"""ComfyUI-H3-Video as a ComfyUI node pack: what ComfyUI looks for, nothing else."""

from .h3video import nodes as _nodes

WEB_DIRECTORY = "./web"

# ComfyUI ignores comfy_entrypoint where NODE_CLASS_MAPPINGS exists, so only one of them is set.
if _nodes.has_v3():
    comfy_entrypoint = _nodes.comfy_entrypoint
else:
    NODE_CLASS_MAPPINGS = _nodes.old_comfyui_mappings()
