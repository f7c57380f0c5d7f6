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
 *                  /      \
 *           K (-1,-1)    IK (0,-1)
 *
 *      Going up a level is a division by 2 + w or its mirror, rounded; the rest is the digit.
 *   3. At res 0 a face holds 10 lattice points; over all faces they are the 122 base cells.
 *   4. Faces are unfolded over their edges by turning 60 degrees about the edge's middle,
 *      itself a lattice point at every resolution: exact in integers.
 *   5. Around a pentagon five faces meet, one digit (K) does not exist: each face carries
 *      exactly one of the five others.
 *
 * Everything is derived at start-up from the 20 face centres, the direction of each first
 * axis, and a home face for each base cell. */

#include "h3.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FACES 20
#define SQRT3 1.7320508075688772935
#define SPACING0 0.38196601125010515180 /* 2 - golden ratio: lattice spacing at res 0 */
#define SIN_TURN3 0.32732683535398857190 /* sin, cos of asin(sqrt(3/28)): turn of odd levels */
#define COS_TURN3 0.94491118252306806804
#define REACH 2 /* res 0 steps from a face centre to its corners */

enum { CENTER = 0, K_DIGIT = 1, J_DIGIT = 2, JK_DIGIT = 3, I_DIGIT = 4, IK_DIGIT = 5, IJ_DIGIT = 6,
       NO_DIGIT = 7 };

typedef struct {
    double x, y, z;
} Vec;

/* A lattice point on a face's plane, at a resolution known from the context. */
typedef struct {
    int face, a, b;
} Spot;

/* Centre and direction of the first axis (azimuth from north, clockwise) of every face:
 * Fuller's Dymaxion orientation, as uber/h3 places it. */
static const double faceCentre[FACES][3] = {
    {0.803582649718989942, 1.248397419617396099, 5.619958268523939882},
    {1.307747883455638156, 2.536945009877921159, 5.760339081714187279},
    {1.054751253523952054, -1.347517358900396623, 0.780213654393430055},
    {0.600191595538186799, -0.450603909469755746, 0.430469363979999913},
    {0.491715428198773866, 0.401988202911306943, 6.130269123335111400},
    {0.172745327415618701, 1.678146885280433686, 2.692877706530642877},
    {0.605929321571350690, 2.953923329812411617, 2.982963003477243874},
    {0.427370518328979641, -1.888876200336285401, 3.532912002790141181},
    {-0.079066118549212831, -0.733429513380867741, 3.494305004259568154},
    {-0.230961644455383637, 0.506495587332349035, 3.003214169499538391},
    {0.079066118549212831, 2.408163140208925497, 5.930472956509811562},
    {0.230961644455383637, -2.635097066257444203, 0.138378484090254847},
    {-0.172745327415618701, -1.463445768309359553, 0.448714947059150361},
    {-0.605929321571350690, -0.187669323777381622, 0.158629650112549365},
    {-0.427370518328979641, 1.252716453253507838, 5.891865957979238535},
    {-0.600191595538186799, 2.690988744120037492, 2.711123289609793325},
    {-0.491715428198773866, -2.739604450678486295, 3.294508837434268316},
    {-0.803582649718989942, -1.893195233972397139, 3.804819692245439833},
    {-1.307747883455638156, -0.604647643711872080, 3.664438879055192436},
    {-1.054751253523952054, 1.794075294689396615, 2.361378999196363184}};

/* The face whose axes each base cell's digits follow. */
static const uint8_t homeFace[NUM_BASE_CELLS] = {
    1, 2, 1, 2, 0, 1, 1, 2, 0, 2, 1, 1, 3, 3, 1, 4, 0, 6, 0, 2, 7, 2, 0, 6,
    0, 6, 3, 11, 4, 3, 0, 4, 5, 0, 7, 11, 7, 10, 2, 6, 7, 4, 3, 3, 4, 6, 11, 8,
    5, 4, 5, 12, 10, 4, 12, 7, 11, 10, 3, 10, 11, 9, 8, 6, 8, 9, 14, 5, 16, 8, 5, 12,
    7, 12, 10, 9, 13, 16, 15, 15, 16, 14, 13, 5, 8, 14, 9, 14, 17, 12, 16, 17, 15, 16, 9, 15,
    13, 8, 13, 17, 19, 14, 19, 17, 13, 17, 16, 9, 15, 15, 18, 18, 19, 17, 19, 18, 18, 19, 19, 18,
    19, 18};

static const int stepA[7] = {0, -1, 0, -1, 1, 0, 1};
static const int stepB[7] = {0, -1, 1, 0, 0, -1, 1};
/* Direction of each digit, and the digit of each direction. */
static const uint8_t sextant[7] = {0, 4, 2, 3, 0, 5, 1}; /* x 60 degrees */
static const uint8_t digitOf[6] = {I_DIGIT, IJ_DIGIT, J_DIGIT, JK_DIGIT, K_DIGIT, IK_DIGIT};
/* Middles of a face's edges at res 0; edge e faces 60 + 120 e degrees. */
static const int edgeA[3] = {1, -1, 0}, edgeB[3] = {1, 0, -1};
/* Corners of a hexagon in thirds of the lattice, counter-clockwise from 30 degrees. */
static const int cornerA[6] = {2, 1, -1, -2, -1, 1}, cornerB[6] = {1, 2, 1, -1, -2, -1};

