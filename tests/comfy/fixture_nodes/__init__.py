"""Nodes for tests only: the nano model's prompts, measurements, an error, a slow node.

TestNanoCLIP needs $H3VIDEO_TEST_NANO, the folder of the embedded model in diffusers format.
"""

from .measure import TestImageDifference, TestImageStats, TestLatentStats, TestMaskStats
from .misfits import TestCells, TestDropTiles, TestFail, TestHalfNaN, TestSleep
from .nano_clip import TestNanoCLIP

_ALL = (
    TestCells, TestDropTiles, TestFail, TestHalfNaN, TestImageDifference, TestImageStats,
    TestLatentStats, TestMaskStats, TestNanoCLIP, TestSleep,
)  # fmt: skip

NODE_CLASS_MAPPINGS = {node.__name__: node for node in _ALL}
NODE_DISPLAY_NAME_MAPPINGS = {node.__name__: f"Test: {node.__name__[4:]}" for node in _ALL}
