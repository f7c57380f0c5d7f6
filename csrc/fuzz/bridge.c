/* bridge.c - every function of h3_bridge.h. */

#include "fuzz.h"

/* A ring's answer is small while the disk inside is large: time, not room, is its limit. */
static int32_t takeRingSteps(Input *in) {
    int32_t k = takeInt(in);
    return k > 200 && k < 1 << 24 ? k % 200 : k;
}

/* Room for an answer: often enough, sometimes none or too little. */
static int64_t takeRoom(Input *in) {
    uint8_t kind = take8(in);
    return kind < 32 ? 0 : kind < 128 ? takeCount(in, 64) : takeCount(in, MOST);
}

/* The result of a function that fills a list: an error, what was written, or what is needed. */
static void promiseList(int64_t result, const uint64_t *out, int64_t max_len) {
    PROMISE(result > -20);
    if (result > 0) promiseCells(out, result <= max_len ? result : 0);
    for (int64_t i = 0; (result < 0 || result > max_len) && i < max_len; i++) PROMISE(!out[i]);
}

static void promiseCode(int64_t result) { PROMISE(result <= 0 && result > -20); }

static void fuzz_abi_version(Input *in) {
    (void)in;
    PROMISE(bridge_abi_version() == BRIDGE_ABI);
}

static void fuzz_latlng_to_cell(Input *in) {
    double lat = takeNumber(in), lng = takeNumber(in);
    uint64_t out = 0;
    int64_t code = bridge_latlng_to_cell(lat, lng, takeRes(in), &out);
    promiseCode(code);
    PROMISE(code || H3_EXPORT(isValidCell)(out));
}

static void fuzz_cell_to_latlng(Input *in) {
    double *out = ROOM(double, 2);
    int64_t code = bridge_cell_to_latlng(takeIndex(in), out);
    promiseCode(code);
    PROMISE(code || (fabs(out[0]) <= 1.5707963267949 && fabs(out[1]) <= 3.1415926535898));
}

static void fuzz_cell_to_boundary(Input *in) {
    uint64_t cell = takeIndex(in);
    int64_t len = takeCount(in, 24), n = bridge_cell_to_boundary(cell, ROOM(double, len), len);
    PROMISE(n < 0 ? !H3_EXPORT(isValidCell)(cell) : n >= 10 && n <= 20 && n % 2 == 0);
}

static void fuzz_grid_disk(Input *in) {
    uint64_t center = takeIndex(in);
    int32_t k = takeInt(in);
    int64_t len = takeRoom(in);
    uint64_t *out = ROOM(uint64_t, len);
    promiseList(bridge_grid_disk(center, k, out, len), out, len);
}

static void fuzz_grid_disk_distances(Input *in) {
    uint64_t center = takeIndex(in);
    int32_t k = takeInt(in);
    int64_t len = takeRoom(in);
    uint64_t *out = ROOM(uint64_t, len);
    int32_t *distances = ROOM(int32_t, len);
    int64_t n = bridge_grid_disk_distances(center, k, out, distances, len);
    promiseList(n, out, len);
    for (int64_t i = 0; n <= len && i < n; i++)
        PROMISE(distances[i] >= (i ? distances[i - 1] : 0) && distances[i] <= k);
}

static void fuzz_grid_ring(Input *in) {
    uint64_t center = takeIndex(in);
    int32_t k = takeRingSteps(in);
    int64_t len = takeRoom(in);
    uint64_t *out = ROOM(uint64_t, len);
    promiseList(bridge_grid_ring(center, k, out, len), out, len);
}

static void fuzz_grid_distance(Input *in) {
    uint64_t a = takeIndex(in), b = takeNear(in, a);
    int64_t there = -1, back = -1;
    int64_t code = bridge_grid_distance(a, b, &there);
    promiseCode(code);
    PROMISE(code == bridge_grid_distance(b, a, &back) || code == -E_CELL_INVALID);
    PROMISE(code || (there >= 0 && there == back));
}

static void fuzz_are_neighbor_cells(Input *in) {
    uint64_t a = takeIndex(in);
    int32_t out = -1;
    int64_t code = bridge_are_neighbor_cells(a, takeNear(in, a), &out);
    promiseCode(code);
    PROMISE(code || out == 0 || out == 1);
}

