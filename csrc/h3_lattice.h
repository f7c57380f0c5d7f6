/* h3_lattice.h - part of h3.c: angles, the lattice of a face, bits of an index, tables.
 *
 * Only h3.c includes it, once; how all of it works is told there. */

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

#define FINITE(x) ((x) - (x) == 0.0) /* isfinite is a library call in places */

enum { CENTER = 0, K_DIGIT = 1, J_DIGIT = 2, JK_DIGIT = 3, I_DIGIT = 4, IK_DIGIT = 5, IJ_DIGIT = 6,
       NO_DIGIT = 7 };
enum { CELL_MODE = 1, EDGE_MODE = 2, VERTEX_MODE = 4 };

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
/* The sextants of a pentagon counter-clockwise, beginning after the one that does not exist. */
static const uint8_t five[5] = {5, 0, 1, 2, 3};
/* Middles of a face's edges at res 0; edge e faces 60 + 120 e degrees. */
static const int edgeA[3] = {1, -1, 0}, edgeB[3] = {1, 0, -1};
/* Corners of a hexagon in thirds of the lattice, counter-clockwise from 30 degrees. */
static const int cornerA[6] = {2, 1, -1, -2, -1, 1}, cornerB[6] = {1, 2, 1, -1, -2, -1};

#define MOST_IMAGES 24
#define MOST_EDGES 7 /* of unfoldings looked at */

/* The plane of a face seen from another one: turn, then add (a, b) x one res 0 step. */
typedef struct {
    int8_t turns, a, b;
} Image;

static struct {
    Vec n[FACES], ex[FACES], ey[FACES];
    uint8_t acrossFace[FACES][3], acrossEdge[FACES][3], acrossTurns[FACES][3];
    int8_t base[FACES][5][5];   /* base cell of the res 0 point (a, b) at [a + 2][b + 2], or -1 */
    uint8_t turns[FACES][5][5]; /* turns from the face's axes to the base cell's home axes */
    uint8_t sector[FACES][5][5]; /* pentagons: sextant of home that the face carries */
    uint8_t pentagon[128];
    double scale[MAX_H3_RES + 2]; /* lattice spacing of every resolution */
    int limit[MAX_H3_RES + 2];    /* even levels: twice the distance from face centre to edge */
    Spot grown[MAX_H3_RES + 2];   /* where the res 0 point (1, 0) lies at every resolution */
    /* Points to faces: 10 pairs of opposite faces, and the lattice coordinates of a point p of a
     * face at even and odd levels: (p . axes) / (p . n) / spacing. */
    double pairs[10][3], axes[2][6][FACES];
    int64_t front[10], back[10];
    /* Up at res 0: index bits of the point (a, b) at [a + 3][b + 3] and TOP_ flags below. */
    H3Index top[FACES][7][7];
    /* Down from a base cell with a first digit (pentagons only, else 0): where its centre lies
     * on the face that carries this digit, and the turns from digits to that face's axes. */
    Spot start[NUM_BASE_CELLS][8];
    int64_t startAt[128 * 8], startFace[128 * 8], startTurns[128 * 8], startFlags[128 * 8];
    int64_t pair[64];         /* two digits as one step of an even level, packed */
    uint8_t around[NUM_BASE_CELLS][7], aroundTurns[NUM_BASE_CELLS][7]; /* by digit; 255: none */
    uint32_t digitMap[32];    /* states of Grid: eight digits, turned */
    uint8_t nextState[32][8];
    Image image[FACES][FACES][MOST_IMAGES];
    uint8_t images[FACES][FACES];
} T;

/* ---- vectors and angles ---------------------------------------------------------------- */

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

INLINE int64_t bitsOf(double x) {
    int64_t n;
    memcpy(&n, &x, sizeof n);
    return n;
}

INLINE double ofBits(int64_t n) {
    double x;
    memcpy(&x, &n, sizeof x);
    return x;
}

