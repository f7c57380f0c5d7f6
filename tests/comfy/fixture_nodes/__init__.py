"""Nodes for tests only: stand-ins for large models, measurements, an error, a slow node.

TestNanoCLIP needs $H3VIDEO_TEST_NANO, the folder of the embedded model in diffusers format.
"""

from .gguf_stand_in import UnetLoaderGGUF
from .measure import (
    TestImageDifference,
    TestImageStats,
    TestLatentDifference,
    TestLatentStats,
    TestMaskStats,
)
from .minimax_h3 import TestH3CLIP, TestH3VAE
from .misfits import TestCells, TestDropTiles, TestFail, TestHalfNaN, TestSleep
from .nano_clip import TestNanoCLIP

_ALL = (
    TestCells, TestDropTiles, TestFail, TestH3CLIP, TestH3VAE, TestHalfNaN, TestImageDifference,
    TestImageStats, TestLatentDifference, TestLatentStats, TestMaskStats, TestNanoCLIP, TestSleep,
)  # fmt: skip

NODE_CLASS_MAPPINGS = {node.__name__: node for node in (*_ALL, UnetLoaderGGUF)}
NODE_DISPLAY_NAME_MAPPINGS = {node.__name__: f"Test: {node.__name__[4:]}" for node in _ALL}
NODE_DISPLAY_NAME_MAPPINGS["UnetLoaderGGUF"] = "Unet Loader (GGUF)"
