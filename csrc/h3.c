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
 * axis, and a home face for each base cell. Operations are done in one order and not fused, and
 * libm is asked for sqrt only (beyond ANGLE_LIMIT sin, cos): the same bits everywhere. */

#include "h3.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FACES 20
#define PI 3.14159265358979323846
#define SQRT3 1.7320508075688772935
#define SPACING0 0.38196601125010515180 /* 2 - golden ratio: lattice spacing at res 0 */
#define SIN_TURN3 0.32732683535398857190 /* sin, cos of asin(sqrt(3/28)): turn of odd levels */
#define COS_TURN3 0.94491118252306806804
#define REACH 2 /* res 0 steps from a face centre to its corners */
#define EARTH_KM 6371.007180918475

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* A loop worth compiling for several instruction sets, as h3_bulk.c does, which includes this. */
#ifndef LEVELS
#define LEVELS(name, body, parameters, arguments) \
    static void name parameters { body arguments; }
#endif

#define FINITE(x) ((x) - (x) == 0.0) /* isfinite is a library call in places */

enum { CENTER = 0, K_DIGIT = 1, J_DIGIT = 2, JK_DIGIT = 3, I_DIGIT = 4, IK_DIGIT = 5, IJ_DIGIT = 6,
       NO_DIGIT = 7 };
enum { CELL_MODE = 1, EDGE_MODE = 2, VERTEX_MODE = 4 };

typedef struct { double x, y, z; } Vec;

/* A lattice point on a face's plane, at a resolution known from the context. */
typedef struct { int face, a, b; } Spot;

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

static const int stepA[8] = {0, -1, 0, -1, 1, 0, 1, 0}; /* of each digit; 7 is none */
static const int stepB[8] = {0, -1, 1, 0, 0, -1, 1, 0};
/* Direction of each digit, and the digit of each direction. */
static const uint8_t sextant[7] = {0, 4, 2, 3, 0, 5, 1}; /* x 60 degrees */
static const uint8_t digitOf[6] = {I_DIGIT, IJ_DIGIT, J_DIGIT, JK_DIGIT, K_DIGIT, IK_DIGIT};
/* The sextants of a pentagon counter-clockwise, beginning after the one that does not exist. */
static const uint8_t five[5] = {5, 0, 1, 2, 3};
/* Middles of a face's edges at res 0; edge e faces 60 + 120 e degrees. */
static const int edgeA[3] = {1, -1, 0}, edgeB[3] = {1, 0, -1};
/* Corners of a hexagon in thirds of the lattice, counter-clockwise from 30 degrees. */
static const int cornerA[6] = {2, 1, -1, -2, -1, 1}, cornerB[6] = {1, 2, 1, -1, -2, -1};

#define MOST_IMAGES 24
#define MOST_EDGES 7 /* of unfoldings looked at */

/* The plane of a face seen from another one: turn, then add (a, b) x one res 0 step. */
typedef struct { int8_t turns, a, b; } Image;

static struct {
    Vec n[FACES], ex[FACES], ey[FACES];
    uint8_t acrossFace[FACES][3], acrossEdge[FACES][3];
    int8_t base[FACES][5][5];   /* base cell of the res 0 point (a, b) at [a + 2][b + 2] */
    uint8_t turns[FACES][5][5]; /* turns from the face's axes to the base cell's home axes */
    double scale[MAX_H3_RES + 2]; /* lattice spacing of every resolution */
    int limit[MAX_H3_RES + 2];    /* even levels: twice the distance from face centre to edge */
    Spot grown[MAX_H3_RES + 2];   /* where the res 0 point (1, 0) lies at every resolution */
    /* Points to faces: 10 pairs of opposite faces, and the lattice coordinates of a point p of a
     * face at even and odd levels: (p . axis) / (p . n) / spacing. */
    Vec pairs[10], axisI[2][FACES], axisJ[2][FACES];
    int64_t front[10], back[10];
    /* Up at res 0: index bits of the point (a, b) at [a + 3][b + 3] and TOP_ bits below. */
    H3Index top[FACES][7][7];
    /* Down from a base cell with a first digit (pentagons only, else 0): where its centre lies
     * on the face that carries this digit, and the turns from digits to that face's axes. */
    Spot start[NUM_BASE_CELLS][8];
    int64_t startAt[128 * 8], startFace[128 * 8], startTurns[128 * 8], startFlags[128 * 8];
    int64_t pair[64];         /* two digits as one step of an even level, packed */
    uint32_t ways[32], nextWays[32][8]; /* by state, and by the digit that follows: buildWays */
    Image image[FACES][FACES][MOST_IMAGES];
    uint8_t images[FACES][FACES];
} T;

/* ---- vectors and angles ---------------------------------------------------------------- */

static double dot(Vec p, Vec q) { return p.x * q.x + p.y * q.y + p.z * q.z; }

static Vec cross(Vec p, Vec q) {
    return (Vec){p.y * q.z - p.z * q.y, p.z * q.x - p.x * q.z, p.x * q.y - p.y * q.x};
}

static Vec along(Vec p, double s, Vec q) {
    return (Vec){p.x + s * q.x, p.y + s * q.y, p.z + s * q.z};
}

static Vec unit(Vec p) {
    double s = 1.0 / sqrt(dot(p, p));
    return (Vec){p.x * s, p.y * s, p.z * s};
}

typedef union { double x; int64_t n; } Bits;
INLINE int64_t bitsOf(double x) { return (Bits){.x = x}.n; }
INLINE double ofBits(int64_t n) { return (Bits){.n = n}.x; }

/* Adding and taking away 1.5 x 2^52 rounds to an integer; its bits end with that integer. */
#define LIFT 6755399441055744.0
INLINE double whole(double x) { return (x + LIFT) - LIFT; }

/* Sine and cosine without branches, right to the last digits for |x| <= ANGLE_LIMIT. Own ones,
 * so that loops become vectors and results do not depend on the machine's libm. */
#define ANGLE_LIMIT 1e5
INLINE void sinCos(double x, double *sine, double *cosine) {
    double t = x * (2.0 / PI) + LIFT, k = t - LIFT; /* quarter turns; pi / 2 in three parts: */
    double r = ((x - k * 1.5707963267341256) - k * 6.077100506303966e-11) -
               k * 2.0222662487959506e-21;
    double u = r * r;
    double s = r + r * u * (-0.16666666666666666 + u * (0.008333333333330948 +
               u * (-0.00019841269836756774 + u * (2.7557316101617874e-06 +
               u * (-2.505113165023518e-08 + u * 1.5918115263265974e-10)))));
    double c = 1.0 - 0.5 * u + u * u * (0.041666666666666664 + u * (-0.0013888888888887398 +
               u * (2.480158729876456e-05 + u * (-2.7557317271145144e-07 +
               u * (2.087614614655861e-09 + u * -1.1382623647474604e-11)))));
    int64_t quarter = bitsOf(t), odd = -(quarter & 1);
    int64_t ss = bitsOf(s), cs = bitsOf(c);
    *sine = ofBits(((ss & ~odd) | (cs & odd)) ^ ((int64_t)((uint64_t)(quarter & 2) << 62)));
    *cosine = ofBits(((cs & ~odd) | (ss & odd)) ^
                     ((int64_t)((uint64_t)((quarter + 1) & 2) << 62)));
}

/* atan2 without branches. */
INLINE double angleOf(double y, double x) {
    double ax = fabs(x), ay = fabs(y);
    double most = ay > ax ? ay : ax, least = ay > ax ? ax : ay;
    int far = least > 0.41421356237309503 * most; /* tan(pi / 8) */
    double p = far ? least - most : least, q = far ? least + most : most;
    q = q > 0.0 ? q : 1.0;
    double t = p / q, u = t * t;
    double r = t * u * (-0.3333333333333333 + u * (0.19999999999999804 +
               u * (-0.14285714285659779 + u * (0.11111111105150588 + u * (-0.09090908753259112 +
               u * (0.07692296368042296 + u * (-0.0666642476020052 + u * (0.05878927554473807 +
               u * (-0.05230443640686948 + u * (0.045515447340221615 + u * (-0.03456931506332609 +
               u * 0.016284375050043393)))))))))));
    /* Whole and rest of the angle are added last, the small one first. */
    r += t;
    r = far ? 0.7853981633974483 + (r + 3.061616997868383e-17) : r;
    r = ay > ax ? 1.5707963267948966 - (r - 6.123233995736766e-17) : r;
    r = x < 0.0 ? PI - (r - 1.2246467991473532e-16) : r;
    return ofBits(bitsOf(r) | (bitsOf(y) & INT64_MIN));
}

/* Any finite angle; the few beyond the limit go through libm. */
static void sinCosAny(double x, double *s, double *c) {
    sinCos(x, s, c);
    if (fabs(x) <= ANGLE_LIMIT) return;
    *s = sin(x);
    *c = cos(x);
}

static Vec vecOfAny(double lat, double lng) {
    double sa, ca, so, co;
    sinCosAny(lat, &sa, &ca);
    sinCosAny(lng, &so, &co);
    return (Vec){ca * co, ca * so, sa};
}

/* asin(z) would lose digits near the poles. */
INLINE LatLng geoOf(Vec p) {
    return (LatLng){angleOf(p.z, sqrt(p.x * p.x + p.y * p.y)), angleOf(p.y, p.x)};
}

/* ---- the lattice ----------------------------------------------------------------------- */

/* n / 7 rounded to the nearest integer; there are no ties. |n| < 2^28: lifted above 0, where a
 * division is a multiplication and needs no look at the sign. */
INLINE int seventh(int n) {
    const int lift = 1 << 26;
    return (int)((uint32_t)(n + 7 * lift + 3) / 7u) - lift;
}

/* The middle child, at level `res`, of (a, b). */
INLINE void down(int res, int *a, int *b) {
    int p = *a, q = *b;
    *a = res & 1 ? 2 * p + q : 3 * p - q;
    *b = res & 1 ? 3 * q - p : p + 2 * q;
}

