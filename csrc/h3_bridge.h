/* h3_bridge.h - flat functions over h3.h for ctypes and other foreign callers.
 *
 * Conventions, the same everywhere:
 *   - A negative result is -H3Error.
 *   - Functions that fill a list take its room as max_len. A result up to max_len is the number
 *     of items written. A greater one is the room to come back with; then nothing was written.
 *     (Disks and rings ask for room as if there were no pentagons and may write less.)
 *   - Bulk functions take n items, work through all of them and return how many failed; the
 *     output of a failed item is 0 (cells), NaN (numbers) or -1 (distances, counts).
 *   - Angles are radians. Nothing is kept between calls; every function is thread-safe
 *     (bridge_use_level is for all threads).
 */
#ifndef H3V_BRIDGE_H
#define H3V_BRIDGE_H

#include <stdint.h>

#if defined(_WIN32)
#define BRIDGE_API __declspec(dllexport)
#else
#define BRIDGE_API __attribute__((visibility("default")))
#endif

#define BRIDGE_ABI 4

BRIDGE_API int32_t bridge_abi_version(void);

/* Use the code for this instruction set at most (0 what every machine has, 1 AVX2, 2 AVX-512);
 * returns the one in use. Answers do not change. For tests and measurements. */
BRIDGE_API int32_t bridge_use_level(int32_t level);
/* What an error code means, in English; the length without the terminating zero, which needs
 * room, too. */
BRIDGE_API int64_t bridge_describe_error(uint32_t error, char *out, int64_t max_len);

/* One cell. */
BRIDGE_API int64_t bridge_latlng_to_cell(double lat, double lng, int32_t res, uint64_t *out);
/* out2: latitude, longitude. */
BRIDGE_API int64_t bridge_cell_to_latlng(uint64_t cell, double *out2);
/* 2 numbers a vertex: latitude, longitude. */
BRIDGE_API int64_t bridge_cell_to_boundary(uint64_t cell, double *out, int64_t max_len);
/* Disks and rings. A k beyond the far side of the globe counts as that. */
BRIDGE_API int64_t bridge_grid_disk(uint64_t center, int32_t k, uint64_t *out, int64_t max_len);
BRIDGE_API int64_t bridge_grid_disk_distances(uint64_t center, int32_t k, uint64_t *out,
                                              int32_t *distances, int64_t max_len);
BRIDGE_API int64_t bridge_grid_ring(uint64_t center, int32_t k, uint64_t *out, int64_t max_len);
BRIDGE_API int64_t bridge_grid_distance(uint64_t a, uint64_t b, int64_t *out);
BRIDGE_API int64_t bridge_are_neighbor_cells(uint64_t a, uint64_t b, int32_t *out);
BRIDGE_API int64_t bridge_cell_to_parent(uint64_t cell, int32_t res, uint64_t *out);
BRIDGE_API int64_t bridge_cell_to_center_child(uint64_t cell, int32_t res, uint64_t *out);
BRIDGE_API int64_t bridge_cell_to_children_size(uint64_t cell, int32_t res, int64_t *out);
BRIDGE_API int64_t bridge_cell_to_children(uint64_t cell, int32_t res, uint64_t *out,
                                           int64_t max_len);
/* 0 or 1 for anything. The next three refuse what is no cell. */
BRIDGE_API int32_t bridge_is_valid_cell(uint64_t cell);
BRIDGE_API int32_t bridge_is_pentagon(uint64_t cell);
BRIDGE_API int32_t bridge_get_resolution(uint64_t cell);
BRIDGE_API int32_t bridge_get_base_cell_number(uint64_t cell);
BRIDGE_API int64_t bridge_get_pentagons(int32_t res, uint64_t *out, int64_t max_len);
BRIDGE_API int64_t bridge_get_res0_cells(uint64_t *out, int64_t max_len);
BRIDGE_API int64_t bridge_string_to_cell(const char *text, uint64_t *out);
/* The length without the terminating zero, which needs room too: 17 is always enough. */
BRIDGE_API int64_t bridge_cell_to_string(uint64_t cell, char *out, int64_t max_len);
/* The plane of a face, see planeToLatLng in h3.h. */
BRIDGE_API int64_t bridge_plane_to_latlng(int32_t face, double u, double v, double *out2);
BRIDGE_API int64_t bridge_latlng_to_plane(int32_t face, double lat, double lng, double *out2);

/* Neighbourhoods. The unsafe ones keep uber/h3's order and refuse pentagons; distances may be
 * NULL. out2: i, j. */