static void fuzz_cell_to_parent(Input *in) {
    uint64_t cell = takeIndex(in), out = 0;
    int64_t code = bridge_cell_to_parent(cell, takeRes(in), &out);
    promiseCode(code);
    PROMISE(code || H3_EXPORT(isValidCell)(out));
}

static void fuzz_cell_to_center_child(Input *in) {
    uint64_t cell = takeIndex(in), out = 0;
    int64_t code = bridge_cell_to_center_child(cell, takeRes(in), &out);
    promiseCode(code);
    PROMISE(code || H3_EXPORT(isValidCell)(out));
}

static void fuzz_cell_to_children_size(Input *in) {
    uint64_t cell = takeIndex(in);
    int64_t out = 0, code = bridge_cell_to_children_size(cell, takeRes(in), &out);
    promiseCode(code);
    PROMISE(code || out > 0);
}

static void fuzz_cell_to_children(Input *in) {
    uint64_t cell = takeIndex(in);
    int res = takeRes(in);
    int64_t len = takeRoom(in);
    uint64_t *out = ROOM(uint64_t, len);
    promiseList(bridge_cell_to_children(cell, res, out, len), out, len);
}

static void fuzz_is_valid_cell(Input *in) {
    int32_t valid = bridge_is_valid_cell(takeIndex(in));
    PROMISE(valid == 0 || valid == 1);
}

static void fuzz_is_pentagon(Input *in) {
    uint64_t cell = takeIndex(in);
    PROMISE((bridge_is_pentagon(cell) < 0) == !bridge_is_valid_cell(cell));
}

static void fuzz_get_resolution(Input *in) {
    int32_t res = bridge_get_resolution(takeIndex(in));
    PROMISE(res > -20 && res <= 15);
}

static void fuzz_get_base_cell_number(Input *in) {
    int32_t base = bridge_get_base_cell_number(takeIndex(in));
    PROMISE(base > -20 && base < 122);
}

static void fuzz_get_pentagons(Input *in) {
    int res = takeRes(in);
    int64_t len = takeCount(in, 14);
    uint64_t *out = ROOM(uint64_t, len);
    promiseList(bridge_get_pentagons(res, out, len), out, len);
}

static void fuzz_get_res0_cells(Input *in) {
    int64_t len = takeCount(in, 124);
    uint64_t *out = ROOM(uint64_t, len);
    promiseList(bridge_get_res0_cells(out, len), out, len);
}

static void fuzz_string_to_cell(Input *in) {
    int64_t n = takeCount(in, 20);
    char *text = ROOM(char, n + 1);
    for (int64_t i = 0; i < n; i++) {
        uint8_t c = take8(in);
        text[i] = (char)(c < 220 ? "0123456789abcdefABCDEF"[c % 22] : c);
    }
    uint64_t out;
    promiseCode(bridge_string_to_cell(text, &out));
}

static void fuzz_cell_to_string(Input *in) {
    uint64_t cell = takeIndex(in), back = 0;
    int64_t len = takeCount(in, 20);
    char *text = ROOM(char, len);
    int64_t n = bridge_cell_to_string(cell, text, len);
    PROMISE(n > -20 && n <= 17);
    if (n > 0 && n < len) PROMISE(bridge_string_to_cell(text, &back) == 0 && back == cell);
}

static void fuzz_plane_to_latlng(Input *in) {
    int face = takeInt(in);
    double u = takeNumber(in), v = takeNumber(in), *out = ROOM(double, 2);
    int64_t code = bridge_plane_to_latlng(face, u, v, out);
    promiseCode(code);
    PROMISE(code || (out[0] == out[0] && out[1] == out[1]));
}

static void fuzz_latlng_to_plane(Input *in) {
    int face = takeInt(in);
    double lat = takeNumber(in), lng = takeNumber(in);
    promiseCode(bridge_latlng_to_plane(face, lat, lng, ROOM(double, 2)));
}

/* ---- levels and texts ---- */

static void fuzz_use_level(Input *in) {
    int32_t level = bridge_use_level(takeInt(in));
    PROMISE(level >= 0 && level <= 2);
}

