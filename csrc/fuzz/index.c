/* index.c - every function of h3.h. */

#include "fuzz.h"

#define CALL(name) H3_EXPORT(name)
#define MOST_ERRORS 32

static void promiseCode(H3Error err) { PROMISE(err < MOST_ERRORS); }

/* A disk's or ring's k, small enough that its room is. */
static int takeSteps(Input *in) {
    int k = takeInt(in);
    return k > 60 ? k % 60 : k;
}

/* ---- points ---- */

static void promisePoint(const LatLng *g) {
    PROMISE(fabs(g->lat) <= 1.5707963267949 && fabs(g->lng) <= 3.1415926535898);
}

static LatLng takePoint(Input *in) {
    LatLng g;
    g.lat = takeNumber(in);
    g.lng = takeNumber(in);
    return g;
}

static void fuzz_latLngToCell(Input *in) {
    LatLng g = takePoint(in);
    H3Index cell = 0, again = 0;
    H3Error err = CALL(latLngToCell)(&g, takeRes(in), &cell);
    promiseCode(err);
    if (err) return;
    PROMISE(CALL(isValidCell)(cell));
    PROMISE(CALL(cellToLatLng)(cell, &g) == E_SUCCESS);
    PROMISE(CALL(latLngToCell)(&g, CALL(getResolution)(cell), &again) == E_SUCCESS);
    PROMISE(again == cell);
}

static void fuzz_cellToLatLng(Input *in) {
    H3Index cell = takeIndex(in);
    LatLng g;
    H3Error err = CALL(cellToLatLng)(cell, &g);
    PROMISE((err == E_SUCCESS) == CALL(isValidCell)(cell));
    if (!err) promisePoint(&g);
}

static void promiseBoundary(const CellBoundary *b) {
    PROMISE(b->numVerts >= 2 && b->numVerts <= MAX_CELL_BNDRY_VERTS);
    for (int i = 0; i < b->numVerts; i++) promisePoint(&b->verts[i]);
}

static void fuzz_cellToBoundary(Input *in) {
    H3Index cell = takeIndex(in);
    CellBoundary *b = ROOM(CellBoundary, 1);
    H3Error err = CALL(cellToBoundary)(cell, b);
    PROMISE((err == E_SUCCESS) == CALL(isValidCell)(cell));
    if (!err) promiseBoundary(b);
}

static void fuzz_planeToLatLng(Input *in) {
    int face = takeInt(in);
    double u = takeNumber(in), v = takeNumber(in);
    LatLng g;
    H3Error err = CALL(planeToLatLng)(face, u, v, &g);
    promiseCode(err);
    if (!err) promisePoint(&g);
}

static void fuzz_latLngToPlane(Input *in) {
    int face = takeInt(in);
    LatLng g = takePoint(in);
    double u, v;
    promiseCode(CALL(latLngToPlane)(face, &g, &u, &v));
}

static void fuzz_planeToCells(Input *in) {
    int64_t n = takeCount(in, 40);
    int face = takeInt(in), res = takeRes(in);
    double *u = takeNumbers(in, n), *v = takeNumbers(in, n);
    H3Index *out = ROOM(H3Index, n);
    H3Error err = CALL(planeToCells)(face, u, v, n, res, out);
    promiseCode(err);
    if (!err) promiseCells(out, n);
}

static void fuzz_degsToRads(Input *in) { (void)CALL(degsToRads)(takeNumber(in)); }
static void fuzz_radsToDegs(Input *in) { (void)CALL(radsToDegs)(takeNumber(in)); }

static void fuzz_greatCircleDistanceRads(Input *in) {
    LatLng a = takePoint(in), b = takePoint(in);
    double d = CALL(greatCircleDistanceRads)(&a, &b);
    PROMISE(d != d || (d >= 0 && d <= 3.1415926535898));
}

static void fuzz_greatCircleDistanceKm(Input *in) {
    LatLng a = takePoint(in), b = takePoint(in);
    PROMISE(!(CALL(greatCircleDistanceKm)(&a, &b) > 20100.0));
}

static void fuzz_greatCircleDistanceM(Input *in) {
    LatLng a = takePoint(in), b = takePoint(in);
    PROMISE(!(CALL(greatCircleDistanceM)(&a, &b) > 20100000.0));
}

/* ---- measures ---- */

static void measure(Input *in, H3Error (*of)(H3Index, double *)) {
    double out = -1.0;
    H3Error err = of(takeIndex(in), &out);
    promiseCode(err);
    PROMISE(err || out > 0.0);
}

