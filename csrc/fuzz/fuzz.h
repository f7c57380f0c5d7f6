/* fuzz.h - junk as arguments, and what every entry point promises in return.
 *
 * An input is a string of bytes: the first picks the function, the rest becomes its arguments. Most
 * values are chosen near those that mean something (cells, small integers, angles), some are the
 * raw bytes. Arrays are exactly as long as the contract asks for, so that the address sanitizer
 * sees one item too many. */
#ifndef H3V_FUZZ_H
#define H3V_FUZZ_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../h3_bulk.h"
#include "../h3_bridge.h"

#define MOST 20000 /* items of an array, so that one call stays in the milliseconds */

typedef struct {
    const uint8_t *at, *end;
} Input;

uint8_t take8(Input *in); /* 0 where the input has ended, here and below */
uint64_t take64(Input *in);
int32_t takeInt(Input *in);
/* 0..most */
int64_t takeCount(Input *in, int64_t most);
int takeRes(Input *in);
/* Any double: angles, tiny and huge ones, infinities, no numbers. */
double takeNumber(Input *in);
/* A cell, an edge, a vertex, one of these with a bit changed, or raw bytes. */
H3Index takeIndex(Input *in);
/* A cell of a resolution near another one, or any. */
H3Index takeNear(Input *in, H3Index other);

/* Zeroed memory for n items of a size, exactly; freed after the call. */
void *room(int64_t n, size_t each);
#define ROOM(type, n) ((type *)room(n, sizeof(type)))
/* Arrays of n indexes, or n numbers. */
H3Index *takeIndexes(Input *in, int64_t n);
double *takeNumbers(Input *in, int64_t n);

/* Ends the program, saying which promise was broken. */
#define PROMISE(what) ((what) ? (void)0 : broken(#what, __func__, __LINE__))
void broken(const char *what, const char *where, int line);
/* Every item is 0 or a valid cell. */
void promiseCells(const H3Index *cells, int64_t n);

extern const char *running; /* the entry that runs, or ran last */

typedef void (*Entry)(Input *);
typedef struct {
    const char *name;
    Entry run;
} Named;
extern const Named indexEntries[], bridgeEntries[]; /* a null name ends each */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
