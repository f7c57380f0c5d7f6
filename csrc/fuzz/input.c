/* input.c - see fuzz.h. */

#include "fuzz.h"

#include <setjmp.h>

uint8_t take8(Input *in) { return in->at < in->end ? *in->at++ : 0; }

uint64_t take64(Input *in) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v |= (uint64_t)take8(in) << 8 * i;
    return v;
}

int32_t takeInt(Input *in) {
    uint8_t kind = take8(in);
    if (kind < 200) return kind % 40 - 2;
    if (kind < 240) return (int32_t)(take64(in) & 0xFFFF);
    static const int32_t odd[] = {INT32_MAX, INT32_MIN, -1, INT32_MAX - 1, 13780510, 1 << 20, 16, 15};
    return kind < 248 ? odd[kind - 240] : (int32_t)take64(in);
}

int64_t takeCount(Input *in, int64_t most) {
    return (int64_t)((take8(in) | (uint64_t)take8(in) << 8) % (uint64_t)(most + 1));
}

int takeRes(Input *in) {
    uint8_t kind = take8(in);
    return kind < 240 ? kind % 16 : takeInt(in);
}

double takeNumber(Input *in) {
    uint8_t kind = take8(in);
    uint64_t bits = take64(in);
    double unit = (double)(bits >> 11) * 0x1p-53, raw;
    static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.5707963267948966,
                                 -1.5707963267948966, 3.141592653589793, 1e300, -1e300, 1e-300, 1e5};
    memcpy(&raw, &bits, sizeof raw);
    if (kind < 160) return (2.0 * unit - 1.0) * 3.141592653589793;
    if (kind < 200) return (2.0 * unit - 1.0) * ldexp(1.0, kind - 180);
    return kind < 240 ? odd[kind % 12] : raw;
}

static H3Index someCell(Input *in) {
    LatLng g = {(double)(int64_t)take64(in) * 0x1p-63 * 1.5707963267948966,
                (double)(int64_t)take64(in) * 0x1p-63 * 3.141592653589793};
    H3Index cell = 0;
    H3_EXPORT(latLngToCell)(&g, take8(in) % 16, &cell);
    return cell;
}

static H3Index somePentagon(Input *in) {
    H3Index all[12] = {0};
    H3_EXPORT(getPentagons)(take8(in) % 16, all);
    return all[take8(in) % 12];
}

/* The first indexes of this call, for the report. */
static H3Index taken[8];
static int indexes;

static H3Index noted(H3Index h) {
    if (indexes < 8) taken[indexes++] = h;
    return h;
}

static H3Index chosenIndex(Input *in) {
    uint8_t kind = take8(in);
    if (kind >= 240) return take64(in);
    H3Index h = kind & 1 ? someCell(in) : somePentagon(in);
    switch (kind >> 1 & 7) {
        case 0: return h ^ UINT64_C(1) << take8(in) % 64;
        case 1: /* an edge or a vertex of it, or nearly */
            return (h & ~(UINT64_C(0x7F) << 56)) | (uint64_t)(take8(in) & 0x7F) << 56;
        case 2: { /* a neighbour, or a cell of the neighbourhood */
            H3Index disk[19] = {0};
            H3_EXPORT(gridDisk)(h, 2, disk);
            return disk[take8(in) % 19];
        }
        default: return h;
    }
}

H3Index takeIndex(Input *in) { return noted(chosenIndex(in)); }

static H3Index chosenNear(Input *in, H3Index other) {
    uint8_t kind = take8(in);
    int res = H3_EXPORT(getResolution)(other);
    if (kind < 100) {
        H3Index disk[37] = {0};
        H3_EXPORT(gridDisk)(other, 3, disk);
        return disk[kind % 37];
    }
    if (kind < 200) { /* the same resolution, anywhere */
        H3Index cell = kind & 1 ? someCell(in) : somePentagon(in), out = cell;
        H3_EXPORT(cellToParent)(cell, res, &out);
        H3_EXPORT(cellToCenterChild)(cell, res, &out);
        return out;
    }
    return chosenIndex(in);
}

H3Index takeNear(Input *in, H3Index other) { return noted(chosenNear(in, other)); }

/* ---- memory of one call ---- */

static void *held[64];
static int holding;

void *room(int64_t n, size_t each) {
    PROMISE(n >= 0 && holding < 64);
    void *at = calloc((size_t)n, each);
    if (!at && n) abort();
    return held[holding++] = at;
}

H3Index *takeIndexes(Input *in, int64_t n) {
    H3Index *out = ROOM(H3Index, n);
    H3Index first = takeIndex(in);
    for (int64_t i = 0; i < n; i++) out[i] = i && in->at < in->end ? takeNear(in, first) : first;
    return out;
}

double *takeNumbers(Input *in, int64_t n) {
    double *out = ROOM(double, n);
    for (int64_t i = 0; i < n; i++) out[i] = takeNumber(in);
    return out;
}

/* ---- promises ---- */

const char *running;
static jmp_buf nextInput;

/* With FUZZ_GO_ON set every broken promise is told once and the run goes on. */
void broken(const char *what, const char *where, int line) {
    static int told[64], count;
    if (!getenv("FUZZ_GO_ON")) {
        fprintf(stderr, "PROMISE BROKEN in %s (%s:%d): %s\n", running, where, line, what);
        abort();
    }
    int known = 0;
    for (int i = 0; i < count; i++) known |= told[i] == line;
    if (!known && count < 64) {
        told[count++] = line;
        fprintf(stderr, "PROMISE BROKEN in %s (%s:%d): %s\n   with", running, where, line, what);
        for (int i = 0; i < indexes; i++) fprintf(stderr, " %llx", (unsigned long long)taken[i]);
        fprintf(stderr, "\n");
    }
    longjmp(nextInput, 1);
}

void promiseCells(const H3Index *cells, int64_t n) {
    for (int64_t i = 0; i < n; i++) PROMISE(!cells[i] || H3_EXPORT(isValidCell)(cells[i]));
}

/* ---- one input ---- */

static int count(const Named *entries) {
    int n = 0;
    while (entries[n].name) n++;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int ofIndex, ofBridge;
    if (!ofIndex) ofIndex = count(indexEntries), ofBridge = count(bridgeEntries);
    Input in = {data, data + size};
    int which = take8(&in) % (ofIndex + ofBridge);
    const Named *entry = which < ofIndex ? &indexEntries[which] : &bridgeEntries[which - ofIndex];
    running = entry->name;
    indexes = 0;
    if (!setjmp(nextInput)) entry->run(&in);
    while (holding) free(held[--holding]);
    return 0;
}
