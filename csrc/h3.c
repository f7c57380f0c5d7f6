/* h3.c - see h3.h for the contract of every public function.
 *
 * How it works, in five steps:
 *   1. An icosahedron's 20 faces each carry a flat plane (gnomonic: straight lines are great
 *      circles). In it the cells of a resolution are a hexagonal lattice with a point on the
 *      face centre, res 0 points 2 - golden ratio apart, each level sqrt(7) finer.
 *   2. Lattice points are Eisenstein integers a + b w with w a third of a turn:
 *
 *            J (0,1)      IJ (1,1)          digit of a step (a, b):
 *                  \      /                   4a + 2b - 7 min(a, b, 0)
 *      JK (-1,0) --- 0 --- I (1,0)            K 1, J 2, JK 3, I 4, IK 5, IJ 6
 *                  /      \                 and bits i, j, k of a digit are the step (i-k, j-k)
 *           K (-1,-1)    IK (0,-1)
 *
 *      Going up a level is a division by 2 + w or its mirror, rounded; the rest is the digit.
 *      Two levels together are a division by 7: even levels have the face's own axes.
 *   3. At res 0 a face holds 10 lattice points; over all faces they are the 122 base cells.
 *   4. Faces are unfolded over their edges by turning 60 degrees about the edge's middle,
 *      itself a lattice point at every resolution: exact in integers.
 *   5. Around a pentagon five faces meet, one digit (K) does not exist: each face carries
 *      exactly one of the five others.
 *
 * Everything is derived at start-up from the 20 face centres, the direction of each first
 * axis, and a home face for each base cell.
 *
 * h3_lattice.h holds what everything is made of, this file the functions for single cells, and
 * h3_arrays.h those for arrays. All do the same operations in the same order, and no fused ones:
 * results are the same bits everywhere. */

#include "h3.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "h3_lattice.h"

/* ---- instruction sets ------------------------------------------------------------------ */

/* LEVELS(name, body, parameters, arguments) makes `name` a function that runs the inlined `body`
 * compiled for the best instruction set of this machine. Elsewhere than on x86-64 there is one set
 * (arm64: NEON). */
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#define MOST_LEVEL 2
#ifdef __clang__
#define TUNE
#else
#define TUNE ",tune=znver3" /* tables are looked up one by one: gathers are slow since Downfall */
#endif
#define AVX2 __attribute__((target("avx2" TUNE)))
#define AVX512 __attribute__((target("avx512f,avx512cd,avx512bw,avx512dq,avx512vl" TUNE)))
#define LEVELS_OF(type, give, name, body, parameters, arguments)        \
    static type name##Plain parameters { give body arguments; }         \
    AVX2 static type name##Avx2 parameters { give body arguments; }     \
    AVX512 static type name##Avx512 parameters { give body arguments; } \
    static type name parameters {                                       \
        switch (simdLevel()) {                                          \
        case 2: give name##Avx512 arguments; break;                     \
        case 1: give name##Avx2 arguments; break;                       \
        default: give name##Plain arguments;                            \
        }                                                               \
    }

static int machineLevel(void) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) return 0; /* xgetbv */
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & 1u << 5)) return 0;
    const unsigned set = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F DQ CD BW VL */
    return (low & 0xe6) == 0xe6 && (b & set) == set ? 2 : 1;
}
#else
#define MOST_LEVEL 0
#define LEVELS_OF(type, give, name, body, parameters, arguments) \
    static type name parameters { give body arguments; }
static int machineLevel(void) { return 0; }
#endif

#define LEVELS(name, body, parameters, arguments) \
    LEVELS_OF(void, , name, body, parameters, arguments)

static atomic_int levelInUse = -1;

INLINE int simdLevel(void) {
    int level = atomic_load_explicit(&levelInUse, memory_order_relaxed);
    return level >= 0 ? level : H3_EXPORT(useSimdLevel)(MOST_LEVEL);
}

int H3_EXPORT(simdLevelInUse)(void) { return simdLevel(); }

int H3_EXPORT(useSimdLevel)(int level) {
    int most = machineLevel();
    level = level < 0 ? 0 : level > most ? most : level;
    atomic_store_explicit(&levelInUse, level, memory_order_relaxed);
    return level;
}

static void ready(void);

/* The check at the door of most functions: is it a cell? Also sees to the tables. */
static int isCell(H3Index h) {
    ready();
    return (int)validity(h);
}

/* ---- cells and lattice points ---------------------------------------------------------- */

/* Put a lattice point of an even level on the face where it lies; returns the turns. */
static int settle(Spot *s, int even) {
    int turns = 0;
    for (int i = 0, e; i < 4 && (e = edgeBeyond(s->a, s->b, T.limit[even])) >= 0; i++)
        turns += unfold(s, e, T.limit[even]);
    return turns;
}

/* A cell around a pentagon may lie on the edge between two of its sextants. Either face is right;
 * the one nearer to JK is taken, so that outlines start at the same corner as uber/h3's. */
static int chooseSide(Spot *s, int base, int even) {
    static const uint8_t rank[6] = {0, 1, 2, 4, 0, 3}; /* of sextants I, IJ, J, JK, -, IK */
    int over[3] = {s->a + s->b, s->b - 2 * s->a, s->a - 2 * s->b}, here = -1, there = -1;
    for (int e = 0; e < 3; e++) {
        if (over[e] != T.limit[even]) continue;
        for (int i = 0; i < 5; i++) {
            int face = T.start[base][digitOf[five[i]]].face;
            if (face == s->face) here = five[i];
            if (face == T.acrossFace[s->face][e]) there = five[i];
        }
        if (here < 0 || there < 0 || rank[there] <= rank[here]) return 0;
        return unfold(s, e, T.limit[even]);
    }
    return 0;
}

/* The lattice point of a valid index at its own level, if even, else at the next; on the face
 * where its centre lies. `turns`: from the index's digits to that face's axes. */
static Spot decodeEven(H3Index h, int *turns) {
    int res = resOf(h), base = baseOf(h), even = res + (res & 1);
    int lead = T.pentagon[base] ? leading(h) : CENTER, slot = 8 * base + lead;
    int64_t d = turnDigits((int64_t)(h & usedDigits(res)), T.startFlags[slot]);
    int64_t at = T.startAt[slot];
    for (int r = 2; r <= even; r += 2)
        at = 7 * at + T.pair[r > MAX_H3_RES ? (d & 7) << 3 : (d >> DIGIT_SHIFT(r)) & 63];
    int b = (int)(int32_t)at, a = (int)((at - b) / (INT64_C(1) << 32));
    Spot s = {(int)T.startFace[slot], a, b};
    *turns = (int)T.startTurns[slot] + settle(&s, even);
    if (lead) *turns += chooseSide(&s, base, even);
    return s;
}

/* The same at its own level. */
static Spot decode(H3Index h, int *turns) {
    Spot s = decodeEven(h, turns);
    if (resOf(h) & 1) up(resOf(h) + 1, &s.a, &s.b);
    return s;
}

/* Index bits and turns at the end of a lattice point's chain of parents. */
static H3Index topOf(Spot s) {
    if (s.a < -3 || s.a > 3 || s.b < -3 || s.b > 3) return T.top[s.face][3][3];
    return T.top[s.face][s.a + 3][s.b + 3];
}

/* A cell's chain of parents: lattice points of every level and the digits down to there, in the
 * face's axes. The next cell is often a sibling. face is -1 at the beginning. */
typedef struct {
    int face, a[MAX_H3_RES + 1], b[MAX_H3_RES + 1];
    H3Index digits[MAX_H3_RES + 1];
} Trail;

static void follow(Trail *t, Spot s, int res) {
    int known = t->face == s.face, r = res, a = s.a, b = s.b, digit[MAX_H3_RES + 1];
    for (; r > 0 && !(known && t->a[r] == a && t->b[r] == b); r--) {
        t->a[r] = a;
        t->b[r] = b;
        digit[r] = upTo(r, a, b, &a, &b);
    }
    if (r == 0) {
        t->face = s.face;
        t->a[0] = a;
        t->b[0] = b;
        t->digits[0] = 0;
    }
    while (r++ < res) t->digits[r] = t->digits[r - 1] | (H3Index)digit[r] << DIGIT_SHIFT(r);
}

/* The index at the end of a trail, and the turns from the face's axes to the index's digits
 * (NULL: not asked). */
static H3Index finish(const Trail *t, int res, int *turns) {
    H3Index top = topOf((Spot){t->face, t->a[0], t->b[0]});
    H3Index d = (H3Index)turnDigits((int64_t)t->digits[res], (int64_t)(top & TOP_TURNS));
    int extra = 0;
    if ((top & TOP_PENTAGON) && leadsWithK((int64_t)d)) {
        extra = top & TOP_FORWARD ? 1 : 5;
        d = (H3Index)turnDigits((int64_t)d, turnFlags(extra));
    }
    if (turns) *turns = (int)((top & 255) >> TOP_SHIFT) + extra;
    return (blank(res, 0) ^ usedDigits(res)) | (top & ~(H3Index)DIGITS) | d;
}

/* The index of a lattice point that lies on its face. */
static H3Index encodeOnFace(Spot s, int res, int *turns) {
    Trail t;
    t.face = -1;
    follow(&t, s, res);
    return finish(&t, res, turns);
}

/* The index of any lattice point, and the turns to its digits. */
static H3Index encode(Spot s, int res, int *turns) {
    int even = res + (res & 1), moved = 0;
    Spot e = s;
    if (res & 1) down(even, &e.a, &e.b);
    if (edgeBeyond(e.a, e.b, T.limit[even]) >= 0) {
        moved = settle(&e, even);
        if (res & 1) up(even, &e.a, &e.b);
        s = e;
    }
    H3Index h = encodeOnFace(s, res, turns);
    if (turns) *turns = (*turns + moved) % 6;
    return h;
}

/* The neighbour in the direction of a digit, as the cell's own digits count; H3_NULL where K does
 * not exist. `turns` (may be NULL): from the cell's digits to the neighbour's. */
static H3Index neighbourAt(H3Index cell, int digit, int *turns) {
    int res = resOf(cell), here, there;
    Spot s;
    if (isFive(cell)) {
        if (digit == K_DIGIT) return H3_NULL;
        s = T.start[baseOf(cell)][digit];
        here = (int)T.startTurns[8 * baseOf(cell) + digit];
        grow(res, &s.a, &s.b);
    } else {
        s = decode(cell, &here);
    }
    int step = turnDigit(here, digit);
    s.a += stepA[step];
    s.b += stepB[step];
    H3Index h = encode(s, res, &there);
    if (turns) *turns = (here + there) % 6;
    return h;
}

