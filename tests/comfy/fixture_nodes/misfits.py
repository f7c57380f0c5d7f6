"""Nodes that fail, wait, lose tiles or damage a clip."""

import time

import torch


class TestFail:
    """Raises when it runs."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"images": ("IMAGE",)}}

    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "fail"
    CATEGORY = "testing"

    def fail(self, images):
        raise RuntimeError("TestFail: failed on purpose")


class TestSleep:
    """Passes a clip on after a while; can be interrupted."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"images": ("IMAGE",), "seconds": ("FLOAT", {"default": 1.0})}}

    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "sleep"
    CATEGORY = "testing"

    def sleep(self, images, seconds):
        import comfy.model_management

        end = time.monotonic() + seconds
        while time.monotonic() < end:
            comfy.model_management.throw_exception_if_processing_interrupted()
            time.sleep(0.02)
        return (images,)


class TestDropTiles:
    """Leaves out the tiles at `drop` ("0,3") of a list of tiles."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"tiles": ("IMAGE",), "drop": ("STRING", {"default": ""})}}

    INPUT_IS_LIST = True
    OUTPUT_IS_LIST = (True,)
    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "keep"
    CATEGORY = "testing"

    def keep(self, tiles, drop):
        gone = {int(n) for n in drop[0].split(",") if n.strip()}
        return ([tile for n, tile in enumerate(tiles) if n not in gone],)


class TestHalfNaN:
    """Makes every second value of a clip not a number."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"images": ("IMAGE",)}}

    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "damage"
    CATEGORY = "testing"

    def damage(self, images):
        out = images.clone()
        out.view(-1)[::2] = torch.nan
        return (out,)


class TestCells:
    """An H3_CELLS that is none: whatever JSON text is given."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"text": ("STRING", {"default": "nonsense"})}}

    RETURN_TYPES = ("H3_CELLS",)
    FUNCTION = "make"
    CATEGORY = "testing"

    def make(self, text):
        return (text,)
