/* h3_bulk.c - the index for many items at a time; see h3_bulk.h for the contract.
 *
 * It includes the index itself, so that the functions for single cells become part of its loops:
 * compile this file instead of h3.c, not beside it. A block of items goes through stages: plain
 * loops without branches that the compiler turns into vectors, compiled for each instruction set
 * (LEVELS). What few items need (pentagons, cells beyond an edge) follows item by item with the
 * functions for single cells. */

#include <stdatomic.h>
#include <stdint.h>

#include "h3_bulk.h"

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

static inline int simdLevel(void) {
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

#include "h3.c"

/* ---- planes ---------------------------------------------------------------------------- */

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
    *g = geoOf(pointOf(face, u, v));
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

/* ---- arrays ---------------------------------------------------------------------------- */

#define BLOCK 256
#define EACH_EVEN INT64_C(0x8208208208) /* the lowest bit of every digit of even levels */
#define EACH_ODD (EACH ^ EACH_EVEN)

/* The bits of the digits that each resolution uses. */
#define USED(r) (DIGITS & ~((INT64_C(1) << DIGIT_SHIFT(r)) - 1))
static const int64_t usedBy[16] = {USED(0),  USED(1),  USED(2),  USED(3), USED(4),  USED(5),
                                   USED(6),  USED(7),  USED(8),  USED(9), USED(10), USED(11),
                                   USED(12), USED(13), USED(14), USED(15)};

/* One block on its way through the stages. */
typedef struct {
    double lat[BLOCK], lng[BLOCK], x[BLOCK], y[BLOCK], z[BLOCK];
    double a[BLOCK], b[BLOCK], sum[BLOCK], scale[BLOCK], limit[BLOCK];
    double a2[BLOCK], b2[BLOCK];
    int64_t face[BLOCK], face2[BLOCK], top[BLOCK], at[BLOCK], digits[BLOCK], pairs[BLOCK];
    int64_t slot[BLOCK], valid[BLOCK], bad[BLOCK], odd[BLOCK], fix[BLOCK], turns[BLOCK];
    H3Index cell[BLOCK];
} Block;

/* Points in w->x, y, z to lattice points: w->face, a, b. */
#define LOCATE_PARAMS Block *restrict w, int n, int res
INLINE void locateBody(LOCATE_PARAMS) {
    double perSpacing = 1.0 / T.scale[res];
    if (res & 1)
        for (int i = 0; i < n; i++)
            locate(w->x[i], w->y[i], w->z[i], 1, perSpacing, &w->face[i], &w->a[i], &w->b[i]);
    else
        for (int i = 0; i < n; i++)
            locate(w->x[i], w->y[i], w->z[i], 0, perSpacing, &w->face[i], &w->a[i], &w->b[i]);
}
LEVELS(locateBlock, locateBody, (LOCATE_PARAMS), (w, n, res))

INLINE Vec vecOf(double lat, double lng) {
    double sa, ca, so, co;
    sinCos(lat, &sa, &ca);
    sinCos(lng, &so, &co);
    return (Vec){ca * co, ca * so, sa};
}

/* Angles to points: w->lat, lng (radians, at most ANGLE_LIMIT) to w->x, y, z. */
#define VECTORS_PARAMS Block *restrict w, int n
INLINE void vectorsBody(VECTORS_PARAMS) {
    for (int i = 0; i < n; i++) {
        Vec p = vecOf(w->lat[i], w->lng[i]);
        w->x[i] = p.x;
        w->y[i] = p.y;
        w->z[i] = p.z;
    }
}
LEVELS(vectorsBlock, vectorsBody, (VECTORS_PARAMS), (w, n))

/* Residues of a division by 7 less 3 (one a digit, of the levels in `each` only) to digits: at
 * even levels twice the residue, at odd ones its three bits backwards. */
INLINE int64_t residues(int64_t sum, int64_t each) {
    int64_t v = (sum & each * 7) + each * 4;
    return (v + ((v + each) >> 3 & each)) & each * 7;
}

/* Lattice points to cells: w->face, a, b to w->cell. The numbers are integers below 2^28 and the
 * sum of residues below 2^45, exact as doubles. */
#define CELLS_PARAMS Block *restrict w, int n, int res
INLINE void cellsBody(CELLS_PARAMS) {
    for (int i = 0; i < n; i++) w->sum[i] = 0.0;
    double weight = 1.0;
    for (int r = MAX_H3_RES; r > res; r--) weight *= 8.0;
    for (int r = res; r > 0; r--, weight *= 8.0) {
        if (r & 1)
            for (int i = 0; i < n; i++) {
                double p = 3.0 * w->a[i] - w->b[i], q = w->a[i] + 2.0 * w->b[i];
                w->a[i] = whole(p * (1.0 / 7.0));
                w->b[i] = whole(q * (1.0 / 7.0));
                w->sum[i] += (q - 7.0 * w->b[i] + 3.0) * weight;
            }
        else
            for (int i = 0; i < n; i++) {
                double p = 2.0 * w->a[i] + w->b[i], q = 3.0 * w->b[i] - w->a[i];
                w->a[i] = whole(p * (1.0 / 7.0));
                w->b[i] = whole(q * (1.0 / 7.0));
                w->sum[i] += (p - 7.0 * w->a[i] + 3.0) * weight;
            }
    }
    const int64_t used = usedBy[res], shared = (int64_t)sharedBits(res);
    const H3Index *tops = &T.top[0][0][0];
    for (int i = 0; i < n; i++) {
        int64_t sum = bitsOf(w->sum[i] + 4503599627370496.0);
        int64_t even = residues(sum, EACH_EVEN), odd = residues(sum, EACH_ODD);
        int64_t d = (even << 1 & EACH_EVEN * 6) | (even >> 2 & EACH_EVEN) |
                    (odd & EACH_ODD) << 2 | (odd & EACH_ODD * 2) | (odd >> 2 & EACH_ODD);
        int64_t place = bitsOf(w->a[i] * 7.0 + w->b[i] + (24.0 + LIFT)) - bitsOf(LIFT);
        int64_t top = (int64_t)tops[w->face[i] * 49 + place];
        d = turnDigits(d & used, top >> TOP_FLAGS);
        w->top[i] = top;
        w->cell[i] = (H3Index)(shared | (top & ~DIGITS) | d);
    }
    for (int i = 0; i < n; i++) { /* few */
        if (!(w->top[i] & TOP_PENTAGON) || !leadsWithK((int64_t)w->cell[i] & used)) continue;
        w->cell[i] = turnIndex(w->top[i] & TOP_FORWARD ? 1 : -1, w->cell[i]);
    }
}
LEVELS(cellsBlock, cellsBody, (CELLS_PARAMS), (w, n, res))

int64_t H3_EXPORT(latLngsToCells)(const double *lat, const double *lng, int64_t stride, double unit,
                                  int64_t n, int res, H3Index *out) {
    ready();
    if (res < 0 || res > MAX_H3_RES) return -(int64_t)E_RES_DOMAIN;
    Block *w = malloc(sizeof *w);
    if (!w) return -(int64_t)E_MEMORY_ALLOC;
    int64_t failed = 0;
    for (int64_t from = 0; from < n; from += BLOCK) {
        int count = (int)(n - from < BLOCK ? n - from : BLOCK), far = 0;
        for (int i = 0; i < count; i++) {
            double a = lat[(from + i) * stride] * unit, b = lng[(from + i) * stride] * unit;
            int near = (fabs(a) <= ANGLE_LIMIT) & (fabs(b) <= ANGLE_LIMIT);
            w->lat[i] = near ? a : 0.0;
            w->lng[i] = near ? b : 0.0;
            far |= !near;
        }
        vectorsBlock(w, count);
        locateBlock(w, count, res);
        cellsBlock(w, count, res);
        memcpy(out + from, w->cell, (size_t)count * sizeof *out);
        for (int i = 0; far && i < count; i++) { /* huge or not finite */
            LatLng g = {lat[(from + i) * stride] * unit, lng[(from + i) * stride] * unit};
            if (H3_EXPORT(latLngToCell)(&g, res, &out[from + i])) {
                out[from + i] = H3_NULL;
                failed++;
            }
        }
    }
    free(w);
    return failed;
}

/* 1 for cells, 0 for the rest. */
#define VALID_PARAMS const H3Index *restrict cells, int n, int64_t *restrict out
INLINE void validBody(VALID_PARAMS) {
    for (int i = 0; i < n; i++) out[i] = validity(cells[i]);
}
LEVELS(validVectors, validBody, (VALID_PARAMS), (cells, n, out))

/* The same of one by tables, which is the shorter way where there are no wide vectors. */
INLINE int64_t validByTable(H3Index cell) {
    static const uint8_t kinds[128] = {
        [4] = 1,   [14] = 1,  [24] = 1,  [38] = 1,  [49] = 1,  [58] = 1,
        [63] = 1,  [72] = 1,  [83] = 1,  [97] = 1,  [107] = 1, [117] = 1,
        [122] = 2, [123] = 2, [124] = 2, [125] = 2, [126] = 2, [127] = 2};
    int64_t h = (int64_t)cell, used = usedBy[h >> 52 & 15], d = h & used;
    int64_t rest = ((int64_t)(cell >> 56) ^ 8) | (~(h | used) & DIGITS);
    int64_t kind = kinds[h >> 45 & 127];
    rest |= (d & d >> 1 & d >> 2 & EACH) | (kind & (leadsWithK(d) | 2));
    return rest == 0;
}

static void validItems(VALID_PARAMS) {
    if (simdLevel() > 0)
        validVectors(cells, n, out);
    else
        for (int i = 0; i < n; i++) out[i] = validByTable(cells[i]);
}

/* Cells to lattice points of even levels on their faces: w->face, a, b, with w->scale, w->limit of
 * the level; w->bad marks what is no cell (the pole's base cell stands in). */
#define DECODE_PARAMS Block *restrict w, const H3Index *cells, int n
INLINE void digitsBody(DECODE_PARAMS) {
    for (int i = 0; i < n; i++) {
        int64_t bad = w->valid[i] - 1, h = (int64_t)cells[i];
        h = (h & ~bad) | ((int64_t)cellOf(0, 0) & bad);
        int64_t res = h >> 52 & 15, base = h >> 45 & 127;
        w->bad[i] = bad & 1;
        w->odd[i] = res & 1;
        w->digits[i] = h & usedBy[res];
        w->slot[i] = 8 * base;
        w->pairs[i] = (res + 1) >> 1;
        w->fix[i] = kindOf(base);
    }
    for (int i = 0; i < n; i++) { /* one in ten */
        if (!w->fix[i] || !w->digits[i]) continue;
        int shift = DIGIT_SHIFT(1);
        while (!(w->digits[i] >> shift)) shift -= 3;
        w->slot[i] += w->digits[i] >> shift;
    }
}

/* Which lattice points lie beyond an edge of their face, or on one beside a pentagon. */
INLINE void beyondBody(Block *restrict w, int n) {
    for (int i = 0; i < n; i++) {
        double a = w->a[i], b = w->b[i], over[3] = {a + b, b - 2.0 * a, a - 2.0 * b};
        double most = over[0] > over[1] ? over[0] : over[1];
        most = most > over[2] ? most : over[2];
        int64_t beside = -(int64_t)(most == w->limit[i]) & w->slot[i] & 7;
        w->fix[i] = -(int64_t)(most > w->limit[i]) | beside;
    }
}

INLINE void decodeBody(DECODE_PARAMS) {
    digitsBody(w, cells, n);
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        w->digits[i] = turnDigits(w->digits[i], T.startFlags[w->slot[i]]);
        w->at[i] = T.startAt[w->slot[i]];
        w->face[i] = T.startFace[w->slot[i]];
        w->turns[i] = T.startTurns[w->slot[i]];
        w->scale[i] = T.scale[2 * w->pairs[i]];
        w->limit[i] = T.limit[2 * w->pairs[i]];
        most = w->pairs[i] > most ? w->pairs[i] : most;
    }
    for (int64_t p = 1; p <= most; p++) {
        int right = p < 8 ? (int)DIGIT_SHIFT(2 * p) : 0, left = p < 8 ? 0 : 3;
        for (int i = 0; i < n; i++) {
            int64_t now = 7 * w->at[i] + T.pair[(w->digits[i] >> right << left) & 63];
            w->at[i] = w->pairs[i] >= p ? now : w->at[i];
        }
    }
    for (int i = 0; i < n; i++) { /* unpacked, by way of numbers above 0 */
        const int64_t lift = INT64_C(1) << 30;
        int64_t at = w->at[i] + (lift << 32) + lift, low = at & INT64_C(0xffffffff);
        int64_t high = (int64_t)((uint64_t)at >> 32);
        w->a[i] = ofBits(high | INT64_C(0x4330000000000000)) - (4503599627370496.0 + 1073741824.0);
        w->b[i] = ofBits(low | INT64_C(0x4330000000000000)) - (4503599627370496.0 + 1073741824.0);
    }
    beyondBody(w, n);
}
LEVELS(decodeValid, decodeBody, (DECODE_PARAMS), (w, cells, n))

