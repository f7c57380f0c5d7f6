/* h3.h - Uber's H3 hexagonal index, our own code, no dependency but libm.
 *
 * Names, argument order and error codes are those of uber/h3 v4 (without polygons), behind a
 * prefix (H3_EXPORT). Angles are radians everywhere. Differences from uber/h3:
 *   - every function refuses invalid indexes instead of guessing;
 *   - points near face centres and poles are indexed without loss of digits;
 *   - gridDisk and gridRing are right around any number of pentagons, dense, nearest first;
 *   - gridDistance and gridPathCells answer for every two cells of a resolution;
 *   - stringToH3 refuses trailing junk and more than 16 digits;
 *   - results are the same bits on every machine.
 *
 * Unless said otherwise a function returns E_SUCCESS or an error and writes its answer only on
 * success. What is no cell is E_CELL_INVALID, what is no edge E_DIR_EDGE_INVALID, what is no
 * vertex E_VERTEX_INVALID, a resolution outside 0..15 E_RES_DOMAIN; only other errors are listed.
 * Lists need room for what the function named with them says.
 *
 * Thread-safe: tables are built once, on first use, and only read afterwards.
 */
#ifndef H3V_H3_H
#define H3V_H3_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef H3_EXPORT
#define H3_EXPORT(name) h3v_##name
#endif

typedef uint64_t H3Index;
typedef uint32_t H3Error;

/* What goes wrong, by uber/h3's numbers. */
#define H3_ERRORS(code) \
    code(E_SUCCESS, 0, "Success")                                     \
    code(E_FAILED, 1, "The operation failed; no more is known")       \
    code(E_DOMAIN, 2, "An argument is outside its range")             \
    code(E_LATLNG_DOMAIN, 3, "A latitude or longitude is not finite") \
    code(E_RES_DOMAIN, 4, "A resolution is outside 0..15")            \
    code(E_CELL_INVALID, 5, "The index is no cell")                   \
    code(E_DIR_EDGE_INVALID, 6, "The index is no directed edge")      \
    code(E_UNDIR_EDGE_INVALID, 7, "The index is no undirected edge")  \
    code(E_VERTEX_INVALID, 8, "The index is no vertex")               \
    code(E_PENTAGON, 9, "A pentagon is in the way")                   \
    code(E_DUPLICATE_INPUT, 10, "A cell is given twice")              \
    code(E_NOT_NEIGHBORS, 11, "The cells are not neighbours")         \
    code(E_RES_MISMATCH, 12, "The resolutions do not fit together")   \
    code(E_MEMORY_ALLOC, 13, "There is not enough memory")            \
    code(E_MEMORY_BOUNDS, 14, "The room for the answer is too small") \
    code(E_OPTION_INVALID, 15, "A mode or flag is unknown")           \
    code(E_INDEX_INVALID, 16, "The index is not valid")               \
    code(E_BASE_CELL_DOMAIN, 17, "A base cell is outside 0..121")     \
    code(E_DIGIT_DOMAIN, 18, "A digit is outside 0..6")               \
    code(E_DELETED_DIGIT, 19, "A pentagon has no such child")
#define H3_ERROR_CODE(name, number, text) name = number,
enum { H3_ERRORS(H3_ERROR_CODE) };

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

/* A lattice point around the centre of an origin's base cell, in steps along I and J. */
typedef struct {
    int i;
    int j;
} CoordIJ;

/* ---- points ---- */

/* The cell of a point. Angles outside the usual ranges wrap. E_LATLNG_DOMAIN: not finite. */
H3Error H3_EXPORT(latLngToCell)(const LatLng *g, int res, H3Index *out);
/* The centre of a cell (of its hexagon in the face's plane). */
H3Error H3_EXPORT(cellToLatLng)(H3Index cell, LatLng *g);
/* The outline of a cell; cells that cross an icosahedron edge get a vertex there (odd res).
 * Longitudes are -pi..pi, each by itself: outlines over the antimeridian jump. */
H3Error H3_EXPORT(cellToBoundary)(H3Index cell, CellBoundary *gp);
/* Degrees to radians and back. */
double H3_EXPORT(degsToRads)(double degrees);
double H3_EXPORT(radsToDegs)(double radians);
/* Along a great circle: radians, km, m (Earth of radius 6371.007180918475 km). */
double H3_EXPORT(greatCircleDistanceRads)(const LatLng *a, const LatLng *b);
double H3_EXPORT(greatCircleDistanceKm)(const LatLng *a, const LatLng *b);
double H3_EXPORT(greatCircleDistanceM)(const LatLng *a, const LatLng *b);

/* ---- disks and rings ---- */

/* Cells within k steps at most: 3k(k+1)+1, and never more than there are cells. E_DOMAIN: k < 0,
 * here and below. */
H3Error H3_EXPORT(maxGridDiskSize)(int k, int64_t *out);
/* All cells within k steps; room: maxGridDiskSize; unused slots (only around pentagons) are 0 and
 * stand at the end. Nearest first; a ring goes counter-clockwise, unless the disk reaches beyond the
 * five faces around the nearest pentagon. E_MEMORY_ALLOC. */