static void fuzz_cellAreaRads2(Input *in) { measure(in, CALL(cellAreaRads2)); }
static void fuzz_cellAreaKm2(Input *in) { measure(in, CALL(cellAreaKm2)); }
static void fuzz_cellAreaM2(Input *in) { measure(in, CALL(cellAreaM2)); }
static void fuzz_edgeLengthRads(Input *in) { measure(in, CALL(edgeLengthRads)); }
static void fuzz_edgeLengthKm(Input *in) { measure(in, CALL(edgeLengthKm)); }
static void fuzz_edgeLengthM(Input *in) { measure(in, CALL(edgeLengthM)); }

static void average(Input *in, H3Error (*of)(int, double *)) {
    int res = takeRes(in);
    double out = -1.0;
    H3Error err = of(res, &out);
    PROMISE((err == E_SUCCESS) == (res >= 0 && res <= 15) && (err || out > 0.0));
}

static void fuzz_getHexagonAreaAvgKm2(Input *in) { average(in, CALL(getHexagonAreaAvgKm2)); }
static void fuzz_getHexagonAreaAvgM2(Input *in) { average(in, CALL(getHexagonAreaAvgM2)); }
static void fuzz_getHexagonEdgeLengthAvgKm(Input *in) {
    average(in, CALL(getHexagonEdgeLengthAvgKm));
}
static void fuzz_getHexagonEdgeLengthAvgM(Input *in) {
    average(in, CALL(getHexagonEdgeLengthAvgM));
}

static void fuzz_maxFaceCount(Input *in) {
    int n = 0;
    H3Error err = CALL(maxFaceCount)(takeIndex(in), &n);
    PROMISE(err || n == 2 || n == 5);
}

static void fuzz_getIcosahedronFaces(Input *in) {
    H3Index cell = takeIndex(in);
    int n = 0;
    if (CALL(maxFaceCount)(cell, &n)) n = 0;
    int *out = ROOM(int, n);
    if (!n || CALL(getIcosahedronFaces)(cell, out)) return;
    PROMISE(out[0] >= 0);
    for (int i = 0; i < n; i++) PROMISE(out[i] >= -1 && out[i] < 20);
}

/* ---- disks, rings, paths ---- */

static void fuzz_maxGridDiskSize(Input *in) {
    int k = takeInt(in);
    int64_t n = -1;
    PROMISE((CALL(maxGridDiskSize)(k, &n) == E_SUCCESS) == (k >= 0) && (k < 0 || n > 0));
}

static void fuzz_maxGridRingSize(Input *in) {
    int k = takeInt(in);
    int64_t n = -1;
    PROMISE((CALL(maxGridRingSize)(k, &n) == E_SUCCESS) == (k >= 0) && (k < 0 || n > 0));
}

static int64_t diskRoom(int k) {
    int64_t n = 0;
    return CALL(maxGridDiskSize)(k, &n) || n > MOST ? 0 : n;
}

static int64_t ringRoom(int k) {
    int64_t n = 0;
    return CALL(maxGridRingSize)(k, &n) || n > MOST ? 0 : n;
}

static void disk(Input *in, H3Error (*of)(H3Index, int, H3Index *), int64_t (*size)(int)) {
    H3Index cell = takeIndex(in);
    int k = takeSteps(in);
    int64_t n = size(k);
    H3Index *out = ROOM(H3Index, n);
    H3Error err = of(cell, k, out);
    promiseCode(err);
    if (err) return;
    PROMISE(k >= 0 && CALL(isValidCell)(cell));
    promiseCells(out, n);
}

static void diskDistances(Input *in, H3Error (*of)(H3Index, int, H3Index *, int *)) {
    H3Index cell = takeIndex(in);
    int k = takeSteps(in);
    int64_t n = diskRoom(k);
    H3Index *out = ROOM(H3Index, n);
    int *distances = ROOM(int, n);
    H3Error err = of(cell, k, out, distances);
    promiseCode(err);
    if (err) return;
    promiseCells(out, n);
    for (int64_t i = 0; i < n; i++) PROMISE(distances[i] >= 0 && distances[i] <= k);
}

static void fuzz_gridDisk(Input *in) { disk(in, CALL(gridDisk), diskRoom); }
static void fuzz_gridDiskUnsafe(Input *in) { disk(in, CALL(gridDiskUnsafe), diskRoom); }
static void fuzz_gridRing(Input *in) { disk(in, CALL(gridRing), ringRoom); }
static void fuzz_gridRingUnsafe(Input *in) { disk(in, CALL(gridRingUnsafe), ringRoom); }
static void fuzz_gridDiskDistances(Input *in) { diskDistances(in, CALL(gridDiskDistances)); }
static void fuzz_gridDiskDistancesSafe(Input *in) {
    diskDistances(in, CALL(gridDiskDistancesSafe));
}
static void fuzz_gridDiskDistancesUnsafe(Input *in) {
    diskDistances(in, CALL(gridDiskDistancesUnsafe));
}

