/* h3_bridge.c - see h3_bridge.h for the conventions. */

#include "h3_bridge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "h3_bulk.h"

#define FINITE(x) ((x) - (x) == 0.0) /* isfinite is a library call in places */
#define FAIL(error) (-(int64_t)(error))

/* Items of a width x height raster with `each` items a point; -E_DOMAIN when it cannot be. */
static int64_t rasterSize(int64_t width, int64_t height, int64_t each) {
    if (width <= 0 || height <= 0 || width > INT64_C(1) << 24 || height > INT64_C(1) << 24)
        return FAIL(E_DOMAIN);
    return width * height * each;
}

int32_t bridge_abi_version(void) { return BRIDGE_ABI; }

int64_t bridge_latlng_to_cell(double lat, double lng, int32_t res, uint64_t *out) {
    LatLng g = {lat, lng};
    return FAIL(H3_EXPORT(latLngToCell)(&g, res, out));
}

int64_t bridge_cell_to_latlng(uint64_t cell, double *out2) {
    LatLng g;
    H3Error err = H3_EXPORT(cellToLatLng)(cell, &g);
    if (err) return FAIL(err);
    out2[0] = g.lat;
    out2[1] = g.lng;
    return 0;
}

/* The corners of an outline as pairs. */
static int64_t corners(const CellBoundary *b, double *out, int64_t max_len) {
    int64_t needed = 2 * (int64_t)b->numVerts;
    for (int i = 0; needed <= max_len && i < b->numVerts; i++) {
        out[2 * i] = b->verts[i].lat;
        out[2 * i + 1] = b->verts[i].lng;
    }
    return needed;
}

int64_t bridge_cell_to_boundary(uint64_t cell, double *out, int64_t max_len) {
    CellBoundary b;
    H3Error err = H3_EXPORT(cellToBoundary)(cell, &b);
    if (err) return FAIL(err);
    return corners(&b, out, max_len);
}

/* Steps after which a disk holds every cell: the far side is 10 sqrt(7)^res steps away. */
static int32_t farthest(int res) {
    int32_t steps = res & 1 ? 29 : 11;
    for (int r = 2; r <= res; r += 2) steps *= 7;
    return steps;
}

/* Room for a disk; *k is brought down to what there is, so that absurd ones cost nothing. */
static int64_t diskRoom(uint64_t center, int32_t *k) {
    int64_t room;
    if (*k < 0) return FAIL(E_DOMAIN);
    if (!H3_EXPORT(isValidCell)(center)) return FAIL(E_CELL_INVALID);
    int32_t far = farthest(H3_EXPORT(getResolution)(center));
    if (*k > far) *k = far;
    return H3_EXPORT(maxGridDiskSize)(*k, &room) ? FAIL(E_DOMAIN) : room;
}

static int64_t filled(const uint64_t *cells, int64_t n) {
    while (n > 0 && !cells[n - 1]) n--;
    return n;
}

int64_t bridge_grid_disk_distances(uint64_t center, int32_t k, uint64_t *out, int32_t *distances,
                                   int64_t max_len) {
    int64_t room = diskRoom(center, &k);
    if (room < 0 || room > max_len) return room;
    H3Error err = H3_EXPORT(gridDiskDistances)(center, k, out, distances);
    return err ? FAIL(err) : filled(out, room);
}

int64_t bridge_grid_disk(uint64_t center, int32_t k, uint64_t *out, int64_t max_len) {
    return bridge_grid_disk_distances(center, k, out, NULL, max_len);
}

int64_t bridge_grid_ring(uint64_t center, int32_t k, uint64_t *out, int64_t max_len) {
    int32_t reached = k;
    int64_t room = diskRoom(center, &reached);
    if (room < 0) return room;
    if (reached < k) return 0; /* beyond the far side */
    if (H3_EXPORT(maxGridRingSize)(k, &room)) return FAIL(E_DOMAIN);
    if (room > max_len) return room;
    H3Error err = H3_EXPORT(gridRing)(center, k, out);
    return err ? FAIL(err) : filled(out, room);
}

int64_t bridge_grid_distance(uint64_t a, uint64_t b, int64_t *out) {
    return FAIL(H3_EXPORT(gridDistance)(a, b, out));
}

int64_t bridge_are_neighbor_cells(uint64_t a, uint64_t b, int32_t *out) {
    int yes = 0;
    H3Error err = H3_EXPORT(areNeighborCells)(a, b, &yes);
    if (!err) *out = yes;
    return FAIL(err);
}

int64_t bridge_cell_to_parent(uint64_t cell, int32_t res, uint64_t *out) {
    return FAIL(H3_EXPORT(cellToParent)(cell, res, out));
}