static void fuzz_describe_error(Input *in) {
    int64_t len = takeCount(in, 80);
    uint32_t error = (uint32_t)takeInt(in);
    char *text = ROOM(char, len);
    int64_t n = bridge_describe_error(error, text, len);
    PROMISE(n > 0 && (n >= len || (int64_t)strlen(text) == n));
}

/* ---- neighbourhoods ---- */

static void fuzz_grid_path(Input *in) {
    uint64_t a = takeIndex(in), b = takeNear(in, a);
    int64_t len = takeRoom(in);
    uint64_t *out = ROOM(uint64_t, len);
    int64_t n = bridge_grid_path(a, b, out, len);
    promiseList(n, out, len);
    PROMISE(n < 1 || n > len || (out[0] == a && out[n - 1] == b));
}

static void fuzz_grid_disk_unsafe(Input *in) {
    uint64_t center = takeIndex(in);
    int32_t k = takeInt(in);
    int64_t len = takeRoom(in);
    uint64_t *out = ROOM(uint64_t, len);
    int32_t *distances = take8(in) & 1 ? ROOM(int32_t, len) : NULL;
    promiseList(bridge_grid_disk_unsafe(center, k, out, distances, len), out, len);
}

static void fuzz_grid_ring_unsafe(Input *in) {
    uint64_t center = takeIndex(in);
    int32_t k = takeRingSteps(in);
    int64_t len = takeRoom(in);
    uint64_t *out = ROOM(uint64_t, len);
    promiseList(bridge_grid_ring_unsafe(center, k, out, len), out, len);
}

static void fuzz_cell_to_local_ij(Input *in) {
    uint64_t origin = takeIndex(in);
    promiseCode(bridge_cell_to_local_ij(origin, takeNear(in, origin), ROOM(int32_t, 2)));
}

static void fuzz_local_ij_to_cell(Input *in) {
    uint64_t origin = takeIndex(in), out = 0;
    int32_t i = takeInt(in), j = takeInt(in);
    int64_t code = bridge_local_ij_to_cell(origin, i, j, &out);
    promiseCode(code);
    PROMISE(code || H3_EXPORT(isValidCell)(out));
}

/* ---- hierarchy and facts ---- */

static void fuzz_cell_to_child_pos(Input *in) {
    int64_t pos = -1;
    uint64_t cell = takeIndex(in);
    int64_t code = bridge_cell_to_child_pos(cell, takeRes(in), &pos);
    promiseCode(code);
    PROMISE(code || pos >= 0);
}

static void fuzz_child_pos_to_cell(Input *in) {
    int64_t pos = take8(in) < 128 ? takeCount(in, 3000) : (int64_t)take64(in);
    uint64_t parent = takeIndex(in), out = 0;
    int64_t code = bridge_child_pos_to_cell(pos, parent, takeRes(in), &out);
    promiseCode(code);
    PROMISE(code || H3_EXPORT(isValidCell)(out));
}

static void fuzz_compact_cells(Input *in) {
    int64_t n = takeCount(in, 40), len = take8(in) % 4 ? n : takeCount(in, 40);
    uint64_t *cells = takeIndexes(in, n), *out = ROOM(uint64_t, len);
    int64_t told = bridge_compact_cells(cells, n, out, len);
    PROMISE(told > -20 && told <= n);
    promiseCells(out, len);
}

static void fuzz_uncompact_cells(Input *in) {
    int64_t n = takeCount(in, 12), len = takeRoom(in);
    uint64_t *cells = takeIndexes(in, n), *out = ROOM(uint64_t, len);
    promiseList(bridge_uncompact_cells(cells, n, takeRes(in), out, len), out, len);
}

static void fuzz_construct_cell(Input *in) {
    int res = takeRes(in), base = takeInt(in), known = res > 0 && res <= 15 ? res : 0;
    int32_t *digits = ROOM(int32_t, known);
    for (int i = 0; i < known; i++) digits[i] = take8(in) < 250 ? take8(in) % 7 : takeInt(in);
    uint64_t out = 0;
    int64_t code = bridge_construct_cell(res, base, digits, &out);
    promiseCode(code);
    PROMISE(code || H3_EXPORT(isValidCell)(out));
}