/* All neighbours of a cell, counter-clockwise, each once; 5 or 6 of them. */
static int neighbours(H3Index cell, H3Index out[6]) {
    int count = 0, turns, res = resOf(cell);
    if (isFive(cell)) {
        for (int i = 0; i < 5; i++) out[i] = neighbourAt(cell, digitOf[five[i]], NULL);
        return 5;
    }
    Spot s = decode(cell, &turns);
    for (int k = 0; k < 6; k++) {
        Spot n = {s.face, s.a + stepA[digitOf[k]], s.b + stepB[digitOf[k]]};
        out[count++] = encode(n, res, NULL);
    }
    return count;
}

static void buildAround(void) {
    for (int c = 0; c < NUM_BASE_CELLS; c++)
        for (int digit = 1; digit < 7; digit++) {
            int turns = 0;
            H3Index h = neighbourAt(blank(0, c), digit, &turns);
            T.around[c][digit] = h ? (uint8_t)baseOf(h) : 255;
            T.aroundTurns[c][digit] = (uint8_t)turns;
        }
}

static void build(void) {
    double whole7 = 1.0;
    int limit = REACH, a = 1, b = 0;
    for (int r = 0; r <= MAX_H3_RES + 1; r++) { /* exact powers, no accumulated rounding */
        T.scale[r] = r & 1 ? SPACING0 / whole7 / sqrt(7.0) : SPACING0 / whole7;
        T.limit[r] = limit;
        if (r) down(r, &a, &b);
        T.grown[r] = (Spot){0, a, b};
        if (r & 1) {
            whole7 *= 7.0;
            limit *= 7;
        }
    }
    buildFaces();
    buildEdges();
    buildBaseCells();
    buildTurns();
    buildTop();
    buildStarts();
    buildStates();
    buildAround();
    for (int f = 0; f < FACES; f++) addImages(f, f, (Image){0, 0, 0}, MOST_EDGES, UINT32_C(1) << f);
}

static void ready(void) {
    static atomic_int state; /* 0 nothing, 1 somebody builds, 2 done */
    if (atomic_load_explicit(&state, memory_order_acquire) == 2) return;
    int expected = 0;
    if (atomic_compare_exchange_strong(&state, &expected, 1)) {
        build();
        atomic_store_explicit(&state, 2, memory_order_release);
    }
    while (atomic_load_explicit(&state, memory_order_acquire) != 2) {
    }
}

/* ---- points ---------------------------------------------------------------------------- */

/* The nearest lattice point: q along I, r along J, rounded together. */
INLINE void roundHex(double q, double r, double *a, double *b) {
    double s = -q - r, rq = whole(q), rr = whole(r), rs = whole(s);
    double dq = fabs(rq - q), dr = fabs(rr - r), ds = fabs(rs - s);
    int worstQ = (dq > dr) & (dq > ds), worstR = (dr > ds) & !worstQ;
    double bestQ = worstQ ? -rr - rs : rq;
    *b = worstR ? -rq - rs : rr;
    *a = bestQ + *b;
}

/* The face of a point of the sphere and the nearest point of its lattice; perSpacing is 1 over
 * the spacing. */
INLINE void locate(double x, double y, double z, int odd, double perSpacing, int64_t *face,
                   double *a, double *b) {
    double best = -1.0;
    int64_t which = 0;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 10
#endif
    for (int f = 0; f < 10; f++) {
        double c = x * T.pairs[f][0] + y * T.pairs[f][1] + z * T.pairs[f][2], far = fabs(c);
        int64_t at = c < 0.0 ? T.back[f] : T.front[f];
        which = far > best ? at : which;
        best = far > best ? far : best;
    }
    double(*axis)[FACES] = T.axes[odd], scale = perSpacing / best;
    double q = (x * axis[0][which] + y * axis[1][which] + z * axis[2][which]) * scale;
    double r = (x * axis[3][which] + y * axis[4][which] + z * axis[5][which]) * scale;
    roundHex(q, r, a, b);
    *face = which;
}

static H3Index cellOfVec(Vec p, int res) {
    int64_t face;
    double a, b;
    locate(p.x, p.y, p.z, res & 1, 1.0 / T.scale[res], &face, &a, &b);
    Spot s = {(int)face, (int)a, (int)b};
    return encodeOnFace(s, res, NULL);
}

H3Error H3_EXPORT(latLngToCell)(const LatLng *g, int res, H3Index *out) {
    ready();
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    if (!FINITE(g->lat) || !FINITE(g->lng)) return E_LATLNG_DOMAIN;
    *out = cellOfVec(vecOfAny(g->lat, g->lng), res);
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToLatLng)(H3Index cell, LatLng *g) {
    if (!isCell(cell)) return E_CELL_INVALID;
    int turns;
    double x, y;
    Vec p;
    Spot s = decodeEven(cell, &turns);
    planeOf(T.scale[resOf(cell) + (resOf(cell) & 1)], s.a, s.b, &x, &y);
    pointOf(s.face, x, y, &p);
    geoOf(p, &g->lat, &g->lng);
    return E_SUCCESS;
}