int64_t bridge_cell_to_center_child(uint64_t cell, int32_t res, uint64_t *out) {
    return FAIL(H3_EXPORT(cellToCenterChild)(cell, res, out));
}

int64_t bridge_cell_to_children_size(uint64_t cell, int32_t res, int64_t *out) {
    return FAIL(H3_EXPORT(cellToChildrenSize)(cell, res, out));
}

int64_t bridge_cell_to_children(uint64_t cell, int32_t res, uint64_t *out, int64_t max_len) {
    int64_t needed;
    H3Error err = H3_EXPORT(cellToChildrenSize)(cell, res, &needed);
    if (err) return FAIL(err);
    if (needed <= max_len) err = H3_EXPORT(cellToChildren)(cell, res, out);
    return err ? FAIL(err) : needed;
}

int32_t bridge_is_valid_cell(uint64_t cell) { return H3_EXPORT(isValidCell)(cell); }

static int32_t fact(uint64_t cell, int (*of)(H3Index)) {
    return H3_EXPORT(isValidCell)(cell) ? of(cell) : -(int32_t)E_CELL_INVALID;
}

int32_t bridge_is_pentagon(uint64_t cell) { return fact(cell, H3_EXPORT(isPentagon)); }
int32_t bridge_get_resolution(uint64_t cell) { return fact(cell, H3_EXPORT(getResolution)); }
int32_t bridge_get_base_cell_number(uint64_t cell) {
    return fact(cell, H3_EXPORT(getBaseCellNumber));
}

int64_t bridge_get_pentagons(int32_t res, uint64_t *out, int64_t max_len) {
    if (res < 0 || res > MAX_H3_RES) return FAIL(E_RES_DOMAIN);
    if (max_len >= 12) H3_EXPORT(getPentagons)(res, out);
    return 12;
}

int64_t bridge_get_res0_cells(uint64_t *out, int64_t max_len) {
    if (max_len >= NUM_BASE_CELLS) H3_EXPORT(getRes0Cells)(out);
    return NUM_BASE_CELLS;
}

int64_t bridge_string_to_cell(const char *text, uint64_t *out) {
    return FAIL(H3_EXPORT(stringToH3)(text, out));
}

int64_t bridge_cell_to_string(uint64_t cell, char *out, int64_t max_len) {
    if (max_len < 17) return 17;
    H3_EXPORT(h3ToString)(cell, out, 17);
    return (int64_t)strlen(out);
}

int64_t bridge_plane_to_latlng(int32_t face, double u, double v, double *out2) {
    LatLng g;
    H3Error err = H3_EXPORT(planeToLatLng)(face, u, v, &g);
    if (err) return FAIL(err);
    out2[0] = g.lat;
    out2[1] = g.lng;
    return 0;
}

int64_t bridge_latlng_to_plane(int32_t face, double lat, double lng, double *out2) {
    LatLng g = {lat, lng};
    return FAIL(H3_EXPORT(latLngToPlane)(face, &g, &out2[0], &out2[1]));
}

/* A list that a function of h3.h writes into a buffer of its own; zeros at its end are room only. */
static int64_t given(const H3Index *cells, int64_t n, uint64_t *out, int64_t max_len) {
    n = filled(cells, n);
    if (n <= max_len) memcpy(out, cells, (size_t)n * sizeof *out);
    return n;
}

int64_t bridge_grid_path(uint64_t a, uint64_t b, uint64_t *out, int64_t max_len) {
    int64_t size;
    H3Error err = H3_EXPORT(gridPathCellsSize)(a, b, &size);
    if (!err && size <= max_len) err = H3_EXPORT(gridPathCells)(a, b, out);
    return err ? FAIL(err) : size;
}

int64_t bridge_grid_disk_unsafe(uint64_t center, int32_t k, uint64_t *out, int32_t *distances,
                                int64_t max_len) {
    int64_t room = diskRoom(center, &k);
    if (room < 0 || room > max_len) return room;
    H3Error err = H3_EXPORT(gridDiskDistancesUnsafe)(center, k, out, distances);
    return err ? FAIL(err) : room;
}

int64_t bridge_grid_ring_unsafe(uint64_t center, int32_t k, uint64_t *out, int64_t max_len) {
    int64_t room = diskRoom(center, &k);
    if (room >= 0 && H3_EXPORT(maxGridRingSize)(k, &room)) return FAIL(E_DOMAIN);
    if (room < 0 || room > max_len) return room;
    H3Error err = H3_EXPORT(gridRingUnsafe)(center, k, out);
    return err ? FAIL(err) : room;
}

int64_t bridge_cell_to_local_ij(uint64_t origin, uint64_t cell, int32_t *out2) {
    CoordIJ ij;
    H3Error err = H3_EXPORT(cellToLocalIj)(origin, cell, 0, &ij);
    if (err) return FAIL(err);
    out2[0] = ij.i;
    out2[1] = ij.j;
    return 0;
}

