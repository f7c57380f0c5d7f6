/* driver.c - feeds inputs where the compiler has no libFuzzer; takes the same three options.
 *
 *   fuzz [-runs=N] [-seed=S] [-max_total_time=SECONDS] [FILE...]
 *
 * Every run is decided by the seed: an input is fresh junk or one of the last thousand with some
 * bytes changed. A crash, or a run of more than 20 seconds, prints the input as hexadecimal digits;
 * FILEs are run once each. */

#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#if defined(__has_feature) /* clang's way to say it; gcc defines the name itself */
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
void __sanitizer_set_death_callback(void (*callback)(void));
#endif

enum { LONGEST = 400, KEPT = 1024, PATIENCE = 20 };

static uint8_t kept[KEPT][LONGEST];
static size_t lengths[KEPT];
static const uint8_t *current;
static size_t currentSize;
static long long done;

static void tellInput(void) {
    fprintf(stderr, "%s, run %lld, input ", running, done);
    for (size_t i = 0; i < currentSize; i++) fprintf(stderr, "%02x", current[i]);
    fprintf(stderr, "\n");
}

static void onSignal(int number) {
    if (number == SIGALRM) fprintf(stderr, "TOO SLOW: more than %d s\n", PATIENCE);
    tellInput();
    _exit(1);
}

static uint64_t state;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double slowest;
static const char *slowestEntry = "nothing";

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run(const uint8_t *data, size_t size) {
    current = data;
    currentSize = size;
    alarm(PATIENCE);
    double start = now();
    LLVMFuzzerTestOneInput(data, size);
    double took = now() - start;
    alarm(0);
    if (took > slowest) slowest = took, slowestEntry = running;
    done++;
}

static void runFresh(void) {
    int slot = (int)(next() % KEPT);
    uint8_t *data = kept[slot];
    if (!lengths[slot] || next() % 4 == 0) {
        lengths[slot] = 1 + next() % LONGEST;
        for (size_t i = 0; i < lengths[slot]; i++) data[i] = (uint8_t)(next() >> 32);
    } else {
        for (uint64_t i = 1 + next() % 8; i > 0; i--)
            data[next() % lengths[slot]] = (uint8_t)(next() >> 32);
        if (next() % 8 == 0) data[0] = (uint8_t)(next() >> 32);
    }
    /* A copy of its own length: reading past the input is an error too. */
    uint8_t *copy = malloc(lengths[slot]);
    memcpy(copy, data, lengths[slot]);
    run(copy, lengths[slot]);
    free(copy);
}

static int runFile(const char *name) {
    static uint8_t data[1 << 16];
    FILE *file = fopen(name, "rb");
    if (!file) return 1;
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    run(data, size);
    return 0;
}

int main(int argc, char **argv) {
    long long runs = -1, seconds = 0;
    int files = 0;
    state = 1;
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "-runs=%lld", &runs) == 1) continue;
        if (sscanf(argv[i], "-max_total_time=%lld", &seconds) == 1) continue;
        long long seed;
        if (sscanf(argv[i], "-seed=%lld", &seed) == 1) state = (uint64_t)seed;
        else if (argv[i][0] != '-') files++;
    }
    state = state * UINT64_C(0x9E3779B97F4A7C15) | 1;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_set_death_callback(tellInput);
#endif
    signal(SIGABRT, onSignal);
    signal(SIGALRM, onSignal);
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-' && runFile(argv[i])) return 2;
    time_t start = time(NULL);
    while (!files && done != runs) {
        if (seconds && done % 256 == 0 && time(NULL) - start >= seconds) break;
        runFresh();
    }
    printf("Done %lld runs in %lld second(s); the slowest: %s, %.3f s\n", done,
           (long long)(time(NULL) - start), slowestEntry, slowest);
    return 0;
}
