/* h3.h - Uber's H3 hexagonal index in one file, our own code, no dependency but libm.
 *
 * Names, argument order and error codes are those of uber/h3 v4, behind a prefix
 * (H3_EXPORT). Angles are radians everywhere. Differences from uber/h3:
 *   - every function refuses invalid indexes (E_CELL_INVALID) instead of guessing;
 *   - points near face centres and poles are indexed without loss of digits;
 *   - gridRing is right when it encloses a pentagon, gridDisk holds no gaps;
 *   - gridDistance answers wherever the faces of the two cells share a vertex;
 *   - stringToH3 refuses trailing junk and more than 16 digits.
 *
 * Thread-safe: tables are built once, on first use, and only read afterwards.
 */
#ifndef H3V_H3_H
#define H3V_H3_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define H3_EXPORT(name) h3v_##name

typedef uint64_t H3Index;
typedef uint32_t H3Error;

enum {
    E_SUCCESS = 0,
    E_FAILED = 1,
    E_DOMAIN = 2,
    E_LATLNG_DOMAIN = 3,
    E_RES_DOMAIN = 4,
    E_CELL_INVALID = 5,
    E_DIR_EDGE_INVALID = 6,
    E_UNDIR_EDGE_INVALID = 7,
    E_VERTEX_INVALID = 8,
    E_PENTAGON = 9,
    E_DUPLICATE_INPUT = 10,
    E_NOT_NEIGHBORS = 11,
    E_RES_MISMATCH = 12,
    E_MEMORY_ALLOC = 13,
    E_MEMORY_BOUNDS = 14,
    E_OPTION_INVALID = 15
};

#define H3_NULL 0
#define MAX_H3_RES 15
#define NUM_BASE_CELLS 122
#define MAX_CELL_BNDRY_VERTS 10

/* A point on the sphere, radians. */
typedef struct {
    double lat;
    double lng;
} LatLng;

/* A cell's outline, counter-clockwise; 5 to 10 vertices. */
typedef struct {
    int numVerts;
    LatLng verts[MAX_CELL_BNDRY_VERTS];
} CellBoundary;

/* The cell of a point. E_RES_DOMAIN: res outside 0..15. E_LATLNG_DOMAIN: not finite. */
H3Error H3_EXPORT(latLngToCell)(const LatLng *g, int res, H3Index *out);
/* The centre of a cell (of its hexagon in the face's plane). */
H3Error H3_EXPORT(cellToLatLng)(H3Index cell, LatLng *g);
/* The outline of a cell; cells that cross an icosahedron edge get a vertex there (odd res). */
H3Error H3_EXPORT(cellToBoundary)(H3Index cell, CellBoundary *gp);

/* Cells within k steps at most: 3k(k+1)+1, and never more than there are cells. E_DOMAIN: k < 0. */
H3Error H3_EXPORT(maxGridDiskSize)(int k, int64_t *out);
/* All cells within k steps; out has room for maxGridDiskSize(k); unused slots (only around
 * pentagons) are 0 and stand at the end. Order: by distance. E_MEMORY_ALLOC. */
H3Error H3_EXPORT(gridDisk)(H3Index origin, int k, H3Index *out);
/* The same with the distance of every cell; distances may be NULL. */
H3Error H3_EXPORT(gridDiskDistances)(H3Index origin, int k, H3Index *out, int *distances);
/* Cells of a ring at most: 1 for k = 0, else 6k. */
H3Error H3_EXPORT(maxGridRingSize)(int k, int64_t *out);
/* Cells at exactly k steps; zero-padded at the end around pentagons. */
H3Error H3_EXPORT(gridRing)(H3Index origin, int k, H3Index *out);
/* Steps between two cells. E_RES_MISMATCH; E_FAILED when their faces share no vertex. */
H3Error H3_EXPORT(gridDistance)(H3Index a, H3Index b, int64_t *distance);
/* 1 in *out when the cells share an edge. E_RES_MISMATCH. */
H3Error H3_EXPORT(areNeighborCells)(H3Index a, H3Index b, int *out);

/* Ancestor at parentRes (0..res of the cell). E_RES_MISMATCH: finer than the cell. */
H3Error H3_EXPORT(cellToParent)(H3Index cell, int parentRes, H3Index *out);
/* Number of descendants at childRes (res of the cell..15). */
H3Error H3_EXPORT(cellToChildrenSize)(H3Index cell, int childRes, int64_t *out);
/* All descendants at childRes, in index order; out has room for cellToChildrenSize. */
H3Error H3_EXPORT(cellToChildren)(H3Index cell, int childRes, H3Index *out);
/* The descendant in the middle. */
H3Error H3_EXPORT(cellToCenterChild)(H3Index cell, int childRes, H3Index *out);

/* Facts; isValidCell takes anything, the others give 0 or the bits of what they are given. */
int H3_EXPORT(isValidCell)(H3Index cell);
int H3_EXPORT(isPentagon)(H3Index cell);
int H3_EXPORT(isResClassIII)(H3Index cell);
int H3_EXPORT(getResolution)(H3Index cell);
int H3_EXPORT(getBaseCellNumber)(H3Index cell);

/* The 12 pentagons of a resolution, and the 122 cells of resolution 0, in index order. */
H3Error H3_EXPORT(getPentagons)(int res, H3Index *out);
H3Error H3_EXPORT(getRes0Cells)(H3Index *out);

/* Hexadecimal text to an index and back; sz counts the terminating zero (17 is always enough). */
H3Error H3_EXPORT(stringToH3)(const char *str, H3Index *out);
H3Error H3_EXPORT(h3ToString)(H3Index h, char *str, uint64_t sz);

/* The gnomonic plane of a face 0..19: u along its first axis (a cell's neighbour at even
 * resolutions), v a quarter turn counter-clockwise. E_DOMAIN: no such face, or a point that
 * the plane does not reach. */
H3Error H3_EXPORT(planeToLatLng)(int face, double u, double v, LatLng *g);
H3Error H3_EXPORT(latLngToPlane)(int face, const LatLng *g, double *u, double *v);
/* The cells of n plane points, the same as latLngToCell's except within a rounding error of an
 * edge between cells. Fast where points lie on the face and follow each other. */
H3Error H3_EXPORT(planeToCells)(int face, const double *u, const double *v, int64_t n, int res,
                                H3Index *out);

#ifdef __cplusplus
}
#endif
#endif
