/* The Mersenne Twister, MT19937 (Matsumoto and Nishimura 1998): the same draws as NumPy's RandomState of a seed. */
#ifndef QUORATE_MERSENNE_H
#define QUORATE_MERSENNE_H

#include <stdint.h>

#define TWISTER_WORDS 624
#define TWISTER_SHIFT 397

typedef struct {
    uint32_t state[TWISTER_WORDS], words[TWISTER_WORDS];
    int used;
} Twister;

static inline Twister seeded(uint32_t seed) {
    Twister twister = {.used = TWISTER_WORDS};
    twister.state[0] = seed;
    for (uint32_t i = 1; i < TWISTER_WORDS; i++) {
        uint32_t before = twister.state[i - 1];
        twister.state[i] = UINT32_C(1812433253) * (before ^ before >> 30) + i;
    }
    return twister;
}

/* What a word becomes that is followed by `next`, and has `far` 397 words on. */
static inline uint32_t twisted(uint32_t word, uint32_t next, uint32_t far) {
    uint32_t mixed = (word & UINT32_C(0x80000000)) | (next & UINT32_C(0x7fffffff));
    return far ^ mixed >> 1 ^ (UINT32_C(0x9908b0df) & -(next & 1));
}

/* The next 624 words at once: plain loops, which a compiler can do several words at a time. */
static inline void refill(Twister *twister) {
    uint32_t *s = twister->state;
    int i = 0;
    for (; i < TWISTER_WORDS - TWISTER_SHIFT; i++) s[i] = twisted(s[i], s[i + 1], s[i + TWISTER_SHIFT]);
    for (; i < TWISTER_WORDS - 1; i++) s[i] = twisted(s[i], s[i + 1], s[i + TWISTER_SHIFT - TWISTER_WORDS]);
    s[i] = twisted(s[i], s[0], s[TWISTER_SHIFT - 1]);
    for (i = 0; i < TWISTER_WORDS; i++) {
        uint32_t word = s[i];
        word ^= word >> 11;
        word ^= word << 7 & UINT32_C(0x9d2c5680);
        word ^= word << 15 & UINT32_C(0xefc60000);
        twister->words[i] = word ^ word >> 18;
    }
    twister->used = 0;
}

/* A number from 0 to below 1, in steps of 2^-53. */
static inline double uniform(Twister *twister) {
    if (twister->used == TWISTER_WORDS) refill(twister);
    const uint32_t *words = twister->words + twister->used;
    twister->used += 2;
    return (double)((uint64_t)(words[0] >> 5) << 26 | words[1] >> 6) * 0x1p-53;
}

#endif