BRIDGE_API int64_t bridge_grid_path(uint64_t a, uint64_t b, uint64_t *out, int64_t max_len);
BRIDGE_API int64_t bridge_grid_disk_unsafe(uint64_t center, int32_t k, uint64_t *out,
                                           int32_t *distances, int64_t max_len);
BRIDGE_API int64_t bridge_grid_ring_unsafe(uint64_t center, int32_t k, uint64_t *out,
                                           int64_t max_len);
BRIDGE_API int64_t bridge_cell_to_local_ij(uint64_t origin, uint64_t cell, int32_t *out2);
BRIDGE_API int64_t bridge_local_ij_to_cell(uint64_t origin, int32_t i, int32_t j, uint64_t *out);

/* Hierarchy and facts. Compacting needs room for n. */
BRIDGE_API int64_t bridge_cell_to_child_pos(uint64_t child, int32_t res, int64_t *out);
BRIDGE_API int64_t bridge_child_pos_to_cell(int64_t pos, uint64_t parent, int32_t res,
                                            uint64_t *out);
BRIDGE_API int64_t bridge_compact_cells(const uint64_t *cells, int64_t n, uint64_t *out,
                                        int64_t max_len);
BRIDGE_API int64_t bridge_uncompact_cells(const uint64_t *cells, int64_t n, int32_t res,
                                          uint64_t *out, int64_t max_len);
/* digits: res of them. */
BRIDGE_API int64_t bridge_construct_cell(int32_t res, int32_t base, const int32_t *digits,
                                         uint64_t *out);
BRIDGE_API int32_t bridge_get_index_digit(uint64_t index, int32_t res);
BRIDGE_API int32_t bridge_is_res_class_iii(uint64_t cell);
BRIDGE_API int32_t bridge_is_valid_index(uint64_t h);
BRIDGE_API int64_t bridge_get_num_cells(int32_t res, int64_t *out);
BRIDGE_API int64_t bridge_get_icosahedron_faces(uint64_t cell, int32_t *out, int64_t max_len);

/* Directed edges and vertexes: lists hold 6, of a pentagon 5. */
BRIDGE_API int32_t bridge_is_valid_directed_edge(uint64_t h);
BRIDGE_API int64_t bridge_cells_to_directed_edge(uint64_t origin, uint64_t destination,
                                                 uint64_t *out);
BRIDGE_API int64_t bridge_directed_edge_to_cells(uint64_t edge, uint64_t *out2);
BRIDGE_API int64_t bridge_origin_to_directed_edges(uint64_t origin, uint64_t *out,
                                                   int64_t max_len);
BRIDGE_API int64_t bridge_reverse_directed_edge(uint64_t edge, uint64_t *out);
BRIDGE_API int64_t bridge_directed_edge_to_boundary(uint64_t edge, double *out, int64_t max_len);
BRIDGE_API int32_t bridge_is_valid_vertex(uint64_t h);
BRIDGE_API int64_t bridge_cell_to_vertex(uint64_t cell, int32_t number, uint64_t *out);
BRIDGE_API int64_t bridge_cell_to_vertexes(uint64_t cell, uint64_t *out, int64_t max_len);
BRIDGE_API int64_t bridge_vertex_to_latlng(uint64_t vertex, double *out2);

/* Areas in steradians, lengths in radians; averages in square km and km. */
BRIDGE_API int64_t bridge_cell_area(uint64_t cell, double *out);
BRIDGE_API int64_t bridge_edge_length(uint64_t edge, double *out);
BRIDGE_API int64_t bridge_average_hexagon_area(int32_t res, double *out);
BRIDGE_API int64_t bridge_average_edge_length(int32_t res, double *out);
BRIDGE_API double bridge_great_circle_distance(double lat0, double lng0, double lat1, double lng1);

/* Arrays of cells. `unit` multiplies angles (and areas): 1 for radians, pi / 180 on the way in and
 * 180 / pi on the way out for degrees; `stride` in items, from one latitude to the next. */
BRIDGE_API int64_t bridge_latlngs_to_cells(const double *lat, const double *lng, int64_t stride,
                                           double unit, int64_t n, int32_t res, uint64_t *out);
BRIDGE_API int64_t bridge_cells_to_latlngs(const uint64_t *cells, int64_t n, double unit,
                                           double *lat, double *lng, int64_t stride);
/* out: 10 (lat, lng) pairs a cell, unused ones NaN; counts: vertices of each. */
BRIDGE_API int64_t bridge_cells_to_boundaries(const uint64_t *cells, int64_t n, double unit,
                                              double *out, int32_t *counts);