static void fuzz_gridDisksUnsafe(Input *in) {
    int n = (int)takeCount(in, 8), k = takeInt(in) % 12;
    H3Index *cells = takeIndexes(in, n), *out = ROOM(H3Index, n * diskRoom(k));
    H3Error err = CALL(gridDisksUnsafe)(cells, n, k, out);
    promiseCode(err);
    if (!err) promiseCells(out, n * diskRoom(k));
}

static void fuzz_gridDistance(Input *in) {
    H3Index a = takeIndex(in), b = takeNear(in, a);
    int64_t there = -1, back = -1;
    H3Error err = CALL(gridDistance)(a, b, &there);
    int valid = CALL(isValidCell)(a) && CALL(isValidCell)(b);
    if (valid && CALL(getResolution)(a) == CALL(getResolution)(b)) {
        PROMISE(!err); /* never fails for two cells of one resolution */
        PROMISE(!CALL(gridDistance)(b, a, &back) && there == back);
        PROMISE((there == 0) == (a == b) && there >= 0);
    } else {
        PROMISE(err == (valid ? E_RES_MISMATCH : E_CELL_INVALID));
    }
}

static void fuzz_areNeighborCells(Input *in) {
    H3Index a = takeIndex(in), b = takeNear(in, a);
    int out = -1;
    H3Error err = CALL(areNeighborCells)(a, b, &out);
    promiseCode(err);
    PROMISE(err || out == 0 || out == 1);
}

static void fuzz_gridPathCellsSize(Input *in) {
    H3Index a = takeIndex(in), b = takeNear(in, a);
    int64_t size = -1, distance = -2;
    if (CALL(gridPathCellsSize)(a, b, &size)) return;
    PROMISE(!CALL(gridDistance)(a, b, &distance) && size == distance + 1);
}

static void fuzz_gridPathCells(Input *in) {
    H3Index a = takeIndex(in), b = takeNear(in, a);
    int64_t size = 0;
    if (CALL(gridPathCellsSize)(a, b, &size) || size > MOST) return;
    H3Index *out = ROOM(H3Index, size);
    PROMISE(CALL(gridPathCells)(a, b, out) == E_SUCCESS);
    PROMISE(out[0] == a && out[size - 1] == b);
    for (int64_t i = 1; i < size; i++) {
        int near = 0;
        PROMISE(!CALL(areNeighborCells)(out[i - 1], out[i], &near) && near);
    }
}

static void fuzz_cellToLocalIj(Input *in) {
    H3Index a = takeIndex(in), b = takeNear(in, a), back = 0;
    CoordIJ ij;
    H3Error err = CALL(cellToLocalIj)(a, b, take8(in) % 8 == 7, &ij);
    promiseCode(err);
    if (err) return;
    err = CALL(localIjToCell)(a, &ij, 0, &back);
    PROMISE(err || CALL(isValidCell)(back));
}

static void fuzz_localIjToCell(Input *in) {
    H3Index a = takeIndex(in), out = 0;
    CoordIJ ij = {takeInt(in), takeInt(in)};
    H3Error err = CALL(localIjToCell)(a, &ij, take8(in) % 8 == 7, &out);
    promiseCode(err);
    PROMISE(err || CALL(isValidCell)(out));
}

/* ---- hierarchy ---- */

static void fuzz_cellToParent(Input *in) {
    H3Index cell = takeIndex(in), out = 0;
    int res = takeRes(in);
    H3Error err = CALL(cellToParent)(cell, res, &out);
    promiseCode(err);
    PROMISE(err || (CALL(isValidCell)(out) && CALL(getResolution)(out) == res));
}

static void fuzz_cellToCenterChild(Input *in) {
    H3Index cell = takeIndex(in), out = 0, back = 0;
    H3Error err = CALL(cellToCenterChild)(cell, takeRes(in), &out);
    promiseCode(err);
    if (err) return;
    PROMISE(!CALL(cellToParent)(out, CALL(getResolution)(cell), &back) && back == cell);
}

static void fuzz_cellToChildrenSize(Input *in) {
    int64_t n = -1;
    H3Error err = CALL(cellToChildrenSize)(takeIndex(in), takeRes(in), &n);
    promiseCode(err);
    PROMISE(err || n > 0);
}