int64_t bridge_local_ij_to_cell(uint64_t origin, int32_t i, int32_t j, uint64_t *out) {
    CoordIJ ij = {i, j};
    return FAIL(H3_EXPORT(localIjToCell)(origin, &ij, 0, out));
}

int64_t bridge_cell_to_child_pos(uint64_t child, int32_t res, int64_t *out) {
    return FAIL(H3_EXPORT(cellToChildPos)(child, res, out));
}

int64_t bridge_child_pos_to_cell(int64_t pos, uint64_t parent, int32_t res, uint64_t *out) {
    return FAIL(H3_EXPORT(childPosToCell)(pos, parent, res, out));
}

int64_t bridge_compact_cells(const uint64_t *cells, int64_t n, uint64_t *out, int64_t max_len) {
    if (n < 0) return FAIL(E_DOMAIN);
    if (n > max_len) return n;
    H3Error err = H3_EXPORT(compactCells)(cells, out, n);
    return err ? FAIL(err) : filled(out, n);
}

int64_t bridge_uncompact_cells(const uint64_t *cells, int64_t n, int32_t res, uint64_t *out,
                               int64_t max_len) {
    int64_t size;
    H3Error err = H3_EXPORT(uncompactCellsSize)(cells, n, res, &size);
    if (!err && size <= max_len) err = H3_EXPORT(uncompactCells)(cells, n, out, size, res);
    return err ? FAIL(err) : size;
}

int64_t bridge_construct_cell(int32_t res, int32_t base, const int32_t *digits, uint64_t *out) {
    return FAIL(H3_EXPORT(constructCell)(res, base, digits, out));
}

int32_t bridge_get_index_digit(uint64_t index, int32_t res) {
    int digit = 0;
    H3Error err = H3_EXPORT(getIndexDigit)(index, res, &digit);
    return err ? -(int32_t)err : digit;
}

int32_t bridge_is_res_class_iii(uint64_t cell) { return fact(cell, H3_EXPORT(isResClassIII)); }
int32_t bridge_is_valid_index(uint64_t h) { return H3_EXPORT(isValidIndex)(h); }
int32_t bridge_is_valid_directed_edge(uint64_t h) { return H3_EXPORT(isValidDirectedEdge)(h); }
int32_t bridge_is_valid_vertex(uint64_t h) { return H3_EXPORT(isValidVertex)(h); }

int64_t bridge_get_num_cells(int32_t res, int64_t *out) {
    return FAIL(H3_EXPORT(getNumCells)(res, out));
}

int64_t bridge_get_icosahedron_faces(uint64_t cell, int32_t *out, int64_t max_len) {
    int faces[5], n;
    H3Error err = H3_EXPORT(maxFaceCount)(cell, &n);
    if (!err) err = H3_EXPORT(getIcosahedronFaces)(cell, faces);
    if (err) return FAIL(err);
    while (faces[n - 1] < 0) n--;
    for (int i = 0; n <= max_len && i < n; i++) out[i] = faces[i];
    return n;
}

int64_t bridge_cells_to_directed_edge(uint64_t origin, uint64_t destination, uint64_t *out) {
    return FAIL(H3_EXPORT(cellsToDirectedEdge)(origin, destination, out));
}

int64_t bridge_directed_edge_to_cells(uint64_t edge, uint64_t *out2) {
    return FAIL(H3_EXPORT(directedEdgeToCells)(edge, out2));
}

int64_t bridge_origin_to_directed_edges(uint64_t origin, uint64_t *out, int64_t max_len) {
    H3Index edges[6];
    H3Error err = H3_EXPORT(originToDirectedEdges)(origin, edges);
    if (err) return FAIL(err);
    int none = edges[0] == H3_NULL; /* of a pentagon */
    return given(edges + none, 6 - none, out, max_len);
}

int64_t bridge_reverse_directed_edge(uint64_t edge, uint64_t *out) {
    return FAIL(H3_EXPORT(reverseDirectedEdge)(edge, out));
}

int64_t bridge_directed_edge_to_boundary(uint64_t edge, double *out, int64_t max_len) {
    CellBoundary b;
    H3Error err = H3_EXPORT(directedEdgeToBoundary)(edge, &b);
    return err ? FAIL(err) : corners(&b, out, max_len);
}

int64_t bridge_cell_to_vertex(uint64_t cell, int32_t number, uint64_t *out) {
    return FAIL(H3_EXPORT(cellToVertex)(cell, number, out));
}

int64_t bridge_cell_to_vertexes(uint64_t cell, uint64_t *out, int64_t max_len) {
    H3Index vertexes[6];
    H3Error err = H3_EXPORT(cellToVertexes)(cell, vertexes);
    return err ? FAIL(err) : given(vertexes, 6, out, max_len);
}