static struct {
    Vec n[FACES], ex[FACES], ey[FACES];
    uint8_t acrossFace[FACES][3], acrossEdge[FACES][3], acrossTurns[FACES][3];
    int8_t base[FACES][5][5];  /* base cell of the res 0 point (a, b) at [a + 2][b + 2], or -1 */
    uint8_t turns[FACES][5][5]; /* turns from the face's axes to the base cell's home axes */
    uint8_t sector[FACES][5][5]; /* pentagons: sextant of home that the face carries */
    Spot home[NUM_BASE_CELLS];
    uint8_t pentagon[NUM_BASE_CELLS];
    uint8_t pentagonFace[NUM_BASE_CELLS][6]; /* face of each sextant of home */
    double scale[MAX_H3_RES + 2];            /* lattice spacing of every resolution */
    int limit[MAX_H3_RES + 2]; /* even levels: twice the distance from face centre to edge */
} T;

/* ---- vectors and integers ------------------------------------------------------------- */

static double dot(Vec p, Vec q) { return p.x * q.x + p.y * q.y + p.z * q.z; }

static Vec cross(Vec p, Vec q) {
    Vec r = {p.y * q.z - p.z * q.y, p.z * q.x - p.x * q.z, p.x * q.y - p.y * q.x};
    return r;
}

static Vec along(Vec p, double s, Vec q) {
    Vec r = {p.x + s * q.x, p.y + s * q.y, p.z + s * q.z};
    return r;
}

static Vec unit(Vec p) {
    double s = 1.0 / sqrt(dot(p, p));
    Vec r = {p.x * s, p.y * s, p.z * s};
    return r;
}

static Vec vecOf(double lat, double lng) {
    Vec r = {cos(lat) * cos(lng), cos(lat) * sin(lng), sin(lat)};
    return r;
}

/* n / 7 rounded to the nearest integer; there are no ties. |n| < 2^28: lifted above 0, where a
 * division is a multiplication and needs no look at the sign. */
static int seventh(int n) {
    const int lift = 1 << 26;
    return (int)((uint32_t)(n + 7 * lift + 3) / 7u) - lift;
}

/* Parent of (a, b) of level `res`, and the middle child of (a, b) at level `res`. */
static void up(int res, int *a, int *b) {
    int p = *a, q = *b;
    *a = seventh(res & 1 ? 3 * p - q : 2 * p + q);
    *b = seventh(res & 1 ? p + 2 * q : 3 * q - p);
}

static void down(int res, int *a, int *b) {
    int p = *a, q = *b;
    *a = res & 1 ? 2 * p + q : 3 * p - q;
    *b = res & 1 ? 3 * q - p : p + 2 * q;
}

static void turn(int turns, int *a, int *b) {
    for (int i = ((turns % 6) + 6) % 6; i > 0; i--) {
        int p = *a;
        *a = p - *b;
        *b = p;
    }
}

/* Position in the plane of a point of an even level, or of an odd one turned to its own axes. */
static void planeOf(double scale, int a, int b, double *x, double *y) {
    *x = scale * (a - 0.5 * b);
    *y = scale * (0.5 * SQRT3 * b);
}

static Vec spotVec(int face, double x, double y) {
    return unit(along(along(T.n[face], x, T.ex[face]), y, T.ey[face]));
}

/* ---- bits of an index ------------------------------------------------------------------ */

/*   63   62..59   58..56     55..52       51..45      44..42      ...    2..0
 *    0   mode 1   000        resolution   base cell   digit of 1  ...    digit of 15 (7: unused)
 */
#define DIGIT_SHIFT(r) ((MAX_H3_RES - (r)) * 3)
#define DIGITS UINT64_C(0x1fffffffffff)
#define EACH UINT64_C(0x49249249249) /* the lowest bit of every digit */

static int digitAt(H3Index h, int res) { return (int)((h >> DIGIT_SHIFT(res)) & 7); }

static H3Index withDigit(H3Index h, int res, int digit) {
    return (h & ~(UINT64_C(7) << DIGIT_SHIFT(res))) | ((H3Index)digit << DIGIT_SHIFT(res));
}

static H3Index blank(int res, int base) { /* all digits 7 */
    return (UINT64_C(1) << 59) | ((H3Index)res << 52) | ((H3Index)base << 45) |
           DIGITS;
}

int H3_EXPORT(getResolution)(H3Index h) { return (int)((h >> 52) & 15); }
int H3_EXPORT(getBaseCellNumber)(H3Index h) { return (int)((h >> 45) & 127); }
int H3_EXPORT(isResClassIII)(H3Index h) { return H3_EXPORT(getResolution)(h) & 1; }
#define resOf H3_EXPORT(getResolution)
#define baseOf H3_EXPORT(getBaseCellNumber)

/* The bits of the digits that a resolution uses. */
static H3Index usedDigits(int res) { return DIGITS & ~((UINT64_C(1) << DIGIT_SHIFT(res)) - 1); }

/* First digit that is not 0, or 0. */
static int leading(H3Index h) {
    for (int r = 1, res = resOf(h); r <= res; r++)
        if (digitAt(h, r)) return digitAt(h, r);
    return CENTER;
}

/* Turn all digits by -5..5 times 60 degrees counter-clockwise, all levels at once: half a turn is
 * the complement of a digit (but 0 stays), a third of a turn rotates its three bits. */
static H3Index turnIndex(int turns, H3Index h) {
    if (turns == 0) return h;
    if (turns < 0) turns += 6;
    H3Index used = usedDigits(resOf(h)), d = h & used;
    if (turns & 1) {
        d ^= ((d | d >> 1 | d >> 2) & EACH) * 7;
        turns = (turns + 3) % 6;
    }
    if (turns == 2) d = (d >> 1 & EACH * 3) | (d & EACH) << 2;
    if (turns == 4) d = (d << 1 & EACH * 6) | (d >> 2 & EACH);
    return (h & ~used) | d;
}

