/* Hashes of what was said: sums of them stand for sets, as a sum knows no order. */
#include <math.h>

#include "arrays.h"
#include "room.h"

/* Scatters a number over all of 64 bits: the finaliser of SplitMix64. */
static inline uint64_t scattered(uint64_t x) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* Adds to `words` [D] the hashes of each document's tokens, a word and its place, and to `said` those of what was said
 * of them by each pair of document and annotator. Document d has the pairs first_pair[d] to first_pair[d + 1], of which
 * `who` says the annotator. `annotator` and `label`, the hash of a label, are of cells; without `weight`, everything was
 * said for sure. */
KERNEL void add_hashes(Ints doc_start, Ints32 word, Ints event_start, Ints32 event_cell, Floats weight, Ints annotator,
                       Hashes label, Ints first_pair, Ints who, int64_t K, Hashes words, Hashes said) {
    Room room = {0};
    int64_t *pair_of = unfilled(&room, K, sizeof(int64_t));
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t d = 0; d + 1 < doc_start.n; d++) {
        for (int64_t p = first_pair.at[d]; p < first_pair.at[d + 1]; p++) pair_of[who.at[p]] = p;
        for (int64_t t = doc_start.at[d]; t < doc_start.at[d + 1]; t++) {
            uint64_t token = scattered(scattered((uint64_t)word.at[t]) + (uint64_t)(t - doc_start.at[d]));
            words.at[d] += token;
            for (int64_t e = event_start.at[t]; e < event_start.at[t + 1]; e++) {
                int64_t cell = event_cell.at[e];
                uint64_t here = token + label.at[cell];
                if (weight.n) here += scattered((uint64_t)rint(1e6 * weight.at[e]));
                said.at[pair_of[annotator.at[cell]]] += scattered(here);
            }
        }
    }
    leave(&room);
}