int64_t bridge_vertex_to_latlng(uint64_t vertex, double *out2) {
    LatLng g;
    H3Error err = H3_EXPORT(vertexToLatLng)(vertex, &g);
    if (err) return FAIL(err);
    out2[0] = g.lat;
    out2[1] = g.lng;
    return 0;
}

int64_t bridge_cell_area(uint64_t cell, double *out) {
    return FAIL(H3_EXPORT(cellAreaRads2)(cell, out));
}

int64_t bridge_edge_length(uint64_t edge, double *out) {
    return FAIL(H3_EXPORT(edgeLengthRads)(edge, out));
}

int64_t bridge_average_hexagon_area(int32_t res, double *out) {
    return FAIL(H3_EXPORT(getHexagonAreaAvgKm2)(res, out));
}

int64_t bridge_average_edge_length(int32_t res, double *out) {
    return FAIL(H3_EXPORT(getHexagonEdgeLengthAvgKm)(res, out));
}

double bridge_great_circle_distance(double lat0, double lng0, double lat1, double lng1) {
    LatLng a = {lat0, lng0}, b = {lat1, lng1};
    return H3_EXPORT(greatCircleDistanceRads)(&a, &b);
}

int64_t bridge_describe_error(uint32_t error, char *out, int64_t max_len) {
    const char *text = H3_EXPORT(describeH3Error)(error);
    int64_t n = (int64_t)strlen(text);
    if (n < max_len) memcpy(out, text, (size_t)n + 1);
    return n < max_len ? n : n + 1;
}

int32_t bridge_use_level(int32_t level) { return H3_EXPORT(useSimdLevel)(level); }

/* ---- arrays ---------------------------------------------------------------------------- */

int64_t bridge_latlngs_to_cells(const double *lat, const double *lng, int64_t stride, double unit,
                                int64_t n, int32_t res, uint64_t *out) {
    return H3_EXPORT(latLngsToCells)(lat, lng, stride, unit, n, res, out);
}

int64_t bridge_cells_to_latlngs(const uint64_t *cells, int64_t n, double unit, double *lat,
                                double *lng, int64_t stride) {
    return H3_EXPORT(cellsToLatLngs)(cells, n, unit, lat, lng, stride);
}

int64_t bridge_cells_to_boundaries(const uint64_t *cells, int64_t n, double unit, double *out,
                                   int32_t *counts) {
    return H3_EXPORT(cellsToBoundaries)(cells, n, unit, out, counts);
}

int64_t bridge_cells_to_parents(const uint64_t *cells, int64_t n, int32_t res, uint64_t *out) {
    return H3_EXPORT(cellsToParents)(cells, n, res, out);
}

int64_t bridge_cells_to_center_children(const uint64_t *cells, int64_t n, int32_t res,
                                        uint64_t *out) {
    return H3_EXPORT(cellsToCenterChildren)(cells, n, res, out);
}

int64_t bridge_are_valid_cells(const uint64_t *cells, int64_t n, uint8_t *out) {
    return H3_EXPORT(areValidCells)(cells, n, out);
}

int64_t bridge_get_resolutions(const uint64_t *cells, int64_t n, int32_t *out) {
    return H3_EXPORT(getResolutions)(cells, n, out);
}

int64_t bridge_cell_areas(const uint64_t *cells, int64_t n, double unit, double *out) {
    return H3_EXPORT(cellAreas)(cells, n, unit, out);
}

int64_t bridge_grid_disks(const uint64_t *cells, int64_t n, int32_t k, uint64_t *out,
                          int64_t *offsets, int64_t max_len) {
    int64_t needed = 0;
    int32_t most = 0;
    int64_t each;
    if (n < 0 || H3_EXPORT(maxGridDiskSize)(k, &each)) return FAIL(E_DOMAIN);
    if (n == 0 || each <= max_len / n) return H3_EXPORT(gridDisks)(cells, n, k, out, offsets);
    for (int64_t i = 0; i < n; i++) { /* a k beyond the far side needs less */
        int32_t steps = k;
        int64_t room = diskRoom(cells[i], &steps);
        if (room < 0) continue;
        if (room > INT64_MAX - needed) return FAIL(E_DOMAIN);
        needed += room;
        if (steps > most) most = steps;
    }
    if (needed > max_len) return needed;
    return H3_EXPORT(gridDisks)(cells, n, most, out, offsets);
}

int64_t bridge_grid_distances(const uint64_t *a, const uint64_t *b, int64_t n, int64_t *out) {
    return H3_EXPORT(gridDistances)(a, b, n, out);
}

