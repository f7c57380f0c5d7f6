/* smoke.c - calls a library as ctypes would, writes every answer to a file.
 *
 *   smoke LIBRARY ANSWERS          on Windows: h3video.dll and answers.bin in the current folder
 *
 * With SMOKE_LIBRARY defined it is a library itself, and a loader says where the functions are
 * (foreign.py).
 *
 * `make dist` runs it on each platform it can start and compares the answers with those of the
 * machine's own: integers equal, numbers within what two libms differ by. Blocks of the file: a
 * byte 'i' (64-bit integers) or 'd' (doubles), seven bytes of name, the count, the items. */

#include "h3_bridge.h"

#if defined(_WIN32)
#define WINAPI __stdcall
__declspec(dllimport) void *WINAPI LoadLibraryA(const char *);
__declspec(dllimport) void *WINAPI GetProcAddress(void *, const char *);
__declspec(dllimport) void *WINAPI CreateFileA(const char *, unsigned, unsigned, void *, unsigned,
                                               unsigned, void *);
__declspec(dllimport) int WINAPI WriteFile(void *, const void *, unsigned, unsigned *, void *);
__declspec(dllimport) int WINAPI CloseHandle(void *);
__declspec(dllimport) void WINAPI ExitProcess(unsigned);
static void *file;
static void put(const void *what, uint64_t size) {
    unsigned written;
    if (!WriteFile(file, what, (unsigned)size, &written, 0) || written != size) ExitProcess(3);
}
#define SYMBOL(library, name) GetProcAddress(library, name)
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static FILE *file;
static void put(const void *what, uint64_t size) {
    if (fwrite(what, 1, size, file) != size) exit(3);
}
#if defined(SMOKE_LIBRARY)
typedef void *(*Finder)(const char *name);
static Finder finder;
#define SYMBOL(library, name) ((void)(library), finder(name))
#else
#define SYMBOL(library, name) dlsym(library, name)
#endif
#endif

enum { POINTS = 500, ROOM = 10000 };

static double lat[POINTS], lng[POINTS], a[POINTS], b[POINTS], corners[20 * POINTS];
static uint64_t cells[POINTS], others[POINTS], list[ROOM];
static int64_t numbers[POINTS + 1], steps[POINTS];
static int32_t counts[POINTS], which[ROOM];
static uint8_t valid[POINTS];
static float weight[ROOM];
static double copied[20 * ROOM];

static void block(char kind, const char *name, const void *items, int64_t count) {
    char head[8] = {kind, ' ', ' ', ' ', ' ', ' ', ' ', ' '};
    for (int i = 0; name[i] && i < 7; i++) head[i + 1] = name[i];
    put(head, 8);
    put(&count, 8);
    put(items, 8 * (uint64_t)count);
}

static uint64_t state = 88172645463325252u;
static double random01(void) { /* xorshift: the same points everywhere */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

/* A function of the library under its own type, so that a changed signature fails to compile. */
#define CALL(name) ((__typeof__(&name))SYMBOL(library, #name))

static void atResolution(void *library, int32_t res) {
    for (int i = 0; i < POINTS; i++) {
        lat[i] = (random01() - 0.5) * 3.14159265358979;
        lng[i] = (random01() - 0.5) * 6.28318530717958;
    }
    int64_t failed[4];
    failed[0] = CALL(bridge_latlngs_to_cells)(lat, lng, 1, 1.0, POINTS, res, cells);
    block('i', "cells", cells, POINTS);
    failed[1] = CALL(bridge_cells_to_latlngs)(cells, POINTS, 1.0, a, b, 1);
    block('d', "lat", a, POINTS);
    block('d', "lng", b, POINTS);
    failed[2] = CALL(bridge_cells_to_boundaries)(cells, POINTS, 1.0, corners, counts);
    block('d', "corners", corners, 20 * POINTS);
    for (int i = 0; i < POINTS; i++) numbers[i] = counts[i];
    block('i', "counts", numbers, POINTS);
    failed[3] = CALL(bridge_cells_to_parents)(cells, POINTS, res / 2, others);
    block('i', "parents", others, POINTS);
    block('i', "failed", failed, 4);
    for (int i = 0; i < POINTS; i++) others[i] = i % 3 ? cells[i] ^ (1ull << (i % 64)) : cells[i];
    CALL(bridge_are_valid_cells)(others, POINTS, valid);
    for (int i = 0; i < POINTS; i++) numbers[i] = valid[i];
    block('i', "valid", numbers, POINTS);
    int64_t n = CALL(bridge_grid_disks)(cells, 50, 3, list, numbers, ROOM);
    block('i', "disks", list, n > 0 && n <= ROOM ? n : 0);
    CALL(bridge_cell_areas)(cells, POINTS, 1.0, a);
    block('d', "areas", a, POINTS);
    for (int i = 0; i < 50; i++) others[i] = list[numbers[i + 1] - 1]; /* three steps away */
    CALL(bridge_grid_distances)(cells, others, 50, steps);
    block('i', "steps", steps, 50);
}

static void rasters(void *library) {
    int64_t n = CALL(bridge_frame_cells)(7, 0.01, -0.02, 80, 60, 0.3, 0.4, 5, list, ROOM);
    block('i', "frame", list, n > 0 && n <= ROOM ? n : 0);
    for (int i = 0; i < 40; i++) {
        a[i] = 16.0 * (i % 8) + 8.0 * (i / 8 % 2);
        b[i] = 13.86 * (i / 8);
    }
    n = CALL(bridge_hex_weights)(40, 30, 0.25, 0.25, 2.5, 40, a, b, 8.0, 0.0, 4.0, which, weight,
                                 ROOM);
    for (int i = 0; i < n && n <= ROOM; i++) copied[i] = weight[i] * (1.0 + which[i]);
    block('d', "weights", copied, n > 0 && n <= ROOM ? n : 0);
}

static void all(void *library) {
    int64_t abi = CALL(bridge_abi_version)();
    block('i', "abi", &abi, 1);
    for (int32_t res = 0; res <= 15; res++) atResolution(library, res);
    rasters(library);
}

#if defined(_WIN32)
int _fltused = 0;
void start(void) {
    void *library = LoadLibraryA("h3video.dll");
    if (!library) ExitProcess(2);
    file = CreateFileA("answers.bin", 0x40000000, 0, 0, 2, 0x80, 0);
    all(library);
    CloseHandle(file);
    ExitProcess(0);
}
#elif defined(SMOKE_LIBRARY)
#include <math.h>
#include <string.h>
/* What macOS has and Linux lacks. */
struct pair {
    double sine, cosine;
};
struct pair __sincos_stret(double x);
struct pair __sincos_stret(double x) { return (struct pair){sin(x), cos(x)}; }
void __bzero(void *at, size_t size);
void __bzero(void *at, size_t size) { memset(at, 0, size); }
void memset_pattern16(void *at, const void *pattern, size_t size);
void memset_pattern16(void *at, const void *pattern, size_t size) {
    for (size_t i = 0; i < size; i++) ((char *)at)[i] = ((const char *)pattern)[i % 16];
}

int smoke_run(Finder find, const char *answers);
int smoke_run(Finder find, const char *answers) {
    finder = find;
    file = fopen(answers, "wb");
    if (!file) return 2;
    all(NULL);
    return fclose(file) ? 3 : 0;
}
#else
int main(int argc, char **argv) {
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "smoke: %s\n", argc == 3 ? dlerror() : "LIBRARY ANSWERS, please");
        return 2;
    }
    file = fopen(argv[2], "wb");
    all(library);
    return fclose(file) ? 3 : 0;
}
#endif
