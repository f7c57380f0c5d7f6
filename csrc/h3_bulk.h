/* h3_bulk.h - the index for many items at a time, and the planes of its faces: not in uber/h3.
 *
 * The same answers as those of h3.h to the last bit, several times as fast; thread-safe, too. One
 * object has both: compile h3_bulk.c, which includes h3.c, instead of h3.c.
 */
#ifndef H3V_H3_BULK_H
#define H3V_H3_BULK_H

#include "h3.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- planes ---- */

/* The gnomonic plane of a face 0..19: u along its first axis (a cell's neighbour at even
 * resolutions), v a quarter turn counter-clockwise. E_DOMAIN: no such face, or a point that
 * the plane does not reach. */
H3Error H3_EXPORT(planeToLatLng)(int face, double u, double v, LatLng *g);
H3Error H3_EXPORT(latLngToPlane)(int face, const LatLng *g, double *u, double *v);
/* The cells of n plane points, the same as latLngToCell's except within a rounding error of an
 * edge between cells. Fast where points lie on the face and follow each other. */
H3Error H3_EXPORT(planeToCells)(int face, const double *u, const double *v, int64_t n, int res,
                                H3Index *out);

/* ---- arrays ----
 *
 * n items at a time; they return how many items failed, or -error (E_MEMORY_ALLOC and what is said).
 * A failed item is 0 (cells), NaN (numbers), -1 (counts, distances). `unit` multiplies angles: 1 for
 * radians, pi / 180 on the way in and 180 / pi on the way out for degrees. `stride`: items from one
 * latitude to the next. */

int64_t H3_EXPORT(latLngsToCells)(const double *lat, const double *lng, int64_t stride, double unit,
                                  int64_t n, int res, H3Index *out);
int64_t H3_EXPORT(cellsToLatLngs)(const H3Index *cells, int64_t n, double unit, double *lat,
                                  double *lng, int64_t stride);
/* out: 10 (lat, lng) pairs a cell, unused ones NaN; counts: vertices of each. */
int64_t H3_EXPORT(cellsToBoundaries)(const H3Index *cells, int64_t n, double unit, double *out,
                                     int32_t *counts);
/* Disks one after the other, disk i from offsets[i] to offsets[i + 1] (n + 1 of these), empty for
 * what is no cell; room: n x maxGridDiskSize. Returns offsets[n] or -error (E_DOMAIN: k < 0). */
int64_t H3_EXPORT(gridDisks)(const H3Index *cells, int64_t n, int k, H3Index *out,
                             int64_t *offsets);
int64_t H3_EXPORT(gridDistances)(const H3Index *a, const H3Index *b, int64_t n, int64_t *out);
int64_t H3_EXPORT(cellsToParents)(const H3Index *cells, int64_t n, int res, H3Index *out);
int64_t H3_EXPORT(cellsToCenterChildren)(const H3Index *cells, int64_t n, int res, H3Index *out);
/* 0 or 1. */
int64_t H3_EXPORT(areValidCells)(const H3Index *cells, int64_t n, uint8_t *out);
int64_t H3_EXPORT(getResolutions)(const H3Index *cells, int64_t n, int32_t *out);
/* Steradians x unit. */
int64_t H3_EXPORT(cellAreas)(const H3Index *cells, int64_t n, double unit, double *out);
/* Use the code for this instruction set at most: 0 what every machine has, 1 AVX2, 2 AVX-512 (on
 * x86-64). Returns the one in use. Answers do not change. */
int H3_EXPORT(useSimdLevel)(int level);
int H3_EXPORT(simdLevelInUse)(void);

#ifdef __cplusplus
}
#endif
#endif