static void decodeBlock(DECODE_PARAMS) {
    validItems(cells, n, w->valid);
    decodeValid(w, cells, n);
}

/* The few that are not where they seem; returns how many are no cells. */
static int64_t decodeRest(Block *w, int n) {
    int64_t bad = 0;
    for (int i = 0; i < n; i++) {
        bad += w->bad[i];
        if (!w->fix[i]) continue;
        Spot s = {(int)w->face[i], (int)w->a[i], (int)w->b[i]};
        int even = 2 * (int)w->pairs[i];
        w->turns[i] += settle(&s, even);
        if (w->slot[i] & 7) w->turns[i] += chooseSide(&s, (int)(w->slot[i] >> 3), even);
        w->face[i] = s.face;
        w->a[i] = s.a;
        w->b[i] = s.b;
    }
    return bad;
}

/* Lattice points to angles: (scale x (f a + da), scale x (f b + db)) of w->face, to lat and lng at
 * `stride`; da, db by w->odd. */
typedef struct {
    double factor, divisor, da[2], db[2], unit;
} Shift;
#define ANGLES_PARAMS                                                                   \
    Block *restrict w, int n, const Shift *by, double *restrict lat, double *restrict lng, \
        int64_t stride
INLINE void anglesBody(ANGLES_PARAMS) {
    double f = by->factor, divisor = by->divisor, unit = by->unit;
    double a0 = by->da[0], a1 = by->da[1], b0 = by->db[0], b1 = by->db[1];
    for (int i = 0; i < n; i++) {
        double a = f * w->a[i] + (w->odd[i] ? a1 : a0), b = f * w->b[i] + (w->odd[i] ? b1 : b0);
        Vec p = latticePoint(w->face[i], w->scale[i] / divisor, a, b);
        w->x[i] = p.x;
        w->y[i] = p.y;
        w->z[i] = p.z;
    }
    for (int i = 0; i < n; i++) {
        LatLng g = geoOf((Vec){w->x[i], w->y[i], w->z[i]});
        w->lat[i] = g.lat * unit;
        w->lng[i] = g.lng * unit;
    }
    for (int i = 0; i < n; i++) {
        lat[i * stride] = w->lat[i];
        lng[i * stride] = w->lng[i];
    }
}
LEVELS(anglesBlock, anglesBody, (ANGLES_PARAMS), (w, n, by, lat, lng, stride))

