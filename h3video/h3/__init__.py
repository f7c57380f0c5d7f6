"""Uber's H3 index from our own library (csrc/h3.c), with a pure-Python twin.

Degrees and Python integers here; see api.py. Standard library only; numpy is
imported inside the functions that take arrays.
"""

from .api import (
    CONTRACT,
    are_neighbor_cells,
    are_valid_cells,
    backend,
    blend_tile,
    cell_to_boundary,
    cell_to_center_child,
    cell_to_children,
    cell_to_children_size,
    cell_to_latlng,
    cell_to_parent,
    cells_to_boundaries,
    cells_to_latlngs,
    cells_to_parents,
    frame_cells,
    get_base_cell_number,
    get_pentagons,
    get_res0_cells,
    get_resolution,
    get_resolutions,
    grid_disk,
    grid_disk_distances,
    grid_disks,
    grid_distance,
    grid_distances,
    grid_ring,
    hex_weights,
    int_to_str,
    is_pentagon,
    is_valid_cell,
    latlng_to_cell,
    latlng_to_plane,
    latlngs_to_cells,
    latlngs_to_planes,
    plane_to_latlng,
    planes_to_latlngs,
    str_to_int,
    use_backend,
)

__all__ = [
    "CONTRACT", "are_neighbor_cells", "are_valid_cells", "backend", "blend_tile",
    "cell_to_boundary",
    "cell_to_center_child", "cell_to_children", "cell_to_children_size", "cell_to_latlng",
    "cell_to_parent", "cells_to_boundaries", "cells_to_latlngs", "cells_to_parents",
    "frame_cells", "get_base_cell_number", "get_pentagons", "get_res0_cells", "get_resolution",
    "get_resolutions", "grid_disk", "grid_disk_distances", "grid_disks", "grid_distance",
    "grid_distances", "grid_ring", "hex_weights", "int_to_str", "is_pentagon", "is_valid_cell",
    "latlng_to_cell", "latlng_to_plane", "latlngs_to_cells", "latlngs_to_planes",
    "plane_to_latlng", "planes_to_latlngs", "str_to_int", "use_backend",
]  # fmt: skip
