"""A real ComfyUI for tests: where it comes from, the pack in it, a server, prompts.

Nothing here imports h3video, and nothing of ComfyUI is imported into the test
process: it runs in a process of its own, with this interpreter.
"""

from .pack import copy_pack
from .prompt import Run, run_prompt
from .server import ComfyServer
from .source import NoComfyUI, comfyui_folder, comfyui_version

__all__ = [
    "ComfyServer", "NoComfyUI", "Run", "comfyui_folder", "comfyui_version", "copy_pack",
    "run_prompt",
]  # fmt: skip