int64_t H3_EXPORT(cellsToLatLngs)(const H3Index *cells, int64_t n, double unit, double *lat,
                                  double *lng, int64_t stride) {
    ready();
    Block *w = malloc(sizeof *w);
    if (!w) return -(int64_t)E_MEMORY_ALLOC;
    const Shift still = {1.0, 1.0, {0.0, 0.0}, {0.0, 0.0}, unit};
    int64_t failed = 0;
    for (int64_t from = 0; from < n; from += BLOCK) {
        int count = (int)(n - from < BLOCK ? n - from : BLOCK);
        decodeBlock(w, cells + from, count);
        int64_t bad = decodeRest(w, count);
        anglesBlock(w, count, &still, lat + from * stride, lng + from * stride, stride);
        for (int i = 0; bad && i < count; i++)
            if (w->bad[i]) lat[(from + i) * stride] = lng[(from + i) * stride] = NAN;
        failed += bad;
    }
    free(w);
    return failed;
}

/* Hexagons with all corners on their face, which are nearly all, go to w->top as 0. */
static void markHard(Block *w, int n) {
    for (int i = 0; i < n; i++) {
        double a = 3.0 * w->a[i], b = 3.0 * w->b[i];
        double room = 3.0 * w->limit[i] - (w->odd[i] ? 9.0 : 3.0);
        int inside = (a + b <= room) & (b - 2.0 * a <= room) & (a - 2.0 * b <= room);
        int pentagon = kindOf(w->slot[i] >> 3) == 1 && !w->digits[i];
        w->top[i] = !inside || pentagon || w->bad[i];
    }
}