H3Error H3_EXPORT(planeToCells)(int face, const double *u, const double *v, int64_t n, int res,
                                H3Index *out) {
    ready();
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    if (face < 0 || face >= FACES) return E_DOMAIN;
    /* On the face by a margin wider than any rounding: no need to go over the sphere. */
    const double inside = 0.3819, perSpacing = 1.0 / T.scale[res];
    double lastA = 0.0, lastB = 0.0; /* of out[i - 1]; points in a row often share a cell */
    int known = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = 0.5 * u[i], y = 0.5 * SQRT3 * v[i], a, b;
        if (x + y < inside && -u[i] < inside && x - y < inside) {
            double s = res & 1 ? u[i] * COS_TURN3 + v[i] * SIN_TURN3 : u[i];
            double r = (res & 1 ? v[i] * COS_TURN3 - u[i] * SIN_TURN3 : v[i]) * (2.0 / SQRT3);
            roundHex((s - 0.5 * r) * perSpacing, r * perSpacing, &a, &b);
            Spot at = {face, (int)a, (int)b};
            out[i] = known && a == lastA && b == lastB ? out[i - 1] : encode(at, res, NULL);
            known = 1;
            lastA = a;
            lastB = b;
            continue;
        }
        known = 0;
        LatLng g;
        H3Error err = H3_EXPORT(planeToLatLng)(face, u[i], v[i], &g);
        if (!err) err = H3_EXPORT(latLngToCell)(&g, res, &out[i]);
        if (err) return err;
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(planeToLatLng)(int face, double u, double v, LatLng *g) {
    ready();
    if (face < 0 || face >= FACES || !FINITE(u) || !FINITE(v)) return E_DOMAIN;
    Vec p;
    pointOf(face, u, v, &p);
    geoOf(p, &g->lat, &g->lng);
    return E_SUCCESS;
}

H3Error H3_EXPORT(latLngToPlane)(int face, const LatLng *g, double *u, double *v) {
    ready();
    if (face < 0 || face >= FACES) return E_DOMAIN;
    if (!FINITE(g->lat) || !FINITE(g->lng)) return E_LATLNG_DOMAIN;
    Vec p = vecOfAny(g->lat, g->lng);
    double c = dot(p, T.n[face]);
    if (c < 1e-6) return E_DOMAIN; /* a quarter turn away and more */
    *u = dot(p, T.ex[face]) / c;
    *v = dot(p, T.ey[face]) / c;
    return E_SUCCESS;
}

double H3_EXPORT(degsToRads)(double degrees) { return degrees * (PI / 180.0); }
double H3_EXPORT(radsToDegs)(double radians) { return radians * (180.0 / PI); }

double H3_EXPORT(greatCircleDistanceRads)(const LatLng *a, const LatLng *b) {
    double sa, ca, so, co, c1, c2, s;
    sinCosAny(0.5 * (b->lat - a->lat), &sa, &ca);
    sinCosAny(0.5 * (b->lng - a->lng), &so, &co);
    sinCosAny(a->lat, &s, &c1);
    sinCosAny(b->lat, &s, &c2);
    double half = sa * sa + so * so * c1 * c2; /* of the angle: its sine squared */
    half = half < 1.0 ? half : 1.0;
    return 2.0 * angleOf(sqrt(half), sqrt(1.0 - half));
}

double H3_EXPORT(greatCircleDistanceKm)(const LatLng *a, const LatLng *b) {
    return H3_EXPORT(greatCircleDistanceRads)(a, b) * EARTH_KM;
}

double H3_EXPORT(greatCircleDistanceM)(const LatLng *a, const LatLng *b) {
    return H3_EXPORT(greatCircleDistanceKm)(a, b) * 1000.0;
}

/* ---- outlines -------------------------------------------------------------------------- */

/* Outlines are computed on the even level at or below the cell, in thirds of its lattice, where
 * corners are lattice points too. */
typedef struct {
    int even, limit;
    double scale;
} Fine;

static Fine fineOf(int res) {
    Fine f;
    f.even = res + (res & 1);
    f.limit = 3 * T.limit[f.even];
    f.scale = T.scale[f.even] / 3.0;
    return f;
}

static void cornerOf(int res, int k, int *a, int *b) {
    *a = cornerA[k % 6];
    *b = cornerB[k % 6];
    if (res & 1) down(res + 1, a, b);
}

/* Vertices of an outline as they come: points that need not have length 1, and their faces. */
typedef struct {
    int count, faces;
    Vec points[MAX_CELL_BNDRY_VERTS];
} Outline;

static void addSpot(Outline *o, Spot s, Fine fine) {
    double x, y;
    for (int i = 0, e; i < 4 && (e = edgeBeyond(s.a, s.b, fine.limit)) >= 0; i++)
        unfold(&s, e, fine.limit);
    planeOf(fine.scale, s.a, s.b, &x, &y);
    o->faces |= 1 << s.face;
    pointOf(s.face, x, y, &o->points[o->count++]);
}

/* Where the segment p0-p1 of a face's plane meets edge e. */
static void addCrossing(Outline *o, int face, int e, Spot p0, Spot p1, Fine fine) {
    static const double nx[3] = {0.5, -1.0, 0.5}, ny[3] = {0.5 * SQRT3, 0.0, -0.5 * SQRT3};
    double x0, y0, x1, y1;
    planeOf(fine.scale, p0.a, p0.b, &x0, &y0);
    planeOf(fine.scale, p1.a, p1.b, &x1, &y1);
    double d0 = nx[e] * x0 + ny[e] * y0 - SPACING0, d1 = nx[e] * x1 + ny[e] * y1 - SPACING0;
    double t = d0 / (d0 - d1);
    pointOf(face, x0 + t * (x1 - x0), y0 + t * (y1 - y0), &o->points[o->count++]);
}

/* `count` corners of a hexagon from `first` on; at odd levels, where an edge crosses to another
 * face, it bends there. Six corners close the outline, fewer end at the last. */
static void hexagonOutline(Spot s, int res, int first, int count, Outline *o) {
    Fine fine = fineOf(res);
    Spot last = {0, 0, 0};
    int lastBeyond = -1;
    for (int i = 0; i <= count; i++) {
        int a, b;
        cornerOf(res, first + i, &a, &b);
        Spot now = {s.face, 3 * s.a + a, 3 * s.b + b};
        int beyond = edgeBeyond(now.a, now.b, fine.limit);
        if (i > 0 && (res & 1) && beyond != lastBeyond && (i < count || count == 6)) {
            int e = beyond >= 0 ? beyond : lastBeyond;
            Spot in = beyond >= 0 ? last : now;
            int over[3] = {in.a + in.b, in.b - 2 * in.a, in.a - 2 * in.b};
            if (over[e] < fine.limit) addCrossing(o, s.face, e, last, now, fine);
        }
        if (i < count) addSpot(o, now, fine);
        last = now;
        lastBeyond = beyond;
    }
}

/* The same of a pentagon, whose sextants I, IJ, J, JK, IK each lie on a face of their own. Corner
 * i lies beside sextant i, counter-clockwise at even levels, else clockwise. */
static const uint8_t pentagonOrder[2][5] = {{0, 1, 2, 3, 5}, {1, 2, 3, 5, 0}};

static void pentagonOutline(H3Index cell, int first, int count, Outline *o) {
    int res = resOf(cell);
    Fine fine = fineOf(res);
    for (int i = 0; i < count; i++) {
        Spot s = T.start[baseOf(cell)][digitOf[pentagonOrder[res & 1][(first + i) % 5]]];
        int sext = sextantFrom(s.a, s.b), a, b, c, d;
        grow(fine.even, &s.a, &s.b);
        cornerOf(res, res & 1 ? sext + 5 : sext, &a, &b);
        Spot here = {s.face, 3 * s.a + a, 3 * s.b + b};
        addSpot(o, here, fine);
        if (!(res & 1) || (i == count - 1 && count < 5)) continue;
        cornerOf(res, sext, &c, &d);
        Spot next = {s.face, 3 * s.a + c, 3 * s.b + d};
        addCrossing(o, s.face, edgeBeyond(next.a, next.b, fine.limit), here, next, fine);
    }
}

static int cornersOf(H3Index cell) { return isFive(cell) ? 5 : 6; }

static void outlineOf(H3Index cell, int first, int count, Outline *o) {
    int turns;
    o->count = o->faces = 0;
    if (isFive(cell))
        pentagonOutline(cell, first, count, o);
    else
        hexagonOutline(decodeEven(cell, &turns), resOf(cell), first, count, o);
}

static void boundaryOf(H3Index cell, int first, int count, CellBoundary *gp) {
    Outline o;
    outlineOf(cell, first, count, &o);
    gp->numVerts = o.count;
    for (int i = 0; i < o.count; i++) geoOf(o.points[i], &gp->verts[i].lat, &gp->verts[i].lng);
}

H3Error H3_EXPORT(cellToBoundary)(H3Index cell, CellBoundary *gp) {
    if (!isCell(cell)) return E_CELL_INVALID;
    boundaryOf(cell, 0, cornersOf(cell), gp);
    return E_SUCCESS;
}

H3Error H3_EXPORT(maxFaceCount)(H3Index cell, int *out) {
    if (!isCell(cell)) return E_CELL_INVALID;
    *out = H3_EXPORT(isPentagon)(cell) ? 5 : 2;
    return E_SUCCESS;
}

H3Error H3_EXPORT(getIcosahedronFaces)(H3Index cell, int *out) {
    int most, n = 0;
    H3Error err = H3_EXPORT(maxFaceCount)(cell, &most);
    if (err) return err;
    Outline o;
    outlineOf(cell, 0, cornersOf(cell), &o);
    for (int i = 0; most == 5 && i < 5; i++)
        o.faces |= 1 << T.start[baseOf(cell)][digitOf[five[i]]].face;
    for (int f = 0; f < FACES && n < most; f++)
        if (o.faces >> f & 1) out[n++] = f;
    while (n < most) out[n++] = -1;
    return E_SUCCESS;
}

/* ---- areas and lengths ----------------------------------------------------------------- */

/* The solid angle of the triangle p, q, r by the tangent of its half; the points need not have
 * length 1. */
static double solidAngle(Vec p, Vec q, Vec r, double determinant) {
    double a = sqrt(dot(p, p)), b = sqrt(dot(q, q)), c = sqrt(dot(r, r));
    return 2.0 * angleOf(determinant, a * b * c + dot(p, q) * c + dot(q, r) * a + dot(r, p) * b);
}

H3Error H3_EXPORT(cellAreaRads2)(H3Index cell, double *out) {
    if (!isCell(cell)) return E_CELL_INVALID;
    Outline o;
    outlineOf(cell, 0, cornersOf(cell), &o);
    double sum = 0.0, rest = 0.0;
    Vec middle = {0, 0, 0};
    for (int i = 0; i < o.count; i++) middle = along(middle, 1.0, unit(o.points[i]));
    middle = unit(middle);
    for (int i = 0; i < o.count; i++) {
        Vec p = o.points[i], q = o.points[(i + 1) % o.count];
        /* Of differences, so that nothing is lost for small cells; p.n, q.n near middle.n = 1. */
        p = unit(p);
        q = unit(q);
        double det = dot(middle, cross(along(p, -1.0, middle), along(q, -1.0, middle)));
        double part = solidAngle(middle, p, q, det) - rest, next = sum + part;
        rest = (next - sum) - part; /* what the sum lost */
        sum = next;
    }
    *out = sum;
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellAreaKm2)(H3Index cell, double *out) {
    H3Error err = H3_EXPORT(cellAreaRads2)(cell, out);
    if (!err) *out *= EARTH_KM * EARTH_KM;
    return err;
}

H3Error H3_EXPORT(cellAreaM2)(H3Index cell, double *out) {
    H3Error err = H3_EXPORT(cellAreaKm2)(cell, out);
    if (!err) *out *= 1e6;
    return err;
}

H3Error H3_EXPORT(edgeLengthRads)(H3Index edge, double *length) {
    CellBoundary b;
    H3Error err = H3_EXPORT(directedEdgeToBoundary)(edge, &b);
    if (err) return err;
    *length = 0.0;
    for (int i = 0; i + 1 < b.numVerts; i++)
        *length += H3_EXPORT(greatCircleDistanceRads)(&b.verts[i], &b.verts[i + 1]);
    return E_SUCCESS;
}

H3Error H3_EXPORT(edgeLengthKm)(H3Index edge, double *length) {
    H3Error err = H3_EXPORT(edgeLengthRads)(edge, length);
    if (!err) *length *= EARTH_KM;
    return err;
}

H3Error H3_EXPORT(edgeLengthM)(H3Index edge, double *length) {
    H3Error err = H3_EXPORT(edgeLengthKm)(edge, length);
    if (!err) *length *= 1000.0;
    return err;
}

H3Error H3_EXPORT(getHexagonAreaAvgKm2)(int res, double *out) {
    int64_t cells;
    double pentagon = 0.0;
    H3Error err = H3_EXPORT(getNumCells)(res, &cells);
    if (err) return err;
    ready();
    for (int base = 0; base < NUM_BASE_CELLS; base++) /* the 12 pentagons are all alike */
        if (T.pentagon[base]) {
            H3_EXPORT(cellAreaKm2)(centreChild(blank(0, base), res), &pentagon);
            break;
        }
    *out = (4.0 * PI * EARTH_KM * EARTH_KM - 12.0 * pentagon) / (double)(cells - 12);
    return E_SUCCESS;
}

H3Error H3_EXPORT(getHexagonAreaAvgM2)(int res, double *out) {
    H3Error err = H3_EXPORT(getHexagonAreaAvgKm2)(res, out);
    if (!err) *out *= 1e6;
    return err;
}

H3Error H3_EXPORT(getHexagonEdgeLengthAvgKm)(int res, double *out) {
    static const double lengths[MAX_H3_RES + 1] = {
        1281.256011, 483.0568391, 182.5129565, 68.97922179, 26.07175968, 9.854090990,
        3.724532667, 1.406475763, 0.531414010, 0.200786148, 0.075863783, 0.028663897,
        0.010830188, 0.004092010, 0.001546100, 0.000584169};
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    *out = lengths[res];
    return E_SUCCESS;
}

H3Error H3_EXPORT(getHexagonEdgeLengthAvgM)(int res, double *out) {
    H3Error err = H3_EXPORT(getHexagonEdgeLengthAvgKm)(res, out);
    if (!err) *out *= 1000.0;
    return err;
}

/* ---- disks and rings ------------------------------------------------------------------- */

/* Number of cells of a resolution. */
static int64_t cellsAt(int res) {
    int64_t n = 120;
    while (res-- > 0) n *= 7;
    return n + 2;
}

H3Error H3_EXPORT(maxGridDiskSize)(int k, int64_t *out) {
    if (k < 0) return E_DOMAIN;
    *out = k >= 13780510 ? cellsAt(MAX_H3_RES) : 3 * (int64_t)k * ((int64_t)k + 1) + 1;
    return E_SUCCESS;
}

H3Error H3_EXPORT(maxGridRingSize)(int k, int64_t *out) {
    if (k < 0) return E_DOMAIN;
    *out = k == 0 ? 1 : 6 * (int64_t)k;
    return E_SUCCESS;
}

/* Memory that grows and is used again. */
typedef struct {
    void *at;
    size_t size;
} Pool;

static void *poolRoom(Pool *p, int64_t count, size_t each) {
    size_t need = (size_t)count * each;
    if ((uint64_t)count > SIZE_MAX / each) return NULL;
    if (need > p->size) {
        free(p->at);
        p->size = need + need / 2;
        p->at = malloc(p->size);
        if (!p->at) p->size = 0;
    }
    return p->at;
}

/* What disks need to work: kept from one to the next in bulk. */
typedef struct {
    Pool offsets, index[2], state[2], maps, spots, cells;
    int first, last; /* rings that `offsets` holds; last -1: none */
    int64_t count;
} Workshop;

static void closeWorkshop(Workshop *w) {
    Pool *all[] = {&w->offsets, &w->index[0], &w->index[1], &w->state[0],
                   &w->state[1], &w->maps, &w->spots, &w->cells};
    for (int i = 0; i < 8; i++) free(all[i]->at);
}

/* Lattice steps from the middle to the cells of rings first..last: all a, then all b. A ring goes
 * counter-clockwise, alone from the cell along I on, in a disk from the next one on, as uber/h3's
 * "unsafe" functions do. */
static const int32_t *ringOffsets(Workshop *w, int first, int last) {
    if (w->last == last && w->first == first) return w->offsets.at;
    int64_t n = 0, count = 0;
    for (int ring = first; ring <= last; ring++) count += ring ? 6 * (int64_t)ring : 1;
    int32_t *a = poolRoom(&w->offsets, 2 * count, sizeof *a);
    w->last = -1;
    if (!a) return NULL;
    int32_t *b = a + count;
    for (int ring = first; ring <= last; ring++) {
        int p = ring, q = 0;
        if (!ring) a[n] = b[n] = 0, n++;
        for (int side = 0; side < 6; side++)
            for (int i = 0; i < ring; i++, n++) {
                int now = first == last, da = stepA[digitOf[(side + 2) % 6]];
                int db = stepB[digitOf[(side + 2) % 6]];
                a[n] = now ? p : p + da;
                b[n] = now ? q : q + db;
                p += da;
                q += db;
            }
    }
    w->first = first;
    w->last = last;
    w->count = count;
    return a;
}

/* A turn as numbers to multiply with: a' = m[0] a + m[1] b, b' = m[2] a + m[3] b. */
static void matrixOf(int turns, int m[4]) {
    m[0] = m[3] = 1;
    m[1] = m[2] = 0;
    turn(turns, &m[0], &m[2]);
    turn(turns, &m[1], &m[3]);
}

/* Lattice points of a face and level within ranges of a, b and a - b; their indexes, as far as
 * digits are known there, and the states in which they go on (see buildStates). Kept row by row,
 * `columns` a row. */
typedef struct {
    int a0, a1, b0, b1, c0, c1, columns;
    H3Index *index;
    uint8_t *state;
} Grid;

/* The parents of another grid's points. Numerators of the division by 7 (see `up`) are sums of a, b
 * and a - b in such a way that the ranges of a hexagon stay as small as they can. */
static Grid parentsOf(const Grid *g, int res) {
    Grid p = {0, 0, 0, 0, 0, 0, 0, NULL, NULL};
    if (res & 1) {
        p.a0 = seventh(2 * g->a0 + g->c0), p.a1 = seventh(2 * g->a1 + g->c1);
        p.b0 = seventh(g->a0 + 2 * g->b0), p.b1 = seventh(g->a1 + 2 * g->b1);
        p.c0 = seventh(2 * g->c0 - g->b1) - 1, p.c1 = seventh(2 * g->c1 - g->b0) + 1;
    } else {
        p.a0 = seventh(2 * g->a0 + g->b0), p.a1 = seventh(2 * g->a1 + g->b1);
        p.b0 = seventh(2 * g->b0 - g->c1), p.b1 = seventh(2 * g->b1 - g->c0);
        p.c0 = seventh(g->a0 + 2 * g->c0) - 1, p.c1 = seventh(g->a1 + 2 * g->c1) + 1;
    }
    p.columns = p.b1 - p.b0 + 1;
    return p;
}

/* The cell that a chain of parents ends with, at level 0, and the state to go down from it. */
static void fillTop(Grid *g, int face) {
    for (int a = g->a0; a <= g->a1; a++)
        for (int b = g->b0; b <= g->b1; b++) {
            int64_t at = (int64_t)(a - g->a0) * g->columns + (b - g->b0);
            H3Index top = topOf((Spot){face, a, b});
            g->index[at] = (top & ~(H3Index)DIGITS) | (blank(0, 0));
            g->state[at] = (uint8_t)((top & 255) >> TOP_SHIFT | (top & (TOP_PENTAGON | TOP_FORWARD)));
        }
}

/* The bits in which cells of two resolutions differ beside their digits. */
static H3Index headers(int res, int other) {
    return blank(res, 0) ^ usedDigits(res) ^ blank(other, 0) ^ usedDigits(other);
}

/* Fill a grid, parents first. */
static int fillGrid(Grid *g, int face, int res, Workshop *w) {
    Grid levels[MAX_H3_RES + 1];
    levels[res] = *g;
    for (int r = res; r > 0; r--) levels[r - 1] = parentsOf(&levels[r], r);
    for (int r = 0; r <= res; r++) {
        Grid *now = &levels[r];
        int64_t count = (int64_t)(now->a1 - now->a0 + 1) * now->columns;
        now->index = poolRoom(&w->index[r & 1], count, sizeof *now->index);
        now->state = poolRoom(&w->state[r & 1], count, 1);
        if (!now->index || !now->state) return 0;
        if (r == 0) fillTop(now, face);
        if (r == 0) continue;
        const Grid above = levels[r - 1];
        const H3Index header = headers(r, r - 1), *restrict from = above.index;
        const uint8_t *restrict states = above.state;
        H3Index *restrict index = now->index;
        uint8_t *restrict state = now->state;
        const Grid g0 = *now;
        for (int a = g0.a0; a <= g0.a1; a++) {
            int low = a - g0.c1 > g0.b0 ? a - g0.c1 : g0.b0, high = a - g0.c0 < g0.b1 ? a - g0.c0 : g0.b1;
            int64_t at = (int64_t)(a - g0.a0) * g0.columns + (low - g0.b0);
            for (int b = low; b <= high; b++, at++) {
                int p, q, digit = upTo(r, a, b, &p, &q);
                int parent = (p - above.a0) * above.columns + (q - above.b0), was = states[parent];
                H3Index turned = T.digitMap[was] >> 3 * digit & 7;
                index[at] = (from[parent] ^ header) | turned << DIGIT_SHIFT(r);
                state[at] = T.nextState[was][digit];
            }
        }
    }
    *g = levels[res];
    return 1;
}

/* The cells of n lattice points (a0 + m[0] a + m[1] b, b0 + m[2] a + m[3] b), their parents being
 * the grid, `maps` its points' digit maps. */
#define CHILDREN_PARAMS                                                                        \
    const Grid *g, const H3Index *restrict index, const uint32_t *restrict maps,               \
        const int32_t *restrict as, const int32_t *restrict bs, int64_t n, int a0, int b0,     \
        const int *m, int res, H3Index *restrict out
INLINE void childrenBody(CHILDREN_PARAMS) {
    int p0 = g->a0, q0 = g->b0, columns = g->columns, shift = DIGIT_SHIFT(res);
    int m0 = m[0], m1 = m[1], m2 = m[2], m3 = m[3];
    if (res & 1)
        for (int64_t i = 0; i < n; i++) {
            int a = a0 + m0 * as[i] + m1 * bs[i], b = b0 + m2 * as[i] + m3 * bs[i], p, q;
            int digit = upTo(1, a, b, &p, &q), at = (p - p0) * columns + (q - q0);
            out[i] = index[at] | (H3Index)(maps[at] >> 3 * digit & 7) << shift;
        }
    else
        for (int64_t i = 0; i < n; i++) {
            int a = a0 + m0 * as[i] + m1 * bs[i], b = b0 + m2 * as[i] + m3 * bs[i], p, q;
            int digit = upTo(2, a, b, &p, &q), at = (p - p0) * columns + (q - q0);
            out[i] = index[at] | (H3Index)(maps[at] >> 3 * digit & 7) << shift;
        }
}
LEVELS(children, childrenBody, (CHILDREN_PARAMS), (g, index, maps, as, bs, n, a0, b0, m, res, out))

/* The cells of n lattice points of one face, by way of a grid of their parents: `range` holds the
 * points at least. */
static int cellsOnFace(int face, Grid range, const int32_t *as, const int32_t *bs, int64_t n,
                       int a0, int b0, const int *m, int res, Workshop *w, H3Index *out) {
    if (res == 0 || n <= 20) { /* few: one after the other */
        Trail t;
        t.face = -1;
        for (int64_t i = 0; i < n; i++) {
            follow(&t, (Spot){face, a0 + m[0] * as[i] + m[1] * bs[i],
                              b0 + m[2] * as[i] + m[3] * bs[i]}, res);
            out[i] = finish(&t, res, NULL);
        }
        return 1;
    }
    Grid g = parentsOf(&range, res);
    if (!fillGrid(&g, face, res - 1, w)) return 0;
    int64_t count = (int64_t)(g.a1 - g.a0 + 1) * g.columns;
    uint32_t *maps = poolRoom(&w->maps, count, sizeof *maps);
    if (!maps) return 0;
    const H3Index header = headers(res, res - 1);
    for (int a = g.a0; a <= g.a1; a++) {
        int low = a - g.c1 > g.b0 ? a - g.c1 : g.b0, high = a - g.c0 < g.b1 ? a - g.c0 : g.b1;
        int64_t at = (int64_t)(a - g.a0) * g.columns + (low - g.b0);
        for (; low <= high; low++, at++) {
            maps[at] = T.digitMap[g.state[at]];
            g.index[at] ^= header;
        }
    }
    children(&g, g.index, maps, as, bs, n, a0, b0, m, res, out);
    return 1;
}

/* Cells of rings that lie all on one face. */
static H3Error ringsOnFace(Spot s, int res, int turns, int first, int last, Workshop *w,
                           H3Index *out) {
    const int32_t *as = ringOffsets(w, first, last);
    int m[4], c = s.a - s.b;
    matrixOf(turns, m); /* rings begin along I of the origin's digits */
    Grid range = {s.a - last, s.a + last, s.b - last, s.b + last, c - last, c + last, 0, NULL, NULL};
    if (!as || !cellsOnFace(s.face, range, as, as + w->count, w->count, s.a, s.b, m, res, w, out))
        return E_MEMORY_ALLOC;
    return E_SUCCESS;
}

/* Do all cells within k steps lie on the face of s? Then the plane is enough. */
static int diskFits(Spot s, int res, int k) {
    int even = res + (res & 1), a = s.a, b = s.b;
    if (res & 1) down(even, &a, &b);
    int64_t room = T.limit[even] - ((int64_t)k + 2) * 2 * (res & 1 ? 3 : 1);
    return a + b <= room && b - 2 * a <= room && a - 2 * b <= room;
}

/* The five faces around a pentagon, laid flat around it: 0 is the face of the origin, the others
 * follow counter-clockwise; a sixth place is empty. */
typedef struct {
    int res, odd;
    Spot origin;    /* in the plane around the pentagon, axes turned to face 0 */
    Spot corner[5]; /* the pentagon on each face */
    int turns[5];   /* from the axes of a place, I towards its middle, to the face's */
    int matrix[5][4]; /* from the plane's axes */
} Cap;

static void capOf(Cap *cap, Spot s, int res) {
    int even = res + (res & 1), a = s.a, b = s.b;
    if (res & 1) down(even, &a, &b);
    int towards[3] = {2 * a - b, 2 * b - a, -a - b}; /* corners (2,0), (0,2), (-2,-2) */
    int c = towards[1] > towards[0] ? 1 : 0;
    if (towards[2] > towards[c]) c = 2;
    int ca = c == 0 ? 2 : c == 1 ? 0 : -2, cb = c == 0 ? 0 : c == 1 ? 2 : -2;
    int base = T.base[s.face][ca + 2][cb + 2], at = 0;
    while (T.start[base][digitOf[five[at]]].face != s.face) at++;
    cap->res = res;
    cap->odd = res & 1;
    for (int m = 0; m < 5; m++) {
        Spot spot = T.start[base][digitOf[five[(at + m) % 5]]];
        cap->turns[m] = sextantFrom(spot.a, spot.b);
        matrixOf(cap->turns[m] - (m < 3 ? m : m + 1), cap->matrix[m]);
        grow(res, &spot.a, &spot.b);
        cap->corner[m] = spot;
    }
    cap->origin = (Spot){s.face, s.a - cap->corner[0].a, s.b - cap->corner[0].b};
    turn(-cap->turns[0], &cap->origin.a, &cap->origin.b);
}

/* Does the disk stay on the five faces? */
static int capHolds(const Cap *cap, int k) {
    int even = cap->res + cap->odd, a = cap->origin.a, b = cap->origin.b;
    if (cap->odd) down(even, &a, &b);
    int64_t room = 3 * (int64_t)T.limit[even] - (int64_t)k * (cap->odd ? 5 : 2);
    for (int m = 0; m < 6; m++) {
        if (2 * (int64_t)a - b > room) return 0;
        turn(1, &a, &b);
    }
    return 1;
}

/* The place 0..5 of a point of the plane: its direction in sixths, -30..30 degrees being 0. */
static int placeOf(const Cap *cap, int a, int b) {
    if (cap->odd) down(2, &a, &b);
    int u = a + b, v = a - 2 * b, w = b - 2 * a; /* signs: beside -30, 30 and 90 degrees */
    if (u >= 0 && v > 0) return 0;
    if (v <= 0 && w < 0) return 1;
    if (w >= 0 && u > 0) return 2;
    if (u <= 0 && v < 0) return 3;
    if (v >= 0 && w > 0) return 4;
    return u < 0 ? 5 : 0; /* the pentagon itself is at 0 */
}

/* Cells of rings on a cap as they are found: by face, lattice points and the place in the answer. */
typedef struct {
    int64_t count, on[5];
    int32_t *a[5], *b[5], *at[5], *distances;
} Found;

static void keep(const Cap *cap, int place, int a, int b, int distance, Found *f) {
    int m = place < 3 ? place : place - 1;
    const int *t = cap->matrix[m];
    int p = t[0] * a + t[1] * b + cap->corner[m].a, q = t[2] * a + t[3] * b + cap->corner[m].b;
    int64_t i = f->on[m]++;
    f->a[m][i] = p;
    f->b[m][i] = q;
    f->at[m][i] = (int32_t)f->count;
    if (f->distances) f->distances[f->count] = distance;
    f->count++;
}

/* Rings around the origin in the cap's plane. The sixth that is empty (place 3) is entered from
 * both sides: its points are also the cells of places 2 and 4, seen past the pentagon. */
static void ringsOnCap(const Cap *cap, int turns, int first, int last, const int32_t *as,
                       int64_t count, Found *f) {
    int64_t i = 0;
    Spot o = cap->origin;
    int m[4];
    matrixOf(turns, m);
    for (int ring = first; ring <= last; ring++) {
        int64_t end = i + (ring ? 6 * (int64_t)ring : 1);
        for (; i < end; i++) {
            int a = o.a + m[0] * as[i] + m[1] * as[count + i];
            int b = o.b + m[2] * as[i] + m[3] * as[count + i];
            int place = placeOf(cap, a, b), p = a - b, q = a; /* turned once */
            if (place == 2 || place == 4) { /* nearer past the pentagon? Then it comes from there. */
                if (place == 4) p = b, q = b - a;
                if (stepsTo(p - o.a, q - o.b) >= ring) keep(cap, place, a, b, ring, f);
            } else if (place == 3) {
                if (stepsTo(p - o.a, q - o.b) > ring) keep(cap, 4, p, q, ring, f);
                p = b, q = b - a;
                if (stepsTo(p - o.a, q - o.b) > ring) keep(cap, 2, p, q, ring, f);
            } else {
                keep(cap, place, a, b, ring, f);
            }
        }
    }
}

/* The ranges that hold n lattice points. */
static Grid rangeOf(const int32_t *a, const int32_t *b, int64_t n) {
    Grid r = {a[0], a[0], b[0], b[0], a[0] - b[0], a[0] - b[0], 0, NULL, NULL};
    for (int64_t i = 1; i < n; i++) {
        int c = a[i] - b[i];
        r.a0 = a[i] < r.a0 ? a[i] : r.a0, r.a1 = a[i] > r.a1 ? a[i] : r.a1;
        r.b0 = b[i] < r.b0 ? b[i] : r.b0, r.b1 = b[i] > r.b1 ? b[i] : r.b1;
        r.c0 = c < r.c0 ? c : r.c0, r.c1 = c > r.c1 ? c : r.c1;
    }
    return r;
}

/* Cells of rings on the five faces around a pentagon; returns their number or -H3Error. */
static int64_t ringsAroundPentagon(const Cap *cap, int turns, int first, int last, Workshop *w,
                                   H3Index *out, int *distances) {
    static const int still[4] = {1, 0, 0, 1};
    const int32_t *as = ringOffsets(w, first, last);
    int64_t room = w->count + 2;
    int32_t *spots = as ? poolRoom(&w->spots, 15 * room, sizeof *spots) : NULL;
    H3Index *cells = spots ? poolRoom(&w->cells, room, sizeof *cells) : NULL;
    if (!cells) return -(int64_t)E_MEMORY_ALLOC;
    Found f = {.count = 0, .distances = distances};
    for (int m = 0; m < 5; m++, spots += 3 * room) {
        f.a[m] = spots;
        f.b[m] = spots + room;
        f.at[m] = spots + 2 * room;
    }
    ringsOnCap(cap, turns - cap->turns[0], first, last, as, w->count, &f);
    for (int m = 0; m < 5; m++) {
        int64_t n = f.on[m];
        if (n && !cellsOnFace(cap->corner[m].face, rangeOf(f.a[m], f.b[m], n), f.a[m], f.b[m], n, 0,
                              0, still, cap->res, w, cells))
            return -(int64_t)E_MEMORY_ALLOC;
        for (int64_t i = 0; i < n; i++) out[f.at[m][i]] = cells[i];
    }
    return f.count;
}

/* A face whose cells are looked through for rings: images of the origin in its plane, and where in
 * the answer the next cell of each distance goes (or only how many there are: out is NULL). */
typedef struct {
    int face, res, count, first, last;
    int64_t *next;
    Spot origins[MOST_IMAGES];
    H3Index *out;
    int *distances;
} Sieve;

static int64_t sieveSteps(const Sieve *s, int a, int b) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < s->count; i++) {
        int64_t d = stepsTo(s->origins[i].a - a, s->origins[i].b - b);
        least = d < least ? d : least;
    }
    return least;
}