/* Parent of (a, b) of level `res`; returns the digit. That is the residue of the division, its
 * three bits backwards, at odd levels, and twice the residue at even ones. */
INLINE int upTo(int res, int a, int b, int *p, int *q) {
    if (res & 1) {
        int r = a + 2 * b;
        *p = seventh(3 * a - b);
        *q = seventh(r);
        r -= 7 * *q;
        r += 7 & -(r < 0);
        return (r & 1) << 2 | (r & 2) | r >> 2;
    }
    int r = 2 * a + b;
    *p = seventh(r);
    *q = seventh(3 * b - a);
    r = 2 * (r - 7 * *p);
    return r + (7 & -(r < 0));
}

INLINE void up(int res, int *a, int *b) { upTo(res, *a, *b, a, b); }

static void turn(int turns, int *a, int *b) {
    for (int i = ((turns % 6) + 6) % 6; i > 0; i--) {
        int p = *a;
        *a = p - *b;
        *b = p;
    }
}

static int turnDigit(int turns, int digit) {
    return digit ? digitOf[(sextant[digit] + turns + 12) % 6] : CENTER;
}

/* Where (a, b) of res 0 lies at a finer level. */
static void grow(int res, int *a, int *b) {
    int p = *a, q = *b, c = T.grown[res].a, d = T.grown[res].b;
    *a = p * c - q * d;
    *b = p * d + q * c - q * d;
}

INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Steps from 0 to (a, b). */
static int64_t stepsTo(int64_t a, int64_t b) {
    int64_t c = a - b;
    return larger(larger(a < 0 ? -a : a, b < 0 ? -b : b), c < 0 ? -c : c);
}

/* Lattice steps as a face counts them: turned, and from a spot on. */
typedef struct { Spot at; int m[4]; } Frame;

static Frame frameOf(Spot at, int turns) {
    Frame f = {at, {1, 0, 0, 1}};
    turn(turns, &f.m[0], &f.m[2]);
    turn(turns, &f.m[1], &f.m[3]);
    return f;
}

INLINE Spot inFrame(Frame f, int a, int b) {
    return (Spot){f.at.face, f.at.a + f.m[0] * a + f.m[1] * b, f.at.b + f.m[2] * a + f.m[3] * b};
}

/* Position in the plane of a point of an even level. */
INLINE void planeOf(double scale, double a, double b, double *x, double *y) {
    *x = scale * (a - 0.5 * b);
    *y = scale * (0.5 * SQRT3 * b);
}

INLINE Vec pointOf(int64_t face, double x, double y) {
    Vec n = T.n[face], ex = T.ex[face], ey = T.ey[face];
    return (Vec){n.x + x * ex.x + y * ey.x, n.y + x * ex.y + y * ey.y, n.z + x * ex.z + y * ey.z};
}

INLINE Vec latticePoint(int64_t face, double scale, double a, double b) {
    double x, y;
    planeOf(scale, a, b, &x, &y);
    return pointOf(face, x, y);
}

/* Where a point lies at the even level at or below its own, which has the face's axes, and back. */
#define EVEN(res) ((res) + ((res) & 1))
static Spot evenSpot(Spot s, int res) {
    if (res & 1) down(res + 1, &s.a, &s.b);
    return s;
}

static Spot ownSpot(Spot s, int res) {
    if (res & 1) up(res + 1, &s.a, &s.b);
    return s;
}

/* The edge over which a point of an even level lies outside its face, or -1; `limit` is twice the
 * distance of the edges. */
static int edgeBeyond(Spot s, int limit) {
    const int over[3] = {s.a + s.b, s.b - 2 * s.a, s.a - 2 * s.b};
    int e = over[1] > over[0] ? 1 : 0;
    if (over[2] > over[e]) e = 2;
    return over[e] > limit ? e : -1;
}

/* Unfold a point of an even level over edge e of its face; `limit` as above. Returns the turns
 * from the old to the new face's axes. */
static int unfold(Spot *s, int e, int limit) {
    int f = s->face, d = T.acrossEdge[f][e], m = limit / 2;
    int turns = (2 * (d - e) + 9) % 6; /* outwards over e is inwards over d: half a turn between */
    int a = s->a - edgeA[e] * m, b = s->b - edgeB[e] * m;
    turn(turns, &a, &b);
    s->face = T.acrossFace[f][e];
    s->a = a + edgeA[d] * m;
    s->b = b + edgeB[d] * m;
    return turns;
}

/* Put a lattice point of an even level on the face where it lies; returns the turns. */
static int settle(Spot *s, int even) {
    int turns = 0;
    for (int i = 0, e; i < 4 && (e = edgeBeyond(*s, T.limit[even])) >= 0; i++)
        turns += unfold(s, e, T.limit[even]);
    return turns;
}

/* ---- bits of an index ------------------------------------------------------------------ */

/*   63   62..59   58..56     55..52       51..45      44..42      ...    2..0
 *    0   mode 1   000        resolution   base cell   digit of 1  ...    digit of 15 (7: unused)
 *        2 edge   direction 1..6
 *        4 vertex number 0..5
 */
#define DIGIT_SHIFT(r) ((MAX_H3_RES - (r)) * 3)
#define DIGITS INT64_C(0x1fffffffffff)
#define EACH INT64_C(0x49249249249)       /* the lowest bit of every digit */

static int digitAt(H3Index h, int res) { return (int)((h >> DIGIT_SHIFT(res)) & 7); }

static H3Index withBits(H3Index h, int shift, H3Index mask, int value) {
    return (h & ~(mask << shift)) | (H3Index)value << shift;
}

static H3Index withDigit(H3Index h, int r, int d) { return withBits(h, DIGIT_SHIFT(r), 7, d); }
static H3Index withRes(H3Index h, int res) { return withBits(h, 52, 15, res); }
static H3Index withMode(H3Index h, int mode, int n) { return withBits(h, 56, 255, mode << 3 | n); }
static int modeOf(H3Index h) { return (int)(h >> 59); } /* with the highest bit */
static int reservedOf(H3Index h) { return (int)((h >> 56) & 7); }

int H3_EXPORT(getResolution)(H3Index h) { return (int)((h >> 52) & 15); }
int H3_EXPORT(getBaseCellNumber)(H3Index h) { return (int)((h >> 45) & 127); }
int H3_EXPORT(isResClassIII)(H3Index h) { return H3_EXPORT(getResolution)(h) & 1; }
#define resOf H3_EXPORT(getResolution)
#define baseOf H3_EXPORT(getBaseCellNumber)

/* The bits of the digits that a resolution uses. */
static H3Index usedDigits(int res) {
    return (H3Index)DIGITS & ~((UINT64_C(1) << DIGIT_SHIFT(res)) - 1);
}

/* What all cells of a resolution share: the mode, the resolution, and 7s for unused digits. */
static H3Index sharedBits(int res) {
    return UINT64_C(1) << 59 | (H3Index)res << 52 | ((H3Index)DIGITS ^ usedDigits(res));
}

/* The middle cell of a base cell. */
static H3Index cellOf(int base, int res) { return sharedBits(res) | (H3Index)base << 45; }

/* First digit that is not 0, or 0. */
static int leading(H3Index h) {
    for (int r = 1; r <= resOf(h); r++)
        if (digitAt(h, r)) return digitAt(h, r);
    return CENTER;
}

/* Is K the first digit? Its bits are each the lowest of their digit. */
INLINE int64_t leadsWithK(int64_t d) { return (d & EACH) > (d & EACH * 6); }

/* Turns as flags: 1: half a turn, then 2 or 4: a third of a turn, or two. */
static int turnFlags(int turns) {
    static const int flags[6] = {0, 1 | 4, 2, 1, 4, 1 | 2};
    return flags[((turns % 6) + 6) % 6];
}

/* All digits turned at once: half a turn is the complement of a digit (but 0 stays), a third of
 * a turn rotates its three bits. */
INLINE int64_t turnDigits(int64_t d, int64_t flags) {
    int64_t some = (d | d >> 1 | d >> 2) & EACH;
    d ^= ((some << 3) - some) & -(flags & 1);
    int64_t once = (d >> 1 & EACH * 3) | (d & EACH) << 2;
    int64_t twice = (d << 1 & EACH * 6) | (d >> 2 & EACH);
    int64_t a = -(flags >> 1 & 1), b = -(flags >> 2 & 1);
    return (d & ~(a | b)) | (once & a) | (twice & b);
}

static H3Index turnIndex(int turns, H3Index h) {
    H3Index used = usedDigits(resOf(h));
    return (h & ~used) | (H3Index)turnDigits((int64_t)(h & used), turnFlags(turns));
}

/* 0: hexagon, 1: pentagon, 3: no base cell. Base cell 121 - b lies opposite b. A number less 1 is
 * below 0 when it is 0 (or below already): no table, as looking up many things at once is slow on
 * many machines, and no comparisons, of which compilers make something that is no vector. */
INLINE int64_t kindOf(int64_t base) {
    int64_t other = NUM_BASE_CELLS - 1 - base, b = other < base ? other : base;
    int64_t near = ((b ^ 4) - 1) | ((b ^ 14) - 1) | ((b ^ 24) - 1) | ((b ^ 38) - 1) |
                   ((b ^ 49) - 1) | ((b ^ 58) - 1);
    return (int64_t)((uint64_t)near >> 63 | (uint64_t)b >> 63 << 1);
}

static int isFiveBase(int base) { return kindOf(base) == 1; }
int H3_EXPORT(isPentagon)(H3Index h) { return isFiveBase(baseOf(h)) && !leading(h); }
#define isFive H3_EXPORT(isPentagon)