static void fuzz_get_index_digit(Input *in) {
    uint64_t index = takeIndex(in);
    int32_t digit = bridge_get_index_digit(index, takeRes(in));
    PROMISE(digit > -20 && digit <= 7);
}

static void promiseTruth(int32_t answer) { PROMISE(answer == 0 || answer == 1); }

static void fuzz_is_res_class_iii(Input *in) {
    PROMISE(bridge_is_res_class_iii(takeIndex(in)) <= 1);
}
static void fuzz_is_valid_index(Input *in) { promiseTruth(bridge_is_valid_index(takeIndex(in))); }

static void fuzz_get_num_cells(Input *in) {
    int64_t n = 0, code = bridge_get_num_cells(takeRes(in), &n);
    promiseCode(code);
    PROMISE(code || n >= 122);
}

static void fuzz_get_icosahedron_faces(Input *in) {
    uint64_t cell = takeIndex(in);
    int64_t len = takeCount(in, 6);
    int32_t *out = ROOM(int32_t, len);
    int64_t n = bridge_get_icosahedron_faces(cell, out, len);
    PROMISE(n > -20 && n <= 5);
    for (int64_t i = 0; n <= len && i < n; i++) PROMISE(out[i] >= 0 && out[i] < 20);
}

/* ---- edges and vertexes ---- */

static void fuzz_is_valid_directed_edge(Input *in) {
    promiseTruth(bridge_is_valid_directed_edge(takeIndex(in)));
}

static void fuzz_cells_to_directed_edge(Input *in) {
    uint64_t a = takeIndex(in), b = takeNear(in, a), out = 0;
    int64_t code = bridge_cells_to_directed_edge(a, b, &out);
    promiseCode(code);
    PROMISE(code || bridge_is_valid_directed_edge(out));
}

static void fuzz_directed_edge_to_cells(Input *in) {
    uint64_t *out = ROOM(uint64_t, 2);
    int64_t code = bridge_directed_edge_to_cells(takeIndex(in), out);
    promiseCode(code);
    if (!code) promiseCells(out, 2);
}

static void fuzz_origin_to_directed_edges(Input *in) {
    uint64_t cell = takeIndex(in);
    int64_t len = takeCount(in, 7);
    uint64_t *out = ROOM(uint64_t, len);
    int64_t n = bridge_origin_to_directed_edges(cell, out, len);
    PROMISE(n < 0 ? n > -20 : n == 5 || n == 6);
    for (int64_t i = 0; n <= len && i < n; i++) PROMISE(bridge_is_valid_directed_edge(out[i]));
}

static void fuzz_reverse_directed_edge(Input *in) {
    uint64_t out = 0;
    int64_t code = bridge_reverse_directed_edge(takeIndex(in), &out);
    promiseCode(code);
    PROMISE(code || bridge_is_valid_directed_edge(out));
}

static void fuzz_directed_edge_to_boundary(Input *in) {
    uint64_t edge = takeIndex(in);
    int64_t len = takeCount(in, 24);
    int64_t n = bridge_directed_edge_to_boundary(edge, ROOM(double, len), len);
    PROMISE(n < 0 ? n > -20 : n >= 4 && n <= 20 && n % 2 == 0);
}

static void fuzz_is_valid_vertex(Input *in) { promiseTruth(bridge_is_valid_vertex(takeIndex(in))); }

static void fuzz_cell_to_vertex(Input *in) {
    uint64_t cell = takeIndex(in), out = 0;
    int64_t code = bridge_cell_to_vertex(cell, takeInt(in), &out);
    promiseCode(code);
    PROMISE(code || bridge_is_valid_vertex(out));
}

static void fuzz_cell_to_vertexes(Input *in) {
    uint64_t cell = takeIndex(in);
    int64_t len = takeCount(in, 7);
    uint64_t *out = ROOM(uint64_t, len);
    int64_t n = bridge_cell_to_vertexes(cell, out, len);
    PROMISE(n < 0 ? n > -20 : n == 5 || n == 6);
    for (int64_t i = 0; n <= len && i < n; i++) PROMISE(bridge_is_valid_vertex(out[i]));
}

