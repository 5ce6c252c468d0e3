/* Hashes of what was said: sums of them stand for sets, as a sum knows no order. */
#include <math.h>

#include "pairs.h"

/* Scatters a number over all of 64 bits: the finaliser of SplitMix64. */
static inline uint64_t scattered(uint64_t x) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* Adds to `words` [D] the hashes of each document's tokens, a word and its place, and to `told` those of what was said
 * of them by each pair. `label`, the hash of a label, is of cells. */
KERNEL void add_hashes(const PairedEvents *events, Ints32 word, Hashes label, Hashes words, Hashes labels) {
    Room room = {0};
    int64_t *pair_of = pairs_by_annotator(events, &room);
    for (int64_t d = 0; d + 1 < events->doc_start.n && pair_of; d++) {
        int64_t first = events->doc_start.at[d];
        look_at(events, d, pair_of);
        for (int64_t t = first; t < events->doc_start.at[d + 1]; t++) {
            uint64_t token = scattered(scattered((uint64_t)word.at[t]) + (uint64_t)(t - first));
            words.at[d] += token;
            for (int64_t e = events->event_start.at[t]; e < events->event_start.at[t + 1]; e++) {
                int64_t cell = events->event_cell.at[e];
                uint64_t here = token + label.at[cell];
                if (events->weight.n) here += scattered((uint64_t)rint(1e6 * events->weight.at[e]));
                labels.at[pair_of[events->annotator.at[cell]]] += scattered(here);
            }
        }
    }
    leave(&room);
}
