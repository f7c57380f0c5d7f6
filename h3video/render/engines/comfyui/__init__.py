"""Tiling inside ComfyUI's sampler, through its wrappers; nothing of ComfyUI is changed."""