int64_t bridge_planes_to_latlngs(int32_t face, const double *u, const double *v, int64_t n,
                                 double *lat, double *lng) {
    int64_t failed = 0;
    if (face < 0 || face >= 20) return FAIL(E_DOMAIN);
    for (int64_t i = 0; i < n; i++) {
        LatLng g = {NAN, NAN};
        failed += H3_EXPORT(planeToLatLng)(face, u[i], v[i], &g) != E_SUCCESS;
        lat[i] = g.lat;
        lng[i] = g.lng;
    }
    return failed;
}

int64_t bridge_latlngs_to_planes(int32_t face, const double *lat, const double *lng, int64_t n,
                                 double *u, double *v) {
    int64_t failed = 0;
    if (face < 0 || face >= 20) return FAIL(E_DOMAIN);
    for (int64_t i = 0; i < n; i++) {
        LatLng g = {lat[i], lng[i]};
        u[i] = v[i] = NAN;
        failed += H3_EXPORT(latLngToPlane)(face, &g, &u[i], &v[i]) != E_SUCCESS;
    }
    return failed;
}

/* ---- rasters --------------------------------------------------------------------------- */

#define ROW_PART 128 /* pixels worked on at a time: small frames of stack */

int64_t bridge_frame_cells(int32_t face, double u0, double v0, int64_t width, int64_t height,
                           double span, double rotation, int32_t res, uint64_t *out,
                           int64_t max_len) {
    int64_t needed = rasterSize(width, height, 1);
    if (needed < 0) return needed;
    if (res < 0 || res > MAX_H3_RES) return FAIL(E_RES_DOMAIN);
    if (!FINITE(u0) || !FINITE(v0) || !FINITE(rotation) || !(span > 0.0) || span > 4.0)
        return FAIL(E_DOMAIN);
    if (needed > max_len) return needed;
    double scale = span / (double)(width > height ? width : height);
    double c = cos(rotation), s = sin(rotation), u[ROW_PART], v[ROW_PART];
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x += ROW_PART) {
            int64_t n = width - x < ROW_PART ? width - x : ROW_PART;
            double dv = -((double)y + 0.5 - (double)height / 2.0) * scale;
            for (int64_t i = 0; i < n; i++) {
                double du = ((double)(x + i) + 0.5 - (double)width / 2.0) * scale;
                u[i] = u0 + du * c - dv * s;
                v[i] = v0 + du * s + dv * c;
            }
            H3Error err = H3_EXPORT(planeToCells)(face, u, v, n, res, out + y * width + x);
            if (err) return FAIL(err);
        }
    return needed;
}

typedef struct {
    const double *cx, *cy;
    double inradius, half_edge, normal_x[3], normal_y[3];
} Hexagons;

/* Euclidean distance of a point to the outline of hexagon i, inside positive. */
static double outlineDistance(const Hexagons *h, int32_t i, double x, double y) {
    double across = -1.0, along = 0.0, dx = x - h->cx[i], dy = y - h->cy[i];
    for (int k = 0; k < 3; k++) {
        double p = fabs(dx * h->normal_x[k] + dy * h->normal_y[k]);
        if (p > across) {
            across = p;
            along = fabs(dy * h->normal_x[k] - dx * h->normal_y[k]);
        }
    }
    double out = across - h->inradius, past = along - h->half_edge;
    if (out <= 0.0 || past <= 0.0) return -out;
    return -hypot(out, past);
}

/* Cells by bucket of their centre, so that a point asks its 3 x 3 buckets only. */
typedef struct {
    double left, top, right, bottom, size;
    int64_t columns, rows;
    int32_t *first, *next;
} Buckets;

static int64_t bucketOf(double at, double low, double size, int64_t count) {
    double i = floor((at - low) / size);
    return i < 0.0 ? 0 : i >= (double)count ? count - 1 : (int64_t)i;
}

static int makeBuckets(Buckets *b, int32_t n, const double *cx, const double *cy, double size) {
    b->left = b->right = cx[0];
    b->top = b->bottom = cy[0];
    for (int32_t i = 1; i < n; i++) {
        b->left = fmin(b->left, cx[i]);
        b->top = fmin(b->top, cy[i]);
        b->right = fmax(b->right, cx[i]);
        b->bottom = fmax(b->bottom, cy[i]);
    }
    /* Never more buckets than a few a cell, however far apart the cells are. */
    double wide = b->right - b->left, high = b->bottom - b->top;
    double least = fmax(sqrt(wide * high / (4.0 * n)), fmax(wide, high) / (4.0 * n));
    b->size = fmax(size, least);
    b->columns = (int64_t)(wide / b->size) + 1;
    b->rows = (int64_t)(high / b->size) + 1;
    b->first = malloc((size_t)(b->columns * b->rows) * sizeof *b->first);
    b->next = malloc((size_t)n * sizeof *b->next);
    if (!b->first || !b->next) return 0;
    for (int64_t i = 0; i < b->columns * b->rows; i++) b->first[i] = -1;
    for (int32_t i = n - 1; i >= 0; i--) {
        int64_t at = bucketOf(cy[i], b->top, b->size, b->rows) * b->columns +
                     bucketOf(cx[i], b->left, b->size, b->columns);
        b->next[i] = b->first[at];
        b->first[at] = i;
    }
    return 1;
}