int64_t H3_EXPORT(cellsToBoundaries)(const H3Index *cells, int64_t n, double unit, double *out,
                                     int32_t *counts) {
    ready();
    Block *w = malloc(sizeof *w);
    if (!w) return -(int64_t)E_MEMORY_ALLOC;
    int64_t failed = 0;
    for (int64_t from = 0; from < n; from += BLOCK, out += 2 * MAX_CELL_BNDRY_VERTS * BLOCK) {
        int count = (int)(n - from < BLOCK ? n - from : BLOCK);
        decodeBlock(w, cells + from, count);
        failed += decodeRest(w, count);
        markHard(w, count);
        for (int k = 0; k < 6; k++) {
            Shift by = {3.0, 3.0, {0, 0}, {0, 0}, unit};
            for (int odd = 0; odd < 2; odd++) {
                Spot corner = cornerOf((Spot){0, 0, 0}, odd, k);
                by.da[odd] = corner.a;
                by.db[odd] = corner.b;
            }
            anglesBlock(w, count, &by, out + 2 * k, out + 2 * k + 1, 2 * MAX_CELL_BNDRY_VERTS);
        }
        for (int i = 0; i < count; i++) {
            double *p = out + 2 * MAX_CELL_BNDRY_VERTS * i;
            int v = 6;
            if (w->top[i]) {
                CellBoundary b = {0};
                v = H3_EXPORT(cellToBoundary)(cells[from + i], &b) ? -1 : b.numVerts;
                for (int j = 0; j < v; j++) {
                    p[2 * j] = b.verts[j].lat * unit;
                    p[2 * j + 1] = b.verts[j].lng * unit;
                }
            }
            counts[from + i] = v;
            for (int j = v < 0 ? 0 : 2 * v; j < 2 * MAX_CELL_BNDRY_VERTS; j++) p[j] = NAN;
        }
    }
    free(w);
    return failed;
}