/* ---- tables, built once ---------------------------------------------------------------- */

/* Sextant in which a face lies, seen from one of its corners (a, b), in the face's axes. */
static int sextantFrom(int a, int b) { return a == 2 ? 3 : b == 2 ? 5 : 1; }

static int onFace(int a, int b) { /* is a res 0 point on the face? */
    return a + b <= REACH && b - 2 * a <= REACH && a - 2 * b <= REACH;
}

static double azimuth(Vec at, Vec toward, Vec zero) { /* 0..2 pi, counter-clockwise from outside */
    Vec u = unit(along(zero, -dot(zero, at), at)), v = cross(at, u);
    double t = atan2(dot(toward, v), dot(toward, u));
    return t < -1e-9 ? t + 6.283185307179586 : t;
}

static void buildFaces(void) {
    for (int f = 0; f < FACES; f++) {
        double lat = faceCentre[f][0], lng = faceCentre[f][1], az = faceCentre[f][2];
        Vec n = vecOf(lat, lng), east = {-sin(lng), cos(lng), 0.0}, north = cross(n, east);
        Vec ex = {0, 0, 0};
        ex = along(along(ex, cos(az), north), sin(az), east);
        T.n[f] = n;
        T.ex[f] = ex;
        T.ey[f] = cross(n, ex);
    }
}

static Vec latticeVec(int f, int a, int b) {
    double x, y;
    planeOf(SPACING0, a, b, &x, &y);
    return spotVec(f, x, y);
}

static void buildEdges(void) {
    for (int f = 0; f < FACES; f++)
        for (int e = 0; e < 3; e++) {
            Vec mid = latticeVec(f, edgeA[e], edgeB[e]);
            for (int g = 0; g < FACES; g++)
                for (int d = 0; d < 3 && g != f; d++)
                    if (dot(mid, latticeVec(g, edgeA[d], edgeB[d])) > 1.0 - 1e-9) {
                        /* Outwards over edge e is inwards over edge d: half a turn between. */
                        T.acrossFace[f][e] = (uint8_t)g;
                        T.acrossEdge[f][e] = (uint8_t)d;
                        T.acrossTurns[f][e] = (uint8_t)(((1 + 2 * d) + 3 - (1 + 2 * e) + 6) % 6);
                    }
        }
}