/* Put (cell, weight) among the four largest, larger weights and lower cells first. */
static void keep(int32_t cell, double weight, int32_t index[4], double largest[4]) {
    for (int slot = 0; slot < 4; slot++) {
        if (weight < largest[slot] || (weight == largest[slot] && cell > index[slot] &&
                                       index[slot] >= 0))
            continue;
        for (int j = 3; j > slot; j--) {
            index[j] = index[j - 1];
            largest[j] = largest[j - 1];
        }
        index[slot] = cell;
        largest[slot] = weight;
        return;
    }
}

/* What is known of a point while its surroundings are searched. */
typedef struct {
    double x, y, overlap;
    int32_t *index;
    double *largest;
    int32_t closest; /* cell with the nearest centre so far, or -1 */
    double squared;  /* its distance squared */
} Point;

static void lookAt(Point *p, const Hexagons *h, int32_t i, int near) {
    double dx = p->x - h->cx[i], dy = p->y - h->cy[i], d = dx * dx + dy * dy;
    if (p->closest < 0 || d < p->squared || (d == p->squared && i < p->closest)) {
        p->closest = i;
        p->squared = d;
    }
    if (!near || !(p->overlap > 0.0)) return;
    double t = outlineDistance(h, i, p->x, p->y) / p->overlap + 0.5;
    t = t > 1.0 ? 1.0 : t;
    if (t > 0.0) keep(i, t * t * (3.0 - 2.0 * t), p->index, p->largest);
}

/* Search buckets in growing squares around the point's own. The first two hold every hexagon that
 * reaches it; only for a point that none does, the search goes on until no centre can be nearer. */
static void pointWeights(Point *p, const Hexagons *h, const Buckets *b) {
    int64_t row = bucketOf(p->y, b->top, b->size, b->rows);
    int64_t column = bucketOf(p->x, b->left, b->size, b->columns);
    double aside = fmax(0.0, fmax(b->left - p->x, p->x - b->right));
    double above = fmax(0.0, fmax(b->top - p->y, p->y - b->bottom));
    double outside = aside * aside + above * above; /* of the centres' bounding box, squared */
    for (int64_t ring = 0; ring <= 1 || ring < b->rows || ring < b->columns; ring++) {
        for (int64_t r = row > ring ? row - ring : 0; r <= row + ring && r < b->rows; r++) {
            int64_t step = r == row - ring || r == row + ring || ring == 0 ? 1 : 2 * ring;
            for (int64_t q = column - ring; q <= column + ring; q += step)
                for (int32_t i = q < 0 || q >= b->columns ? -1 : b->first[r * b->columns + q]; i >= 0;
                     i = b->next[i])
                    lookAt(p, h, i, ring <= 1);
        }
        double certain = (double)ring * b->size;
        if (ring >= 1 && (p->index[0] >= 0 || (p->closest >= 0 && p->squared - outside <
                                                                      certain * certain)))
            break;
    }
    if (p->index[0] >= 0) return;
    p->index[0] = p->closest;
    p->largest[0] = 1.0;
}

int64_t bridge_hex_weights(int64_t columns, int64_t rows, double x0, double y0, double step,
                           int64_t n_cells, const double *cx, const double *cy, double inradius,
                           double theta, double overlap, int32_t *index, float *weight,
                           int64_t max_len) {
    int64_t needed = rasterSize(columns, rows, 4);
    if (needed < 0) return needed;
    if (n_cells <= 0 || n_cells > INT32_MAX || !FINITE(x0) || !FINITE(y0) || !FINITE(step) ||
        !FINITE(theta) || !FINITE(inradius) || !(inradius > 1e-12) || !(overlap >= 0.0) ||
        overlap > 2.0 * inradius)
        return FAIL(E_DOMAIN);
    for (int64_t i = 0; i < n_cells; i++)
        if (!(fabs(cx[i]) < 1e12 && fabs(cy[i]) < 1e12)) return FAIL(E_DOMAIN);
    if (needed > max_len) return needed;
    Hexagons h = {cx, cy, inradius, inradius / 1.7320508075688772, {0}, {0}};
    for (int k = 0; k < 3; k++) {
        h.normal_x[k] = cos(theta + k * 1.0471975511965976);
        h.normal_y[k] = sin(theta + k * 1.0471975511965976);
    }
    Buckets b = {0};
    int made = makeBuckets(&b, (int32_t)n_cells, cx, cy, 2.0 * h.half_edge + overlap / 2.0);
    for (int64_t j = 0; made && j < rows; j++)
        for (int64_t i = 0; i < columns; i++, index += 4, weight += 4) {
            double largest[4] = {0.0, 0.0, 0.0, 0.0};
            index[0] = index[1] = index[2] = index[3] = -1;
            Point p = {x0 + ((double)i + 0.5) * step, y0 + ((double)j + 0.5) * step, overlap,
                       index, largest, -1, 0.0};
            pointWeights(&p, &h, &b);
            double sum = largest[0] + largest[1] + largest[2] + largest[3];
            for (int s = 0; s < 4; s++) weight[s] = (float)(largest[s] / sum);
        }
    free(b.first);
    free(b.next);
    return made ? needed : FAIL(E_MEMORY_ALLOC);
}