static void fuzz_cellToChildren(Input *in) {
    H3Index cell = takeIndex(in);
    int res = takeRes(in);
    int64_t n = 0;
    if (CALL(cellToChildrenSize)(cell, res, &n) || n > MOST) return;
    H3Index *out = ROOM(H3Index, n);
    PROMISE(CALL(cellToChildren)(cell, res, out) == E_SUCCESS);
    for (int64_t i = 0; i < n; i++) PROMISE(CALL(isValidCell)(out[i]));
    for (int64_t i = 1; i < n; i++) PROMISE(out[i] > out[i - 1]);
}

static void fuzz_cellToChildPos(Input *in) {
    H3Index cell = takeIndex(in), parent = 0, back = 0;
    int res = takeRes(in);
    int64_t place = -1;
    H3Error err = CALL(cellToChildPos)(cell, res, &place);
    promiseCode(err);
    if (err) return;
    PROMISE(!CALL(cellToParent)(cell, res, &parent));
    PROMISE(!CALL(childPosToCell)(place, parent, CALL(getResolution)(cell), &back));
    PROMISE(back == cell);
}

static void fuzz_childPosToCell(Input *in) {
    int64_t place = take8(in) < 128 ? takeCount(in, 3000) : (int64_t)take64(in), back = -1;
    H3Index parent = takeIndex(in), child = 0;
    H3Error err = CALL(childPosToCell)(place, parent, takeRes(in), &child);
    promiseCode(err);
    if (err) return;
    PROMISE(!CALL(cellToChildPos)(child, CALL(getResolution)(parent), &back) && back == place);
}

static void fuzz_compactCells(Input *in) {
    int64_t n = 0, back = -1, count = 0;
    H3Index cell = takeIndex(in);
    int res = takeRes(in), whole = take8(in) & 1;
    H3Index *cells;
    if (whole && !CALL(cellToChildrenSize)(cell, res, &n) && n <= 3000) { /* a family */
        cells = ROOM(H3Index, n);
        PROMISE(!CALL(cellToChildren)(cell, res, cells));
        for (int i = take8(in) % 8; i > 0 && n; i--) cells[takeCount(in, n - 1)] = takeIndex(in);
    } else {
        n = takeCount(in, 30);
        cells = takeIndexes(in, n);
    }
    for (int64_t i = 0; i < n; i++) count += cells[i] != 0;
    H3Index *out = ROOM(H3Index, n);
    H3Error err = CALL(compactCells)(cells, out, n);
    promiseCode(err);
    if (err || !count) return;
    promiseCells(out, n);
    for (int64_t i = 0; i < n; i++)
        if (cells[i]) res = CALL(getResolution)(cells[i]);
    PROMISE(!CALL(uncompactCellsSize)(out, n, res, &back) && back == count);
}

static void fuzz_uncompactCellsSize(Input *in) {
    int64_t n = takeCount(in, 30), size = -1;
    H3Error err = CALL(uncompactCellsSize)(takeIndexes(in, n), n, takeRes(in), &size);
    promiseCode(err);
    PROMISE(err || size >= 0);
}

static void fuzz_uncompactCells(Input *in) {
    int64_t n = takeCount(in, 12), size = 0, len;
    H3Index *cells = takeIndexes(in, n);
    int res = takeRes(in);
    H3Error expected = CALL(uncompactCellsSize)(cells, n, res, &size);
    len = take8(in) & 1 && !expected && size <= MOST ? size : takeCount(in, 500);
    H3Index *out = ROOM(H3Index, len);
    H3Error err = CALL(uncompactCells)(cells, n, out, len, res);
    PROMISE(expected ? err == expected : (err == E_SUCCESS) == (size <= len));
    if (!err) promiseCells(out, len);
}

/* ---- facts ---- */

static void fuzz_isValidCell(Input *in) {
    H3Index h = takeIndex(in);
    int valid = CALL(isValidCell)(h);
    PROMISE(valid == 0 || (valid == 1 && CALL(isValidIndex)(h)));
}

static void fuzz_isValidIndex(Input *in) {
    H3Index h = takeIndex(in);
    int kinds = CALL(isValidCell)(h) + CALL(isValidDirectedEdge)(h) + CALL(isValidVertex)(h);
    PROMISE(CALL(isValidIndex)(h) == kinds && kinds <= 1);
}

static void fuzz_isPentagon(Input *in) {
    int five = CALL(isPentagon)(takeIndex(in));
    PROMISE(five == 0 || five == 1);
}

static void fuzz_isResClassIII(Input *in) {
    int third = CALL(isResClassIII)(takeIndex(in));
    PROMISE(third == 0 || third == 1);
}