/* w->a, b of even levels to own ones: an exact division for odd resolutions. */
#define DISTANCE_PARAMS Block *restrict w, int n, int64_t *out
INLINE void distanceBody(DISTANCE_PARAMS) {
    for (int i = 0; i < n; i++) {
        double p = w->a[i] - w->a2[i], q = w->b[i] - w->b2[i];
        double a = w->odd[i] ? whole((2.0 * p + q) * (1.0 / 7.0)) : p;
        double b = w->odd[i] ? whole((3.0 * q - p) * (1.0 / 7.0)) : q;
        double c = fabs(a - b), most = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
        most = most > c ? most : c;
        out[i] = bitsOf(most + LIFT) - bitsOf(LIFT);
    }
}
LEVELS(distanceBlock, distanceBody, (DISTANCE_PARAMS), (w, n, out))

int64_t H3_EXPORT(gridDistances)(const H3Index *a, const H3Index *b, int64_t n, int64_t *out) {
    ready();
    Block *w = malloc(sizeof *w);
    if (!w) return -(int64_t)E_MEMORY_ALLOC;
    int64_t failed = 0;
    for (int64_t from = 0; from < n; from += BLOCK) {
        int count = (int)(n - from < BLOCK ? n - from : BLOCK);
        const H3Index *p = a + from, *q = b + from;
        decodeBlock(w, q, count);
        int64_t bad = decodeRest(w, count);
        memcpy(w->a2, w->a, sizeof w->a);
        memcpy(w->b2, w->b, sizeof w->b);
        memcpy(w->face2, w->face, sizeof w->face);
        decodeBlock(w, p, count);
        bad += decodeRest(w, count);
        distanceBlock(w, count, out + from);
        for (int i = 0; i < count; i++) {
            if (!bad && w->face[i] == w->face2[i] && !((p[i] ^ q[i]) >> 52 & 15)) continue;
            if (H3_EXPORT(gridDistance)(p[i], q[i], &out[from + i])) {
                out[from + i] = -1;
                failed++;
            }
        }
    }
    free(w);
    return failed;
}

