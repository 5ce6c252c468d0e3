/* Four doubles as one value: arithmetic that compilers do not vectorise by themselves on short loops.
 *
 * Where the processor has no such registers, the compiler takes smaller ones; only `fused` then rounds twice.
 */
#ifndef QUORATE_VECTORS_H
#define QUORATE_VECTORS_H

#include <math.h>
#include <stdint.h>

#ifdef __FMA__
#include <immintrin.h>
#endif

#define WIDTH 4 /* doubles of a quad; rows of labels are filled up with zeros to a multiple of it */

/* Doubles are aligned to their own size only. */
typedef double quad __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t quad_bits __attribute__((vector_size(32), aligned(8), may_alias));

#if defined(__clang__)
#define PICKED(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define PICKED(x, y, a, b, c, d) __builtin_shuffle(x, y, (quad_bits){a, b, c, d})
#endif

static inline quad load(const double *at) { return *(const quad *)at; }
static inline void store(double *at, quad x) { *(quad *)at = x; }
static inline quad spread(double x) { return (quad){x, x, x, x}; }
static inline quad_bits spread_bits(int64_t x) { return (quad_bits){x, x, x, x}; }

/* x·y + z, in one instruction where there is one. */
static inline quad fused(quad x, quad y, quad z) {
#ifdef __FMA__
    return (quad)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z);
#else
    return x * y + z;
#endif
}

/* `then` where x > limit, `otherwise` elsewhere. */
static inline quad where_above(quad x, quad limit, quad then, quad otherwise) {
    quad_bits above = (quad_bits)(x > limit);
    return (quad)((above & (quad_bits)then) | (~above & (quad_bits)otherwise));
}

static inline double sum_of(quad x) { return (x[0] + x[2]) + (x[1] + x[3]); }

/* Four quads as a square of four by four, turned. */
static inline void turn(quad x[4]) {
    quad a = PICKED(x[0], x[1], 0, 4, 2, 6), b = PICKED(x[0], x[1], 1, 5, 3, 7);
    quad c = PICKED(x[2], x[3], 0, 4, 2, 6), d = PICKED(x[2], x[3], 1, 5, 3, 7);
    x[0] = PICKED(a, c, 0, 1, 4, 5);
    x[1] = PICKED(b, d, 0, 1, 4, 5);
    x[2] = PICKED(a, c, 2, 3, 6, 7);
    x[3] = PICKED(b, d, 2, 3, 6, 7);
}

/* Rows of a width that is a multiple of WIDTH: out += factor·x; out = x·y; out = factor·x; Σ x·y. */
static inline void add_row(double *out, const double *x, double factor, int64_t width) {
    for (int64_t j = 0; j < width; j += WIDTH) store(out + j, fused(spread(factor), load(x + j), load(out + j)));
}

static inline void multiply_rows(double *out, const double *x, const double *y, int64_t width) {
    for (int64_t j = 0; j < width; j += WIDTH) store(out + j, load(x + j) * load(y + j));
}

static inline void scale_row(double *out, double factor, int64_t width) {
    for (int64_t j = 0; j < width; j += WIDTH) store(out + j, spread(factor) * load(out + j));
}

static inline double product_sum(const double *x, const double *y, int64_t width) {
    quad products = spread(0.0);
    for (int64_t j = 0; j < width; j += WIDTH) products = fused(load(x + j), load(y + j), products);
    return sum_of(products);
}

/* ln 2 in two parts: the first has few enough bits for k·ln 2 to be exact. */
#define LN2 0.693147180369123816490
#define LN2_REST 1.90821492927058770002e-10

/* e^x, for x up to 700; 0 below −708. */
static inline quad exp_of(quad x) {
    static const double series[] = {1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
                                    1.0 / 5040.0,     1.0 / 720.0,     1.0 / 120.0,    1.0 / 24.0,
                                    1.0 / 6.0,        0.5,             1.0,            1.0};
    quad rounding = spread(1.5 * 0x1p52); /* adding it leaves k among the last bits */
    quad rounded = fused(x, spread(1.4426950408889634), rounding);
    quad k = rounded - rounding;
    quad r = fused(k, spread(-LN2_REST), fused(k, spread(-LN2), x));
    quad total = spread(1.0 / 479001600.0);
    for (int n = 0; n < 12; n++) total = fused(total, r, spread(series[n]));
    quad two_to_the_k = (quad)(((quad_bits)rounded << 52) + spread_bits((int64_t)1023 << 52));
    return where_above(x, spread(-708.0), total * two_to_the_k, spread(0.0));
}

/* ln x, for normal numbers above 0. */
static inline quad log_of(quad x) {
    quad_bits bits = (quad_bits)x;
    quad_bits exponent = (bits >> 52) & spread_bits(0x7ff);
    quad k = (quad)(exponent | spread_bits((int64_t)0x433 << 52)) - spread(0x1p52 + 1023.0);
    quad m = (quad)((bits & spread_bits(((int64_t)1 << 52) - 1)) | spread_bits((int64_t)1023 << 52));
    quad one = spread(1.0), root = spread(1.4142135623730951);
    k = where_above(m, root, k + one, k);
    m = where_above(m, root, m * spread(0.5), m);
    quad s = (m - one) / (m + one), z = s * s;
    quad series = spread(1.0 / 21.0);
    for (double n = 19.0; n > 2.0; n -= 2.0) series = fused(series, z, spread(1.0 / n));
    quad twice = s + s;
    quad rest = fused(k, spread(LN2_REST), twice * z * series);
    return fused(k, spread(LN2), twice) + rest;
}

#endif