/* Is a cell on the rim of a face counted there? On an edge by the lower face, at a corner by the
 * lowest. */
static int sieveOwns(const Sieve *s, int a, int b) {
    int even = s->res + (s->res & 1), limit = T.limit[even], edges = 0, owner = s->face;
    if (s->res & 1) down(even, &a, &b);
    int over[3] = {a + b, b - 2 * a, a - 2 * b};
    for (int e = 0; e < 3; e++) {
        if (over[e] != limit) continue;
        edges++;
        if (T.acrossFace[s->face][e] < owner) owner = T.acrossFace[s->face][e];
    }
    if (edges == 2) {
        int base = T.base[s->face][a / (limit / 2) + 2][b / (limit / 2) + 2];
        for (int k = 0; k < 5; k++)
            if (T.start[base][digitOf[five[k]]].face < owner) return 0;
    }
    return owner == s->face;
}

/* n / d rounded down. */
static int floorOf(int n, int d) { return n / d - (n % d != 0 && n < 0); }

/* Row by row over the face. Distances change by one a step: what is too near or too far by so many
 * steps is passed over by as many. */
static void sieveFace(Sieve *s) {
    static const int us[2][3] = {{1, -2, 1}, {4, -5, 1}}, vs[2][3] = {{1, 1, 2}, {1, 4, 5}};
    const int odd = s->res & 1, limit = T.limit[s->res + odd], *u = us[odd], *v = vs[odd];
    Trail t;
    t.face = -1;
    for (int a = -limit; a <= limit; a++) {
        int high = floorOf(limit - u[0] * a, v[0]), other = floorOf(limit - u[1] * a, v[1]);
        int b = -floorOf(limit - u[2] * a, v[2]);
        high = other < high ? other : high;
        while (b <= high) {
            int64_t d = sieveSteps(s, a, b);
            if (d < s->first || d > s->last) {
                b += (int)(d < s->first ? s->first - d : d - s->last);
                continue;
            }
            if (sieveOwns(s, a, b)) {
                int64_t at = s->next[d - s->first]++;
                if (s->out) {
                    follow(&t, (Spot){s->face, a, b}, s->res);
                    s->out[at] = finish(&t, s->res, NULL);
                    if (s->distances) s->distances[at] = (int)d;
                }
            }
            b++;
        }
    }
}