#define VALID_BYTES_PARAMS const H3Index *restrict cells, int64_t n, uint8_t *restrict out
INLINE void validBytesBody(VALID_BYTES_PARAMS) {
    for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)validity(cells[i]);
}
LEVELS(validBytes, validBytesBody, (VALID_BYTES_PARAMS), (cells, n, out))

int64_t H3_EXPORT(areValidCells)(const H3Index *cells, int64_t n, uint8_t *out) {
    if (simdLevel() > 0)
        validBytes(cells, n, out);
    else
        for (int64_t i = 0; i < n; i++) {
#if defined(__GNUC__)
            __builtin_prefetch(&cells[smaller(i + 256, n - 1)]); /* 2.5 times as fast where far */
#endif
            out[i] = (uint8_t)validByTable(cells[i]);
        }
    return 0;
}

/* Parents (or middle children, `down`) where there are such, else 0. */
#define RELATIVES_PARAMS                                                              \
    const H3Index *restrict cells, int64_t n, int res, int toChildren, H3Index *restrict out
INLINE int64_t relativesBody(RELATIVES_PARAMS) {
    const int64_t below = (INT64_C(1) << DIGIT_SHIFT(res)) - 1, mine = usedBy[res];
    int64_t failed = 0;
    if (toChildren)
        for (int64_t i = 0; i < n; i++) {
            int64_t h = (int64_t)cells[i], own = h >> 52 & 15;
            int64_t good = -(validity(cells[i]) & (own <= res));
            h = (h & ~(mine ^ usedBy[own]) & ~(INT64_C(15) << 52)) | (int64_t)res << 52;
            out[i] = (H3Index)(h & good);
            failed += 1 + good;
        }
    else
        for (int64_t i = 0; i < n; i++) {
            int64_t h = (int64_t)cells[i], good = -(validity(cells[i]) & ((h >> 52 & 15) >= res));
            h = ((h | below) & ~(INT64_C(15) << 52)) | (int64_t)res << 52;
            out[i] = (H3Index)(h & good);
            failed += 1 + good;
        }
    return failed;
}
LEVELS_OF(int64_t, return, relatives, relativesBody, (RELATIVES_PARAMS),
          (cells, n, res, toChildren, out))

int64_t H3_EXPORT(cellsToParents)(const H3Index *cells, int64_t n, int res, H3Index *out) {
    ready();
    return res < 0 || res > MAX_H3_RES ? -(int64_t)E_RES_DOMAIN : relatives(cells, n, res, 0, out);
}

