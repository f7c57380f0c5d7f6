"""Measures of a tiled picture or clip against the untiled one; one idea a file.

Pictures are float arrays [height, width, 3], sRGB in 0..1; clips have a frame axis in front.
Gradients and steps are given in levels of 255, as a person reads them off an 8 bit picture.
"""

from .colour import colour_drift
from .flip import flip
from .junctions import junction_error, junctions
from .noise import variance_dip
from .pulse import pulse
from .seams import Seams, directional_energy, seam_energy
from .subjects import (
    Adherence,
    count_subjects,
    ground_distance,
    region_adherence,
    subject_blobs,
)

__all__ = [
    "Adherence", "Seams", "colour_drift", "count_subjects", "directional_energy", "flip",
    "ground_distance", "junction_error", "junctions", "pulse", "region_adherence", "seam_energy",
    "subject_blobs", "variance_dip",
]  # fmt: skip