/* 1 for a cell; without branches. */
INLINE int64_t validity(H3Index h) {
    int64_t res = h >> 52 & 15, exponent = 1023 + DIGIT_SHIFT(res);
    /* 2 to a power below 52, by way of a double's exponent; below it are the unused digits. */
    int64_t power = bitsOf(ofBits(exponent << 52) + 4503599627370496.0) & INT64_C(0xfffffffffffff);
    int64_t used = DIGITS & -power, d = (int64_t)h & used, kind = kindOf(h >> 45 & 127);
    int64_t rest = ((int64_t)(h >> 56) ^ 8) | ((((int64_t)h | used) & DIGITS) ^ DIGITS);
    rest |= (d & d >> 1 & d >> 2 & EACH) | (kind & 2) | (kind & leadsWithK(d));
    return rest == 0;
}

/* Digits below `res` set to 7 and the resolution to it. */
INLINE H3Index parentAt(H3Index cell, int res) {
    return withRes(cell | (((UINT64_C(1) << DIGIT_SHIFT(res)) - 1)), res);
}

/* The descendant in the middle. */
static H3Index centreChild(H3Index cell, int res) {
    return withRes(cell & ~(usedDigits(res) ^ usedDigits(resOf(cell))), res);
}

/* Descendants of a hexagon, or of a pentagon, `levels` below. */
static int64_t descendants(int pentagon, int levels) {
    int64_t all = 1;
    while (levels-- > 0) all *= 7;
    return pentagon ? 1 + 5 * (all - 1) / 6 : all;
}

/* ---- tables, built once ---------------------------------------------------------------- */

/* Sextant in which a face lies, seen from one of its corners (a, b), in the face's axes. */
static int sextantFrom(int a, int b) { return a == 2 ? 3 : b == 2 ? 5 : 1; }

/* Every res 0 point on a face. */
#define EACH_POINT(f, a, b)                        \
    for (int f = 0; f < FACES; f++)                \
        for (int a = -REACH; a <= REACH; a++)      \
            for (int b = -REACH; b <= REACH; b++)  \
                if (edgeBeyond((Spot){f, a, b}, REACH) < 0)

static void buildFaces(void) {
    const Vec zero = {0, 0, 0};
    int count = 0;
    for (int f = 0; f < FACES; f++) {
        double so, co, sa, ca;
        sinCos(faceCentre[f][1], &so, &co);
        sinCos(faceCentre[f][2], &sa, &ca);
        Vec n = vecOfAny(faceCentre[f][0], faceCentre[f][1]), east = {-so, co, 0.0};
        T.n[f] = n;
        T.ex[f] = along(along(zero, ca, cross(n, east)), sa, east);
        T.ey[f] = cross(n, T.ex[f]);
        for (int g = 0; g < f; g++)
            if (dot(n, T.n[g]) < -1.0 + 1e-9) {
                T.front[count] = g;
                T.back[count] = f;
                T.pairs[count++] = T.n[g];
            }
        for (int odd = 0; odd < 2; odd++) {
            double c = odd ? COS_TURN3 : 1.0, s = odd ? SIN_TURN3 : 0.0;
            Vec x = along(along(zero, c, T.ex[f]), s, T.ey[f]);
            Vec y = along(along(zero, c, T.ey[f]), -s, T.ex[f]);
            T.axisJ[odd][f] = along(zero, 2.0 / SQRT3, y);
            T.axisI[odd][f] = along(x, -0.5, T.axisJ[odd][f]);
        }
    }
}

static Vec latticeVec(int f, int a, int b) { return unit(latticePoint(f, SPACING0, a, b)); }

static void buildEdges(void) {
    for (int f = 0; f < FACES; f++)
        for (int e = 0; e < 3; e++) {
            Vec mid = latticeVec(f, edgeA[e], edgeB[e]);
            for (int g = 0; g < FACES; g++)
                for (int d = 0; d < 3 && g != f; d++)
                    if (dot(mid, latticeVec(g, edgeA[d], edgeB[d])) > 1.0 - 1e-9) {
                        T.acrossFace[f][e] = (uint8_t)g;
                        T.acrossEdge[f][e] = (uint8_t)d;
                    }
        }
}

static void buildBaseCells(void) {
    Vec found[NUM_BASE_CELLS]; /* base cells are numbered from north to south */
    int count = 0;
    EACH_POINT(f, a, b) {
        Vec p = latticeVec(f, a, b);
        int i = 0;
        while (i < count && dot(p, found[i]) < 1.0 - 1e-9) i++;
        if (i < count) continue;
        for (i = count++; i > 0 && found[i - 1].z < p.z; i--) found[i] = found[i - 1];
        found[i] = p;
    }
    EACH_POINT(f, a, b) {
        Vec p = latticeVec(f, a, b);
        int cell = 0;
        while (dot(p, found[cell]) < 1.0 - 1e-9) cell++;
        T.base[f][a + 2][b + 2] = (int8_t)cell;
        if (homeFace[cell] == f) T.start[cell][0] = (Spot){f, a, b};
    }
}

static void buildTurns(void) {
    EACH_POINT(f, a, b) { /* hexagons: shared by two faces at most, over one edge or none */
        Spot s = {f, a, b};
        int home = T.start[T.base[f][a + 2][b + 2]][0].face;
        for (int e = 0; e < 3; e++)
            if (T.acrossFace[f][e] == home && s.face != home)
                T.turns[f][a + 2][b + 2] = (uint8_t)unfold(&s, e, REACH);
    }
    for (int cell = 0; cell < NUM_BASE_CELLS; cell++) {
        Spot at = T.start[cell][0]; /* around a pentagon counter-clockwise, without K's sextant */
        for (int i = 0, s = sextantFrom(at.a, at.b); isFiveBase(cell) && i < 5; i++) {
            T.turns[at.face][at.a + 2][at.b + 2] = (uint8_t)((s - sextantFrom(at.a, at.b) + 6) % 6);
            T.start[cell][digitOf[s]] = at;
            unfold(&at, at.a == 2 ? 2 : at.b == 2 ? 0 : 1, REACH);
            s = (s + 1) % 6 == sextant[K_DIGIT] ? (s + 2) % 6 : (s + 1) % 6;
        }
    }
}

/* A pentagon on face i of its five. */
static Spot cornerSpot(int base, int i) { return T.start[base][digitOf[five[i % 5]]]; }

/* T.top: low bits beside the base cell's: a state (turns from the face's axes to the index's
 * digits, and whether it is a pentagon), and the turns as turnFlags. */
#define TOP_STATE 31
#define TOP_PENTAGON 8    /* digits that lead with K need one more turn: */
#define TOP_FORWARD 16    /* counter-clockwise, else clockwise */
#define TOP_FLAGS 5       /* shift */

static void buildTop(void) {
    for (int f = 0; f < FACES; f++)
        for (int a = -3; a <= 3; a++)
            for (int b = -3; b <= 3; b++) {
                Spot s = {f, a, b};
                int turns = settle(&s, 0);
                if (edgeBeyond(s, REACH) >= 0) continue; /* no chain of parents ends there */
                int base = T.base[s.face][s.a + 2][s.b + 2];
                turns = (turns + T.turns[s.face][s.a + 2][s.b + 2]) % 6;
                int flags = turnFlags(turns) << TOP_FLAGS | turns;
                /* K: the cell straddles the two faces beside the sextant that is missing. */
                int forward = T.start[base][JK_DIGIT].face == s.face;
                if (isFiveBase(base)) flags |= TOP_PENTAGON | (forward ? TOP_FORWARD : 0);
                T.top[f][a + 3][b + 3] = (H3Index)base << 45 | (H3Index)flags;
            }
}

/* A packed lattice point is a x 2^32 + b: sums and multiples are those of both. */
static int64_t packed(int a, int b) { return (int64_t)a * (INT64_C(1) << 32) + b; }

static void buildStarts(void) {
    for (int c = 0; c < NUM_BASE_CELLS; c++)
        for (int digit = 0; digit < 7; digit++) {
            Spot s = T.start[c][digit];
            int turns = digit ? T.turns[s.face][s.a + 2][s.b + 2] : 0;
            T.startAt[8 * c + digit] = packed(s.a, s.b);
            T.startFace[8 * c + digit] = s.face;
            T.startTurns[8 * c + digit] = (6 - turns) % 6;
            T.startFlags[8 * c + digit] = turnFlags(-turns);
        }
    for (int high = 0; high < 8; high++)
        for (int low = 0; low < 8; low++) {
            int a = stepA[high], b = stepB[high];
            down(2, &a, &b);
            T.pair[8 * high + low] = packed(a + stepA[low], b + stepB[low]);
        }
}

/* The ways of a state: what each of the 7 digits becomes, 3 bits each, and above them the state, in
 * which a pentagon's middle stays and others are not any more. */
#define WAYS_STATE 24 /* shift */
#define WAYS_PENTAGON ((uint32_t)TOP_PENTAGON << WAYS_STATE)

static void buildWays(void) {
    for (int state = 0; state < 32; state++) {
        int next[7];
        T.ways[state] = (uint32_t)state << WAYS_STATE;
        for (int digit = 0; digit < 7; digit++) {
            int turns = state & 7, around = (state & TOP_PENTAGON) && digit;
            if (around && turnDigit(turns, digit) == K_DIGIT)
                turns = (turns + (state & TOP_FORWARD ? 1 : 5)) % 6;
            T.ways[state] |= (uint32_t)turnDigit(turns, digit) << 3 * digit;
            next[digit] = around ? turns : state;
        }
        for (int digit = 0; digit < 7; digit++) T.nextWays[state][digit] = T.ways[next[digit]];
    }
}

/* The bits of a digit as its ways want it. */
INLINE H3Index childBits(uint32_t ways, int digit, int res) {
    return (H3Index)(ways >> 3 * digit & 7) << DIGIT_SHIFT(res);
}

/* Unfoldings of other faces to the plane of `f`: all ways over `depth` edges more at most that
 * come through no face twice. */