int64_t H3_EXPORT(cellsToCenterChildren)(const H3Index *cells, int64_t n, int res, H3Index *out) {
    ready();
    return res < 0 || res > MAX_H3_RES ? -(int64_t)E_RES_DOMAIN : relatives(cells, n, res, 1, out);
}

int64_t H3_EXPORT(getResolutions)(const H3Index *cells, int64_t n, int32_t *out) {
    ready();
    int64_t failed = 0;
    for (int64_t i = 0; i < n; i++) {
        int valid = (int)validity(cells[i]);
        out[i] = valid ? resOf(cells[i]) : -1;
        failed += !valid;
    }
    return failed;
}

int64_t H3_EXPORT(cellAreas)(const H3Index *cells, int64_t n, double unit, double *out) {
    int64_t failed = 0;
    for (int64_t i = 0; i < n; i++) {
        int bad = H3_EXPORT(cellAreaRads2)(cells[i], &out[i]) != E_SUCCESS;
        out[i] = bad ? NAN : out[i] * unit;
        failed += bad;
    }
    return failed;
}

/* Disks of few cells: a block of them at a time, all their cells together. `per` cells each. */
static int64_t smallDisks(const H3Index *cells, int64_t n, int k, int per, Block *w, Workshop *shop,
                          H3Index *out, int64_t *offsets) {
    Block *points = w + 1;
    int64_t end = offsets[0] = 0, got;
    const int most = BLOCK / per;
    for (int64_t from = 0; from < n; from += most) {
        int count = (int)(n - from < most ? n - from : most), here = 0;
        int64_t res = cells[from] >> 52 & 15;
        decodeBlock(w, cells + from, count);
        decodeRest(w, count);
        for (int i = 0; i < count; i++) {
            int limit = (int)w->limit[i] - (k + 2) * (w->odd[i] ? 6 : 2), turns = (int)w->turns[i];
            int a = (int)w->a[i], b = (int)w->b[i];
            w->fix[i] = edgeBeyond((Spot){0, a, b}, limit) >= 0 || w->bad[i] ||
                        (int64_t)(cells[from + i] >> 52 & 15) != res;
            if (w->fix[i]) continue;
            if (res & 1) up((int)res + 1, &a, &b);
            Frame frame = frameOf((Spot){(int)w->face[i], a, b}, turns);
            for (int j = 0; j < per; j++, here++) {
                Spot s = inFrame(frame, shop->a[j], shop->b[j]);
                points->face[here] = s.face;
                points->a[here] = s.a;
                points->b[here] = s.b;
            }
        }
        cellsBlock(points, here, (int)res);
        here = 0;
        for (int i = 0; i < count; i++, offsets[from + i] = end += got) {
            got = per;
            if (!w->fix[i]) {
                memcpy(out + end, points->cell + here, (size_t)per * sizeof *out);
                here += per;
            } else {
                got = w->bad[i] ? 0 : rings(cells[from + i], 0, k, shop, out + end, NULL);
                if (got < 0) return got;
            }
        }
    }
    return end;
}

int64_t H3_EXPORT(gridDisks)(const H3Index *cells, int64_t n, int k, H3Index *out,
                             int64_t *offsets) {
    if (k < 0) return -(int64_t)E_DOMAIN;
    ready();
    Workshop w = {.memory = NULL};
    int64_t end = offsets[0] = 0;
    if (k <= 3) {
        Block *blocks = malloc(2 * sizeof *blocks);
        end = blocks && openWorkshop(&w, 0, k, 0)
                  ? smallDisks(cells, n, k, 3 * k * (k + 1) + 1, blocks, &w, out, offsets)
                  : -(int64_t)E_MEMORY_ALLOC;
        free(blocks);
        free(w.memory);
        return end;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t got = validity(cells[i]) ? rings(cells[i], 0, k, &w, out + end, NULL) : 0;
        if (got < 0) {
            free(w.memory);
            return got;
        }
        offsets[i + 1] = end += got;
    }
    free(w.memory);
    return end;
}

