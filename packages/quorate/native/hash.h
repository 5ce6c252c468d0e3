/* Tables by hash with open addressing: what falls into the same place goes to the next free one. */
#ifndef QUORATE_HASH_H
#define QUORATE_HASH_H

#include <stdint.h>

/* A power of two, at least twice as large as the things are many. */
static inline int64_t table_size(int64_t things) {
    int64_t size = 16;
    while (size < 2 * things) size *= 2;
    return size;
}

/* The code of a sequence so far and its next number. */
static inline uint64_t mixed(uint64_t code, uint64_t number) {
    code = (code ^ number) * UINT64_C(0x9E3779B97F4A7C15);
    return code ^ code >> 29;
}

#endif