/* Rings of any size, by the distance of every cell that may be in them: once to count the cells of
 * each ring, once to put them in their places. */
static int64_t ringsAnywhere(Spot origin, int res, int first, int last, H3Index *out,
                             int *distances) {
    int64_t farthest = res & 1 ? 29 : 11, n = 0; /* more than there is */
    for (int r = 2; r <= res; r += 2) farthest *= 7;
    if (first > farthest) return 0;
    if (last > farthest) last = (int)farthest;
    int64_t *next = calloc((size_t)(last - first) + 1, sizeof *next);
    if (!next) return -(int64_t)E_MEMORY_ALLOC;
    for (int filling = 0; filling < 2; filling++) {
        for (int face = 0; face < FACES; face++) {
            Sieve s = {.face = face, .res = res, .first = first, .last = last, .next = next,
                       .out = filling ? out : NULL, .distances = distances};
            for (; s.count < T.images[face][origin.face]; s.count++) {
                Image m = T.image[face][origin.face][s.count];
                int a = origin.a, b = origin.b, c = m.a, d = m.b;
                turn(m.turns, &a, &b);
                grow(res, &c, &d);
                s.origins[s.count] = (Spot){face, a + c, b + d};
            }
            sieveFace(&s);
        }
        if (filling) break;
        for (int ring = 0; ring <= last - first; ring++) {
            int64_t count = next[ring];
            next[ring] = n;
            n += count;
        }
    }
    free(next);
    return n;
}