static void addImages(int f, int g, Image at, int depth, uint32_t seen) {
    int known = 0;
    for (int i = 0; i < T.images[f][g]; i++)
        known |= !memcmp(&T.image[f][g][i], &at, sizeof at);
    if (!known && T.images[f][g] < MOST_IMAGES) T.image[f][g][T.images[f][g]++] = at;
    for (int e = 0; depth > 0 && e < 3; e++) {
        int next = T.acrossFace[g][e], d = T.acrossEdge[g][e];
        if (seen >> next & 1) continue;
        Spot s = {next, 0, 0};
        int turns = (unfold(&s, d, REACH) + at.turns) % 6;
        turn(at.turns, &s.a, &s.b);
        Image image = {(int8_t)turns, (int8_t)(s.a + at.a), (int8_t)(s.b + at.b)};
        addImages(f, next, image, depth - 1, seen | UINT32_C(1) << next);
    }
}

/* ---- cells and lattice points ---------------------------------------------------------- */

/* A cell around a pentagon may lie on the edge between two of its sextants. Either face is right;
 * the one nearer to JK is taken, so that outlines start at the same corner as uber/h3's. */
static int chooseSide(Spot *s, int base, int even) {
    static const int8_t rank[5] = {3, 0, 1, 2, 4}; /* of sextants IK, I, IJ, J, JK */
    int e = edgeBeyond(*s, T.limit[even] - 1), here = -1, there = -1;
    for (int i = 0; e >= 0 && i < 5; i++) {
        int face = cornerSpot(base, i).face;
        if (face == s->face) here = rank[i];
        if (face == T.acrossFace[s->face][e]) there = rank[i];
    }
    return here >= 0 && there > here ? unfold(s, e, T.limit[even]) : 0;
}

/* The lattice point of a valid index at its own level, if even, else at the next; on the face
 * where its centre lies. `turns`: from the index's digits to that face's axes. */