H3Error H3_EXPORT(gridDisk)(H3Index origin, int k, H3Index *out);
/* The same with the distance of every cell; distances may be NULL. */
H3Error H3_EXPORT(gridDiskDistances)(H3Index origin, int k, H3Index *out, int *distances);
H3Error H3_EXPORT(gridDiskDistancesSafe)(H3Index origin, int k, H3Index *out, int *distances);
/* The same, in uber/h3's order, where no pentagon is within k steps, else E_PENTAGON. */
H3Error H3_EXPORT(gridDiskUnsafe)(H3Index origin, int k, H3Index *out);
H3Error H3_EXPORT(gridDiskDistancesUnsafe)(H3Index origin, int k, H3Index *out, int *distances);
/* The same of `length` origins one after the other; stops at the first error. */
H3Error H3_EXPORT(gridDisksUnsafe)(const H3Index *cells, int length, int k, H3Index *out);
/* Cells of a ring at most: 1 for k = 0, else 6k. */
H3Error H3_EXPORT(maxGridRingSize)(int k, int64_t *out);
/* Cells at exactly k steps; room: maxGridRingSize; zeros at the end around pentagons. */
H3Error H3_EXPORT(gridRing)(H3Index origin, int k, H3Index *out);
/* The same, in uber/h3's order, where no pentagon is within k steps, else E_PENTAGON. */
H3Error H3_EXPORT(gridRingUnsafe)(H3Index origin, int k, H3Index *out);

/* ---- distance and paths ---- */

/* Fewest steps from neighbour to neighbour between any two cells. E_RES_MISMATCH. */
H3Error H3_EXPORT(gridDistance)(H3Index a, H3Index b, int64_t *distance);
/* 1 in *out when the cells share an edge. E_RES_MISMATCH. */
H3Error H3_EXPORT(areNeighborCells)(H3Index a, H3Index b, int *out);
/* Cells of a path: gridDistance + 1. E_RES_MISMATCH. */
H3Error H3_EXPORT(gridPathCellsSize)(H3Index start, H3Index end, int64_t *size);
/* A shortest path of neighbours from start to end, both included. E_RES_MISMATCH. */
H3Error H3_EXPORT(gridPathCells)(H3Index start, H3Index end, H3Index *out);
/* Coordinates of a cell around the origin's base cell, and the cell of coordinates. mode is 0,
 * else E_OPTION_INVALID. E_RES_MISMATCH; E_FAILED: the base cells are not side by side, or a
 * pentagon lies between: there is no such plane, or not one place in it. */
H3Error H3_EXPORT(cellToLocalIj)(H3Index origin, H3Index h, uint32_t mode, CoordIJ *out);
H3Error H3_EXPORT(localIjToCell)(H3Index origin, const CoordIJ *ij, uint32_t mode, H3Index *out);

/* ---- hierarchy ---- */

/* Ancestor at parentRes (0..res of the cell). E_RES_MISMATCH: finer than the cell. */
H3Error H3_EXPORT(cellToParent)(H3Index cell, int parentRes, H3Index *out);
/* Number of descendants at childRes (res of the cell..15, else E_RES_DOMAIN). */
H3Error H3_EXPORT(cellToChildrenSize)(H3Index cell, int childRes, int64_t *out);
/* All descendants at childRes, in index order; room: cellToChildrenSize. */
H3Error H3_EXPORT(cellToChildren)(H3Index cell, int childRes, H3Index *out);
/* The descendant in the middle. */
H3Error H3_EXPORT(cellToCenterChild)(H3Index cell, int childRes, H3Index *out);
/* Place of a cell among the descendants of its ancestor at parentRes. E_RES_MISMATCH. */
H3Error H3_EXPORT(cellToChildPos)(H3Index child, int parentRes, int64_t *out);
/* The descendant at a place. E_RES_MISMATCH: childRes is coarser; E_DOMAIN: no such place. */
H3Error H3_EXPORT(childPosToCell)(int64_t childPos, H3Index parent, int childRes, H3Index *child);
/* Complete families replaced by their parents, again and again, of n cells of one resolution;
 * room: n, unused slots 0 at the end. Zeros are passed over. E_DUPLICATE_INPUT, E_RES_MISMATCH,
 * E_MEMORY_ALLOC. */
H3Error H3_EXPORT(compactCells)(const H3Index *cells, H3Index *out, int64_t n);
/* Back to one resolution: how many there will be, then the cells. Zeros are passed over.
 * E_RES_MISMATCH: a cell is finer; E_MEMORY_BOUNDS: room is too small. */
H3Error H3_EXPORT(uncompactCellsSize)(const H3Index *cells, int64_t n, int res, int64_t *out);
H3Error H3_EXPORT(uncompactCells)(const H3Index *cells, int64_t n, H3Index *out, int64_t room,
                                  int res);

/* ---- facts ---- */