static void fuzz_getResolution(Input *in) { PROMISE(CALL(getResolution)(takeIndex(in)) <= 15); }
static void fuzz_getBaseCellNumber(Input *in) {
    PROMISE(CALL(getBaseCellNumber)(takeIndex(in)) <= 127);
}

static void fuzz_getIndexDigit(Input *in) {
    int res = takeRes(in), digit = -1;
    H3Error err = CALL(getIndexDigit)(takeIndex(in), res, &digit);
    PROMISE((err == E_SUCCESS) == (res >= 1 && res <= 15) && (err || (digit >= 0 && digit <= 7)));
}

static void fuzz_constructCell(Input *in) {
    int res = takeRes(in), base = takeInt(in);
    int *digits = ROOM(int, res > 0 && res <= 15 ? res : 0);
    for (int i = 0; i < res && res <= 15; i++) digits[i] = take8(in) < 250 ? take8(in) % 7 : takeInt(in);
    H3Index out = 0;
    H3Error err = CALL(constructCell)(res, base, digits, &out);
    promiseCode(err);
    PROMISE(err || CALL(isValidCell)(out));
}

static void fuzz_getNumCells(Input *in) {
    int res = takeRes(in);
    int64_t n = -1;
    PROMISE((CALL(getNumCells)(res, &n) == E_SUCCESS) == (res >= 0 && res <= 15) && (n == -1 || n >= 122));
}

static void fuzz_res0CellCount(Input *in) {
    (void)in;
    PROMISE(CALL(res0CellCount)() == 122);
}

static void fuzz_pentagonCount(Input *in) {
    (void)in;
    PROMISE(CALL(pentagonCount)() == 12);
}

static void fuzz_getPentagons(Input *in) {
    H3Index *out = ROOM(H3Index, 12);
    H3Error err = CALL(getPentagons)(takeRes(in), out);
    for (int i = 0; !err && i < 12; i++) PROMISE(CALL(isPentagon)(out[i]));
}

static void fuzz_getRes0Cells(Input *in) {
    (void)in;
    H3Index *out = ROOM(H3Index, 122);
    PROMISE(CALL(getRes0Cells)(out) == E_SUCCESS);
    promiseCells(out, 122);
}

/* ---- edges and vertexes ---- */

static void fuzz_isValidDirectedEdge(Input *in) {
    H3Index edge = takeIndex(in), origin = 0;
    PROMISE(!CALL(isValidDirectedEdge)(edge) || !CALL(getDirectedEdgeOrigin)(edge, &origin));
}

static void fuzz_cellsToDirectedEdge(Input *in) {
    H3Index a = takeIndex(in), b = takeNear(in, a), edge = 0, ends[2] = {0};
    H3Error err = CALL(cellsToDirectedEdge)(a, b, &edge);
    promiseCode(err);
    if (err) return;
    PROMISE(CALL(isValidDirectedEdge)(edge));
    PROMISE(!CALL(directedEdgeToCells)(edge, ends) && ends[0] == a && ends[1] == b);
}

static void fuzz_getDirectedEdgeOrigin(Input *in) {
    H3Index out = 0;
    H3Error err = CALL(getDirectedEdgeOrigin)(takeIndex(in), &out);
    promiseCode(err);
    PROMISE(err || CALL(isValidCell)(out));
}

static void fuzz_getDirectedEdgeDestination(Input *in) {
    H3Index out = 0;
    H3Error err = CALL(getDirectedEdgeDestination)(takeIndex(in), &out);
    promiseCode(err);
    PROMISE(err || CALL(isValidCell)(out));
}

static void fuzz_directedEdgeToCells(Input *in) {
    H3Index *out = ROOM(H3Index, 2);
    int near = 0;
    if (CALL(directedEdgeToCells)(takeIndex(in), out)) return;
    PROMISE(!CALL(areNeighborCells)(out[0], out[1], &near) && near);
}

static void fuzz_originToDirectedEdges(Input *in) {
    H3Index cell = takeIndex(in), *out = ROOM(H3Index, 6);
    H3Error err = CALL(originToDirectedEdges)(cell, out);
    PROMISE((err == E_SUCCESS) == CALL(isValidCell)(cell));
    for (int i = 0; !err && i < 6; i++) PROMISE(!out[i] || CALL(isValidDirectedEdge)(out[i]));
}

static void fuzz_reverseDirectedEdge(Input *in) {
    H3Index edge = takeIndex(in), back = 0, again = 0;
    if (CALL(reverseDirectedEdge)(edge, &back)) return;
    PROMISE(!CALL(reverseDirectedEdge)(back, &again) && again == edge && back != edge);
}