/* a * b + c without overflow, or -1. */
static int64_t reach(int64_t a, int64_t b, int64_t c) {
    if (a < 0 || b < 0 || c < 0) return -1;
    if (b != 0 && a > (INT64_MAX - c) / b) return -1;
    return a * b + c;
}

/* Items that the last point of a strided block needs, or -1. */
static int64_t extent(const int64_t counts[5], const int64_t strides[3]) {
    int64_t n = reach(counts[3], counts[4], 0);
    for (int k = 0; k < 3; k++) n = reach(counts[k] - 1, strides[k], n);
    return n;
}

/* o += a * (t - o), an alpha an item. The blend is computed before it is chosen, since a compiler
 * makes no vectors of a computation that only some items need. */
#define BLEND_ITEMS(o, t, a, n)                    \
    for (int64_t i = 0; i < n; i++) {              \
        float mixed = o[i] + a[i] * (t[i] - o[i]); \
        o[i] = t[i] == o[i] ? o[i] : mixed;        \
    }

static void blendItems(float *restrict o, const float *restrict t, const float *restrict a,
                       int64_t n) {
    BLEND_ITEMS(o, t, a, n)
}

#if defined(__x86_64__) && defined(__GNUC__)
/* The same bits from vectors twice as wide, which most x86-64 machines have. */
__attribute__((target("avx2"))) static void blendItemsWide(float *restrict o,
                                                           const float *restrict t,
                                                           const float *restrict a, int64_t n) {
    BLEND_ITEMS(o, t, a, n)
}
#define blendItems(o, t, a, n) \
    (H3_EXPORT(simdLevelInUse)() > 0 ? blendItemsWide : blendItems)(o, t, a, n)
#endif

enum { WIDE = 3072 }; /* items of a row worked on at a time; a multiple of 1, 2, 3 and 4 channels */

/* Items [first, end) that are copied, or blended. */
typedef struct {
    int32_t first, end, copy;
} Run;

/* Each of n numbers `inner` times. */
static void spread(float *restrict wide, const float *restrict a, int32_t n, int32_t inner) {
    if (inner == 3) /* colours: a compiler makes vectors of this one */
        for (int32_t i = 0; i < n; i++) wide[3 * i] = wide[3 * i + 1] = wide[3 * i + 2] = a[i];
    else
        for (int32_t i = 0; i < n; i++)
            for (int32_t k = 0; k < inner; k++) wide[i * inner + k] = a[i];
}

/* The runs of n points of `inner` items, at most WIDE items; alpha 0 (or NaN) is in none. `wide`
 * gets the alpha of each item that is blended. */
static int32_t findRuns(const float *a, int32_t n, int32_t inner, Run *runs, float *wide) {
    int32_t count = 0;
    for (int32_t c = 0; c < n;) {
        int32_t first = c;
        if (a[c] >= 1.0f) {
            while (c < n && a[c] >= 1.0f) c++;
            runs[count++] = (Run){first * inner, c * inner, 1};
        } else if (a[c] > 0.0f) {
            while (c < n && a[c] > 0.0f && a[c] < 1.0f) c++;
            spread(wide + first * inner, a + first, c - first, inner);
            runs[count++] = (Run){first * inner, c * inner, 0};
        } else {
            while (c < n && !(a[c] > 0.0f)) c++;
        }
    }
    return count;
}

/* How far n points with these weights move a mean in which each plane of `seen` counts with its
 * share; shares[0] is the points' own. */
static void findAlphas(float *restrict alpha, const float *restrict weight, int32_t n,
                       const float *restrict seen, int64_t plane, const float *restrict shares,
                       int64_t others) {
    float before[WIDE] = {0};
    for (int64_t k = 0; k < others; k++)
        for (int32_t i = 0; shares[k + 1] > 0.0f && i < n; i++)
            before[i] += shares[k + 1] * seen[k * plane + i];
    for (int32_t i = 0; i < n; i++) {
        float mine = shares[0] * weight[i];
        alpha[i] = mine / (before[i] + mine);
    }
}

