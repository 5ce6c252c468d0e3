/* What kernels read and write: arrays of NumPy, as the Python declarations of the same names pass them.
 *
 * An array has n entries along its first axis, and m numbers in each of them (1 if it has no other axis). An optional
 * array that is not given has n = 0.
 */
#ifndef QUORATE_ARRAYS_H
#define QUORATE_ARRAYS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct { double *at; int64_t n, m; } Floats;
typedef struct { float *at; int64_t n, m; } Floats32;
typedef struct { int64_t *at; int64_t n, m; } Ints;
typedef struct { int32_t *at; int64_t n, m; } Ints32;
typedef struct { int16_t *at; int64_t n, m; } Ints16;
typedef struct { int8_t *at; int64_t n, m; } Codes;
typedef struct { uint8_t *at; int64_t n, m; } Bytes;
typedef struct { bool *at; int64_t n, m; } Bools;
typedef struct { uint64_t *at; int64_t n, m; } Hashes;

/* What Python calls. */
#ifdef _WIN32
#define KERNEL __declspec(dllexport)
#else
#define KERNEL __attribute__((visibility("default")))
#endif

static inline int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