BRIDGE_API int64_t bridge_cells_to_parents(const uint64_t *cells, int64_t n, int32_t res,
                                           uint64_t *out);
BRIDGE_API int64_t bridge_cells_to_center_children(const uint64_t *cells, int64_t n, int32_t res,
                                                   uint64_t *out);
BRIDGE_API int64_t bridge_are_valid_cells(const uint64_t *cells, int64_t n, uint8_t *out);
BRIDGE_API int64_t bridge_get_resolutions(const uint64_t *cells, int64_t n, int32_t *out);
BRIDGE_API int64_t bridge_cell_areas(const uint64_t *cells, int64_t n, double unit, double *out);
/* Disks one after the other, disk i from offsets[i] to offsets[i + 1] (n + 1 of these); what is
 * no cell gets an empty disk. The result is about `out`, as for other lists. */
BRIDGE_API int64_t bridge_grid_disks(const uint64_t *cells, int64_t n, int32_t k, uint64_t *out,
                                     int64_t *offsets, int64_t max_len);
BRIDGE_API int64_t bridge_grid_distances(const uint64_t *a, const uint64_t *b, int64_t n,
                                         int64_t *out);

BRIDGE_API int64_t bridge_planes_to_latlngs(int32_t face, const double *u, const double *v,
                                            int64_t n, double *lat, double *lng);
BRIDGE_API int64_t bridge_latlngs_to_planes(int32_t face, const double *lat, const double *lng,
                                            int64_t n, double *u, double *v);

/* Rasters of a frame that lies in a face's plane. Pixel (x, y) has its centre at half-integers,
 * y points down; the frame's longer side is `span` plane units, its centre at (u0, v0); it is
 * turned by `rotation` radians counter-clockwise. Lengths in px, row-major output. */

/* The cell of every pixel. Needs width * height items. */
BRIDGE_API int64_t bridge_frame_cells(int32_t face, double u0, double v0, int64_t width,
                                      int64_t height, double span, double rotation, int32_t res,
                                      uint64_t *out, int64_t max_len);

/* Weights of hexagons at the points (x0 + (i + 0.5) step, y0 + (j + 0.5) step): four (cell,
 * weight) pairs a point, largest weight first, unused ones (-1, 0). Hexagons have their centres
 * at (cx, cy), the given inradius, an edge normal at angle theta. The weight is
 * smoothstep(distance to the outline / overlap + 1/2), inside positive, normalised to sum 1; with
 * overlap 0 the nearest centre has it all. A point that no hexagon reaches goes to the nearest
 * centre. Needs 4 * columns * rows items in each output. E_DOMAIN unless there are cells, all
 * numbers are finite, centres within 1e12 and 0 <= overlap <= 2 * inradius. Thousands of cells
 * are fine: a point looks at those nearby. */
BRIDGE_API int64_t bridge_hex_weights(int64_t columns, int64_t rows, double x0, double y0,
                                      double step, int64_t n_cells, const double *cx,
                                      const double *cy, double inradius, double theta,
                                      double overlap, int32_t *index, float *weight,
                                      int64_t max_len);

/* One tile into a running weighted mean: out += alpha * (tile - out), exact in three ways: alpha 0
 * (or NaN) reads nothing (what lies there may be NaN), alpha 1 or more copies, and equal numbers stay
 * as they are. counts: frames, planes, rows, columns, inner, others. Point (f, p, r, c, i) of `out` is
 * at f * out_strides[0] + p * out_strides[1] + r * out_strides[2] + c * inner + i, of `tile`
 * likewise. With shares_len 0 the alpha of a point is its weight, at r * weight_stride + c. Else it is
 * own / (before + own) with own = s[0] * weight and before = the sum of s[k + 1] * seen[k] over the
 * `others` planes that have been blended there already, where s is shares + f * (others + 1) and
 * seen[k] lies at k * seen_strides[0] + r * seen_strides[1] + c. Lengths and strides in items,
 * strides >= 0. Returns 0; E_DOMAIN for a negative count or stride, E_MEMORY_BOUNDS when an array
 * is too short: then nothing was written. */
BRIDGE_API int64_t bridge_blend_tile(const int64_t *counts, float *out, int64_t out_len,
                                     const int64_t *out_strides, const float *tile,
                                     int64_t tile_len, const int64_t *tile_strides,
                                     const float *weight, int64_t weight_len,
                                     int64_t weight_stride, const float *seen, int64_t seen_len,
                                     const int64_t *seen_strides, const float *shares,
                                     int64_t shares_len);
#endif