static void fuzz_directedEdgeToBoundary(Input *in) {
    CellBoundary *b = ROOM(CellBoundary, 1);
    H3Error err = CALL(directedEdgeToBoundary)(takeIndex(in), b);
    promiseCode(err);
    if (!err) promiseBoundary(b);
}

static void fuzz_cellToVertex(Input *in) {
    H3Index out = 0;
    H3Error err = CALL(cellToVertex)(takeIndex(in), takeInt(in), &out);
    promiseCode(err);
    PROMISE(err || CALL(isValidVertex)(out));
}

static void fuzz_cellToVertexes(Input *in) {
    H3Index cell = takeIndex(in), *out = ROOM(H3Index, 6);
    H3Error err = CALL(cellToVertexes)(cell, out);
    PROMISE((err == E_SUCCESS) == CALL(isValidCell)(cell));
    for (int i = 0; !err && i < 6; i++) PROMISE(!out[i] || CALL(isValidVertex)(out[i]));
}

static void fuzz_isValidVertex(Input *in) {
    H3Index vertex = takeIndex(in);
    LatLng g;
    PROMISE(!CALL(isValidVertex)(vertex) || !CALL(vertexToLatLng)(vertex, &g));
}

static void fuzz_vertexToLatLng(Input *in) {
    LatLng g;
    H3Error err = CALL(vertexToLatLng)(takeIndex(in), &g);
    promiseCode(err);
    if (!err) promisePoint(&g);
}

/* ---- text ---- */

static void fuzz_stringToH3(Input *in) {
    int64_t n = takeCount(in, 20);
    char *text = ROOM(char, n + 1);
    for (int64_t i = 0; i < n; i++) {
        uint8_t c = take8(in);
        text[i] = (char)(c < 220 ? "0123456789abcdefABCDEF"[c % 22] : c);
    }
    H3Index out = 0;
    H3Error err = CALL(stringToH3)(text, &out);
    PROMISE(err || strlen(text) <= 16);
}

static void fuzz_h3ToString(Input *in) {
    H3Index h = takeIndex(in), back = 0;
    int64_t n = takeCount(in, 20);
    char *text = ROOM(char, n);
    H3Error err = CALL(h3ToString)(h, text, (size_t)n);
    PROMISE(err || (!CALL(stringToH3)(text, &back) && back == h));
}

static void fuzz_describeH3Error(Input *in) {
    PROMISE(strlen(CALL(describeH3Error)((H3Error)takeInt(in))) > 0);
}

/* ---- arrays: the same answers as one by one, to the last bit, on every instruction set ---- */

static int same(const void *a, const void *b, int64_t n, size_t each) {
    return n == 0 || !memcmp(a, b, (size_t)n * each);
}

static int sameNumber(double a, double b) { return a == b || (a != a && b != b); }

static int64_t takeMany(Input *in) { return takeCount(in, take8(in) % 4 ? 24 : 150); }

static double takeUnit(Input *in) {
    uint8_t kind = take8(in);
    return kind < 100 ? 1.0 : kind < 200 ? 3.141592653589793 / 180.0 : takeNumber(in);
}

static void takeLevel(Input *in) { CALL(useSimdLevel)(take8(in) % 4); }

static void fuzz_useSimdLevel(Input *in) {
    int level = CALL(useSimdLevel)(takeInt(in));
    PROMISE(level >= 0 && level <= 2);
}

static void fuzz_simdLevelInUse(Input *in) {
    int level = CALL(useSimdLevel)(take8(in) % 4);
    PROMISE(CALL(simdLevelInUse)() == level);
}

static void fuzz_latLngsToCells(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in), stride = 1 + take8(in) % 3, failed = 0;
    double unit = takeUnit(in);
    int res = takeRes(in);
    double *lat = takeNumbers(in, n ? (n - 1) * stride + 1 : 0);
    double *lng = takeNumbers(in, n ? (n - 1) * stride + 1 : 0);
    H3Index *out = ROOM(H3Index, n);
    int64_t told = CALL(latLngsToCells)(lat, lng, stride, unit, n, res, out);
    for (int64_t i = 0; i < n; i++) {
        LatLng g = {lat[i * stride] * unit, lng[i * stride] * unit};
        H3Index cell = 0;
        if (CALL(latLngToCell)(&g, res, &cell)) failed++, cell = 0;
        PROMISE(told < 0 || cell == out[i]);
    }
    PROMISE(told == failed || (told == -(int64_t)E_RES_DOMAIN && failed == n));
}