static void fuzz_vertex_to_latlng(Input *in) {
    double *out = ROOM(double, 2);
    int64_t code = bridge_vertex_to_latlng(takeIndex(in), out);
    promiseCode(code);
    PROMISE(code || (fabs(out[0]) <= 1.5707963267949 && fabs(out[1]) <= 3.1415926535898));
}

/* ---- measures ---- */

static void fuzz_cell_area(Input *in) {
    double out = -1.0;
    int64_t code = bridge_cell_area(takeIndex(in), &out);
    promiseCode(code);
    PROMISE(code || out > 0.0);
}

static void fuzz_edge_length(Input *in) {
    double out = -1.0;
    int64_t code = bridge_edge_length(takeIndex(in), &out);
    promiseCode(code);
    PROMISE(code || out > 0.0);
}

static void fuzz_average_hexagon_area(Input *in) {
    double out = -1.0;
    int64_t code = bridge_average_hexagon_area(takeRes(in), &out);
    promiseCode(code);
    PROMISE(code || out > 0.0);
}

static void fuzz_average_edge_length(Input *in) {
    double out = -1.0;
    int64_t code = bridge_average_edge_length(takeRes(in), &out);
    promiseCode(code);
    PROMISE(code || out > 0.0);
}

static void fuzz_great_circle_distance(Input *in) {
    double a = takeNumber(in), b = takeNumber(in), c = takeNumber(in), d = takeNumber(in);
    double way = bridge_great_circle_distance(a, b, c, d);
    PROMISE(way != way || (way >= 0.0 && way <= 3.1415926535898));
}

/* ---- arrays ---- */

static void promiseFailed(int64_t failed, int64_t n) { PROMISE(failed > -20 && failed <= n); }

static int64_t takeMany(Input *in) { return takeCount(in, 40); }

static void takeLevel(Input *in) { bridge_use_level(take8(in) % 4); }

static double takeUnit(Input *in) { return take8(in) < 200 ? 1.0 : takeNumber(in); }

/* Items of an array with every stride-th in use. */
static int64_t spread(int64_t n, int64_t stride) { return n ? (n - 1) * stride + 1 : 0; }

static void fuzz_latlngs_to_cells(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in), stride = 1 + take8(in) % 3;
    double *lat = takeNumbers(in, spread(n, stride)), *lng = takeNumbers(in, spread(n, stride));
    double unit = takeUnit(in);
    uint64_t *out = ROOM(uint64_t, n);
    promiseFailed(bridge_latlngs_to_cells(lat, lng, stride, unit, n, takeRes(in), out), n);
    promiseCells(out, n);
}

static void fuzz_cells_to_latlngs(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in), stride = 1 + take8(in) % 3;
    uint64_t *cells = takeIndexes(in, n);
    double *lat = ROOM(double, spread(n, stride)), *lng = ROOM(double, spread(n, stride));
    promiseFailed(bridge_cells_to_latlngs(cells, n, takeUnit(in), lat, lng, stride), n);
}

static void fuzz_cells_to_boundaries(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in);
    uint64_t *cells = takeIndexes(in, n);
    int32_t *counts = ROOM(int32_t, n);
    double *out = ROOM(double, 20 * n);
    promiseFailed(bridge_cells_to_boundaries(cells, n, takeUnit(in), out, counts), n);
    for (int64_t i = 0; i < n; i++) PROMISE(counts[i] >= -1 && counts[i] <= 10);
}

static void relatives(Input *in, int64_t (*of)(const uint64_t *, int64_t, int32_t, uint64_t *)) {
    takeLevel(in);
    int64_t n = takeMany(in);
    uint64_t *cells = takeIndexes(in, n), *out = ROOM(uint64_t, n);
    promiseFailed(of(cells, n, takeRes(in), out), n);
    promiseCells(out, n);
}

static void fuzz_cells_to_parents(Input *in) { relatives(in, bridge_cells_to_parents); }
static void fuzz_cells_to_center_children(Input *in) {
    relatives(in, bridge_cells_to_center_children);
}

static void fuzz_cell_areas(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in);
    uint64_t *cells = takeIndexes(in, n);
    promiseFailed(bridge_cell_areas(cells, n, takeUnit(in), ROOM(double, n)), n);
}