/* Adding and taking away 1.5 x 2^52 rounds to an integer; its bits end with that integer. */
#define LIFT 6755399441055744.0
INLINE double whole(double x) {
    double t = x + LIFT;
    return t - LIFT;
}

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
    if (fabs(x) <= ANGLE_LIMIT) {
        sinCos(x, s, c);
    } else {
        *s = sin(x);
        *c = cos(x);
    }
}

INLINE void vecOf(double lat, double lng, Vec *p) {
    double sa, ca, so, co;
    sinCos(lat, &sa, &ca);
    sinCos(lng, &so, &co);
    p->x = ca * co;
    p->y = ca * so;
    p->z = sa;
}

static Vec vecOfAny(double lat, double lng) {
    double sa, ca, so, co;
    sinCosAny(lat, &sa, &ca);
    sinCosAny(lng, &so, &co);
    Vec p = {ca * co, ca * so, sa};
    return p;
}

/* asin(z) would lose digits near the poles. */
INLINE void geoOf(Vec p, double *lat, double *lng) {
    *lat = angleOf(p.z, sqrt(p.x * p.x + p.y * p.y));
    *lng = angleOf(p.y, p.x);
}

/* ---- the lattice ----------------------------------------------------------------------- */

/* n / 7 rounded to the nearest integer; there are no ties. |n| < 2^28: lifted above 0, where a
 * division is a multiplication and needs no look at the sign. */
INLINE int seventh(int n) {
    const int lift = 1 << 26;
    return (int)((uint32_t)(n + 7 * lift + 3) / 7u) - lift;
}

/* Parent of (a, b) of level `res`, and the middle child of (a, b) at level `res`. */
INLINE void up(int res, int *a, int *b) {
    int p = *a, q = *b;
    *a = seventh(res & 1 ? 3 * p - q : 2 * p + q);
    *b = seventh(res & 1 ? p + 2 * q : 3 * q - p);
}

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

static int digitOfStep(int a, int b) {
    int least = a < b ? a : b;
    return 4 * a + 2 * b - 7 * (least < 0 ? least : 0);
}

/* Where (a, b) of res 0 lies at a finer level. */
static void grow(int res, int *a, int *b) {
    int p = *a, q = *b, c = T.grown[res].a, d = T.grown[res].b;
    *a = p * c - q * d;
    *b = p * d + q * c - q * d;
}

/* Steps from 0 to (a, b). */
static int64_t stepsTo(int64_t a, int64_t b) {
    int64_t c = a - b;
    if (a < 0) a = -a;
    if (b < 0) b = -b;
    if (c < 0) c = -c;
    int64_t most = a > b ? a : b;
    return most > c ? most : c;
}

/* Position in the plane of a point of an even level. */
INLINE void planeOf(double scale, double a, double b, double *x, double *y) {
    *x = scale * (a - 0.5 * b);
    *y = scale * (0.5 * SQRT3 * b);
}