static Spot decodeEven(H3Index h, int *turns) {
    int res = resOf(h), base = baseOf(h), even = EVEN(res);
    int lead = isFiveBase(base) ? leading(h) : CENTER, slot = 8 * base + lead;
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
static Spot decode(H3Index h, int *turns) { return ownSpot(decodeEven(h, turns), resOf(h)); }

/* Index bits at the end of a lattice point's chain of parents, and the ways of digits below. */
static H3Index topOf(Spot s, uint32_t *ways) {
    int outside = s.a < -3 || s.a > 3 || s.b < -3 || s.b > 3; /* a corner of somebody's grid */
    H3Index top = outside ? 0 : T.top[s.face][s.a + 3][s.b + 3];
    *ways = T.ways[top & TOP_STATE];
    return top & ~(H3Index)DIGITS;
}

/* The index of a lattice point that lies on its face, and the turns from the face's axes to its
 * digits (NULL: not asked). */
static H3Index encodeOnFace(Spot s, int res, int *turns) {
    int digit[MAX_H3_RES + 1];
    uint32_t ways;
    for (int r = res; r > 0; r--) digit[r] = upTo(r, s.a, s.b, &s.a, &s.b);
    H3Index h = topOf(s, &ways) | sharedBits(res);
    for (int r = 1; r <= res; r++) {
        h |= childBits(ways, digit[r], r);
        if (ways & WAYS_PENTAGON) ways = T.nextWays[ways >> WAYS_STATE][digit[r]];
    }
    if (turns) *turns = (int)(ways >> WAYS_STATE & 7);
    return h;
}

/* The same of any lattice point. */
static H3Index encode(Spot s, int res, int *turns) {
    Spot e = evenSpot(s, res);
    int moved = settle(&e, EVEN(res));
    if (e.face != s.face) s = ownSpot(e, res);
    H3Index h = encodeOnFace(s, res, turns);
    if (turns) *turns = (*turns + moved) % 6;
    return h;
}

/* The index one step on. */
static H3Index stepFrom(Spot s, int digit, int res, int *turns) {
    return encode((Spot){s.face, s.a + stepA[digit], s.b + stepB[digit]}, res, turns);
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
    H3Index h = stepFrom(s, turnDigit(here, digit), res, &there);
    if (turns) *turns = (here + there) % 6;
    return h;
}

/* Neighbour k of a cell, counter-clockwise; k may go around once more. */
static H3Index beside(H3Index cell, int k) {
    if (isFive(cell)) return neighbourAt(cell, digitOf[five[k % 5]], NULL);
    int turns;
    return stepFrom(decode(cell, &turns), digitOf[k % 6], resOf(cell), NULL);
}

static void build(void) {
    double whole7 = 1.0;
    int a = 1, b = 0;
    for (int r = 0; r <= MAX_H3_RES + 1; r++) { /* exact powers, no accumulated rounding */
        T.scale[r] = r & 1 ? SPACING0 / whole7 / sqrt(7.0) : SPACING0 / whole7;
        T.limit[r] = REACH * (int)whole7;
        if (r) down(r, &a, &b);
        T.grown[r] = (Spot){0, a, b};
        if (r & 1) whole7 *= 7.0;
    }
    buildFaces();
    buildEdges();
    buildBaseCells();
    buildTurns();
    buildTop();
    buildStarts();
    buildWays();
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

/* The check at the door of most functions: is it a cell? Also sees to the tables. */
static int isCell(H3Index h) {
    ready();
    return (int)validity(h);
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
        double c = x * T.pairs[f].x + y * T.pairs[f].y + z * T.pairs[f].z, far = fabs(c);
        int64_t at = c < 0.0 ? T.back[f] : T.front[f];
        which = far > best ? at : which;
        best = far > best ? far : best;
    }
    Vec i = T.axisI[odd][which], j = T.axisJ[odd][which];
    double scale = perSpacing / best, q = (x * i.x + y * i.y + z * i.z) * scale;
    double r = (x * j.x + y * j.y + z * j.z) * scale;
    roundHex(q, r, a, b);
    *face = which;
}

H3Error H3_EXPORT(latLngToCell)(const LatLng *g, int res, H3Index *out) {
    ready();
    if (res < 0 || res > MAX_H3_RES) return E_RES_DOMAIN;
    if (!FINITE(g->lat) || !FINITE(g->lng)) return E_LATLNG_DOMAIN;
    Vec p = vecOfAny(g->lat, g->lng);
    int64_t face;
    double a, b;
    locate(p.x, p.y, p.z, res & 1, 1.0 / T.scale[res], &face, &a, &b);
    *out = encodeOnFace((Spot){(int)face, (int)a, (int)b}, res, NULL);
    return E_SUCCESS;
}

/* The centre of a cell; its length is not 1. */
static Vec centreOf(H3Index cell) {
    int turns;
    Spot s = decodeEven(cell, &turns);
    return latticePoint(s.face, T.scale[EVEN(resOf(cell))], s.a, s.b);
}

H3Error H3_EXPORT(cellToLatLng)(H3Index cell, LatLng *g) {
    if (!isCell(cell)) return E_CELL_INVALID;
    *g = geoOf(centreOf(cell));
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

/* An outline as it comes: points that need not have length 1, and their faces. It is found on the
 * even level at or below the cell, in thirds of the lattice, where corners are points too. */
typedef struct {
    int count, faces, limit;
    double scale;
    Vec points[MAX_CELL_BNDRY_VERTS];
} Outline;

/* Corner k of the hexagon around a point of an even level: a cell's of level `res`. */
static Spot cornerOf(Spot s, int res, int k) {
    Spot c = evenSpot((Spot){s.face, cornerA[k % 6], cornerB[k % 6]}, res);
    return (Spot){s.face, 3 * s.a + c.a, 3 * s.b + c.b};
}

/* Where the segment p0-p1 of a face's plane meets edge e. */
static void addCrossing(Outline *o, int e, Spot p0, Spot p1) {
    static const double nx[3] = {0.5, -1.0, 0.5}, ny[3] = {0.5 * SQRT3, 0.0, -0.5 * SQRT3};
    double x0, y0, x1, y1;
    planeOf(o->scale, p0.a, p0.b, &x0, &y0);
    planeOf(o->scale, p1.a, p1.b, &x1, &y1);
    double d0 = nx[e] * x0 + ny[e] * y0 - SPACING0, d1 = nx[e] * x1 + ny[e] * y1 - SPACING0;
    double t = d0 / (d0 - d1);
    o->points[o->count++] = pointOf(p0.face, x0 + t * (x1 - x0), y0 + t * (y1 - y0));
}

/* Corner k and, if the outline goes on and bends there (at odd levels only), the point where the
 * line to the next corner crosses to another face. */
static void addCorner(Outline *o, Spot s, int res, int k, int goesOn) {
    Spot now = cornerOf(s, res, k), at = now, next = cornerOf(s, res, k + 1);
    for (int i = 0, e; i < 4 && (e = edgeBeyond(at, o->limit)) >= 0; i++) unfold(&at, e, o->limit);
    o->faces |= 1 << at.face;
    o->points[o->count++] = latticePoint(at.face, o->scale, at.a, at.b);
    if (!goesOn || !(res & 1)) return;
    int here = edgeBeyond(now, o->limit), there = edgeBeyond(next, o->limit);
    int e = there >= 0 ? there : here;
    Spot in = there >= 0 ? now : next;
    const int over[3] = {in.a + in.b, in.b - 2 * in.a, in.a - 2 * in.b};
    if (here != there && over[e] < o->limit) addCrossing(o, e, now, next);
}

static int cornersOf(H3Index cell) { return isFive(cell) ? 5 : 6; }

/* `count` corners from `first` on; all of them close the outline. A pentagon's lie each on a face
 * of its own, beside its sextants, counter-clockwise at even levels, else clockwise. */
static void outlineOf(H3Index cell, int first, int count, Outline *o) {
    int res = resOf(cell), all = cornersOf(cell), odd = res & 1, turns;
    o->count = o->faces = 0;
    o->limit = 3 * T.limit[EVEN(res)];
    o->scale = T.scale[EVEN(res)] / 3.0;
    Spot s = decodeEven(cell, &turns);
    for (int i = 0, k = first; i < count; i++, k++) {
        int goesOn = i + 1 < count || count == all;
        if (all == 6) {
            addCorner(o, s, res, k, goesOn);
            continue;
        }
        s = cornerSpot(baseOf(cell), k + 1 + odd);
        int sext = sextantFrom(s.a, s.b);
        grow(EVEN(res), &s.a, &s.b);
        addCorner(o, s, res, odd ? sext + 5 : sext, goesOn);
    }
}

static void boundaryOf(H3Index cell, int first, int count, CellBoundary *gp) {
    Outline o;
    outlineOf(cell, first, count, &o);
    gp->numVerts = o.count;
    for (int i = 0; i < o.count; i++) gp->verts[i] = geoOf(o.points[i]);
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
        o.faces |= 1 << cornerSpot(baseOf(cell), i).face;
    for (int f = 0; f < FACES && n < most; f++)
        if (o.faces >> f & 1) out[n++] = f;
    while (n < most) out[n++] = -1;
    return E_SUCCESS;
}

/* ---- areas and lengths ----------------------------------------------------------------- */

H3Error H3_EXPORT(cellAreaRads2)(H3Index cell, double *out) {
    if (!isCell(cell)) return E_CELL_INVALID;
    Outline o;
    outlineOf(cell, 0, cornersOf(cell), &o);
    double sum = 0.0, rest = 0.0;
    Vec middle = {0, 0, 0};
    for (int i = 0; i < o.count; i++) middle = along(middle, 1.0, unit(o.points[i]));
    middle = unit(middle);
    for (int i = 0; i < o.count; i++) {
        Vec p = unit(o.points[i]), q = unit(o.points[(i + 1) % o.count]), m = middle;
        /* The triangle's solid angle by the tangent of its half; of differences, so that nothing is
         * lost for small cells. */
        double det = dot(m, cross(along(p, -1.0, m), along(q, -1.0, m)));
        double a = sqrt(dot(m, m)), b = sqrt(dot(p, p)), c = sqrt(dot(q, q));
        double over = a * b * c + dot(m, p) * c + dot(p, q) * a + dot(q, m) * b;
        double part = 2.0 * angleOf(det, over) - rest, next = sum + part;
        rest = (next - sum) - part; /* what the sum lost */
        sum = next;
    }
    *out = sum;
    return E_SUCCESS;
}

/* The same in another unit. */
#define IN_UNIT(name, of, type, factor)                \
    H3Error H3_EXPORT(name)(type what, double *out) {  \
        H3Error err = H3_EXPORT(of)(what, out);        \
        if (!err) *out *= factor;                      \
        return err;                                    \
    }
IN_UNIT(cellAreaKm2, cellAreaRads2, H3Index, EARTH_KM *EARTH_KM)
IN_UNIT(cellAreaM2, cellAreaKm2, H3Index, 1e6)

H3Error H3_EXPORT(edgeLengthRads)(H3Index edge, double *length) {
    CellBoundary b;
    H3Error err = H3_EXPORT(directedEdgeToBoundary)(edge, &b);
    if (err) return err;
    *length = 0.0;
    for (int i = 0; i + 1 < b.numVerts; i++)
        *length += H3_EXPORT(greatCircleDistanceRads)(&b.verts[i], &b.verts[i + 1]);
    return E_SUCCESS;
}

IN_UNIT(edgeLengthKm, edgeLengthRads, H3Index, EARTH_KM)
IN_UNIT(edgeLengthM, edgeLengthKm, H3Index, 1000.0)

H3Error H3_EXPORT(getHexagonAreaAvgKm2)(int res, double *out) {
    int64_t cells;
    double pentagon = 0.0;
    H3Error err = H3_EXPORT(getNumCells)(res, &cells);
    if (err) return err;
    H3_EXPORT(cellAreaKm2)(cellOf(4, res), &pentagon); /* the 12 are all alike */
    *out = (4.0 * PI * EARTH_KM * EARTH_KM - 12.0 * pentagon) / (double)(cells - 12);
    return E_SUCCESS;
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

IN_UNIT(getHexagonAreaAvgM2, getHexagonAreaAvgKm2, int, 1e6)
IN_UNIT(getHexagonEdgeLengthAvgM, getHexagonEdgeLengthAvgKm, int, 1000.0)

/* ---- distance and paths ---------------------------------------------------------------- */

/* A point as it is seen in the plane of another face, once for each way to unfold; how often. */
static int seenFrom(int face, Spot s, int res, Spot seen[MOST_IMAGES]) {
    const int count = T.images[face][s.face];
    for (int i = 0; i < count; i++) {
        Image m = T.image[face][s.face][i];
        Spot centre = {face, m.a, m.b};
        grow(res, &centre.a, &centre.b);
        seen[i] = inFrame(frameOf(centre, m.turns), s.a, s.b);
    }
    return count;
}

/* Steps from p to q in the plane of p's face, over the unfolding of q's face that makes them
 * fewest: q moves there. */
static int64_t unfoldedDistance(Spot p, Spot *q, int res) {
    if (p.face == q->face) return stepsTo(p.a - q->a, p.b - q->b);
    Spot seen[MOST_IMAGES];
    int64_t least = INT64_MAX;
    for (int i = seenFrom(p.face, *q, res, seen) - 1; i >= 0; i--) {
        int64_t steps = stepsTo(p.a - seen[i].a, p.b - seen[i].b);
        if (steps > least) continue;
        least = steps;
        *q = seen[i];
    }
    return least;
}

/* Steps between two cells of a resolution. */
static int64_t stepsBetween(H3Index a, H3Index b) {
    int turns;
    Spot p = decode(a, &turns), q = decode(b, &turns);
    return unfoldedDistance(p, &q, resOf(a));
}

static H3Error twoCells(H3Index a, H3Index b) {
    if (!isCell(a) || !isCell(b)) return E_CELL_INVALID;
    return resOf(a) == resOf(b) ? E_SUCCESS : E_RES_MISMATCH;
}

H3Error H3_EXPORT(gridDistance)(H3Index a, H3Index b, int64_t *distance) {
    H3Error err = twoCells(a, b);
    if (!err) *distance = stepsBetween(a, b);
    return err;
}

H3Error H3_EXPORT(areNeighborCells)(H3Index a, H3Index b, int *out) {
    H3Error err = twoCells(a, b);
    if (!err) *out = stepsBetween(a, b) == 1;
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
    H3Index best = H3_NULL;
    double least = 9.0;
    for (int k = cornersOf(at) - 1; k >= 0; k--) {
        H3Index near = beside(at, k);
        LatLng g = geoOf(centreOf(near));
        double away = fabs(dot(vecOfAny(g.lat, g.lng), side));
        if (away >= least || stepsBetween(near, end) != left - 1) continue;
        least = away;
        best = near;
    }
    return best;
}

H3Error H3_EXPORT(gridPathCells)(H3Index start, H3Index end, H3Index *out) {
    H3Error err = twoCells(start, end);
    if (err) return err;
    int turns, res = resOf(start);
    Spot p = decode(start, &turns), q = decode(end, &turns);
    int onOneFace = p.face == q.face;
    int64_t steps = unfoldedDistance(p, &q, res), n = 0;
    out[0] = start;
    /* Straight in the plane while that is unbroken; from there on step by step. */
    while (n < steps) {
        H3Index h = encode(onLine(p, q, n + 1, steps), res, NULL);
        if (!onOneFace && stepsBetween(out[n], h) != 1) break;
        if (!onOneFace && stepsBetween(h, end) != steps - n - 1) break;
        out[++n] = h;
    }
    LatLng g = geoOf(centreOf(start)), e = geoOf(centreOf(end));
    Vec side = cross(vecOfAny(g.lat, g.lng), vecOfAny(e.lat, e.lng));
    for (; n < steps; n++) out[n + 1] = stepTowards(out[n], end, steps - n, side);
    return E_SUCCESS;
}

/* ---- disks and rings ------------------------------------------------------------------- */

/* Number of cells of a resolution. */
static int64_t cellsAt(int res) { return 2 + 120 * descendants(0, res); }

/* Number of cells of rings at most: were there no pentagons, or all there are. */
static int64_t ringCells(int64_t first, int64_t last) {
    if (last >= 13780510) return last - first ? cellsAt(MAX_H3_RES) : 6 * last;
    return 3 * (last * (last + 1) - first * (first - 1)) + !first;
}

H3Error H3_EXPORT(maxGridDiskSize)(int k, int64_t *out) {
    if (k < 0) return E_DOMAIN;
    *out = ringCells(0, k);
    return E_SUCCESS;
}

H3Error H3_EXPORT(maxGridRingSize)(int k, int64_t *out) {
    if (k < 0) return E_DOMAIN;
    *out = ringCells(k, k);
    return E_SUCCESS;
}

/* Lattice points of a face and level within ranges of a, b and a - b: their indexes without
 * sharedBits and the ways of digits below, row by row, `columns` a row. */
typedef struct {
    int face, res, a0, a1, b0, b1, c0, c1, columns;
    H3Index *index;
    uint32_t *ways;
} Grid;

/* What disks need to work on; in bulk it is kept from one to the next. */
typedef struct {
    void *memory;
    int first, last, cap;        /* rings that there is room for, around a pentagon too or not */
    int64_t count;               /* cells of these rings */
    int32_t *a, *b;              /* lattice steps from the middle to each */
    H3Index *index[2];           /* of grids of even and odd levels */
    uint32_t *ways[2];
    H3Index *cells;              /* around a pentagon: cells of one face, */
    int32_t *onFace[5][3];       /* and a, b and place in the answer of those on each: */
    int64_t found, foundOn[5];   /* how many in all, and on each */
} Workshop;

static int openWorkshop(Workshop *w, int first, int last, int cap) {
    if (w->memory && w->first == first && w->last == last && w->cap >= cap) return 1;
    int64_t n = ringCells(first, last), grid = ((int64_t)last + 6) * ((int64_t)last + 6);
    int64_t room = cap ? n + 2 : 0, i = !first;
    uint64_t size = (uint64_t)grid * 24 + (uint64_t)n * 8 + (uint64_t)room * 68;
    free(w->memory);
    w->memory = size > SIZE_MAX || n > INT32_MAX ? NULL : malloc((size_t)size);
    if (!w->memory) return 0;
    *w = (Workshop){.memory = w->memory, .first = first, .last = last, .cap = cap, .count = n};
    w->index[0] = w->memory;
    w->index[1] = w->index[0] + grid;
    w->cells = w->index[1] + grid;
    w->ways[0] = (uint32_t *)(w->cells + room);
    w->ways[1] = w->ways[0] + grid;
    w->a = (int32_t *)(w->ways[1] + grid);
    w->b = w->a + n;
    for (int list = 0; list < 15; list++) w->onFace[list / 3][list % 3] = w->b + n + list * room;
    /* A ring goes counter-clockwise, alone from the cell along I on, in a disk from the next one
     * on, as uber/h3's "unsafe" functions do. */
    w->a[0] = w->b[0] = 0;
    for (int ring = first; ring <= last; ring++)
        for (int side = 0, a = ring, b = 0; side < 6; side++) {
            int da = stepA[digitOf[(side + 2) % 6]], db = stepB[digitOf[(side + 2) % 6]];
            for (int step = 0; step < ring; step++, i++, a += da, b += db) {
                w->a[i] = first == last ? a : a + da;
                w->b[i] = first == last ? b : b + db;
            }
        }
    return 1;
}

/* The parents of another grid's points. Numerators of the division by 7 (see upTo) are sums of a, b
 * and a - b in such a way that the ranges of a hexagon stay as small as they can. */
static Grid parentsOf(Grid g) {
    Grid p = {.face = g.face, .res = g.res - 1};
    if (g.res & 1) {
        p.a0 = seventh(2 * g.a0 + g.c0), p.a1 = seventh(2 * g.a1 + g.c1);
        p.b0 = seventh(g.a0 + 2 * g.b0), p.b1 = seventh(g.a1 + 2 * g.b1);
        p.c0 = seventh(2 * g.c0 - g.b1) - 1, p.c1 = seventh(2 * g.c1 - g.b0) + 1;
    } else {
        p.a0 = seventh(2 * g.a0 + g.b0), p.a1 = seventh(2 * g.a1 + g.b1);
        p.b0 = seventh(2 * g.b0 - g.c1), p.b1 = seventh(2 * g.b1 - g.c0);
        p.c0 = seventh(g.a0 + 2 * g.c0) - 1, p.c1 = seventh(g.a1 + 2 * g.c1) + 1;
    }
    p.columns = p.b1 - p.b0 + 1;
    return p;
}

/* Fill a grid, parents first. */
static void fillGrid(Grid *g, Workshop *w) {
    const int res = g->res;
    Grid parents = {.res = -1};
    if (res > 0) {
        parents = parentsOf(*g);
        fillGrid(&parents, w);
    }
    const Grid above = parents;
    H3Index *restrict index = g->index = w->index[res & 1];
    uint32_t *restrict ways = g->ways = w->ways[res & 1];
    for (int a = g->a0; a <= g->a1; a++) {
        int low = (int)larger(g->b0, a - g->c1), high = (int)smaller(g->b1, a - g->c0);
        int at = (a - g->a0) * g->columns + (low - g->b0);
        for (int b = low; b <= high; b++, at++) {
            if (res == 0) {
                index[at] = topOf((Spot){g->face, a, b}, &ways[at]);
                continue;
            }
            int p, q, digit = upTo(res, a, b, &p, &q);
            int parent = (p - above.a0) * above.columns + (q - above.b0);
            index[at] = above.index[parent] | childBits(above.ways[parent], digit, res);
            ways[at] = T.nextWays[above.ways[parent] >> WAYS_STATE][digit];
        }
    }
}

/* The cells of n lattice points, their parents being the grid. */
#define CHILDREN_PARAMS                                                                    \
    Grid g, Frame f, const int32_t *restrict a, const int32_t *restrict b, int64_t n, int res, \
        H3Index *restrict out
INLINE void childrenOf(int parity, CHILDREN_PARAMS) {
    const H3Index *restrict index = g.index, shared = sharedBits(res);
    const uint32_t *restrict ways = g.ways;
    for (int64_t i = 0; i < n; i++) {
        Spot s = inFrame(f, a[i], b[i]);
        int p, q, digit = upTo(parity, s.a, s.b, &p, &q), at = (p - g.a0) * g.columns + (q - g.b0);
        out[i] = index[at] | childBits(ways[at], digit, res) | shared;
    }
}
INLINE void childrenBody(CHILDREN_PARAMS) { /* two loops, each without a choice */
    if (res & 1) childrenOf(1, g, f, a, b, n, res, out);
    else childrenOf(2, g, f, a, b, n, res, out);
}
LEVELS(children, childrenBody, (CHILDREN_PARAMS), (g, f, a, b, n, res, out))

/* The cells of n lattice points of one face; `range` holds the points at least. */
static void cellsOnFace(Grid range, Frame f, const int32_t *a, const int32_t *b, int64_t n,
                        Workshop *w, H3Index *out) {
    if (range.res > 0 && n > 8) {
        Grid parents = parentsOf(range);
        fillGrid(&parents, w);
        children(parents, f, a, b, n, range.res, out);
        return;
    }
    for (int64_t i = 0; i < n; i++) out[i] = encodeOnFace(inFrame(f, a[i], b[i]), range.res, NULL);
}

/* Do all cells within k steps lie on the face of s? Then the plane is enough. */
static int diskFits(Spot s, int res, int k) {
    int64_t room = T.limit[EVEN(res)] - ((int64_t)k + 2) * 2 * (res & 1 ? 3 : 1);
    return room >= 0 && edgeBeyond(evenSpot(s, res), (int)room) < 0;
}

/* The five faces around a pentagon, laid flat around it: 0 is the face of the origin, the others
 * follow counter-clockwise; a sixth place is empty. */
typedef struct {
    int res;
    Spot origin;   /* in the plane around the pentagon, axes turned to face 0 */
    int turns;     /* from these axes to the face's */
    Frame faces[5];
} Cap;

static Cap capOf(Spot s, int res) {
    static const int cornerOfFace[3][2] = {{2, 0}, {0, 2}, {-2, -2}};
    Spot e = evenSpot(s, res);
    int towards[3] = {2 * e.a - e.b, 2 * e.b - e.a, -e.a - e.b}, at = 0, c = 0;
    for (int i = 1; i < 3; i++) c = towards[i] > towards[c] ? i : c;
    int base = T.base[s.face][cornerOfFace[c][0] + 2][cornerOfFace[c][1] + 2];
    while (cornerSpot(base, at).face != s.face) at++;
    Cap cap = {.res = res};
    for (int m = 0; m < 5; m++) {
        Spot spot = cornerSpot(base, at + m);
        int turns = sextantFrom(spot.a, spot.b);
        grow(res, &spot.a, &spot.b);
        cap.faces[m] = frameOf(spot, turns - (m < 3 ? m : m + 1));
        if (m == 0) cap.turns = turns;
    }
    cap.origin = (Spot){s.face, s.a - cap.faces[0].at.a, s.b - cap.faces[0].at.b};
    turn(-cap.turns, &cap.origin.a, &cap.origin.b);
    return cap;
}

/* Does the disk stay on the five faces? */
static int capHolds(const Cap *cap, int k) {
    Spot e = evenSpot(cap->origin, cap->res);
    int64_t room = 3 * (int64_t)T.limit[EVEN(cap->res)] - (int64_t)k * (cap->res & 1 ? 5 : 2);
    for (int m = 0; m < 6; m++) {
        if (2 * (int64_t)e.a - e.b > room) return 0;
        turn(1, &e.a, &e.b);
    }
    return 1;
}

/* The place 0..5 of a point of the plane: its direction in sixths, -30..30 degrees being 0. */
static int placeOf(const Cap *cap, int a, int b) {
    if (cap->res & 1) down(2, &a, &b);
    int u = a + b, v = a - 2 * b, w = b - 2 * a; /* signs: beside -30, 30 and 90 degrees */
    if (u >= 0 && v > 0) return 0;
    if (v <= 0 && w < 0) return 1;
    if (w >= 0 && u > 0) return 2;
    if (u <= 0 && v < 0) return 3;
    if (v >= 0 && w > 0) return 4;
    return u < 0 ? 5 : 0; /* the pentagon itself is at 0 */
}

/* A cell of a ring is found at (a, b) of the plane. */
static void keep(const Cap *cap, int place, int a, int b, Workshop *w) {
    int face = place < 3 ? place : place - 1;
    int64_t i = w->foundOn[face]++;
    Spot s = inFrame(cap->faces[face], a, b);
    w->onFace[face][0][i] = s.a;
    w->onFace[face][1][i] = s.b;
    w->onFace[face][2][i] = (int32_t)w->found++;
}

/* Rings around the origin in the cap's plane. The sixth that is empty (place 3) is entered from
 * both sides: its points are also the cells of places 4 and 2, seen past the pentagon. What is
 * nearer that way comes from there. */
static void ringsOnCap(const Cap *cap, int turns, Workshop *w, int *distances) {
    const Spot o = cap->origin;
    const Frame from = frameOf(o, turns - cap->turns);
    int64_t i = 0;
    for (int ring = w->first; ring <= w->last; ring++) {
        int64_t before = w->found;
        for (int64_t end = i + ringCells(ring, ring); i < end; i++) {
            Spot s = inFrame(from, w->a[i], w->b[i]);
            int place = placeOf(cap, s.a, s.b);
            if (place < 2 || place > 4) {
                keep(cap, place, s.a, s.b, w);
                continue;
            }
            int a1 = s.a - s.b, b1 = s.a, a2 = s.b, b2 = s.b - s.a; /* turned once, back once */
            int64_t past = stepsTo(a1 - o.a, b1 - o.b), pastBack = stepsTo(a2 - o.a, b2 - o.b);
            if (place == 2 && past >= ring) keep(cap, place, s.a, s.b, w);
            if (place == 4 && pastBack >= ring) keep(cap, place, s.a, s.b, w);
            if (place == 3 && past > ring) keep(cap, 4, a1, b1, w);
            if (place == 3 && pastBack > ring) keep(cap, 2, a2, b2, w);
        }
        while (distances && before < w->found) distances[before++] = ring;
    }
}

/* The ranges that hold n lattice points. */
static Grid rangeOf(int face, int res, const int32_t *a, const int32_t *b, int64_t n) {
    Grid r = {face, res, a[0], a[0], b[0], b[0], a[0] - b[0], a[0] - b[0], 0, NULL, NULL};
    for (int64_t i = 1; i < n; i++) {
        int c = a[i] - b[i];
        r.a0 = (int)smaller(r.a0, a[i]), r.a1 = (int)larger(r.a1, a[i]);
        r.b0 = (int)smaller(r.b0, b[i]), r.b1 = (int)larger(r.b1, b[i]);
        r.c0 = (int)smaller(r.c0, c), r.c1 = (int)larger(r.c1, c);
    }
    return r;
}

/* Cells of rings on the five faces around a pentagon; returns their number. */
static int64_t ringsAroundPentagon(const Cap *cap, int turns, Workshop *w, H3Index *out,
                                   int *distances) {
    w->found = 0;
    memset(w->foundOn, 0, sizeof w->foundOn);
    ringsOnCap(cap, turns, w, distances);
    for (int m = 0; m < 5; m++) {
        int32_t *a = w->onFace[m][0], *b = w->onFace[m][1], *place = w->onFace[m][2];
        Spot centre = {cap->faces[m].at.face, 0, 0};
        int64_t n = w->foundOn[m];
        if (!n) continue;
        Grid range = rangeOf(centre.face, cap->res, a, b, n);
        cellsOnFace(range, frameOf(centre, 0), a, b, n, w, w->cells);
        for (int64_t i = 0; i < n; i++) out[place[i]] = w->cells[i];
    }
    return w->found;
}

/* n / d rounded down. */
static int floorOf(int n, int d) { return n / d - (n % d != 0 && n < 0); }

typedef struct { H3Index cell; int64_t distance; } Found;

/* The cells of a face that are in rings; returns their number. Row by row: distances change by one
 * a step, so that what is too near or too far by n steps is passed over by n. */
static int64_t sieveFace(int face, Spot origin, int res, int first, int last, Found *found) {
    static const int us[2][3] = {{1, -2, 1}, {4, -5, 1}}, vs[2][3] = {{1, 1, 2}, {1, 4, 5}};
    const int limit = T.limit[EVEN(res)], *u = us[res & 1], *v = vs[res & 1];
    Spot seen[MOST_IMAGES];
    int count = seenFrom(face, origin, res, seen), turns;
    int64_t n = 0;
    for (int a = -limit; a <= limit; a++) {
        int64_t high = smaller(floorOf(limit - u[0] * a, v[0]), floorOf(limit - u[1] * a, v[1]));
        for (int b = -floorOf(limit - u[2] * a, v[2]); b <= high;) {
            int64_t d = INT64_MAX;
            for (int i = 0; i < count; i++) d = smaller(d, stepsTo(seen[i].a - a, seen[i].b - b));
            if (d < first || d > last) {
                b += (int)(d < first ? first - d : d - last);
                continue;
            }
            Spot s = {face, a, b++};
            H3Index h = encodeOnFace(s, res, NULL);
            int rim = edgeBeyond(evenSpot(s, res), limit - 1) >= 0; /* another face has it, too */
            if (!rim || decode(h, &turns).face == face) found[n++] = (Found){h, d};
        }
    }
    return n;
}

/* Rings of any size, by the distance of every cell that may be in them. */
static int64_t ringsAnywhere(Spot origin, int res, int first, int last, H3Index *out,
                             int *distances) {
    int64_t farthest = (res & 1 ? 3 : 6) * (int64_t)T.limit[EVEN(res)], n = 0, at = 0; /* more */
    if (first > farthest) return 0;
    if (last > farthest) last = (int)farthest;
    int64_t most = ringCells(first, last), all = cellsAt(res), rings = (int64_t)last - first + 1;
    Found *found = malloc((size_t)smaller(most, all) * sizeof *found);
    int64_t *next = calloc((size_t)rings, sizeof *next); /* where the next cell of a ring goes */
    for (int face = 0; found && next && face < FACES; face++)
        n += sieveFace(face, origin, res, first, last, found + n);
    for (int64_t i = 0; i < n; i++) next[found[i].distance - first]++;
    for (int64_t ring = 0; next && ring < rings; ring++) {
        int64_t count = next[ring];
        next[ring] = at;
        at += count;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t place = next[found[i].distance - first]++;
        out[place] = found[i].cell;
        if (distances) distances[place] = (int)found[i].distance;
    }
    n = found && next ? n : -(int64_t)E_MEMORY_ALLOC;
    free(found);
    free(next);
    return n;
}

static void ringNumbers(int first, int last, int *distances) {
    for (int ring = first; distances && ring <= last; ring++)
        for (int64_t i = ringCells(ring, ring); i > 0; i--) *distances++ = ring;
}

/* All cells at first..last steps, nearest first; their number or -H3Error. `origin` is valid. */
static int64_t rings(H3Index origin, int first, int last, Workshop *w, H3Index *out,
                     int *distances) {
    int turns, res = resOf(origin);
    Spot s = decode(origin, &turns);
    int fits = diskFits(s, res, last);
    Cap cap = fits ? (Cap){.res = res} : capOf(s, res);
    if (!fits && !capHolds(&cap, last)) return ringsAnywhere(s, res, first, last, out, distances);
    if (!openWorkshop(w, first, last, !fits)) return -(int64_t)E_MEMORY_ALLOC;
    if (!fits) return ringsAroundPentagon(&cap, turns, w, out, distances);
    int c = s.a - s.b, k = last;
    Grid range = {s.face, res, s.a - k, s.a + k, s.b - k, s.b + k, c - k, c + k, 0, NULL, NULL};
    cellsOnFace(range, frameOf(s, turns), w->a, w->b, w->count, w, out);
    ringNumbers(first, last, distances);
    return w->count;
}

static H3Error ringsPadded(H3Index origin, int first, int last, H3Index *out, int *distances) {
    if (last < 0) return E_DOMAIN;
    if (!isCell(origin)) return E_CELL_INVALID;
    Workshop w = {.memory = NULL};
    int64_t n = rings(origin, first, last, &w, out, distances);
    free(w.memory);
    if (n < 0) return (H3Error)-n;
    for (; n < ringCells(first, last); n++) {
        out[n] = H3_NULL;
        if (distances) distances[n] = 0;
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(gridDiskDistances)(H3Index origin, int k, H3Index *out, int *distances) {
    return ringsPadded(origin, 0, k, out, distances);
}

H3Error H3_EXPORT(gridDiskDistancesSafe)(H3Index origin, int k, H3Index *out, int *distances) {
    return ringsPadded(origin, 0, k, out, distances);
}

H3Error H3_EXPORT(gridDisk)(H3Index origin, int k, H3Index *out) {
    return ringsPadded(origin, 0, k, out, NULL);
}

H3Error H3_EXPORT(gridRing)(H3Index origin, int k, H3Index *out) {
    return ringsPadded(origin, k, k, out, NULL);
}

/* In the order of the official "unsafe" functions. Where no pentagon is within reach, the plane of
 * the origin's face holds the disk, unfolded over whatever edges: a pentagon is nearer than what
 * could be seen on both sides of it. */
static H3Error ringsUnsafe(H3Index origin, int first, int last, H3Index *out, int *distances) {
    if (last < 0) return E_DOMAIN;
    if (!isCell(origin)) return E_CELL_INVALID;
    int turns, res = resOf(origin);
    Spot s = decode(origin, &turns);
    if (diskFits(s, res, last)) return ringsPadded(origin, first, last, out, distances);
    H3Index pentagons[12];
    H3_EXPORT(getPentagons)(res, pentagons);
    for (int i = 0; i < 12; i++)
        if (stepsBetween(origin, pentagons[i]) <= last) return E_PENTAGON;
    Workshop w = {.memory = NULL};
    if (!openWorkshop(&w, first, last, 0)) return E_MEMORY_ALLOC;
    for (int64_t i = 0; i < w.count; i++)
        out[i] = encode(inFrame(frameOf(s, turns), w.a[i], w.b[i]), res, NULL);
    free(w.memory);
    ringNumbers(first, last, distances);
    return E_SUCCESS;
}

H3Error H3_EXPORT(gridDiskUnsafe)(H3Index origin, int k, H3Index *out) {
    return ringsUnsafe(origin, 0, k, out, NULL);
}

H3Error H3_EXPORT(gridDiskDistancesUnsafe)(H3Index origin, int k, H3Index *out, int *distances) {
    return ringsUnsafe(origin, 0, k, out, distances);
}

H3Error H3_EXPORT(gridRingUnsafe)(H3Index origin, int k, H3Index *out) {
    return ringsUnsafe(origin, k, k, out, NULL);
}

H3Error H3_EXPORT(gridDisksUnsafe)(const H3Index *cells, int length, int k, H3Index *out) {
    H3Error err = k < 0 ? E_DOMAIN : E_SUCCESS;
    for (int i = 0; !err && i < length; i++, out += ringCells(0, k))
        err = H3_EXPORT(gridDiskUnsafe)(cells[i], k, out);
    return err;
}

/* ---- local coordinates ----------------------------------------------------------------- */

/* Around a pentagon, the turn that moves the sextant of digit `to` beside the sextant of `from`,
 * over the gap where K is missing; 9: they are not side by side. */
static int overGap(int from, int to) {
    static const int8_t place[7] = {0, 9, 3, 4, 1, 0, 2}; /* among IK, I, IJ, J, JK */
    if (from == CENTER || to == CENTER || from == to) return 0;
    int apart = place[to] - place[from];
    if (apart == 1 || apart == -1) return 0;
    return apart == 4 ? 1 : apart == -4 ? -1 : 9;
}

/* The digit of the way from one base cell to another, NO_DIGIT if they are not side by side, and
 * the turns between their digits. */
static int directionOfBase(int from, int to, int *turns) {
    int digit = K_DIGIT;
    while (digit < NO_DIGIT && neighbourAt(cellOf(from, 0), digit, turns) != cellOf(to, 0)) digit++;
    return digit;
}

/* Lattice position in the digits' axes of the origin's base cell, around that one's centre. */
static H3Error localOf(H3Index origin, H3Index h, int *a, int *b) {
    int from = baseOf(origin), to = baseOf(h), dir = CENTER, turns = 0, before = 0, after = 0;
    if (from != to) dir = directionOfBase(from, to, &turns);
    if (dir == NO_DIGIT) return E_FAILED;
    if (dir && isFiveBase(to)) { /* axes of the pentagon: those in which the origin lies opposite */
        int back = directionOfBase(to, from, &turns);
        before = overGap(back, leading(h));
        turns = sextant[back] + 3 - sextant[dir];
    } else if (isFiveBase(from)) {
        after = overGap(leading(origin), dir ? dir : leading(h));
    }
    if (before == 9 || after == 9) return E_FAILED;
    int c = stepA[dir], d = stepB[dir];
    grow(resOf(h), &c, &d);
    *a = *b = 0;
    for (int r = 1; r <= resOf(h); r++) {
        down(r, a, b);
        *a += stepA[digitAt(h, r)];
        *b += stepB[digitAt(h, r)];
    }
    turn(before - turns, a, b);
    *a += c;
    *b += d;
    turn(after, a, b);
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToLocalIj)(H3Index origin, H3Index h, uint32_t mode, CoordIJ *out) {
    if (mode) return E_OPTION_INVALID;
    H3Error err = twoCells(origin, h);
    return err ? err : localOf(origin, h, &out->i, &out->j);
}

H3Error H3_EXPORT(localIjToCell)(H3Index origin, const CoordIJ *ij, uint32_t mode, H3Index *out) {
    if (mode) return E_OPTION_INVALID;
    if (!isCell(origin)) return E_CELL_INVALID;
    int res = resOf(origin), from = baseOf(origin);
    if (stepsTo(ij->i, ij->j) > 4 * (int64_t)T.limit[EVEN(res)]) return E_FAILED;
    /* The way may lead over a pentagon's gap, at its beginning or end: what comes back is right. */
    static const int8_t gaps[3] = {0, -1, 1};
    for (int i = 0; i < 9; i++) {
        int a = ij->i, b = ij->j, dir = CENTER, turns = 0;
        H3Index h = sharedBits(res), base = cellOf(from, 0);
        turn(gaps[i / 3], &a, &b);
        for (int r = res; r > 0; r--) h |= (H3Index)upTo(r, a, b, &a, &b) << DIGIT_SHIFT(r);
        while (dir < NO_DIGIT && (stepA[dir] != a || stepB[dir] != b)) dir++;
        if (dir == NO_DIGIT) continue;
        if (dir) base = neighbourAt(base, dir, &turns);
        if (!base) continue;
        if (dir && isFive(base)) {
            int back = directionOfBase(baseOf(base), from, &turns);
            turns = sextant[back] + 3 - sextant[dir];
        }
        h = turnIndex(turns + gaps[i % 3], h) | (H3Index)baseOf(base) << 45;
        if (!isCell(h) || localOf(origin, h, &a, &b) != E_SUCCESS) continue;
        if (a != ij->i || b != ij->j) continue;
        *out = h;
        return E_SUCCESS;
    }
    return E_FAILED;
}

/* ---- hierarchy ------------------------------------------------------------------------- */

int H3_EXPORT(isValidCell)(H3Index h) { return (int)validity(h); }

H3Error H3_EXPORT(cellToParent)(H3Index cell, int parentRes, H3Index *out) {
    if (!isCell(cell)) return E_CELL_INVALID;
    if (parentRes < 0 || parentRes > MAX_H3_RES) return E_RES_DOMAIN;
    if (parentRes > resOf(cell)) return E_RES_MISMATCH;
    *out = parentAt(cell, parentRes);
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToChildrenSize)(H3Index cell, int childRes, int64_t *out) {
    if (!isCell(cell)) return E_CELL_INVALID;
    if (childRes < resOf(cell) || childRes > MAX_H3_RES) return E_RES_DOMAIN;
    *out = descendants(isFive(cell), childRes - resOf(cell));
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToCenterChild)(H3Index cell, int childRes, H3Index *out) {
    int64_t size;
    H3Error err = H3_EXPORT(cellToChildrenSize)(cell, childRes, &size);
    if (!err) *out = centreChild(cell, childRes);
    return err;
}

H3Error H3_EXPORT(cellToChildren)(H3Index cell, int childRes, H3Index *out) {
    int64_t size;
    H3Error err = H3_EXPORT(cellToChildrenSize)(cell, childRes, &size);
    if (err) return err;
    int top = resOf(cell), pentagon = isFive(cell);
    H3Index h = centreChild(cell, childRes);
    for (int64_t i = 0; i < size; i++) {
        out[i] = h;
        int r = childRes; /* count up in base 7, the finest digit first */
        for (; r > top && digitAt(h, r) == IJ_DIGIT; r--) h = withDigit(h, r, CENTER);
        if (r > top) h = withDigit(h, r, digitAt(h, r) + 1);
        if (pentagon && leading(h) == K_DIGIT) h = withDigit(h, r, J_DIGIT); /* K is missing */
    }
    return E_SUCCESS;
}

H3Error H3_EXPORT(cellToChildPos)(H3Index child, int parentRes, int64_t *out) {
    H3Index parent;
    H3Error err = H3_EXPORT(cellToParent)(child, parentRes, &parent);
    if (err) return err;
    int pentagon = isFive(parent);
    *out = 0;
    for (int r = parentRes + 1; r <= resOf(child); r++) {
        int digit = digitAt(child, r), below = resOf(child) - r; /* a pentagon's second is J */
        int64_t first = descendants(pentagon, below), each = descendants(0, below);
        if (digit) *out += first + (digit - 1 - pentagon) * each;
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
        int64_t first = descendants(pentagon, childRes - r), each = descendants(0, childRes - r);
        int64_t digit = childPos < first ? 0 : 1 + pentagon + (childPos - first) / each;
        if (digit) childPos -= first + (digit - 1 - pentagon) * each;
        pentagon = pentagon && !digit;
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
    for (int base = 0; base < NUM_BASE_CELLS; base++)
        if (kindOf(base)) *out++ = cellOf(base, res);
    return E_SUCCESS;
}

H3Error H3_EXPORT(getRes0Cells)(H3Index *out) {
    for (int base = 0; base < NUM_BASE_CELLS; base++) out[base] = cellOf(base, 0);
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
    H3Index h = cellOf(baseCell, res);
    for (int r = 1; r <= res; r++) {
        if (digits[r - 1] < 0 || digits[r - 1] > 6) return E_DIGIT_DOMAIN;
        h = withDigit(h, r, digits[r - 1]);
        if (kindOf(baseCell) && leading(h) == K_DIGIT) return E_DELETED_DIGIT;
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
            int64_t family = isFive(parent) ? 6 : 7, siblings = 0;
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
    if (!isCell(origin) || !isCell(destination)) return E_CELL_INVALID;
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
    int digit = reservedOf(edge), turns, first = 3;
    if (isFive(origin)) { /* corners 3, 4 lie beside the first of the five neighbours, and so on */
        while (five[(first + 2) % 5] != sextant[digit]) first++;
    } else {
        decodeEven(origin, &turns); /* corners 5, 0 lie beside the first axis, and so on */
        first = (sextant[digit] + turns + 12 + 5) % 6;
    }
    boundaryOf(origin, first, 2, gp);
    return E_SUCCESS;
}

/* ---- vertexes -------------------------------------------------------------------------- */

/* The three cells around a corner, the lowest first. */
static void aroundCorner(H3Index cell, int number, H3Index out[3]) {
    int k = number + (cornersOf(cell) == 5);
    H3Index all[3] = {cell, beside(cell, k), beside(cell, k + 1)};
    for (int i = 0; i < 3; i++) {
        int below = (all[0] < all[i]) + (all[1] < all[i]) + (all[2] < all[i]);
        out[below] = all[i];
    }
}

H3Error H3_EXPORT(cellToVertex)(H3Index cell, int number, H3Index *out) {
    if (!isCell(cell)) return E_CELL_INVALID;
    if (number < 0 || number >= cornersOf(cell)) return E_DOMAIN;
    H3Index cells[3], its[3] = {H3_NULL};
    aroundCorner(cell, number, cells); /* a vertex belongs to the lowest of its cells */
    for (int i = 0; i < 6 && cells[0] != cell && memcmp(its, cells, sizeof its); i++) {
        aroundCorner(cells[0], i, its);
        number = i;
    }
    *out = withMode(cells[0], VERTEX_MODE, number);
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
    return isCell(h) || H3_EXPORT(isValidDirectedEdge)(h) || H3_EXPORT(isValidVertex)(h);
}

/* ---- text ------------------------------------------------------------------------------ */

H3Error H3_EXPORT(stringToH3)(const char *str, H3Index *out) {
    H3Index h = 0;
    int n = 0;
    for (; str[n]; n++) {
        char c = str[n];
        int letter = c >= 'a' && c <= 'f' ? c - 'a' : c >= 'A' && c <= 'F' ? c - 'A' : -11;
        int v = c >= '0' && c <= '9' ? c - '0' : letter + 10;
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
#define TEXT(name, number, text) [number] = text,
    static const char *const text[] = {H3_ERRORS(TEXT)};
    return err < sizeof text / sizeof *text ? text[err] : "Unknown error code";
}