static void fuzz_are_valid_cells(Input *in) {
    int64_t n = takeMany(in);
    uint64_t *cells = takeIndexes(in, n);
    uint8_t *out = ROOM(uint8_t, n);
    promiseFailed(bridge_are_valid_cells(cells, n, out), n);
    for (int64_t i = 0; i < n; i++) PROMISE(out[i] == bridge_is_valid_cell(cells[i]));
}

static void fuzz_get_resolutions(Input *in) {
    int64_t n = takeMany(in);
    uint64_t *cells = takeIndexes(in, n);
    promiseFailed(bridge_get_resolutions(cells, n, ROOM(int32_t, n)), n);
}

static void fuzz_grid_disks(Input *in) {
    int64_t n = takeCount(in, 12), len = takeRoom(in);
    int32_t k = takeInt(in);
    uint64_t *cells = takeIndexes(in, n), *out = ROOM(uint64_t, len);
    int64_t *offsets = ROOM(int64_t, n + 1);
    int64_t told = bridge_grid_disks(cells, n, k, out, offsets, len);
    promiseList(told, out, len);
    if (told < 0 || told > len) return;
    PROMISE(offsets[0] == 0 && offsets[n] == told);
    for (int64_t i = 0; i < n; i++) PROMISE(offsets[i] <= offsets[i + 1]);
}

static void fuzz_grid_distances(Input *in) {
    int64_t n = takeMany(in);
    uint64_t *a = takeIndexes(in, n), *b = takeIndexes(in, n);
    promiseFailed(bridge_grid_distances(a, b, n, ROOM(int64_t, n)), n);
}

static void fuzz_planes_to_latlngs(Input *in) {
    int64_t n = takeMany(in);
    int face = takeInt(in);
    double *u = takeNumbers(in, n), *v = takeNumbers(in, n);
    promiseFailed(bridge_planes_to_latlngs(face, u, v, n, ROOM(double, n), ROOM(double, n)), n);
}

static void fuzz_latlngs_to_planes(Input *in) {
    int64_t n = takeMany(in);
    int face = takeInt(in);
    double *lat = takeNumbers(in, n), *lng = takeNumbers(in, n);
    promiseFailed(bridge_latlngs_to_planes(face, lat, lng, n, ROOM(double, n), ROOM(double, n)), n);
}

/* ---- rasters ---- */

/* A side of a raster: small, or nonsense. */
static int64_t takeSide(Input *in) {
    uint8_t kind = take8(in);
    return kind < 240 ? kind % 70 : (int64_t)take64(in);
}

static void fuzz_frame_cells(Input *in) {
    int face = takeInt(in), res = takeRes(in);
    double u = takeNumber(in), v = takeNumber(in), span = takeNumber(in), turn = takeNumber(in);
    int64_t width = takeSide(in), height = takeSide(in), len = takeRoom(in);
    if (take8(in) & 1) face = 7, u *= 0.1, v *= 0.1, span = fabs(span) * 0.1; /* often on the face */
    uint64_t *out = ROOM(uint64_t, len);
    int64_t n = bridge_frame_cells(face, u, v, width, height, span, turn, res, out, len);
    promiseList(n, out, len);
    PROMISE(n <= 0 || n == width * height);
}

static void fuzz_hex_weights(Input *in) {
    int64_t columns = takeSide(in), rows = takeSide(in), cells = takeCount(in, 40);
    int64_t len = takeRoom(in), told = take8(in) < 250 ? cells : -1;
    double x0 = takeNumber(in), y0 = takeNumber(in), step = takeNumber(in);
    double inradius = takeNumber(in), theta = takeNumber(in), overlap = takeNumber(in);
    if (take8(in) & 1) inradius = fabs(inradius) + 0.1, overlap = fmod(fabs(overlap), inradius);
    double *cx = takeNumbers(in, cells), *cy = takeNumbers(in, cells);
    int32_t *index = ROOM(int32_t, len);
    float *weight = ROOM(float, len);
    int64_t n = bridge_hex_weights(columns, rows, x0, y0, step, told, cx, cy, inradius, theta,
                                   overlap, index, weight, len);
    PROMISE(n > -20 && (n <= 0 || n == 4 * columns * rows));
    for (int64_t i = 0; n <= len && i < n; i += 4) {
        float sum = 0.0f;
        for (int k = 0; k < 4; k++) {
            PROMISE(index[i + k] >= -1 && index[i + k] < cells);
            PROMISE(weight[i + k] >= 0.0f && (k == 0 || weight[i + k] <= weight[i + k - 1]));
            sum += weight[i + k];
        }
        PROMISE(fabsf(sum - 1.0f) < 1e-5f);
    }
}