/* isValid... take anything; the next four give 0 or the bits of what they are given. */
int H3_EXPORT(isValidCell)(H3Index cell);
int H3_EXPORT(isValidIndex)(H3Index h); /* cell, directed edge or vertex */
int H3_EXPORT(isPentagon)(H3Index cell);
int H3_EXPORT(isResClassIII)(H3Index cell); /* odd resolution */
int H3_EXPORT(getResolution)(H3Index cell);
int H3_EXPORT(getBaseCellNumber)(H3Index cell);
/* The digit of resolution 1..15; 7 beyond the cell's own. */
H3Error H3_EXPORT(getIndexDigit)(H3Index h, int res, int *out);
/* A cell of its parts: res digits 0..6. E_BASE_CELL_DOMAIN, E_DIGIT_DOMAIN, E_DELETED_DIGIT. */
H3Error H3_EXPORT(constructCell)(int res, int baseCell, const int *digits, H3Index *out);
/* Number of cells; the 12 pentagons and the 122 cells of resolution 0, in index order. */
H3Error H3_EXPORT(getNumCells)(int res, int64_t *out);
int H3_EXPORT(pentagonCount)(void);
int H3_EXPORT(res0CellCount)(void);
H3Error H3_EXPORT(getPentagons)(int res, H3Index *out);
H3Error H3_EXPORT(getRes0Cells)(H3Index *out);
/* Icosahedron faces 0..19 that a cell lies on: at most 2, of a pentagon 5; unused slots -1. */
H3Error H3_EXPORT(maxFaceCount)(H3Index cell, int *out);
H3Error H3_EXPORT(getIcosahedronFaces)(H3Index cell, int *out);

/* ---- areas and lengths ---- */

/* Area of a cell in steradians, square km, square m; length of an edge in radians, km, m. */
H3Error H3_EXPORT(cellAreaRads2)(H3Index cell, double *out);
H3Error H3_EXPORT(cellAreaKm2)(H3Index cell, double *out);
H3Error H3_EXPORT(cellAreaM2)(H3Index cell, double *out);
H3Error H3_EXPORT(edgeLengthRads)(H3Index edge, double *length);
H3Error H3_EXPORT(edgeLengthKm)(H3Index edge, double *length);
H3Error H3_EXPORT(edgeLengthM)(H3Index edge, double *length);
/* Means over all hexagons of a resolution (pentagons left out). */
H3Error H3_EXPORT(getHexagonAreaAvgKm2)(int res, double *out);
H3Error H3_EXPORT(getHexagonAreaAvgM2)(int res, double *out);
H3Error H3_EXPORT(getHexagonEdgeLengthAvgKm)(int res, double *out);
H3Error H3_EXPORT(getHexagonEdgeLengthAvgM)(int res, double *out);

/* ---- directed edges ---- */

/* The edge from a cell to its neighbour. E_NOT_NEIGHBORS. */
H3Error H3_EXPORT(cellsToDirectedEdge)(H3Index origin, H3Index destination, H3Index *out);
int H3_EXPORT(isValidDirectedEdge)(H3Index edge);
H3Error H3_EXPORT(getDirectedEdgeOrigin)(H3Index edge, H3Index *out);
H3Error H3_EXPORT(getDirectedEdgeDestination)(H3Index edge, H3Index *out);
/* Origin, destination. */
H3Error H3_EXPORT(directedEdgeToCells)(H3Index edge, H3Index *out2);
/* All edges of a cell; of a pentagon the first is 0. */
H3Error H3_EXPORT(originToDirectedEdges)(H3Index origin, H3Index *out6);
/* The same edge from the other side. */
H3Error H3_EXPORT(reverseDirectedEdge)(H3Index edge, H3Index *out);
/* Two points, three where the edge bends over an icosahedron edge; the origin lies to the left. */
H3Error H3_EXPORT(directedEdgeToBoundary)(H3Index edge, CellBoundary *gp);

/* ---- vertexes ---- */

/* The vertex at corner 0..5 (pentagons: 4) of a cell, one index for all three cells around it.
 * E_DOMAIN: no such corner. */
H3Error H3_EXPORT(cellToVertex)(H3Index cell, int number, H3Index *out);
/* All of them; of a pentagon the last is 0. */
H3Error H3_EXPORT(cellToVertexes)(H3Index cell, H3Index *out6);
H3Error H3_EXPORT(vertexToLatLng)(H3Index vertex, LatLng *g);
int H3_EXPORT(isValidVertex)(H3Index vertex);

/* ---- text ---- */

/* Hexadecimal text to an index and back; sz counts the terminating zero (17 is always enough, less
 * is E_MEMORY_BOUNDS). E_FAILED: not 1 to 16 hexadecimal digits and nothing else. */
H3Error H3_EXPORT(stringToH3)(const char *str, H3Index *out);
H3Error H3_EXPORT(h3ToString)(H3Index h, char *str, size_t sz);
/* What an error code means, in English. */
const char *H3_EXPORT(describeH3Error)(H3Error err);

#ifdef __cplusplus
}
#endif
#endif
