"""The loader of ComfyUI-GGUF by name and socket, so that workflows with it open and run in tests.

It reads safetensors; a .gguf file is only listed.
"""

from pathlib import Path


class UnetLoaderGGUF:
    """unet_name -> MODEL."""

    @classmethod
    def INPUT_TYPES(cls):
        import folder_paths

        found = {
            file.name
            for folder in folder_paths.get_folder_paths("diffusion_models")
            for file in Path(folder).glob("*")
            if file.suffix in (".gguf", ".safetensors")
        }
        return {"required": {"unet_name": (sorted(found),)}}

    RETURN_TYPES = ("MODEL",)
    FUNCTION = "load"
    CATEGORY = "testing"

    def load(self, unet_name):
        import comfy.sd
        import folder_paths

        path = folder_paths.get_full_path_or_raise("diffusion_models", unet_name)
        return (comfy.sd.load_diffusion_model(path),)
