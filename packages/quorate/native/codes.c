/* From labels that lie sequence after sequence to events that lie token after token. A label below 0 is missing. */
#include "arrays.h"

/* Says which (annotator, label before, label) occur, of `before` · `J` for each annotator. `first` is the label that
 * stands before a sequence, and after a missing label. */
KERNEL void mark_cells(Ints16 labels, Ints start, Ints32 annotator, int64_t first, int64_t before, int64_t J,
                       Bools occurs) {
    for (int64_t s = 0; s + 1 < start.n; s++) {
        bool *mine = occurs.at + annotator.at[s] * before * J;
        int64_t previous = first;
        for (int64_t p = start.at[s]; p < start.at[s + 1]; p++) {
            int64_t label = labels.at[p];
            if (label >= 0) mine[previous * J + label] = true;
            previous = label < 0 ? first : label;
        }
    }
}

/* Goes through the events by token and sequence: document d has the sequences first_sequence[d] to first_sequence[d + 1].
 * Fills where the events of each token begin and all end, and the key of every event, or the rank of its key if `rank`
 * is given; returns how many there are. */
static inline int64_t fill(Ints16 labels, Ints start, Ints32 annotator, Ints first_sequence, Ints doc_start,
                           int64_t first, int64_t before, int64_t J, const int32_t *rank, Ints event_start,
                           int32_t *ranks, int64_t *keys) {
    int64_t n = 0;
    for (int64_t d = 0; d + 1 < doc_start.n; d++)
        for (int64_t t = doc_start.at[d]; t < doc_start.at[d + 1]; t++) {
            int64_t place = t - doc_start.at[d];
            event_start.at[t] = n;
            for (int64_t s = first_sequence.at[d]; s < first_sequence.at[d + 1]; s++) {
                const int16_t *here = labels.at + start.at[s] + place;
                if (here[0] < 0) continue;
                int64_t previous = place == 0 || here[-1] < 0 ? first : here[-1];
                int64_t key = (annotator.at[s] * before + previous) * J + here[0];
                if (rank) ranks[n++] = rank[key];
                else keys[n++] = key;
            }
        }
    event_start.at[event_start.n - 1] = n;
    return n;
}

/* The cell of every event, where `rank` is the number of each cell that occurs. */
KERNEL int64_t fill_events(Ints16 labels, Ints start, Ints32 annotator, Ints first_sequence, Ints doc_start,
                           int64_t first, int64_t before, int64_t J, Ints32 rank, Ints event_start, Ints32 event_cell) {
    return fill(labels, start, annotator, first_sequence, doc_start, first, before, J, rank.at, event_start,
                event_cell.at, 0);
}

/* The key of every event. */
KERNEL int64_t fill_keys(Ints16 labels, Ints start, Ints32 annotator, Ints first_sequence, Ints doc_start, int64_t first,
                         int64_t before, int64_t J, Ints event_start, Ints key) {
    return fill(labels, start, annotator, first_sequence, doc_start, first, before, J, 0, event_start, 0, key.at);
}