static void fuzz_blend_tile(Input *in) {
    int64_t counts[6], strides[8];
    for (int i = 0; i < 6; i++) counts[i] = takeInt(in) % 12;
    for (int i = 0; i < 8; i++) strides[i] = takeInt(in) % 60;
    int64_t len[5];
    for (int i = 0; i < 5; i++) len[i] = take8(in) % 8 ? takeCount(in, 2000) : 0;
    float *array[5];
    for (int i = 0; i < 5; i++) {
        array[i] = ROOM(float, len[i]);
        for (int64_t k = 0; k < len[i] && in->at < in->end; k++) array[i][k] = (float)takeNumber(in);
    }
    int64_t code = bridge_blend_tile(counts, array[0], len[0], strides, array[1], len[1],
                                     strides + 3, array[2], len[2], strides[6], array[3], len[3],
                                     strides + 5, array[4], len[4]);
    promiseCode(code);
}

#define ENTRY(name) {"bridge_" #name, fuzz_##name}
const Named bridgeEntries[] = {
    ENTRY(abi_version), ENTRY(latlng_to_cell), ENTRY(cell_to_latlng), ENTRY(cell_to_boundary),
    ENTRY(grid_disk), ENTRY(grid_disk_distances), ENTRY(grid_ring), ENTRY(grid_distance),
    ENTRY(are_neighbor_cells), ENTRY(cell_to_parent), ENTRY(cell_to_center_child),
    ENTRY(cell_to_children_size), ENTRY(cell_to_children), ENTRY(is_valid_cell),
    ENTRY(is_pentagon), ENTRY(get_resolution), ENTRY(get_base_cell_number),
    ENTRY(get_pentagons), ENTRY(get_res0_cells), ENTRY(string_to_cell), ENTRY(cell_to_string),
    ENTRY(plane_to_latlng), ENTRY(latlng_to_plane), ENTRY(latlngs_to_cells),
    ENTRY(cells_to_latlngs), ENTRY(cells_to_boundaries), ENTRY(cells_to_parents),
    ENTRY(are_valid_cells), ENTRY(get_resolutions), ENTRY(grid_disks), ENTRY(grid_distances),
    ENTRY(planes_to_latlngs), ENTRY(latlngs_to_planes), ENTRY(frame_cells), ENTRY(hex_weights),
    ENTRY(blend_tile), ENTRY(use_level), ENTRY(describe_error), ENTRY(grid_path),
    ENTRY(grid_disk_unsafe), ENTRY(grid_ring_unsafe), ENTRY(cell_to_local_ij),
    ENTRY(local_ij_to_cell), ENTRY(cell_to_child_pos), ENTRY(child_pos_to_cell),
    ENTRY(compact_cells), ENTRY(uncompact_cells), ENTRY(construct_cell), ENTRY(get_index_digit),
    ENTRY(is_res_class_iii), ENTRY(is_valid_index), ENTRY(get_num_cells),
    ENTRY(get_icosahedron_faces), ENTRY(is_valid_directed_edge), ENTRY(cells_to_directed_edge),
    ENTRY(directed_edge_to_cells), ENTRY(origin_to_directed_edges),
    ENTRY(reverse_directed_edge), ENTRY(directed_edge_to_boundary), ENTRY(is_valid_vertex),
    ENTRY(cell_to_vertex), ENTRY(cell_to_vertexes), ENTRY(vertex_to_latlng), ENTRY(cell_area),
    ENTRY(edge_length), ENTRY(average_hexagon_area), ENTRY(average_edge_length),
    ENTRY(great_circle_distance), ENTRY(cells_to_center_children), ENTRY(cell_areas),
    {NULL, NULL},
};