INLINE void pointOf(int64_t face, double x, double y, Vec *p) {
    const Vec *n = &T.n[face], *ex = &T.ex[face], *ey = &T.ey[face];
    p->x = n->x + x * ex->x + y * ey->x;
    p->y = n->y + x * ex->y + y * ey->y;
    p->z = n->z + x * ex->z + y * ey->z;
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
#define EACH_EVEN INT64_C(0x8208208208)   /* ... of even levels */
#define EACH_ODD (EACH ^ EACH_EVEN)

static int digitAt(H3Index h, int res) { return (int)((h >> DIGIT_SHIFT(res)) & 7); }

static H3Index withDigit(H3Index h, int res, int digit) {
    return (h & ~(UINT64_C(7) << DIGIT_SHIFT(res))) | ((H3Index)digit << DIGIT_SHIFT(res));
}

static H3Index withRes(H3Index h, int res) {
    return (h & ~(UINT64_C(15) << 52)) | ((H3Index)res << 52);
}

static H3Index withMode(H3Index h, int mode, int reserved) {
    return (h & ~(UINT64_C(255) << 56)) | ((H3Index)mode << 59) | ((H3Index)reserved << 56);
}

static int modeOf(H3Index h) { return (int)(h >> 59); } /* with the highest bit */
static int reservedOf(H3Index h) { return (int)((h >> 56) & 7); }

static H3Index blank(int res, int base) { /* all digits 7 */
    return (UINT64_C(1) << 59) | ((H3Index)res << 52) | ((H3Index)base << 45) | (H3Index)DIGITS;
}

int H3_EXPORT(getResolution)(H3Index h) { return (int)((h >> 52) & 15); }
int H3_EXPORT(getBaseCellNumber)(H3Index h) { return (int)((h >> 45) & 127); }
int H3_EXPORT(isResClassIII)(H3Index h) { return H3_EXPORT(getResolution)(h) & 1; }
#define resOf H3_EXPORT(getResolution)
#define baseOf H3_EXPORT(getBaseCellNumber)

/* The bits of the digits that a resolution uses. */
#define USED(r) (DIGITS & ~((INT64_C(1) << DIGIT_SHIFT(r)) - 1))
static const int64_t usedBy[16] = {USED(0),  USED(1),  USED(2),  USED(3), USED(4),  USED(5),
                                   USED(6),  USED(7),  USED(8),  USED(9), USED(10), USED(11),
                                   USED(12), USED(13), USED(14), USED(15)};
static H3Index usedDigits(int res) { return (H3Index)usedBy[res]; }

/* First digit that is not 0, or 0. */
static int leading(H3Index h) {
    H3Index d = h & usedDigits(resOf(h));
    int shift = DIGIT_SHIFT(1);
    if (!d) return CENTER;
    while (!(d >> shift)) shift -= 3;
    return (int)(d >> shift);
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
    int64_t once = (d >> 1 & EACH * 3) | (d & EACH) << 2, twice = (d << 1 & EACH * 6) | (d >> 2 & EACH);
    int64_t a = -(flags >> 1 & 1), b = -(flags >> 2 & 1);
    return (d & ~(a | b)) | (once & a) | (twice & b);
}

static H3Index turnIndex(int turns, H3Index h) {
    H3Index used = usedDigits(resOf(h));
    return (h & ~used) | (H3Index)turnDigits((int64_t)(h & used), turnFlags(turns));
}

/* Is a cell a pentagon? Tables must be ready. */
static int isFive(H3Index h) { return T.pentagon[baseOf(h)] && !leading(h); }

/* 0: hexagon, 1: pentagon, 3: no base cell. Base cell 121 - b lies opposite b. A number less 1 is
 * below 0 when it is 0 (or below already): no table, as looking up many things at once is slow on
 * many machines, and no comparisons, of which compilers make something that is no vector. */
INLINE int64_t kindOf(int64_t base) {
    int64_t other = NUM_BASE_CELLS - 1 - base, b = other < base ? other : base;
    int64_t near = ((b ^ 4) - 1) | ((b ^ 14) - 1) | ((b ^ 24) - 1) | ((b ^ 38) - 1) |
                   ((b ^ 49) - 1) | ((b ^ 58) - 1);
    return (int64_t)((uint64_t)near >> 63 | (uint64_t)b >> 63 << 1);
}

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

/* ---- tables, built once ---------------------------------------------------------------- */

/* Sextant in which a face lies, seen from one of its corners (a, b), in the face's axes. */
static int sextantFrom(int a, int b) { return a == 2 ? 3 : b == 2 ? 5 : 1; }

static int onFace(int a, int b) { /* is a res 0 point on the face? */
    return a + b <= REACH && b - 2 * a <= REACH && a - 2 * b <= REACH;
}

/* Every res 0 point on a face. */
#define EACH_POINT(f, a, b)                        \
    for (int f = 0; f < FACES; f++)                \
        for (int a = -REACH; a <= REACH; a++)      \
            for (int b = -REACH; b <= REACH; b++)  \
                if (onFace(a, b))

static double azimuth(Vec at, Vec toward, Vec zero) { /* 0..2 pi, counter-clockwise from outside */
    Vec u = unit(along(zero, -dot(zero, at), at)), v = cross(at, u);
    double t = atan2(dot(toward, v), dot(toward, u));
    return t < -1e-9 ? t + 2 * PI : t;
}

static void buildFaces(void) {
    int count = 0;
    for (int f = 0; f < FACES; f++) {
        double lat = faceCentre[f][0], lng = faceCentre[f][1], az = faceCentre[f][2];
        Vec n = {cos(lat) * cos(lng), cos(lat) * sin(lng), sin(lat)};
        Vec east = {-sin(lng), cos(lng), 0.0}, north = cross(n, east), ex = {0, 0, 0};
        ex = along(along(ex, cos(az), north), sin(az), east);
        T.n[f] = n;
        T.ex[f] = ex;
        T.ey[f] = cross(n, ex);
        for (int g = 0; g < f; g++)
            if (dot(n, T.n[g]) < -1.0 + 1e-9) {
                T.front[count] = g;
                T.back[count] = f;
                T.pairs[count][0] = T.n[g].x;
                T.pairs[count][1] = T.n[g].y;
                T.pairs[count++][2] = T.n[g].z;
            }
        for (int odd = 0; odd < 2; odd++) { /* q along I, r along J */
            double c = odd ? COS_TURN3 : 1.0, s = odd ? SIN_TURN3 : 0.0, (*axis)[FACES] = T.axes[odd];
            Vec zero = {0, 0, 0}, x = along(along(zero, c, T.ex[f]), s, T.ey[f]);
            Vec y = along(along(zero, c, T.ey[f]), -s, T.ex[f]);
            Vec r = along(zero, 2.0 / SQRT3, y), q = along(x, -0.5, r);
            axis[0][f] = q.x, axis[1][f] = q.y, axis[2][f] = q.z;
            axis[3][f] = r.x, axis[4][f] = r.y, axis[5][f] = r.z;
        }
    }
}

static Vec latticeVec(int f, int a, int b) {
    double x, y;
    Vec p;
    planeOf(SPACING0, a, b, &x, &y);
    pointOf(f, x, y, &p);
    return unit(p);
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
    uint8_t order[NUM_BASE_CELLS], number[NUM_BASE_CELLS];
    int count = 0;
    memset(T.base, -1, sizeof T.base);
    EACH_POINT(f, a, b) {
        Vec p = latticeVec(f, a, b);
        int i = 0;
        while (i < count && dot(p, found[i]) < 1.0 - 1e-9) i++;
        if (i == count) found[count++] = p;
        T.base[f][a + 2][b + 2] = (int8_t)i;
    }
    for (int i = 0; i < count; i++) { /* base cells are numbered from north to south */
        int at = i;
        for (; at > 0 && found[order[at - 1]].z < found[i].z; at--) order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
    for (int i = 0; i < count; i++) number[order[i]] = (uint8_t)i;
    EACH_POINT(f, a, b) {
        int cell = number[T.base[f][a + 2][b + 2]];
        T.base[f][a + 2][b + 2] = (int8_t)cell;
        T.pentagon[cell] = (uint8_t)(a * a + b * b - a * b == 4);
        if (homeFace[cell] == f) T.start[cell][0] = (Spot){f, a, b};
    }
}

static void buildTurns(void) {
    EACH_POINT(f, a, b) {
        int cell = T.base[f][a + 2][b + 2];
        Spot h = T.start[cell][0];
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
        int ahead = (int)floor(full / (2 * PI / 5) + 0.5) % 5, s = sextantFrom(h.a, h.b);
        while (ahead > 0) {
            s = (s + 1) % 6;
            if (s != sextant[K_DIGIT]) ahead--;
        }
        T.sector[f][a + 2][b + 2] = (uint8_t)s;
        T.turns[f][a + 2][b + 2] = (uint8_t)((s - sextantFrom(a, b) + 6) % 6);
        T.start[cell][digitOf[s]] = (Spot){f, a, b};
    }
}

/* The edge over which (a, b) of an even level lies outside its face, or -1; `limit` is twice the
 * distance to the edges in lattice units. */
static int edgeBeyond(int a, int b, int limit) {
    int over[3] = {a + b - limit, b - 2 * a - limit, a - 2 * b - limit};
    int e = over[1] > over[0] ? 1 : 0;
    if (over[2] > over[e]) e = 2;
    return over[e] > 0 ? e : -1;
}

/* Unfold a point of an even level over edge e of its face; `limit` as above. Returns the turns
 * from the old to the new face's axes. */
static int unfold(Spot *s, int e, int limit) {
    int f = s->face, d = T.acrossEdge[f][e], turns = T.acrossTurns[f][e], m = limit / 2;
    int a = s->a - edgeA[e] * m, b = s->b - edgeB[e] * m;
    turn(turns, &a, &b);
    s->face = T.acrossFace[f][e];
    s->a = a + edgeA[d] * m;
    s->b = b + edgeB[d] * m;
    return turns;
}

/* T.top: low bits beside the base cell's. */
#define TOP_TURNS 7       /* turnFlags from the face's axes to the base cell's */
#define TOP_PENTAGON 8    /* digits that lead with K need one more turn: */
#define TOP_FORWARD 16    /* counter-clockwise, else clockwise */
#define TOP_SHIFT 5       /* the turns as a number */

static void buildTop(void) {
    for (int f = 0; f < FACES; f++)
        for (int a = -3; a <= 3; a++)
            for (int b = -3; b <= 3; b++) {
                Spot s = {f, a, b};
                int turns = 0;
                for (int i = 0; i < 3 && !onFace(s.a, s.b); i++)
                    turns += unfold(&s, edgeBeyond(s.a, s.b, REACH), REACH);
                if (!onFace(s.a, s.b)) continue; /* no chain of parents ends there */
                int base = T.base[s.face][s.a + 2][s.b + 2];
                turns = (turns + T.turns[s.face][s.a + 2][s.b + 2]) % 6;
                int flags = turnFlags(turns) | turns << TOP_SHIFT;
                if (T.pentagon[base]) {
                    /* K: the cell straddles the two faces beside the sextant that is missing. */
                    int before = T.sector[s.face][s.a + 2][s.b + 2] == sextant[JK_DIGIT];
                    flags |= TOP_PENTAGON | (before ? TOP_FORWARD : 0);
                }
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
        for (int low = 0; low < 8; low++) { /* 7 is no digit */
            int a = high < 7 ? stepA[high] : 0, b = high < 7 ? stepB[high] : 0;
            down(2, &a, &b);
            T.pair[8 * high + low] =
                packed(a + (low < 7 ? stepA[low] : 0), b + (low < 7 ? stepB[low] : 0));
        }
}

/* State of a cell on its way down: turns to make, + 8: it is a pentagon's centre, + 16: and K
 * turns forward. */
static void buildStates(void) {
    for (int state = 0; state < 32; state++)
        for (int digit = 0; digit < 7 && (state & 7) < 6; digit++) {
            int turns = state & 7, next = state, turned = turnDigit(turns, digit);
            if ((state & 8) && digit) {
                if (turned == K_DIGIT) turns = (turns + (state & 16 ? 1 : 5)) % 6;
                turned = turnDigit(turns, digit);
                next = turns;
            }
            T.digitMap[state] |= (uint32_t)turned << 3 * digit;
            T.nextState[state][digit] = (uint8_t)next;
        }
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
        /* A point x of `next` lies at turn(x - middle d) + middle e in g's plane. */
        int turns = (6 - T.acrossTurns[g][e]) % 6, a = -edgeA[d], b = -edgeB[d];
        turn(turns, &a, &b);
        a += edgeA[e];
        b += edgeB[e];
        turn(at.turns, &a, &b);
        Image image = {(int8_t)((turns + at.turns) % 6), (int8_t)(a + at.a), (int8_t)(b + at.b)};
        addImages(f, next, image, depth - 1, seen | UINT32_C(1) << next);
    }
}