/* All cells at first..last steps, nearest first; their number or -H3Error. `origin` is valid. */
static int64_t rings(H3Index origin, int first, int last, Workshop *w, H3Index *out,
                     int *distances) {
    int turns, res = resOf(origin);
    Spot s = decode(origin, &turns);
    if (diskFits(s, res, last)) {
        H3Error err = ringsOnFace(s, res, turns, first, last, w, out);
        if (err) return -(int64_t)err;
        for (int ring = first; distances && ring <= last; ring++)
            for (int64_t i = ring ? 6 * (int64_t)ring : 1; i > 0; i--) *distances++ = ring;
        return w->count;
    }
    Cap cap;
    capOf(&cap, s, res);
    if (capHolds(&cap, last))
        return ringsAroundPentagon(&cap, turns, first, last, w, out, distances);
    return ringsAnywhere(s, res, first, last, out, distances);
}

static H3Error ringsPadded(H3Index origin, int first, int last, int64_t room, H3Index *out,
                           int *distances) {
    if (!isCell(origin)) return E_CELL_INVALID;
    Workshop w = {.last = -1};
    int64_t n = rings(origin, first, last, &w, out, distances);
    closeWorkshop(&w);
    if (n < 0) return (H3Error)-n;
    for (; n < room; n++) {
        out[n] = H3_NULL;
        if (distances) distances[n] = 0;
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(gridDiskDistances)(H3Index origin, int k, H3Index *out, int *distances) {
    int64_t room;
    H3Error err = H3_EXPORT(maxGridDiskSize)(k, &room);
    return err ? err : ringsPadded(origin, 0, k, room, out, distances);
}

H3Error H3_EXPORT(gridDiskDistancesSafe)(H3Index origin, int k, H3Index *out, int *distances) {
    return H3_EXPORT(gridDiskDistances)(origin, k, out, distances);
}

H3Error H3_EXPORT(gridDisk)(H3Index origin, int k, H3Index *out) {
    return H3_EXPORT(gridDiskDistances)(origin, k, out, NULL);
}

H3Error H3_EXPORT(gridRing)(H3Index origin, int k, H3Index *out) {
    int64_t room;
    H3Error err = H3_EXPORT(maxGridRingSize)(k, &room);
    return err ? err : ringsPadded(origin, k, k, room, out, NULL);
}

/* Is a pentagon within k steps? */
static H3Error refusePentagons(H3Index origin, int k) {
    H3Index all[12];
    int64_t d;
    H3_EXPORT(getPentagons)(resOf(origin), all);
    for (int i = 0; i < 12; i++) {
        H3_EXPORT(gridDistance)(origin, all[i], &d);
        if (d <= k) return E_PENTAGON;
    }
    return E_SUCCESS;
}

/* Rings first..last step by step, in the order of the official "unsafe" functions. */
static H3Error ringsUnsafe(H3Index origin, int first, int last, H3Index *out, int *distances) {
    if (last < 0) return E_DOMAIN;
    if (!isCell(origin)) return E_CELL_INVALID;
    H3Error err = refusePentagons(origin, last);
    if (err) return err;
    H3Index h = origin;
    int64_t n = 0;
    int turns = 0, moved;
    for (int ring = 0; ring <= last; ring++) {
        if (ring >= first && !ring) {
            if (distances) distances[n] = 0;
            out[n++] = h;
        }
        if (ring) {
            h = neighbourAt(h, turnDigit(turns, I_DIGIT), &moved);
            turns += moved;
        }
        for (int side = 0; ring && ring >= first && side < 6; side++)
            for (int i = 0; i < ring; i++) {
                if (first == last) out[n] = h;
                h = neighbourAt(h, turnDigit(turns, digitOf[(side + 2) % 6]), &moved);
                turns = (turns + moved) % 6;
                if (first < last) out[n] = h;
                if (distances) distances[n] = ring;
                n++;
            }
    }
    return E_SUCCESS;
}

/* On one face the walk is not needed. */
static H3Error disksUnsafe(H3Index origin, int first, int last, H3Index *out, int *distances) {
    int turns;
    if (last < 0) return E_DOMAIN;
    if (!isCell(origin)) return E_CELL_INVALID;
    if (!diskFits(decode(origin, &turns), resOf(origin), last))
        return ringsUnsafe(origin, first, last, out, distances);
    return ringsPadded(origin, first, last, 0, out, distances);
}

H3Error H3_EXPORT(gridDiskUnsafe)(H3Index origin, int k, H3Index *out) {
    return disksUnsafe(origin, 0, k, out, NULL);
}

H3Error H3_EXPORT(gridDiskDistancesUnsafe)(H3Index origin, int k, H3Index *out, int *distances) {
    return disksUnsafe(origin, 0, k, out, distances);
}

H3Error H3_EXPORT(gridRingUnsafe)(H3Index origin, int k, H3Index *out) {
    return disksUnsafe(origin, k, k, out, NULL);
}

H3Error H3_EXPORT(gridDisksUnsafe)(const H3Index *cells, int length, int k, H3Index *out) {
    int64_t room;
    H3Error err = H3_EXPORT(maxGridDiskSize)(k, &room);
    for (int i = 0; !err && i < length; i++)
        err = H3_EXPORT(gridDiskUnsafe)(cells[i], k, out + i * room);
    return err;
}

/* ---- distance and paths ---------------------------------------------------------------- */

/* Steps from p to q in the plane of p's face, over the unfolding of q's face that makes them
 * fewest: q moves there. */
static int64_t unfoldedDistance(Spot p, Spot *q, int res) {
    if (p.face == q->face) return stepsTo(p.a - q->a, p.b - q->b);
    int64_t best = INT64_MAX;
    Spot found = *q;
    for (int i = 0; i < T.images[p.face][q->face]; i++) {
        Image m = T.image[p.face][q->face][i];
        int a = q->a, b = q->b, c = m.a, d = m.b;
        turn(m.turns, &a, &b);
        grow(res, &c, &d);
        int64_t steps = stepsTo(p.a - (a + c), p.b - (b + d));
        if (steps >= best) continue;
        best = steps;
        found = (Spot){p.face, a + c, b + d};
    }
    *q = found;
    return best;
}

static H3Error twoCells(H3Index a, H3Index b) {
    if (!isCell(a) || !isCell(b)) return E_CELL_INVALID;
    return resOf(a) == resOf(b) ? E_SUCCESS : E_RES_MISMATCH;
}

H3Error H3_EXPORT(gridDistance)(H3Index a, H3Index b, int64_t *distance) {
    H3Error err = twoCells(a, b);
    if (err) return err;
    int turns;
    Spot p = decode(a, &turns), q = decode(b, &turns);
    *distance = unfoldedDistance(p, &q, resOf(a));
    return E_SUCCESS;
}

H3Error H3_EXPORT(areNeighborCells)(H3Index a, H3Index b, int *out) {
    int64_t steps;
    H3Error err = H3_EXPORT(gridDistance)(a, b, &steps);
    if (!err) *out = steps == 1;
    return err;
}

H3Error H3_EXPORT(gridPathCellsSize)(H3Index start, H3Index end, int64_t *size) {
    H3Error err = H3_EXPORT(gridDistance)(start, end, size);
    if (!err) *size += 1;
    return err;
}

/* The cell n of `steps` along the straight line from p to q in one plane. */
static Spot onLine(Spot p, Spot q, int64_t n, int64_t steps) {
    double t = (double)n / (double)steps, a, b;
    double r = p.b + t * (q.b - p.b), i = (p.a - p.b) + t * ((q.a - p.a) - (q.b - p.b));
    roundHex(i, r, &a, &b);
    return (Spot){p.face, (int)a, (int)b};
}

/* One step from `at` to the neighbour that is nearer to `end` and nearest to the great circle
 * with the pole `side`. */
static H3Index stepTowards(H3Index at, H3Index end, int64_t left, Vec side) {
    H3Index near[6], best = H3_NULL;
    double least = 9.0;
    for (int i = neighbours(at, near) - 1; i >= 0; i--) {
        int64_t d;
        LatLng g;
        H3_EXPORT(gridDistance)(near[i], end, &d);
        if (d != left - 1) continue;
        H3_EXPORT(cellToLatLng)(near[i], &g);
        double away = fabs(dot(vecOfAny(g.lat, g.lng), side));
        if (away >= least) continue;
        least = away;
        best = near[i];
    }
    return best;
}

H3Error H3_EXPORT(gridPathCells)(H3Index start, H3Index end, H3Index *out) {
    H3Error err = twoCells(start, end);
    if (err) return err;
    int turns, res = resOf(start);
    Spot p = decode(start, &turns), q = decode(end, &turns);
    int onOneFace = p.face == q.face;
    int64_t steps = unfoldedDistance(p, &q, res), n = 0, d;
    out[0] = start;
    /* Straight in the plane while that is unbroken; from there on step by step. */
    while (n < steps) {
        H3Index h = encode(onLine(p, q, n + 1, steps), res, NULL);
        if (!onOneFace) {
            H3_EXPORT(gridDistance)(out[n], h, &d);
            if (d != 1) break;
            H3_EXPORT(gridDistance)(h, end, &d);
            if (d != steps - n - 1) break;
        }
        out[++n] = h;
    }
    if (n == steps) return E_SUCCESS;
    LatLng g, e;
    H3_EXPORT(cellToLatLng)(start, &g);
    H3_EXPORT(cellToLatLng)(end, &e);
    Vec side = cross(vecOfAny(g.lat, g.lng), vecOfAny(e.lat, e.lng));
    for (; n < steps; n++) out[n + 1] = stepTowards(out[n], end, steps - n, side);
    return E_SUCCESS;
}

/* ---- local coordinates ----------------------------------------------------------------- */

/* Position of a cell relative to its base cell's centre, by its digits alone. */
static void positionInBase(H3Index h, int *a, int *b) {
    *a = *b = 0;
    for (int r = 1; r <= resOf(h); r++) {
        down(r, a, b);
        *a += stepA[digitAt(h, r)];
        *b += stepB[digitAt(h, r)];
    }
}

/* Around a pentagon, the turn that moves the sextant of digit `to` beside the sextant of `from`,
 * over the gap where K is missing; 9: they are not side by side. */
static int overGap(int from, int to) {
    static const int8_t place[7] = {0, 9, 3, 4, 1, 0, 2}; /* among IK, I, IJ, J, JK */
    if (from == CENTER || to == CENTER || from == to) return 0;
    int apart = place[to] - place[from];
    if (apart == 1 || apart == -1) return 0;
    return apart == 4 ? 1 : apart == -4 ? -1 : 9;
}

static int directionOfBase(int from, int to) {
    int digit = 1;
    while (digit < 7 && T.around[from][digit] != to) digit++;
    return digit;
}

/* Lattice position in the digits' axes of the origin's base cell, around that one's centre. */
static H3Error localOf(H3Index origin, H3Index h, int *a, int *b) {
    int from = baseOf(origin), to = baseOf(h), res = resOf(h), gap = 0, turns;
    positionInBase(h, a, b);
    if (from == to) {
        if (T.pentagon[from]) gap = overGap(leading(origin), leading(h));
        if (gap == 9) return E_FAILED;
        turn(gap, a, b);
        return E_SUCCESS;
    }
    int dir = directionOfBase(from, to);
    if (dir == NO_DIGIT) return E_FAILED;
    turns = T.aroundTurns[from][dir];
    if (T.pentagon[to]) { /* axes of the pentagon: those in which the origin lies opposite */
        int back = directionOfBase(to, from);
        gap = overGap(back, leading(h));
        if (gap == 9) return E_FAILED;
        turn(gap, a, b);
        turns = sextant[back] + 3 - sextant[dir];
        gap = 0;
    } else if (T.pentagon[from]) {
        gap = overGap(leading(origin), dir);
        if (gap == 9) return E_FAILED;
    }
    int c = stepA[dir], d = stepB[dir];
    grow(res, &c, &d);
    turn(-turns, a, b);
    *a += c;
    *b += d;
    turn(gap, a, b);
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToLocalIj)(H3Index origin, H3Index h, uint32_t mode, CoordIJ *out) {
    int a, b;
    if (mode) return E_OPTION_INVALID;
    H3Error err = twoCells(origin, h);
    if (!err) err = localOf(origin, h, &a, &b);
    if (err) return err;
    out->i = a;
    out->j = b;
    return E_SUCCESS;
}

H3Error H3_EXPORT(localIjToCell)(H3Index origin, const CoordIJ *ij, uint32_t mode, H3Index *out) {
    if (mode) return E_OPTION_INVALID;
    if (!isCell(origin)) return E_CELL_INVALID;
    int res = resOf(origin), from = baseOf(origin);
    if (stepsTo(ij->i, ij->j) > 4 * (int64_t)T.limit[res + (res & 1)]) return E_FAILED;
    /* Around a pentagon the way may lead over its gap: what comes back where it began is right. */
    static const int8_t gaps[3] = {0, -1, 1};
    for (int i = 0; i < (T.pentagon[from] ? 3 : 1); i++) {
        int a = ij->i, b = ij->j;
        turn(gaps[i], &a, &b);
        H3Index digits = blank(res, 0) ^ usedDigits(res);
        for (int r = res; r > 0; r--) {
            digits |= (H3Index)upTo(r, a, b, &a, &b) << DIGIT_SHIFT(r);
        }
        if (stepsTo(a, b) > 1) continue;
        int dir = digitOfStep(a, b), base = dir ? T.around[from][dir] : from;
        if (base >= NUM_BASE_CELLS) continue;
        int turns = !dir ? 0 : !T.pentagon[base] ? T.aroundTurns[from][dir]
                             : sextant[directionOfBase(base, from)] + 3 - sextant[dir];
        for (int j = 0; j < (dir && T.pentagon[base] ? 3 : 1); j++) {
            H3Index h = turnIndex(turns + gaps[j], digits) | (H3Index)base << 45;
            if (!isCell(h) || localOf(origin, h, &a, &b) != E_SUCCESS) continue;
            if (a != ij->i || b != ij->j) continue;
            *out = h;
            return E_SUCCESS;
        }
    }
    return E_FAILED;
}

/* ---- hierarchy ------------------------------------------------------------------------- */

int H3_EXPORT(isValidCell)(H3Index h) { return (int)validity(h); }

int H3_EXPORT(isPentagon)(H3Index h) {
    ready();
    return isFive(h);
}

H3Error H3_EXPORT(cellToParent)(H3Index cell, int parentRes, H3Index *out) {
    if (!isCell(cell)) return E_CELL_INVALID;
    if (parentRes < 0 || parentRes > MAX_H3_RES) return E_RES_DOMAIN;
    if (parentRes > resOf(cell)) return E_RES_MISMATCH;
    *out = parentAt(cell, parentRes);
    return E_SUCCESS;
}

static H3Error childCheck(H3Index cell, int childRes) {
    if (!isCell(cell)) return E_CELL_INVALID;
    return childRes < resOf(cell) || childRes > MAX_H3_RES ? E_RES_DOMAIN : E_SUCCESS;
}

H3Error H3_EXPORT(cellToCenterChild)(H3Index cell, int childRes, H3Index *out) {
    H3Error err = childCheck(cell, childRes);
    if (!err) *out = centreChild(cell, childRes);
    return err;
}

/* Descendants of a hexagon, or of a pentagon, `levels` below. */
static int64_t descendants(int pentagon, int levels) {
    int64_t all = 1;
    while (levels-- > 0) all *= 7;
    return pentagon ? 1 + 5 * (all - 1) / 6 : all;
}

H3Error H3_EXPORT(cellToChildrenSize)(H3Index cell, int childRes, int64_t *out) {
    H3Error err = childCheck(cell, childRes);
    if (!err) *out = descendants(isFive(cell), childRes - resOf(cell));
    return err;
}

/* `count` descendants in index order from the one given on. */
static void childrenFrom(H3Index h, int top, int64_t count, H3Index *out) {
    int res = resOf(h), pentagon = T.pentagon[baseOf(h)];
    for (int64_t i = 0; i < count; i++) {
        out[i] = h;
        int r = res; /* count up in base 7, the finest digit first */
        for (; r > top && digitAt(h, r) == IJ_DIGIT; r--) h = withDigit(h, r, CENTER);
        if (r > top) h = withDigit(h, r, digitAt(h, r) + 1);
        if (pentagon && leading(h) == K_DIGIT) h = withDigit(h, r, J_DIGIT); /* K is missing */
    }
}

H3Error H3_EXPORT(cellToChildren)(H3Index cell, int childRes, H3Index *out) {
    int64_t size;
    H3Error err = H3_EXPORT(cellToChildrenSize)(cell, childRes, &size);
    if (!err) childrenFrom(centreChild(cell, childRes), resOf(cell), size, out);
    return err;
}

H3Error H3_EXPORT(cellToChildPos)(H3Index child, int parentRes, int64_t *out) {
    H3Index parent;
    H3Error err = H3_EXPORT(cellToParent)(child, parentRes, &parent);
    if (err) return err;
    int pentagon = isFive(parent);
    *out = 0;
    for (int r = parentRes + 1; r <= resOf(child); r++) {
        int digit = digitAt(child, r), below = resOf(child) - r;
        if (pentagon && digit) /* the middle, then the others without K */
            *out += descendants(1, below) + (digit - 2) * descendants(0, below);
        else
            *out += digit * descendants(0, below);
        pentagon = pentagon && !digit;
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(childPosToCell)(int64_t childPos, H3Index parent, int childRes, H3Index *child) {
    if (!isCell(parent)) return E_CELL_INVALID;
    if (childRes < 0 || childRes > MAX_H3_RES) return E_RES_DOMAIN;
    int res = resOf(parent), pentagon = isFive(parent);
    if (childRes < res) return E_RES_MISMATCH;
    if (childPos < 0 || childPos >= descendants(pentagon, childRes - res)) return E_DOMAIN;
    H3Index h = centreChild(parent, childRes);
    for (int r = res + 1; r <= childRes; r++) {
        int64_t each = descendants(0, childRes - r), digit = childPos / each;
        if (pentagon) {
            int64_t middle = descendants(1, childRes - r);
            digit = childPos < middle ? 0 : 2 + (childPos - middle) / each;
            childPos -= digit ? middle + (digit - 2) * each : 0;
            pentagon = !digit;
        } else {
            childPos -= digit * each;
        }
        h = withDigit(h, r, (int)digit);
    }
    *child = h;
    return E_SUCCESS;
}

H3Error H3_EXPORT(getNumCells)(int res, int64_t *out) {
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    *out = cellsAt(res);
    return E_SUCCESS;
}

int H3_EXPORT(res0CellCount)(void) { return NUM_BASE_CELLS; }
int H3_EXPORT(pentagonCount)(void) { return 12; }

H3Error H3_EXPORT(getPentagons)(int res, H3Index *out) {
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    ready();
    for (int base = 0; base < NUM_BASE_CELLS; base++)
        if (T.pentagon[base]) *out++ = centreChild(blank(0, base), res);
    return E_SUCCESS;
}

H3Error H3_EXPORT(getRes0Cells)(H3Index *out) {
    for (int base = 0; base < NUM_BASE_CELLS; base++) out[base] = blank(0, base);
    return E_SUCCESS;
}

H3Error H3_EXPORT(getIndexDigit)(H3Index h, int res, int *out) {
    if (res < 1 || res > MAX_H3_RES) return E_RES_DOMAIN;
    *out = digitAt(h, res);
    return E_SUCCESS;
}

H3Error H3_EXPORT(constructCell)(int res, int baseCell, const int *digits, H3Index *out) {
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    if (baseCell < 0 || baseCell >= NUM_BASE_CELLS) return E_BASE_CELL_DOMAIN;
    ready();
    H3Index h = blank(res, baseCell);
    for (int r = 1; r <= res; r++) {
        if (digits[r - 1] < 0 || digits[r - 1] > 6) return E_DIGIT_DOMAIN;
        h = withDigit(h, r, digits[r - 1]);
        if (T.pentagon[baseCell] && leading(parentAt(h, r)) == K_DIGIT) return E_DELETED_DIGIT;
    }
    *out = h;
    return E_SUCCESS;
}

/* ---- compaction ------------------------------------------------------------------------ */

static int compareCells(const void *p, const void *q) {
    H3Index a = *(const H3Index *)p, b = *(const H3Index *)q;
    return (a > b) - (a < b);
}

H3Error H3_EXPORT(compactCells)(const H3Index *cells, H3Index *out, int64_t n) {
    if (n < 0) return E_DOMAIN;
    if ((uint64_t)n > SIZE_MAX / sizeof *cells) return E_MEMORY_ALLOC;
    H3Index *sorted = malloc((size_t)n * sizeof *cells + 1);
    if (!sorted) return E_MEMORY_ALLOC;
    int64_t count = 0, top = 0;
    H3Error err = E_SUCCESS;
    for (int64_t i = 0; !err && i < n; i++) {
        if (!cells[i]) continue;
        sorted[count++] = cells[i];
        if (!isCell(cells[i])) err = E_CELL_INVALID;
        else if (resOf(cells[i]) != resOf(sorted[0])) err = E_RES_MISMATCH;
    }
    if (!err) qsort(sorted, (size_t)count, sizeof *sorted, compareCells);
    for (int64_t i = 1; !err && i < count; i++)
        if (sorted[i] == sorted[i - 1]) err = E_DUPLICATE_INPUT;
    /* Siblings stand side by side: whenever the last of a family comes, its parent replaces it. */
    for (int64_t i = 0; !err && i < count; i++) {
        out[top++] = sorted[i];
        for (;;) {
            H3Index last = out[top - 1];
            int res = resOf(last);
            if (res == 0 || digitAt(last, res) != IJ_DIGIT) break;
            H3Index parent = parentAt(last, res - 1);
            int64_t family = isFive(parent) ? 6 : 7;
            int64_t siblings = 0;
            while (siblings < family && siblings < top && resOf(out[top - 1 - siblings]) == res &&
                   parentAt(out[top - 1 - siblings], res - 1) == parent)
                siblings++;
            if (siblings < family) break;
            top -= family;
            out[top++] = parent;
        }
    }
    for (; !err && top < n; top++) out[top] = H3_NULL;
    free(sorted);
    return err;
}

H3Error H3_EXPORT(uncompactCellsSize)(const H3Index *cells, int64_t n, int res, int64_t *out) {
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    *out = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!cells[i]) continue;
        if (!isCell(cells[i])) return E_CELL_INVALID;
        if (resOf(cells[i]) > res) return E_RES_MISMATCH;
        int64_t size = descendants(isFive(cells[i]), res - resOf(cells[i]));
        if (size > INT64_MAX - *out) return E_DOMAIN;
        *out += size;
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(uncompactCells)(const H3Index *cells, int64_t n, H3Index *out, int64_t room,
                                  int res) {
    int64_t need;
    H3Error err = H3_EXPORT(uncompactCellsSize)(cells, n, res, &need);
    if (err) return err;
    if (need > room) return E_MEMORY_BOUNDS;
    for (int64_t i = 0; i < n; i++) {
        if (!cells[i]) continue;
        H3_EXPORT(cellToChildren)(cells[i], res, out);
        out += descendants(isFive(cells[i]), res - resOf(cells[i]));
    }
    return E_SUCCESS;
}

/* ---- directed edges -------------------------------------------------------------------- */

static H3Index originOf(H3Index edge) { return withMode(edge, CELL_MODE, 0); }

int H3_EXPORT(isValidDirectedEdge)(H3Index edge) {
    H3Index origin = originOf(edge);
    int digit = reservedOf(edge);
    if (modeOf(edge) != EDGE_MODE || digit < K_DIGIT || digit > IJ_DIGIT) return 0;
    return isCell(origin) && !(digit == K_DIGIT && isFive(origin));
}

H3Error H3_EXPORT(cellsToDirectedEdge)(H3Index origin, H3Index destination, H3Index *out) {
    if (!isCell(origin) || !isCell(destination))
        return E_CELL_INVALID;
    for (int digit = K_DIGIT; digit <= IJ_DIGIT; digit++) {
        if (neighbourAt(origin, digit, NULL) != destination) continue;
        *out = withMode(origin, EDGE_MODE, digit);
        return E_SUCCESS;
    }
    return E_NOT_NEIGHBORS;
}

H3Error H3_EXPORT(getDirectedEdgeOrigin)(H3Index edge, H3Index *out) {
    if (!H3_EXPORT(isValidDirectedEdge)(edge)) return E_DIR_EDGE_INVALID;
    *out = originOf(edge);
    return E_SUCCESS;
}

H3Error H3_EXPORT(getDirectedEdgeDestination)(H3Index edge, H3Index *out) {
    if (!H3_EXPORT(isValidDirectedEdge)(edge)) return E_DIR_EDGE_INVALID;
    *out = neighbourAt(originOf(edge), reservedOf(edge), NULL);
    return E_SUCCESS;
}

H3Error H3_EXPORT(directedEdgeToCells)(H3Index edge, H3Index *out2) {
    H3Error err = H3_EXPORT(getDirectedEdgeOrigin)(edge, &out2[0]);
    return err ? err : H3_EXPORT(getDirectedEdgeDestination)(edge, &out2[1]);
}

H3Error H3_EXPORT(originToDirectedEdges)(H3Index origin, H3Index *out6) {
    if (!isCell(origin)) return E_CELL_INVALID;
    for (int digit = K_DIGIT; digit <= IJ_DIGIT; digit++)
        out6[digit - 1] = digit == K_DIGIT && isFive(origin) ? H3_NULL
                                                             : withMode(origin, EDGE_MODE, digit);
    return E_SUCCESS;
}

H3Error H3_EXPORT(reverseDirectedEdge)(H3Index edge, H3Index *out) {
    H3Index cells[2];
    H3Error err = H3_EXPORT(directedEdgeToCells)(edge, cells);
    return err ? err : H3_EXPORT(cellsToDirectedEdge)(cells[1], cells[0], out);
}

H3Error H3_EXPORT(directedEdgeToBoundary)(H3Index edge, CellBoundary *gp) {
    if (!H3_EXPORT(isValidDirectedEdge)(edge)) return E_DIR_EDGE_INVALID;
    H3Index origin = originOf(edge);
    int digit = reservedOf(edge), turns, first = 0;
    if (isFive(origin)) {
        const uint8_t *order = pentagonOrder[resOf(origin) & 1];
        while (order[first] != sextant[digit]) first++;
        if (!(resOf(origin) & 1)) first = (first + 4) % 5;
    } else {
        decodeEven(origin, &turns); /* corners 5, 0 lie beside the first axis, and so on */
        first = (sextant[digit] + turns + 12 + 5) % 6;
    }
    boundaryOf(origin, first, 2, gp);
    return E_SUCCESS;
}

/* ---- vertexes -------------------------------------------------------------------------- */

static Vec vertexVec(H3Index cell, int number) {
    Outline o;
    outlineOf(cell, number, 1, &o);
    return unit(o.points[0]);
}

/* The neighbours on both sides of a cell's corner. */
static void besideCorner(H3Index cell, int number, H3Index out[2]) {
    int turns, res = resOf(cell);
    if (isFive(cell)) {
        int next = (number + (res & 1 ? 4 : 1)) % 5;
        out[0] = neighbourAt(cell, digitOf[pentagonOrder[res & 1][number]], NULL);
        out[1] = neighbourAt(cell, digitOf[pentagonOrder[res & 1][next]], NULL);
        return;
    }
    Spot s = decode(cell, &turns);
    for (int i = 0; i < 2; i++) {
        int digit = digitOf[(number + i) % 6];
        out[i] = encode((Spot){s.face, s.a + stepA[digit], s.b + stepB[digit]}, res, NULL);
    }
}

H3Error H3_EXPORT(cellToVertex)(H3Index cell, int number, H3Index *out) {
    if (!isCell(cell)) return E_CELL_INVALID;
    if (number < 0 || number >= cornersOf(cell)) return E_DOMAIN;
    /* A vertex belongs to the lowest of its three cells. */
    H3Index beside[2], owner = cell;
    besideCorner(cell, number, beside);
    for (int i = 0; i < 2; i++) owner = beside[i] < owner ? beside[i] : owner;
    if (owner != cell) {
        Vec at = vertexVec(cell, number);
        double most = -1.0, least = 9.0;
        for (int i = 0; i < cornersOf(owner); i++) {
            Vec apart = along(vertexVec(owner, i), -1.0, at);
            most = dot(apart, apart);
            if (most >= least) continue;
            least = most;
            number = i;
        }
    }
    *out = withMode(owner, VERTEX_MODE, number);
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToVertexes)(H3Index cell, H3Index *out6) {
    if (!isCell(cell)) return E_CELL_INVALID;
    out6[5] = H3_NULL;
    for (int i = 0; i < cornersOf(cell); i++) H3_EXPORT(cellToVertex)(cell, i, &out6[i]);
    return E_SUCCESS;
}

int H3_EXPORT(isValidVertex)(H3Index vertex) {
    H3Index own, cell = withMode(vertex, CELL_MODE, 0);
    if (modeOf(vertex) != VERTEX_MODE) return 0;
    return H3_EXPORT(cellToVertex)(cell, reservedOf(vertex), &own) == E_SUCCESS && own == vertex;
}

H3Error H3_EXPORT(vertexToLatLng)(H3Index vertex, LatLng *g) {
    if (!H3_EXPORT(isValidVertex)(vertex)) return E_VERTEX_INVALID;
    CellBoundary b;
    boundaryOf(withMode(vertex, CELL_MODE, 0), reservedOf(vertex), 1, &b);
    *g = b.verts[0];
    return E_SUCCESS;
}

int H3_EXPORT(isValidIndex)(H3Index h) {
    return isCell(h) || H3_EXPORT(isValidDirectedEdge)(h) ||
           H3_EXPORT(isValidVertex)(h);
}

/* ---- text ------------------------------------------------------------------------------ */

H3Error H3_EXPORT(stringToH3)(const char *str, H3Index *out) {
    H3Index h = 0;
    int n = 0;
    for (; str[n]; n++) {
        char c = str[n];
        int v = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (v < 0 || n >= 16) return E_FAILED;
        h = h << 4 | (H3Index)v;
    }
    if (!n) return E_FAILED;
    *out = h;
    return E_SUCCESS;
}

H3Error H3_EXPORT(h3ToString)(H3Index h, char *str, size_t sz) {
    if (sz < 17) return E_MEMORY_BOUNDS;
    int n = 0, shift = 60;
    while (shift > 0 && !(h >> shift)) shift -= 4;
    for (; shift >= 0; shift -= 4) str[n++] = "0123456789abcdef"[(h >> shift) & 15];
    str[n] = 0;
    return E_SUCCESS;
}

const char *H3_EXPORT(describeH3Error)(H3Error err) {
    static const char *const text[] = {
        "Success",
        "The operation failed; no more is known",
        "An argument is outside its range",
        "A latitude or longitude is not finite",
        "A resolution is outside 0..15",
        "The index is no cell",
        "The index is no directed edge",
        "The index is no undirected edge",
        "The index is no vertex",
        "A pentagon is in the way",
        "A cell is given twice",
        "The cells are not neighbours",
        "The resolutions do not fit together",
        "There is not enough memory",
        "The room for the answer is too small",
        "A mode or flag is unknown",
        "The index is not valid",
        "A base cell is outside 0..121",
        "A digit is outside 0..6",
        "A pentagon has no such child",
    };
    return err < sizeof text / sizeof *text ? text[err] : "Unknown error code";
}

#include "h3_arrays.h"