static void fuzz_cellsToLatLngs(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in), stride = 1 + take8(in) % 3, failed = 0;
    double unit = takeUnit(in), *lat = ROOM(double, n ? (n - 1) * stride + 1 : 0);
    double *lng = ROOM(double, n ? (n - 1) * stride + 1 : 0);
    H3Index *cells = takeIndexes(in, n);
    int64_t told = CALL(cellsToLatLngs)(cells, n, unit, lat, lng, stride);
    for (int64_t i = 0; i < n; i++) {
        LatLng g = {NAN, NAN};
        failed += CALL(cellToLatLng)(cells[i], &g) != E_SUCCESS;
        PROMISE(sameNumber(g.lat * unit, lat[i * stride]));
        PROMISE(sameNumber(g.lng * unit, lng[i * stride]));
    }
    PROMISE(told == failed);
}

static void fuzz_cellsToBoundaries(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in), failed = 0;
    double unit = takeUnit(in), *out = ROOM(double, 20 * n);
    int32_t *counts = ROOM(int32_t, n);
    H3Index *cells = takeIndexes(in, n);
    int64_t told = CALL(cellsToBoundaries)(cells, n, unit, out, counts);
    for (int64_t i = 0; i < n; i++) {
        CellBoundary b = {0};
        int bad = CALL(cellToBoundary)(cells[i], &b) != E_SUCCESS;
        failed += bad;
        PROMISE(counts[i] == (bad ? -1 : b.numVerts));
        for (int k = 0; k < 10; k++) {
            double lat = k < b.numVerts ? b.verts[k].lat * unit : NAN;
            double lng = k < b.numVerts ? b.verts[k].lng * unit : NAN;
            PROMISE(sameNumber(out[20 * i + 2 * k], lat));
            PROMISE(sameNumber(out[20 * i + 2 * k + 1], lng));
        }
    }
    PROMISE(told == failed);
}

static void fuzz_gridDisks(Input *in) {
    takeLevel(in);
    int64_t n = takeCount(in, 12);
    int k = takeInt(in) % 14;
    H3Index *cells = takeIndexes(in, n), *out = ROOM(H3Index, n * diskRoom(k));
    H3Index *one = ROOM(H3Index, diskRoom(k));
    int64_t *offsets = ROOM(int64_t, n + 1);
    int64_t told = CALL(gridDisks)(cells, n, k, out, offsets);
    PROMISE(k < 0 ? told == -(int64_t)E_DOMAIN : told == offsets[n] && offsets[0] == 0);
    for (int64_t i = 0; k >= 0 && i < n; i++) {
        int64_t count = 0;
        if (!CALL(gridDisk)(cells[i], k, one))
            while (count < diskRoom(k) && one[count]) count++;
        PROMISE(offsets[i + 1] - offsets[i] == count);
        PROMISE(same(out + offsets[i], one, count, sizeof *one));
    }
}

static void fuzz_gridDistances(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in), failed = 0, *out = ROOM(int64_t, n);
    H3Index *a = takeIndexes(in, n), *b = takeIndexes(in, n);
    int64_t told = CALL(gridDistances)(a, b, n, out);
    for (int64_t i = 0; i < n; i++) {
        int64_t steps = -1;
        failed += CALL(gridDistance)(a[i], b[i], &steps) != E_SUCCESS;
        PROMISE(out[i] == steps);
    }
    PROMISE(told == failed);
}

static void relatives(Input *in, int64_t (*all)(const H3Index *, int64_t, int, H3Index *),
                      H3Error (*one)(H3Index, int, H3Index *)) {
    takeLevel(in);
    int64_t n = takeMany(in), failed = 0;
    int res = takeRes(in);
    H3Index *cells = takeIndexes(in, n), *out = ROOM(H3Index, n);
    int64_t told = all(cells, n, res, out);
    for (int64_t i = 0; i < n; i++) {
        H3Index relative = 0;
        if (one(cells[i], res, &relative)) failed++, relative = 0;
        PROMISE(told < 0 || out[i] == relative);
    }
    PROMISE(told == failed || (told == -(int64_t)E_RES_DOMAIN && failed == n));
}

static void fuzz_cellsToParents(Input *in) {
    relatives(in, CALL(cellsToParents), CALL(cellToParent));
}
static void fuzz_cellsToCenterChildren(Input *in) {
    relatives(in, CALL(cellsToCenterChildren), CALL(cellToCenterChild));
}

static void fuzz_areValidCells(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in);
    H3Index *cells = takeIndexes(in, n);
    uint8_t *out = ROOM(uint8_t, n);
    PROMISE(CALL(areValidCells)(cells, n, out) >= 0);
    for (int64_t i = 0; i < n; i++) PROMISE(out[i] == CALL(isValidCell)(cells[i]));
}