static void buildBaseCells(void) {
    Vec found[NUM_BASE_CELLS];
    int count = 0, order[NUM_BASE_CELLS], number[NUM_BASE_CELLS];
    static int8_t raw[FACES][5][5];
    for (int f = 0; f < FACES; f++)
        for (int a = -2; a <= 2; a++)
            for (int b = -2; b <= 2; b++) {
                raw[f][a + 2][b + 2] = -1;
                if (!onFace(a, b)) continue;
                Vec p = latticeVec(f, a, b);
                int i = 0;
                while (i < count && dot(p, found[i]) < 1.0 - 1e-9) i++;
                if (i == count) found[count++] = p;
                raw[f][a + 2][b + 2] = (int8_t)i;
            }
    for (int i = 0; i < count; i++) { /* base cells are numbered from north to south */
        int at = i;
        for (; at > 0 && found[order[at - 1]].z < found[i].z; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < count; i++) number[order[i]] = i;
    for (int f = 0; f < FACES; f++)
        for (int a = -2; a <= 2; a++)
            for (int b = -2; b <= 2; b++) {
                int i = raw[f][a + 2][b + 2], cell = i < 0 ? -1 : number[i];
                T.base[f][a + 2][b + 2] = (int8_t)cell;
                if (cell < 0) continue;
                if (a == 2 || b == 2 || a == -2) T.pentagon[cell] = (uint8_t)(a * a + b * b - a * b == 4);
                if (homeFace[cell] == f) {
                    Spot s = {f, a, b};
                    T.home[cell] = s;
                }
            }
}

static void buildTurns(void) {
    for (int f = 0; f < FACES; f++)
        for (int a = -2; a <= 2; a++)
            for (int b = -2; b <= 2; b++) {
                int cell = T.base[f][a + 2][b + 2];
                if (cell < 0) continue;
                Spot h = T.home[cell];
                if (!T.pentagon[cell]) {
                    int turns = 0; /* shared by two faces at most: over one edge or none */
                    for (int e = 0; e < 3; e++)
                        if (h.face != f && T.acrossFace[f][e] == h.face) turns = T.acrossTurns[f][e];
                    T.turns[f][a + 2][b + 2] = (uint8_t)turns;
                    continue;
                }
                /* Count faces counter-clockwise from home; the sextant of K is skipped. */
                Vec at = latticeVec(f, a, b);
                double full = azimuth(at, T.n[f], T.n[h.face]);
                int ahead = (int)floor(full / (6.283185307179586 / 5) + 0.5) % 5;
                int s = sextantFrom(h.a, h.b);
                while (ahead > 0) {
                    s = (s + 1) % 6;
                    if (s != sextant[K_DIGIT]) ahead--;
                }
                T.sector[f][a + 2][b + 2] = (uint8_t)s;
                T.pentagonFace[cell][s] = (uint8_t)f;
                T.turns[f][a + 2][b + 2] = (uint8_t)((s - sextantFrom(a, b) + 6) % 6);
            }
}

static void build(void) {
    double scale = SPACING0;
    int limit = REACH;
    for (int r = 0; r <= MAX_H3_RES + 1; r++) {
        T.scale[r] = scale;
        T.limit[r] = limit;
        scale /= sqrt(7.0);
        if (r & 1) limit *= 7;
    }
    for (int r = 0; r <= MAX_H3_RES + 1; r += 2) { /* exact powers, no accumulated rounding */
        double whole = SPACING0 / pow(7.0, r / 2);
        T.scale[r] = whole;
        if (r <= MAX_H3_RES) T.scale[r + 1] = whole / sqrt(7.0);
    }
    buildFaces();
    buildEdges();
    buildBaseCells();
    buildTurns();
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

/* ---- moving over the icosahedron ------------------------------------------------------- */

/* The edge over which (a, b) of an even level lies outside its face, or -1; `limit` is twice the
 * distance to the edges in lattice units. */
static int edgeBeyond(int a, int b, int limit) {
    int over[3] = {a + b - limit, b - 2 * a - limit, a - 2 * b - limit};
    int e = over[1] > over[0] ? 1 : 0;
    if (over[2] > over[e]) e = 2;
    return over[e] > 0 ? e : -1;
}

/* Unfold a point over edge e of its face. `half` is the edge's distance in lattice units along
 * its own middle point, given as that point (ma, mb) on both faces. */
static void unfold(Spot *s, int e, int res, int factor) {
    int g = T.acrossFace[s->face][e], d = T.acrossEdge[s->face][e];
    int ma = edgeA[e], mb = edgeB[e], na = edgeA[d], nb = edgeB[d];
    for (int r = 1; r <= res; r++) {
        down(r, &ma, &mb);
        down(r, &na, &nb);
    }
    int a = s->a - factor * ma, b = s->b - factor * mb;
    turn(T.acrossTurns[s->face][e], &a, &b);
    s->face = g;
    s->a = a + factor * na;
    s->b = b + factor * nb;
}

/* Put a lattice point of level res on the face where it lies. */
static void settle(Spot *s, int res) {
    for (int i = 0; i < 4; i++) {
        int a = s->a, b = s->b, even = res + (res & 1);
        if (res & 1) down(even, &a, &b);
        int e = edgeBeyond(a, b, T.limit[even]);
        if (e < 0) return;
        unfold(s, e, res, 1);
    }
}

/* From digits in a face's axes and the point where their chain of parents ends at res 0, to the
 * index: digits in the axes of the base cell's home face. */
static H3Index finish(H3Index digits, int res, Spot top) {
    H3Index h = (blank(res, 0) ^ usedDigits(res)) | digits;
    for (int i = 0; i < 3 && !onFace(top.a, top.b); i++) { /* a base cell beyond the edge */
        int e = edgeBeyond(top.a, top.b, REACH);
        h = turnIndex(T.acrossTurns[top.face][e], h);
        unfold(&top, e, 0, 1);
    }
    int base = T.base[top.face][top.a + 2][top.b + 2];
    h |= (H3Index)base << 45;
    h = turnIndex(T.turns[top.face][top.a + 2][top.b + 2], h);
    if (T.pentagon[base] && leading(h) == K_DIGIT) {
        /* The cell straddles the two faces beside the sextant that does not exist. */
        int before = T.sector[top.face][top.a + 2][top.b + 2] == sextant[JK_DIGIT];
        h = turnIndex(before ? 1 : -1, h);
    }
    return h;
}

/* The chain of parents of the cell encoded last, because the next one is often its sibling:
 * lattice points of every level and the digits down to there. face is -1 at the beginning. */
typedef struct {
    int face, a[MAX_H3_RES + 1], b[MAX_H3_RES + 1];
    H3Index digits[MAX_H3_RES + 1];
} Trail;

/* The index of a lattice point that lies on its face. */
static H3Index encodeNext(Trail *t, Spot s, int res) {
    int known = t->face == s.face, r = res, a = s.a, b = s.b, digit[MAX_H3_RES + 1];
    for (; r > 0 && !(known && t->a[r] == a && t->b[r] == b); r--) {
        t->a[r] = a;
        t->b[r] = b;
        up(r, &a, &b);
        int ca = a, cb = b;
        down(r, &ca, &cb);
        int da = t->a[r] - ca, db = t->b[r] - cb, least = da < db ? da : db;
        digit[r] = 4 * da + 2 * db - 7 * (least < 0 ? least : 0);
    }
    if (r == 0) {
        t->face = s.face;
        t->a[0] = a;
        t->b[0] = b;
        t->digits[0] = 0;
    }
    while (r++ < res) t->digits[r] = t->digits[r - 1] | (H3Index)digit[r] << DIGIT_SHIFT(r);
    Spot top = {t->face, t->a[0], t->b[0]};
    return finish(t->digits[res], res, top);
}

/* The index of any lattice point. */
static H3Index encode(Spot s, int res) {
    Trail t;
    t.face = -1;
    settle(&s, res);
    return encodeNext(&t, s, res);
}

/* A cell around a pentagon may lie on the edge between two of its sextants. Either face is right;
 * the one nearer to JK is taken, so that outlines start at the same corner as uber/h3's. */
static void chooseSide(Spot *s, int base, int res) {
    static const uint8_t rank[6] = {0, 1, 2, 4, 0, 3}; /* of sextants I, IJ, J, JK, -, IK */
    int a = s->a, b = s->b, even = res + (res & 1), here = -1, there = -1;
    if (res & 1) down(even, &a, &b);
    int over[3] = {a + b, b - 2 * a, a - 2 * b};
    for (int e = 0; e < 3; e++) {
        if (over[e] != T.limit[even]) continue;
        for (int k = 0; k < 6; k++) {
            if (k == sextant[K_DIGIT]) continue;
            if (T.pentagonFace[base][k] == s->face) here = k;
            if (T.pentagonFace[base][k] == T.acrossFace[s->face][e]) there = k;
        }
        if (here >= 0 && there >= 0 && rank[there] > rank[here]) unfold(s, e, res, 1);
        return;
    }
}

/* The lattice point of a valid index, on the face where its centre lies. */
static Spot decode(H3Index h) {
    int res = resOf(h), base = baseOf(h), turns = 0;
    int lead = T.pentagon[base] ? leading(h) : CENTER;
    Spot s = T.home[base];
    if (lead) {
        int face = T.pentagonFace[base][sextant[lead]];
        if (face != s.face)
            for (int a = -2; a <= 2; a++)
                for (int b = -2; b <= 2; b++)
                    if (T.base[face][a + 2][b + 2] == base) {
                        s.face = face;
                        s.a = a;
                        s.b = b;
                        turns = -(int)T.turns[face][a + 2][b + 2];
                    }
    }
    h = turnIndex(turns, h);
    for (int r = 1; r <= res; r++) {
        int digit = digitAt(h, r);
        down(r, &s.a, &s.b);
        s.a += stepA[digit];
        s.b += stepB[digit];
    }
    settle(&s, res);
    if (lead) chooseSide(&s, base, res);
    return s;
}

/* ---- points ---------------------------------------------------------------------------- */

static void geoOf(Vec p, LatLng *g) {
    g->lat = atan2(p.z, hypot(p.x, p.y)); /* asin(z) would lose digits near the poles */
    g->lng = atan2(p.y, p.x);
}

/* To the nearest integer, halves away from zero; round() of libm costs a call. */
static int roundOf(double x) { return (int)(x < 0.0 ? x - 0.5 : x + 0.5); }

/* The nearest lattice point of a plane point. */
static void nearest(double x, double y, int res, int *a, int *b) {
    if (res & 1) {
        double t = x * COS_TURN3 + y * SIN_TURN3;
        y = y * COS_TURN3 - x * SIN_TURN3;
        x = t;
    }
    x /= T.scale[res];
    y /= T.scale[res];
    double r = y * (2.0 / SQRT3), q = x - 0.5 * r, s = -q - r;
    int rq = roundOf(q), rr = roundOf(r), rs = roundOf(s);
    double dq = fabs(rq - q), dr = fabs(rr - r), ds = fabs(rs - s);
    if (dq > dr && dq > ds)
        rq = -rr - rs;
    else if (dr > ds)
        rr = -rq - rs;
    *a = rq + rr;
    *b = rr;
}

H3Error H3_EXPORT(latLngToCell)(const LatLng *g, int res, H3Index *out) {
    ready();
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    if (!isfinite(g->lat) || !isfinite(g->lng)) return E_LATLNG_DOMAIN;
    Vec p = vecOf(g->lat, g->lng);
    Spot s = {0, 0, 0};
    double best = -2.0;
    for (int f = 0; f < FACES; f++) {
        double c = dot(p, T.n[f]);
        s.face = c > best ? f : s.face;
        best = c > best ? c : best;
    }
    nearest(dot(p, T.ex[s.face]) / best, dot(p, T.ey[s.face]) / best, res, &s.a, &s.b);
    *out = encode(s, res);
    return E_SUCCESS;
}

H3Error H3_EXPORT(planeToCells)(int face, const double *u, const double *v, int64_t n, int res,
                                H3Index *out) {
    ready();
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    if (face < 0 || face >= FACES) return E_DOMAIN;
    /* On the face by a margin wider than any rounding: no need to go over the sphere. */
    const double inside = 0.3819;
    Spot last = {-1, 0, 0}; /* of out[i - 1]; points in a row often share a cell */
    for (int64_t i = 0; i < n; i++) {
        double x = 0.5 * u[i], y = 0.5 * SQRT3 * v[i];
        if (x + y < inside && -u[i] < inside && x - y < inside) {
            Spot s = {face, 0, 0};
            nearest(u[i], v[i], res, &s.a, &s.b);
            out[i] = last.face == face && last.a == s.a && last.b == s.b ? out[i - 1]
                                                                        : encode(s, res);
            last = s;
            continue;
        }
        LatLng g;
        H3Error err = H3_EXPORT(planeToLatLng)(face, u[i], v[i], &g);
        if (!err) err = H3_EXPORT(latLngToCell)(&g, res, &out[i]);
        if (err) return err;
        last.face = -1;
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(planeToLatLng)(int face, double u, double v, LatLng *g) {
    ready();
    if (face < 0 || face >= FACES || !isfinite(u) || !isfinite(v)) return E_DOMAIN;
    geoOf(along(along(T.n[face], u, T.ex[face]), v, T.ey[face]), g);
    return E_SUCCESS;
}

H3Error H3_EXPORT(latLngToPlane)(int face, const LatLng *g, double *u, double *v) {
    ready();
    if (face < 0 || face >= FACES) return E_DOMAIN;
    if (!isfinite(g->lat) || !isfinite(g->lng)) return E_LATLNG_DOMAIN;
    Vec p = vecOf(g->lat, g->lng);
    double c = dot(p, T.n[face]);
    if (c < 1e-6) return E_DOMAIN; /* a quarter turn away and more */
    *u = dot(p, T.ex[face]) / c;
    *v = dot(p, T.ey[face]) / c;
    return E_SUCCESS;
}

/* Plane position of a point of level res, in the face's own axes. */
static void position(Spot s, int res, double *x, double *y) {
    int even = res + (res & 1);
    if (res & 1) down(even, &s.a, &s.b);
    planeOf(T.scale[even], s.a, s.b, x, y);
}

H3Error H3_EXPORT(cellToLatLng)(H3Index cell, LatLng *g) {
    if (!H3_EXPORT(isValidCell)(cell)) return E_CELL_INVALID;
    ready();
    Spot s = decode(cell);
    double x, y;
    position(s, resOf(cell), &x, &y);
    geoOf(along(along(T.n[s.face], x, T.ex[s.face]), y, T.ey[s.face]), g);
    return E_SUCCESS;
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
    *a = cornerA[k];
    *b = cornerB[k];
    if (res & 1) down(res + 1, a, b);
}

static void addVertex(CellBoundary *gp, int face, double x, double y) {
    geoOf(along(along(T.n[face], x, T.ex[face]), y, T.ey[face]), &gp->verts[gp->numVerts++]);
}

static void addSpot(CellBoundary *gp, Spot s, Fine fine) {
    double x, y;
    for (int i = 0, e; i < 4 && (e = edgeBeyond(s.a, s.b, fine.limit)) >= 0; i++)
        unfold(&s, e, fine.even, 3);
    planeOf(fine.scale, s.a, s.b, &x, &y);
    addVertex(gp, s.face, x, y);
}

/* Where the segment p0-p1 of a face's plane meets edge e. */
static void addCrossing(CellBoundary *gp, int face, int e, Spot p0, Spot p1, Fine fine) {
    static const double nx[3] = {0.5, -1.0, 0.5}, ny[3] = {0.5 * SQRT3, 0.0, -0.5 * SQRT3};
    double x0, y0, x1, y1;
    planeOf(fine.scale, p0.a, p0.b, &x0, &y0);
    planeOf(fine.scale, p1.a, p1.b, &x1, &y1);
    double d0 = nx[e] * x0 + ny[e] * y0 - SPACING0, d1 = nx[e] * x1 + ny[e] * y1 - SPACING0;
    double t = d0 / (d0 - d1);
    addVertex(gp, face, x0 + t * (x1 - x0), y0 + t * (y1 - y0));
}

static void hexagonBoundary(Spot s, int res, CellBoundary *gp) {
    Fine fine = fineOf(res);
    if (res & 1) down(res + 1, &s.a, &s.b);
    Spot corner[6];
    int beyond[6];
    for (int k = 0; k < 6; k++) {
        int a, b;
        cornerOf(res, k, &a, &b);
        Spot c = {s.face, 3 * s.a + a, 3 * s.b + b};
        corner[k] = c;
        beyond[k] = edgeBeyond(c.a, c.b, fine.limit);
    }
    for (int k = 0; k <= 6; k++) {
        int now = k % 6, last = (k + 5) % 6;
        if (k > 0 && (res & 1) && beyond[now] != beyond[last]) {
            int e = beyond[now] >= 0 ? beyond[now] : beyond[last];
            Spot in = beyond[now] >= 0 ? corner[last] : corner[now];
            int over[3] = {in.a + in.b, in.b - 2 * in.a, in.a - 2 * in.b};
            if (over[e] < fine.limit) addCrossing(gp, s.face, e, corner[last], corner[now], fine);
        }
        if (k < 6) addSpot(gp, corner[now], fine);
    }
}

/* Around a pentagon: sextants I, IJ, J, JK, IK of home, each on its own face. */
static void pentagonBoundary(H3Index cell, int res, CellBoundary *gp) {
    static const int order[2][5] = {{0, 1, 2, 3, 5}, {1, 2, 3, 5, 0}};
    Fine fine = fineOf(res);
    int base = baseOf(cell);
    for (int i = 0; i < 5; i++) {
        int face = T.pentagonFace[base][order[res & 1][i]];
        Spot s = {face, 0, 0};
        for (int a = -2; a <= 2; a++)
            for (int b = -2; b <= 2; b++)
                if (T.base[face][a + 2][b + 2] == base) {
                    s.a = a;
                    s.b = b;
                }
        int sext = sextantFrom(s.a, s.b);
        for (int r = 1; r <= fine.even; r++) down(r, &s.a, &s.b);
        int a, b, c, d;
        cornerOf(res, (res & 1 ? sext + 5 : sext) % 6, &a, &b);
        Spot here = {face, 3 * s.a + a, 3 * s.b + b};
        addSpot(gp, here, fine);
        if (!(res & 1)) continue;
        cornerOf(res, sext, &c, &d);
        Spot next = {face, 3 * s.a + c, 3 * s.b + d};
        addCrossing(gp, face, edgeBeyond(next.a, next.b, fine.limit), here, next, fine);
    }
}

H3Error H3_EXPORT(cellToBoundary)(H3Index cell, CellBoundary *gp) {
    if (!H3_EXPORT(isValidCell)(cell)) return E_CELL_INVALID;
    ready();
    gp->numVerts = 0;
    if (H3_EXPORT(isPentagon)(cell))
        pentagonBoundary(cell, resOf(cell), gp);
    else
        hexagonBoundary(decode(cell), resOf(cell), gp);
    return E_SUCCESS;
}

/* ---- neighbours ------------------------------------------------------------------------ */

/* Number of cells of a resolution. */
static int64_t cellsAt(int res) {
    int64_t n = 120;
    while (res-- > 0) n *= 7;
    return n + 2;
}

/* Neighbours of a cell, each once; 5 or 6 of them. */
static int neighbours(H3Index cell, H3Index out[6]) {
    Spot s = decode(cell);
    int res = resOf(cell), count = 0;
    Trail t;
    t.face = -1;
    for (int k = 0; k < 6; k++) {
        Spot n = {s.face, s.a + stepA[digitOf[k]], s.b + stepB[digitOf[k]]};
        settle(&n, res);
        H3Index h = encodeNext(&t, n, res);
        int known = 0;
        for (int i = 0; i < count; i++) known |= out[i] == h;
        if (!known) out[count++] = h;
    }
    return count;
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

/* Do all cells within k steps lie on the face of s? Then the plane is enough. */
static int diskFits(Spot s, int res, int k) {
    int even = res + (res & 1), a = s.a, b = s.b;
    if (res & 1) down(even, &a, &b);
    int64_t room = T.limit[even] - ((int64_t)k + 2) * 2 * (res & 1 ? 3 : 1);
    return a + b <= room && b - 2 * a <= room && a - 2 * b <= room;
}

/* The ring of a disk that fits, counter-clockwise from its cell along I; returns its length. */
static int64_t ringOnFace(Spot s, int res, int ring, H3Index *out) {
    int64_t n = 0;
    Trail t;
    t.face = -1;
    Spot p = {s.face, s.a + ring, s.b};
    if (ring == 0) out[n++] = encode(s, res);
    for (int side = 0; side < 6; side++)
        for (int i = 0; i < ring; i++) {
            int digit = digitOf[(side + 2) % 6];
            out[n++] = encodeNext(&t, p, res);
            p.a += stepA[digit];
            p.b += stepB[digit];
        }
    return n;
}

/* Disk breadth-first; right everywhere. `seen` is an open-addressing table of 2^bits slots. */
static H3Error diskAnywhere(H3Index origin, int k, H3Index *out, int *distances) {
    int64_t size = 0, n = 0, from = 0, most = cellsAt(resOf(origin));
    H3_EXPORT(maxGridDiskSize)(k, &size);
    if (most > size) most = size;
    int bits = 4;
    while ((INT64_C(1) << bits) < 2 * most) bits++;
    if ((uint64_t)1 << bits > SIZE_MAX / sizeof *out) return E_MEMORY_ALLOC;
    H3Index *seen = calloc((size_t)1 << bits, sizeof *seen);
    if (!seen) return E_MEMORY_ALLOC;
    H3Index near[7];
    near[0] = origin;
    int count = 1, distance = 0;
    int64_t until = 0;
    for (;;) {
        for (int i = 0; i < count; i++) {
            uint64_t slot = (near[i] * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - bits);
            while (seen[slot] && seen[slot] != near[i]) slot = (slot + 1) & ((UINT64_C(1) << bits) - 1);
            if (seen[slot]) continue;
            seen[slot] = near[i];
            out[n] = near[i];
            if (distances) distances[n] = distance;
            n++;
        }
        if (from == until) { /* a ring is complete */
            if (distance == k || until == n) break;
            until = n;
            distance++;
        }
        count = neighbours(out[from++], near);
    }
    free(seen);
    for (int64_t i = n; i < size; i++) {
        out[i] = H3_NULL;
        if (distances) distances[i] = 0;
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(gridDiskDistances)(H3Index origin, int k, H3Index *out, int *distances) {
    if (k < 0) return E_DOMAIN;
    if (!H3_EXPORT(isValidCell)(origin)) return E_CELL_INVALID;
    ready();
    Spot s = decode(origin);
    int res = resOf(origin);
    if (!diskFits(s, res, k)) return diskAnywhere(origin, k, out, distances);
    for (int ring = 0; ring <= k; ring++) {
        int64_t n = ringOnFace(s, res, ring, out);
        for (int64_t i = 0; distances && i < n; i++) *distances++ = ring;
        out += n;
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(gridDisk)(H3Index origin, int k, H3Index *out) {
    return H3_EXPORT(gridDiskDistances)(origin, k, out, NULL);
}

H3Error H3_EXPORT(gridRing)(H3Index origin, int k, H3Index *out) {
    int64_t size, ring, n = 0;
    H3Error err = H3_EXPORT(maxGridDiskSize)(k, &size);
    if (err) return err;
    if (!H3_EXPORT(isValidCell)(origin)) return E_CELL_INVALID;
    H3_EXPORT(maxGridRingSize)(k, &ring);
    Spot s = decode(origin);
    if (diskFits(s, resOf(origin), k)) {
        ringOnFace(s, resOf(origin), k, out);
        return E_SUCCESS;
    }
    if ((uint64_t)size > SIZE_MAX / sizeof(H3Index)) return E_MEMORY_ALLOC;
    H3Index *cells = calloc((size_t)size, sizeof *cells);
    int *distances = calloc((size_t)size, sizeof *distances);
    err = cells && distances ? H3_EXPORT(gridDiskDistances)(origin, k, cells, distances)
                             : E_MEMORY_ALLOC;
    for (int64_t i = 0; !err && i < size; i++)
        if (cells[i] && distances[i] == k) out[n++] = cells[i];
    for (int64_t i = n; !err && i < ring; i++) out[i] = H3_NULL;
    free(cells);
    free(distances);
    return err;
}

static int64_t latticeDistance(Spot p, Spot q) {
    int64_t da = (int64_t)p.a - q.a, db = (int64_t)p.b - q.b, dc = da - db;
    if (da < 0) da = -da;
    if (db < 0) db = -db;
    if (dc < 0) dc = -dc;
    int64_t most = da > db ? da : db;
    return most > dc ? most : dc;
}

/* Shortest over the unfoldings of q to p's face over at most `depth` edges, or -1. */
static int64_t unfoldedDistance(Spot p, Spot q, int res, int depth) {
    if (q.face == p.face) return latticeDistance(p, q);
    int64_t best = -1;
    for (int e = 0; depth > 0 && e < 3; e++) {
        Spot next = q;
        unfold(&next, e, res, 1);
        int64_t d = unfoldedDistance(p, next, res, depth - 1);
        if (d >= 0 && (best < 0 || d < best)) best = d;
    }
    return best;
}

H3Error H3_EXPORT(gridDistance)(H3Index a, H3Index b, int64_t *distance) {
    if (!H3_EXPORT(isValidCell)(a) || !H3_EXPORT(isValidCell)(b)) return E_CELL_INVALID;
    if (resOf(a) != resOf(b)) return E_RES_MISMATCH;
    ready();
    /* Faces that share a vertex are at most two edges apart on one side, three on the other. */
    Spot p = decode(a), q = decode(b);
    int64_t d = unfoldedDistance(p, q, resOf(a), 2);
    if (d < 0) return E_FAILED;
    int64_t other = unfoldedDistance(p, q, resOf(a), 3);
    *distance = other >= 0 && other < d ? other : d;
    return E_SUCCESS;
}

H3Error H3_EXPORT(areNeighborCells)(H3Index a, H3Index b, int *out) {
    if (!H3_EXPORT(isValidCell)(a) || !H3_EXPORT(isValidCell)(b)) return E_CELL_INVALID;
    if (resOf(a) != resOf(b)) return E_RES_MISMATCH;
    ready();
    H3Index near[6];
    *out = 0;
    for (int i = neighbours(a, near) - 1; i >= 0; i--)
        if (near[i] == b) *out = 1;
    return E_SUCCESS;
}

/* ---- hierarchy ------------------------------------------------------------------------- */

int H3_EXPORT(isValidCell)(H3Index h) {
    if (h >> 63 || ((h >> 59) & 15) != 1 || ((h >> 56) & 7) || baseOf(h) >= NUM_BASE_CELLS) return 0;
    H3Index used = usedDigits(resOf(h)), d = h & used;
    if ((h | used) != (h | DIGITS) || (d & d >> 1 & d >> 2 & EACH)) return 0;
    ready();
    return !(T.pentagon[baseOf(h)] && leading(h) == K_DIGIT);
}

int H3_EXPORT(isPentagon)(H3Index h) {
    ready();
    return baseOf(h) < NUM_BASE_CELLS && T.pentagon[baseOf(h)] && !leading(h);
}

H3Error H3_EXPORT(cellToParent)(H3Index cell, int parentRes, H3Index *out) {
    if (!H3_EXPORT(isValidCell)(cell)) return E_CELL_INVALID;
    if (parentRes < 0 || parentRes > MAX_H3_RES) return E_RES_DOMAIN;
    if (parentRes > resOf(cell)) return E_RES_MISMATCH;
    for (int r = parentRes + 1; r <= resOf(cell); r++) cell = withDigit(cell, r, NO_DIGIT);
    *out = (cell & ~(UINT64_C(15) << 52)) | ((H3Index)parentRes << 52);
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToCenterChild)(H3Index cell, int childRes, H3Index *out) {
    if (!H3_EXPORT(isValidCell)(cell)) return E_CELL_INVALID;
    if (childRes < resOf(cell) || childRes > MAX_H3_RES) return E_RES_DOMAIN;
    for (int r = resOf(cell) + 1; r <= childRes; r++) cell = withDigit(cell, r, CENTER);
    *out = (cell & ~(UINT64_C(15) << 52)) | ((H3Index)childRes << 52);
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToChildrenSize)(H3Index cell, int childRes, int64_t *out) {
    if (!H3_EXPORT(isValidCell)(cell)) return E_CELL_INVALID;
    if (childRes < resOf(cell) || childRes > MAX_H3_RES) return E_RES_DOMAIN;
    int64_t all = 1;
    for (int r = resOf(cell); r < childRes; r++) all *= 7;
    *out = H3_EXPORT(isPentagon)(cell) ? 1 + 5 * (all - 1) / 6 : all;
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToChildren)(H3Index cell, int childRes, H3Index *out) {
    int64_t size;
    H3Error err = H3_EXPORT(cellToChildrenSize)(cell, childRes, &size);
    if (err) return err;
    H3Index h = cell;
    H3_EXPORT(cellToCenterChild)(cell, childRes, &h);
    int top = resOf(cell), five = T.pentagon[baseOf(cell)];
    for (int64_t i = 0; i < size; i++) {
        out[i] = h;
        int r = childRes; /* count up in base 7, the finest digit first */
        for (; r > top && digitAt(h, r) == IJ_DIGIT; r--) h = withDigit(h, r, CENTER);
        if (r > top) h = withDigit(h, r, digitAt(h, r) + 1);
        if (five && leading(h) == K_DIGIT) h = withDigit(h, r, J_DIGIT); /* K does not exist */
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(getPentagons)(int res, H3Index *out) {
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    ready();
    for (int base = 0; base < NUM_BASE_CELLS; base++)
        if (T.pentagon[base]) H3_EXPORT(cellToCenterChild)(blank(0, base), res, out++);
    return E_SUCCESS;
}

H3Error H3_EXPORT(getRes0Cells)(H3Index *out) {
    for (int base = 0; base < NUM_BASE_CELLS; base++) out[base] = blank(0, base);
    return E_SUCCESS;
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

H3Error H3_EXPORT(h3ToString)(H3Index h, char *str, uint64_t sz) {
    if (sz < 17) return E_MEMORY_BOUNDS;
    int n = 0, shift = 60;
    while (shift > 0 && !(h >> shift)) shift -= 4;
    for (; shift >= 0; shift -= 4) str[n++] = "0123456789abcdef"[(h >> shift) & 15];
    str[n] = 0;
    return E_SUCCESS;
}