/* Make the machine look up the pages of a piece of a row before it is needed: rows lie pages apart,
 * and looking them up takes as long as copying them. */
static void lookAhead(const float *at, int32_t items) {
#if defined(__GNUC__)
    for (int32_t i = 0; i < items; i += 256) __builtin_prefetch(at + i);
#else
    (void)at, (void)items;
#endif
}

static void applyRuns(float *o, const float *t, const float *wide, const Run *runs, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        int32_t first = runs[i].first, n = runs[i].end - first;
        if (runs[i].copy)
            memcpy(o + first, t + first, (size_t)n * sizeof *o);
        else
            blendItems(o + first, t + first, wide + first, n);
    }
}

int64_t bridge_blend_tile(const int64_t *counts, float *out, int64_t out_len,
                          const int64_t *out_strides, const float *tile, int64_t tile_len,
                          const int64_t *tile_strides, const float *weight, int64_t weight_len,
                          int64_t weight_stride, const float *seen, int64_t seen_len,
                          const int64_t *seen_strides, const float *shares, int64_t shares_len) {
    int64_t frames = counts[0], planes = counts[1], rows = counts[2], columns = counts[3];
    int64_t inner = counts[4], others = counts[5];
    for (int k = 0; k < 6; k++)
        if (counts[k] < 0) return FAIL(E_DOMAIN);
    for (int k = 0; k < 3; k++)
        if (out_strides[k] < 0 || tile_strides[k] < 0) return FAIL(E_DOMAIN);
    if (weight_stride < 0 || seen_strides[0] < 0 || seen_strides[1] < 0) return FAIL(E_DOMAIN);
    if (!frames || !planes || !rows || !columns || !inner) return 0;
    int64_t need_out = extent(counts, out_strides), need_tile = extent(counts, tile_strides);
    int64_t need_weight = reach(rows - 1, weight_stride, columns), need_seen = 0;
    int64_t each = others < INT64_MAX ? others + 1 : -1;
    if (shares_len && others)
        need_seen = reach(others - 1, seen_strides[0], reach(rows - 1, seen_strides[1], columns));
    if (need_out < 0 || need_tile < 0 || need_weight < 0 || need_seen < 0 || need_out > out_len ||
        need_tile > tile_len || need_weight > weight_len || need_seen > seen_len)
        return FAIL(E_MEMORY_BOUNDS);
    if (shares_len && (reach(frames, each, 0) < 0 || reach(frames, each, 0) > shares_len))
        return FAIL(E_MEMORY_BOUNDS);
    /* A part of a row in every frame, then the next part: its runs are found once for all frames of
     * the same shares, its alphas stay in the cache. A point of more items than WIDE (no picture
     * has one) is done in parts, too. */
    Run runs[WIDE];
    float wide[WIDE], alpha[WIDE];
    int64_t points = inner < WIDE ? WIDE / inner : 1;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c += points)
            for (int64_t i = 0; i < inner; i += WIDE) {
                int32_t n = (int32_t)(columns - c < points ? columns - c : points), count = 0;
                int32_t items = (int32_t)(inner - i < WIDE ? inner - i : WIDE);
                const float *a = weight + r * weight_stride + c, *share = shares;
                float *o = out + r * out_strides[2] + c * inner + i;
                const float *t = tile + r * tile_strides[2] + c * inner + i;
                for (int64_t f = 0; f < frames; f++) {
                    if (shares_len) share = shares + f * each;
                    if (shares_len &&
                        (!f || memcmp(share, share - each, (size_t)each * sizeof *share))) {
                        findAlphas(alpha, weight + r * weight_stride + c, n,
                                   others ? seen + r * seen_strides[1] + c : NULL, seen_strides[0],
                                   share, others);
                        a = alpha;
                        count = findRuns(a, n, items, runs, wide);
                    } else if (!f) {
                        count = findRuns(a, n, items, runs, wide);
                    }
                    for (int64_t p = 0; count && p < planes; p++) {
                        int64_t op = f * out_strides[0] + p * out_strides[1];
                        int64_t tp = f * tile_strides[0] + p * tile_strides[1];
                        int32_t first = runs[0].first, length = runs[count - 1].end - first;
                        if (f + 1 < frames) {
                            lookAhead(o + op + out_strides[0] + first, length);
                            lookAhead(t + tp + tile_strides[0] + first, length);
                        }
                        applyRuns(o + op, t + tp, wide, runs, count);
                    }
                }
            }
    return 0;
}