static void fuzz_getResolutions(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in);
    H3Index *cells = takeIndexes(in, n);
    int32_t *out = ROOM(int32_t, n);
    PROMISE(CALL(getResolutions)(cells, n, out) >= 0);
    for (int64_t i = 0; i < n; i++) {
        int valid = CALL(isValidCell)(cells[i]);
        PROMISE(out[i] == (valid ? CALL(getResolution)(cells[i]) : -1));
    }
}

static void fuzz_cellAreas(Input *in) {
    takeLevel(in);
    int64_t n = takeMany(in), failed = 0;
    double unit = takeUnit(in), *out = ROOM(double, n);
    H3Index *cells = takeIndexes(in, n);
    int64_t told = CALL(cellAreas)(cells, n, unit, out);
    for (int64_t i = 0; i < n; i++) {
        double area = NAN;
        failed += CALL(cellAreaRads2)(cells[i], &area) != E_SUCCESS;
        PROMISE(sameNumber(out[i], area * unit));
    }
    PROMISE(told == failed);
}

#define ENTRY(name) {#name, fuzz_##name}
const Named indexEntries[] = {
    ENTRY(latLngToCell), ENTRY(cellToLatLng), ENTRY(cellToBoundary), ENTRY(planeToLatLng),
    ENTRY(latLngToPlane), ENTRY(planeToCells), ENTRY(degsToRads), ENTRY(radsToDegs),
    ENTRY(greatCircleDistanceRads), ENTRY(greatCircleDistanceKm), ENTRY(greatCircleDistanceM),
    ENTRY(cellAreaRads2), ENTRY(cellAreaKm2), ENTRY(cellAreaM2), ENTRY(edgeLengthRads),
    ENTRY(edgeLengthKm), ENTRY(edgeLengthM), ENTRY(getHexagonAreaAvgKm2),
    ENTRY(getHexagonAreaAvgM2), ENTRY(getHexagonEdgeLengthAvgKm),
    ENTRY(getHexagonEdgeLengthAvgM), ENTRY(maxFaceCount), ENTRY(getIcosahedronFaces),
    ENTRY(maxGridDiskSize), ENTRY(maxGridRingSize), ENTRY(gridDisk), ENTRY(gridDiskUnsafe),
    ENTRY(gridRing), ENTRY(gridRingUnsafe), ENTRY(gridDiskDistances),
    ENTRY(gridDiskDistancesSafe), ENTRY(gridDiskDistancesUnsafe), ENTRY(gridDisksUnsafe),
    ENTRY(gridDistance), ENTRY(areNeighborCells), ENTRY(gridPathCellsSize), ENTRY(gridPathCells),
    ENTRY(cellToLocalIj), ENTRY(localIjToCell), ENTRY(cellToParent), ENTRY(cellToCenterChild),
    ENTRY(cellToChildrenSize), ENTRY(cellToChildren), ENTRY(cellToChildPos),
    ENTRY(childPosToCell), ENTRY(compactCells), ENTRY(uncompactCellsSize), ENTRY(uncompactCells),
    ENTRY(isValidCell), ENTRY(isValidIndex), ENTRY(isPentagon), ENTRY(isResClassIII),
    ENTRY(getResolution), ENTRY(getBaseCellNumber), ENTRY(getIndexDigit), ENTRY(constructCell),
    ENTRY(getNumCells), ENTRY(res0CellCount), ENTRY(pentagonCount), ENTRY(getPentagons),
    ENTRY(getRes0Cells), ENTRY(isValidDirectedEdge), ENTRY(cellsToDirectedEdge),
    ENTRY(getDirectedEdgeOrigin), ENTRY(getDirectedEdgeDestination), ENTRY(directedEdgeToCells),
    ENTRY(originToDirectedEdges), ENTRY(reverseDirectedEdge), ENTRY(directedEdgeToBoundary),
    ENTRY(cellToVertex), ENTRY(cellToVertexes), ENTRY(isValidVertex), ENTRY(vertexToLatLng),
    ENTRY(stringToH3), ENTRY(h3ToString), ENTRY(describeH3Error), ENTRY(useSimdLevel),
    ENTRY(simdLevelInUse),
    ENTRY(latLngsToCells), ENTRY(cellsToLatLngs), ENTRY(cellsToBoundaries), ENTRY(gridDisks),
    ENTRY(gridDistances), ENTRY(cellsToParents), ENTRY(cellsToCenterChildren),
    ENTRY(areValidCells), ENTRY(getResolutions), ENTRY(cellAreas), {NULL, NULL},
};
